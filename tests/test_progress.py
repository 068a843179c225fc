"""How far something is: the line on a terminal, and the lines in a log."""

import io

import pytest

from keras_onlstm.utils.progress import Progress

pytestmark = pytest.mark.keras_free


class Terminal(io.StringIO):
    def isatty(self):
        return True


def counted(stream, seconds):
    """What is on standard error when 50 words are read at each of these seconds."""
    now = iter([0.0, *seconds])
    last = 0.0

    def clock():
        nonlocal last
        last = next(now, last)
        return last

    with Progress("words", stream, clock) as progress:
        for _ in seconds:
            progress.add(50)
            progress.clear()
    return stream.getvalue()


def test_progress_of_what_takes_long():
    said = counted(Terminal(), [1.0, 2.0, 4.0, 4.0, 5.0])
    erased = "\r\x1b[K"
    assert said.startswith(f"150 words in 4 s, 38 a second{erased}")
    assert said.endswith("words in 5 s, 50 a second\n")
    assert said.count("\n") == 1 and said.count(erased) == said.count("a second") - 1


def test_progress_of_a_whole_with_what_was_measured(monkeypatch):
    """Half of it was done before: the other half takes four times what an eighth took."""
    monkeypatch.setenv("COLUMNS", "60")
    seconds, stream = iter([0.0, 4.0, 4.0, 5.0]), Terminal()
    with Progress("words", stream, lambda: next(seconds), title="Epoch 1/2", share=0.5) as progress:
        progress.add(400, 0.625, {"loss": 4.56789, "rate": 2e-5})
    line = "Epoch 1/2: 62%, 12 s left, 400 words in 4 s, 100 a second, l"
    assert stream.getvalue() == (
        f"{line[:59]}\r\x1b[KEpoch 1/2: 62%, 15 s left, 400 words in 5 s, 80 a second, "
        "loss 4.568, rate 2e-05\n"
    )


def test_the_time_left_is_estimated_without_the_steps_that_compile():
    """After steps of 100, 1, 1, 50 and 1 seconds, the first and the fourth of which compile."""
    seconds, stream = 0.0, Terminal()
    with Progress("words", stream, lambda: seconds) as progress:
        for step, took in enumerate([100.0, 1.0, 1.0, 50.0, 1.0], start=1):
            seconds += took
            progress.add(10, step / 100, compiles=took > 1)
    lines = [line.split(" words")[0] for line in stream.getvalue().split("\r\x1b[K")]
    assert lines == [
        "1%, 10",
        "2%, 98 s left, 20",
        "3%, 97 s left, 30",
        "4%, 96 s left, 40",
        "5%, 95 s left, 50",
        "5%, 95 s left, 50",
    ]


def test_there_is_no_estimate_while_every_step_compiles():
    seconds, stream = 0.0, Terminal()
    with Progress("words", stream, lambda: seconds, share=0.1) as progress:
        for share in (0.2, 0.3, 0.7):
            seconds += 60.0
            progress.add(10, share, compiles=True)
    assert "70%, 30 words" in stream.getvalue() and "left" not in stream.getvalue()


def test_progress_in_a_log():
    """A line a minute, one at the end, and no other."""
    seconds, stream = iter([0.0, 5.0, 70.0, 70.0, 80.0, 7200.0]), io.StringIO()
    with Progress("words", stream, lambda: next(seconds), logged=True) as progress:
        for share in (0.01, 0.5, 1.0):
            progress.add(100, share, {"loss": share})
    assert stream.getvalue().splitlines() == [
        "50%, 70 s left, 200 words in 70 s, 3 a second, loss 0.5",
        "100%, 300 words in 2.0 h, 0 a second, loss 1",
    ]


def test_no_progress_of_what_is_soon_done_or_of_what_no_one_sees():
    assert counted(Terminal(), [1.0, 2.0, 2.9]) == ""
    assert counted(io.StringIO(), [1.0, 5.0, 9.0]) == ""
