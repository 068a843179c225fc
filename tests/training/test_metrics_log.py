"""Metrics of a run: CSV, JSON and TensorBoard event files."""

import csv
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from keras_onlstm.training import trainer
from keras_onlstm.training.trainer import write_history, write_tensorboard

HISTORY = [
    {"epoch": 1, "loss": 1.0 / 3, "val_accuracy": 0.5, "learning_rate": 1e-3, "seconds": 1.25},
    {"epoch": 2, "loss": 1e-17, "val_accuracy": 0.75, "learning_rate": 5e-4, "seconds": 2.5},
]


def test_history_is_written_exactly(tmp_path):
    write_history(tmp_path, HISTORY)
    assert json.loads((tmp_path / "metrics.json").read_text()) == {"epochs": HISTORY}
    with open(tmp_path / "metrics.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [{name: float(value) for name, value in row.items()} for row in rows] == HISTORY
    assert list(rows[0]) == list(HISTORY[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.csv", "metrics.json"]


def test_history_is_written_atomically(tmp_path):
    write_history(tmp_path, HISTORY)
    write_history(tmp_path, HISTORY[:1])
    assert len((tmp_path / "metrics.csv").read_text().splitlines()) == 2
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert json.loads(before["metrics.json"]) == {"epochs": HISTORY[:1]}
    with pytest.raises(ValueError, match="lost"):
        write_history(tmp_path, [*HISTORY, {"epoch": 3, "lost": 1.0}])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# In a separate process: TensorBoard's imports warn, and warnings are errors here.
READER = """
import json, sys, types
from pathlib import Path

sys.modules["tensorboard.compat.notf"] = types.ModuleType("notf")  # TensorFlow takes seconds
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

events = [
    [event.step, value.tag, value.simple_value]
    for path in Path(sys.argv[1]).iterdir()
    for event in LegacyEventFileLoader(str(path)).Load()
    for value in event.summary.value
]
print(json.dumps(events))
"""


@pytest.mark.skipif(find_spec("tensorboard") is None, reason="TensorBoard is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_the_values(tmp_path):
    for row in HISTORY:
        write_tensorboard(tmp_path, row)
    assert [path.name for path in tmp_path.iterdir()] == ["tensorboard"]
    output = subprocess.run(
        [sys.executable, "-c", READER, str(tmp_path / "tensorboard")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    events = {(step, tag): value for step, tag, value in json.loads(output.splitlines()[-1])}
    wanted = {
        (row["epoch"], tag): pytest.approx(value, rel=1e-6)
        for row in HISTORY
        for tag, value in row.items()
        if tag != "epoch"
    }
    assert events == wanted


def test_nothing_is_written_without_tensorboard(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(
        trainer, "find_spec", lambda name: None if name == "tensorboard" else find_spec(name)
    )
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    write_tensorboard(tmp_path, HISTORY[0])
    assert list(Path(tmp_path).iterdir()) == []
    assert capfd.readouterr() == ("", "")
