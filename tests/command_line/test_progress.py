"""Progress bars: on a terminal, and nowhere else."""

import io

import pytest

from keras_onlstm.utils.console import advance, progress_bar

pytestmark = pytest.mark.keras_free


class Terminal(io.StringIO):
    def isatty(self):
        return True


def displayed(stream, **options):
    with progress_bar("words", file=stream, mininterval=0, **options) as bar:
        bar.update(50)
        advance(bar, 150, 200)
    return stream.getvalue()


def test_terminal_shows_share_rate_and_time_left():
    text = displayed(Terminal(), delay=0, desc="Epoch 1/2", ncols=100)
    assert "Epoch 1/2:  75%" in text and "150/200 [00:00<00:00, " in text and " words/s]" in text


def test_no_bar_for_short_tasks_or_without_a_terminal():
    assert displayed(Terminal()) == ""
    assert displayed(io.StringIO(), delay=0) == ""
