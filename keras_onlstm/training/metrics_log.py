"""Writes the metrics of a run as CSV, as JSON and, if it is installed, for TensorBoard.

Without TensorBoard (`pip install tensorboard`) no event files are written.
"""

import csv
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import replacing, write_json

__all__ = ["write_history", "write_tensorboard"]


def write_history(directory: StrPath, history: Sequence[dict[str, Any]]) -> None:
    """Writes the rows of all epochs to `metrics.csv` and `metrics.json`.

    Both are rewritten each time, so that a resumed run never contains an epoch twice.
    """
    directory = Path(directory)
    with (
        replacing(directory / "metrics.csv") as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, fieldnames=list(history[0]))
        writer.writeheader()
        writer.writerows(history)
    write_json(directory / "metrics.json", {"epochs": history})


def write_tensorboard(directory: StrPath, row: dict[str, Any]) -> None:
    """Adds an epoch's row to the event files in `tensorboard/`, if TensorBoard is installed."""
    if find_spec("tensorboard") is None:
        return
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    values = [
        Summary.Value(tag=name, simple_value=value)
        for name, value in row.items()
        if name != "epoch"
    ]
    now, epoch = time.time(), row["epoch"]
    events = [
        Event(wall_time=now, file_version="brain.Event:2"),
        Event(wall_time=now, step=epoch, summary=Summary(value=values)),
    ]
    directory = Path(directory) / "tensorboard"
    directory.mkdir(exist_ok=True)
    # TensorBoard reads the files of a directory in the order of their names.
    with (
        replacing(directory / f"events.out.tfevents.{now:010.0f}.{epoch:06d}") as temporary,
        open(temporary, "wb") as file,
    ):
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString())
