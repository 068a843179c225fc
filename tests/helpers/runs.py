"""What a run leaves, and whether two runs are the same."""

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
    found = {path.name: path.read_text() for path in directory.glob("*.json")}
    found = {name: json.loads(text) for name, text in found.items() if "metrics" not in name}
    return {name: found[name] for name in found if name != "config.json"}


def without_times(found):
    """Results without what differs between two evaluations of one model."""
    return {name: row | {"run": "", "seconds": 0} for name, row in found.items()}


def assert_same_run(directory, other):
    assert weights(directory) == weights(other)
    assert epochs(directory) == epochs(other)
    assert without_times(results(directory)) == without_times(results(other))
    assert not [path for path in directory.iterdir() if path.match(".*.part")]
