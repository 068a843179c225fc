"""Reads the files of runs and compares runs."""

import csv
import json

import keras
from keras import ops


def weights(directory):
    model = keras.saving.load_model(directory / "best.keras", compile=False, safe_mode=True)
    return [ops.convert_to_numpy(weight).tobytes() for weight in model.weights]


def epochs(directory):
    with open(directory / "metrics.csv", newline="", encoding="utf-8") as file:
        return [{**row, "seconds": ""} for row in csv.DictReader(file)]


def results(directory):
    paths = [path for path in directory.glob("*.json") if "metrics" not in path.name]
    return {p.name: json.loads(p.read_text()) for p in paths if p.name != "config.json"}


def without_times(results):
    """Removes the values that differ between two evaluations of a model."""
    return {name: row | {"run": "", "seconds": 0} for name, row in results.items()}


def assert_same_run(directory, other):
    assert weights(directory) == weights(other)
    assert epochs(directory) == epochs(other)
    assert without_times(results(directory)) == without_times(results(other))
    assert not [path for path in directory.iterdir() if path.match(".*.part")]
