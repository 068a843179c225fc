"""CSV files and printing for the examples."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from keras_onlstm.utils.files import replacing


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Writes a CSV file; the first row is the header."""
    with replacing(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def info(message):
    """Prints a line and flushes, so that log files are up to date."""
    print(message, flush=True)
