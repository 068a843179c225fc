"""Progress bars: on a terminal, and nowhere else."""

import io

import pytest

from keras_onlstm.utils.console import advance, progress_bar

pytestmark = pytest.mark.keras_free


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(stream, **options):
    with progress_bar("words", file=stream, mininterval=0, **options) as bar:
        bar.update(50)
        advance(bar, 150, 200)
    return stream.getvalue()


def test_a_terminal_shows_the_share_the_rate_and_the_time_left():
    text = shown(Terminal(), delay=0, desc="Epoch 1/2", ncols=100)
    assert "Epoch 1/2:  75%" in text and "150/200 [00:00<00:00, " in text and " words/s]" in text


def test_nothing_is_shown_of_what_is_soon_done_or_where_there_is_no_terminal():
    assert shown(Terminal()) == ""
    assert shown(io.StringIO(), delay=0) == ""
