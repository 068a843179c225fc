"""The values that shape a training: what may be, and what a run that goes on holds against them."""

import pytest

from helpers.toy_runs import bits, make_trainer
from keras_onlstm.training import (
    Setting,
    changed,
    check_settings,
    load_checkpoint,
    save_checkpoint,
)
from keras_onlstm.utils.reading import Choice, Integer, Number

pytestmark = pytest.mark.backend("tensorflow")

SETTINGS = {
    "units": Setting(Integer(1), "size of a layer"),
    "rate": Setting(Number(0.0, 1.0), "share of what is dropped"),
    "tied": Setting(bool, "one matrix for two"),
    "kind": Setting(Choice(("sgd", "adam")), "how it is trained"),
    "most": Setting((Integer(3), None), "words to know"),
    "huge": Setting(Number(), "as large as it may be"),
}
VALUES = {"units": 20, "rate": 0.1, "tied": True, "kind": "adam", "most": None, "huge": 0.0}


def test_values_from_a_command_line():
    texts = ["units=30", "rate=5e-1", "tied=false", "kind=sgd", "most=7"]
    expected = {"units": 30, "rate": 0.5, "tied": False, "kind": "sgd", "most": 7, "huge": 0.0}
    assert changed(VALUES, texts, SETTINGS) == expected
    assert changed(VALUES, ["most=null", "units=3", "units=4"], SETTINGS) == VALUES | {"units": 4}
    assert changed(VALUES, [], SETTINGS) == VALUES and VALUES["units"] == 20
    whole = changed(VALUES, ["rate=1", "units=1"], SETTINGS)
    assert (type(whole["rate"]), type(whole["units"])) == (float, int)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unit=3", "there is no value 'unit'. Is it units?"),
        ("xyz=3", "there is no value 'xyz'. There are units, rate, tied, kind, most, huge."),
        ("units", "is to be NAME=VALUE"),
        ("units=2.5", "units is an integer, 1 or above, not 2.5"),
        ("rate=1.5", "rate is a number from 0 to 1, not 1.5"),
        (f"huge=1{400 * '0'}", "int too large to convert to float"),
    ],
)
def test_mistakes_are_told(text, message):
    with pytest.raises(ValueError) as caught:
        changed(VALUES, [text], SETTINGS)
    assert str(caught.value).startswith(f"--set {text}: {message}")


def test_values_that_are_missing_or_unknown():
    check_settings(VALUES, SETTINGS)
    for values, match in (({"units": 20}, "rate is missing"), (VALUES | {"unit": 3}, "'unit'")):
        with pytest.raises(ValueError, match=match):
            check_settings(values, SETTINGS)


def test_a_run_goes_on_with_its_values_alone(tmp_path):
    make_trainer(tmp_path, record=VALUES).run(max_batches=2)
    for name, other in {"units": 21, "kind": None}.items():
        trained = make_trainer(tmp_path, seed=9, record=VALUES | {name: other})
        before = bits(trained.model)
        with pytest.raises(ValueError, match=f"begun with {name} {VALUES[name]}, not {other}"):
            trained.resume()
        assert bits(trained.model) == before
    with pytest.raises(ValueError, match="begun with units 20, not None"):
        make_trainer(tmp_path).resume()
    survivor = make_trainer(tmp_path, seed=9, record=VALUES)
    survivor.resume()
    assert survivor.progress.batch == 2 and survivor.progress.record == VALUES


def test_checkpoints_of_before_kept_no_values(tmp_path):
    begun = make_trainer(tmp_path)
    begun.run(max_batches=2)
    path = tmp_path / "checkpoint.npz"
    state = load_checkpoint(path, begun.model)
    del state["record"]
    save_checkpoint(path, begun.model, state)
    survivor = make_trainer(tmp_path, record=VALUES)
    survivor.resume()
    assert survivor.progress.batch == 2
