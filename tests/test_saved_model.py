"""SavedModels beside plain Keras, and what stands at their path before and afterwards."""

import json
import os
import resource

import keras
import numpy as np
import pytest

import exports
from checks import SINGLE, assert_close
from commands import contents
from exports import TIMES
from keras_onlstm import ONLSTM
from keras_onlstm.exporting import saved_model_tensorflow, to_saved_model
from keras_onlstm.utils.files import replacing

pytestmark = pytest.mark.backend("tensorflow")


@pytest.fixture(scope="module")
def model():
    return exports.language_model(vocabulary=exports.WORDS)


@pytest.fixture(scope="module")
def exported(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model"
    return to_saved_model(model, path, about={"by": "me"}, check=False)


def endpoints(path):
    """Functions of arrays by name."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(path))

    def function(signature):
        def run(**given):
            specs = signature.structured_input_signature[1]
            tensors = {name: tf.constant(given[name], spec.dtype) for name, spec in specs.items()}
            return {name: array.numpy() for name, array in signature(**tensors).items()}

        run.loaded = loaded  # a signature alone does not keep its variables
        return run

    return {name: function(signature) for name, signature in loaded.signatures.items()}


@pytest.fixture(scope="module")
def files(exported):
    return endpoints(exported.path)


@pytest.fixture(scope="module")
def read(model):
    ids, _ = exports.sentences(3, max(TIMES))
    return ids, exports.read(model, ids)


# --- Values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "time"), [(1, 17), (3, 1), (2, 200)])
@pytest.mark.parametrize("name", ["parser", "language_model", "serving_default"])
def test_sentences(files, read, name, batch, time):
    _, lengths = exports.sentences(batch, time, seed=time)
    found = files[name](ids=read[0][:batch, :time], lengths=lengths)
    expected = exports.part(read[1], time, lengths)
    if name != "language_model":
        del expected["log_probabilities"]
    assert found.keys() == expected.keys()
    for output, array in found.items():
        assert_close(array, expected[output], SINGLE, output)


@pytest.mark.parametrize("batch", [1, 3])
def test_steps_are_the_whole_sentence(model, files, read, batch):
    found = exports.step_by_step(files["step"], model, read[0][:batch, :20])
    for output, array in exports.part(read[1], 20, np.full(batch, 20)).items():
        assert_close(found[output], array, SINGLE, output)


def test_pairs(tmp_path):
    model = exports.classifier()
    exported = to_saved_model(model, tmp_path / "model", labels=list("=<>"))
    run = endpoints(exported.path)["classifier"]
    for batch, times in ((3, (2, 17)), (1, (17, 1))):
        left, right = exports.pair(batch, *times)
        found = run(left=left, right=right)["probabilities"]
        assert_close(found, exports.classified(model, left, right), SINGLE, "probabilities")
    assert 0.0 < exported.difference.largest < SINGLE and 0.0 < exported.latency < 1.0
    assert exported.difference.output == "probabilities"


# --- What is there -------------------------------------------------------------------------------


def test_what_is_said_of_it(exported, files):
    names = ("parser", "language_model", "step")
    assert exported.graphs == names and files.keys() == {"serving_default", *names}
    files_below = [path for path in exported.path.rglob("*") if path.is_file()]
    assert exported.size == sum(path.stat().st_size for path in files_below) > 20_000
    assert exported.difference is None and exported.latency is None
    assert exported.operators["While"] == 4  # two layers, two endpoints of whole sentences
    assert not {kind for kind in exported.operators if "PyFunc" in kind or "Xla" in kind}
    text = (exported.path / saved_model_tensorflow.METADATA).read_text(encoding="utf-8")
    about = json.loads(text)
    assert about["graph"] == "parser" and about["graphs"] == list(names)
    assert about["vocabulary"] == exports.WORDS and about["about"] == {"by": "me"}
    assert {"keras", "tensorflow"} <= about["versions"].keys()


def one_step():
    """A model that takes no time to export."""
    x = keras.Input((1, 3), name="x")
    return exports.with_weights(keras.Model(x, ONLSTM(4)(x)))


def test_one_that_is_there_is_replaced(model, tmp_path):
    path = tmp_path / "model"
    to_saved_model(model, path, graphs="step", check=False)
    assert endpoints(path).keys() == {"serving_default", "step"}
    (path / "more").write_text("of the old one")
    other = one_step()
    to_saved_model(other, path, check=False)
    found = endpoints(path)
    assert found.keys() == {"serving_default", "layer"} and not (path / "more").exists()
    x = np.random.default_rng(0).normal(size=(2, 1, 3)).astype("float32")
    assert_close(found["layer"](x=x)["output"], other(x), SINGLE, "output")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("kind", ["a file", "a directory", "an empty directory"])
def test_anything_else_is_not_touched(kind, tmp_path):
    path = tmp_path / "model"
    if kind == "a file":
        path.write_text("years of work")
    else:
        path.mkdir()
        if kind == "a directory":
            (path / "thesis.tex").write_text("years of work")
    before = contents(tmp_path)
    with pytest.raises(
        FileExistsError, match=r"model: exists, and is no SavedModel\. Name another"
    ):
        to_saved_model(one_step(), path)
    assert contents(tmp_path) == before


def test_a_process_that_was_killed_while_it_replaced_one(tmp_path):
    path = tmp_path / "model"
    to_saved_model(one_step(), path, check=False)
    before = contents(path)
    place = tmp_path / ".model.dead.part"
    place.mkdir()
    path.rename(place / "model.old")
    os.utime(place, (0, 0))
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        assert contents(path) == before  # the only one there is
        assert not temporary.exists()
        raise KeyboardInterrupt
    assert contents(path) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_a_limit_on_the_size_of_files(tmp_path):
    path, before = tmp_path / "model", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        with pytest.raises(OSError, match="cannot be written") as caught:
            to_saved_model(one_step(), path, check=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(caught.value).startswith(f"{path}: cannot be written (File too large). Raise")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("graphs", [["parser", "classifier"], "layer"])
def test_graphs_that_are_not_there(model, graphs, tmp_path):
    with pytest.raises(ValueError, match="a LanguageModel has no graph '"):
        to_saved_model(model, tmp_path / "model", graphs)
    assert contents(tmp_path) == {}
