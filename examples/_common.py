"""Shared by the examples: CSV files and printing."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from keras_onlstm.utils.files import replacing


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Writes rows, starting with the header."""
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def info(message):
    """Prints a line immediately, also into a log file."""
    print(message, flush=True)
