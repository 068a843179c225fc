"""How far something is that takes time: one look for commands, trainers and evaluations.

It is not in `console`, which changes what Ctrl-C does, and is for command lines alone.
"""

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TextIO

__all__ = ["Progress"]


class Progress:
    """A line that says how far something is, how fast it goes on, and what was measured so far.

    On a terminal it comes once there is something to wait for, is rewritten every second, and stays
    at the end. Elsewhere there is none, or one a minute and one at the end. Whoever prints
    something else calls `clear` before; the next `add` writes the line again.

    Args:
        units: what is counted, in the plural.
        stream: text file; default: standard error.
        clock: function without arguments, of the seconds.
        title: what the line begins with.
        share: what is done already of the whole, from 0 to 1.
        logged: whether there is a line at the end however soon that is, and elsewhere than on a
            terminal.

    Example:

    >>> import sys
    >>> from keras_onlstm.utils.progress import Progress
    >>> with Progress("words", sys.stdout, title="Epoch 1/2", logged=True) as progress:
    ...     progress.add(12, share=0.5, numbers={"loss": 4.5678})  # doctest: +ELLIPSIS
    Epoch 1/2: 50%, 0 s left, 12 words in 0 s, ... a second, loss 4.568
    """

    AFTER = 3.0  # seconds without a word
    EVERY = 1.0
    LOGGED = 60.0  # the same where it is no terminal

    def __init__(
        self,
        units: str,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        title: str = "",
        share: float = 0.0,
        logged: bool = False,
    ) -> None:
        self._units, self._clock, self._title, self._logged = units, clock, title, logged
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._start = self._last = clock()
        self._next = self._start + (self.AFTER if self._terminal else self.LOGGED)
        self._count = 0.0
        self._before = share
        self._share: float | None = None
        self._compiling = self._compiled = 0.0  # seconds, and share, of the steps that compiled
        self._numbers: Mapping[str, float] = {}
        self._line = self._shown = False  # whether it stands there, and ever did

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shown or (self._logged and self._count):
            self._show("\n")

    def add(
        self,
        count: float,
        share: float | None = None,
        numbers: Mapping[str, float] | None = None,
        compiles: bool = False,
    ) -> None:
        """Counts on, and shows the line if it is time.

        Args:
            count: so many more.
            share: what is done by now of the whole, from 0 to 1, if that is known.
            numbers: dictionary of what was measured so far, in the place of that of before.
            compiles: whether this step compiled something first. The time left is estimated from
                the other steps, and not before there is one.
        """
        now = self._clock()
        if compiles and share is not None:
            self._compiling += now - self._last
            self._compiled += share - (self._before if self._share is None else self._share)
        self._last = now
        self._count += count
        self._share, self._numbers = share, numbers or {}
        if (self._terminal or self._logged) and now >= self._next:
            self._show("" if self._terminal else "\n")

    def clear(self) -> None:
        """Makes room for something else in the place of the line."""
        if self._line:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._line, self._next = False, self._start

    def _show(self, end=""):
        now = self._clock()
        text = self._text(now - self._start)
        if not end:  # what takes two lines cannot be rewritten
            text = text[: shutil.get_terminal_size().columns - 1]
        self.clear()
        self._stream.write(text + end)
        self._stream.flush()
        self._line, self._shown = not end, True
        self._next = now + (self.EVERY if self._terminal else self.LOGGED)

    def _text(self, seconds):
        parts = []
        if self._share is not None:
            parts.append(f"{self._share:.0%}")
            done = self._share - self._before - self._compiled
            if done > 1e-9 and self._share < 1:  # rounding leaves a little where all steps compiled
                left = (seconds - self._compiling) * (1 - self._share) / done
                parts.append(f"{_duration(left)} left")
        parts.append(f"{self._count:,.0f} {self._units} in {_duration(seconds)}")
        parts.append(f"{self._count / max(seconds, 1e-9):,.0f} a second")
        parts += [f"{name} {value:.4g}" for name, value in self._numbers.items()]
        return (f"{self._title}: " if self._title else "") + ", ".join(parts)


def _duration(seconds):
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
