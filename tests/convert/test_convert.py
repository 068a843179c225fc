"""Conversion of weights of the authors' implementation."""

import io
import itertools
import pickle
import re
import sys
import zipfile

import numpy as np
import pytest

from helpers import oracle
from helpers.checks import SINGLE, as_array, assert_close, loaded, tensor
from keras_onlstm import ONLSTM, convert
from keras_onlstm.models import LanguageModel

UNITS, CHUNK, INPUTS = 4, 2, 3
K = 4 * UNITS + 2 * UNITS // CHUNK


def arrays(**replaced):
    rng = np.random.default_rng(0)
    shapes = {"ih_weight": (K, INPUTS), "ih_bias": (K,), "hh_weight": (K, UNITS), "hh_bias": (K,)}
    return {name: rng.normal(size=replaced.get(name, shape)) for name, shape in shapes.items()}


def test_from_torch_values():
    given = arrays()
    kernel, recurrent_kernel, bias = convert.from_torch(**given, chunk_size=CHUNK)
    assert_close(kernel, given["ih_weight"].T, 0.0, "kernel")
    assert_close(recurrent_kernel, given["hh_weight"].T, 0.0, "recurrent kernel")
    assert_close(bias, given["ih_bias"] + given["hh_bias"], 0.0, "bias")
    assert {w.dtype for w in (kernel, recurrent_kernel, bias)} == {np.dtype("float64")}


def test_layer_accepts_converted_weights():
    weights = convert.from_torch(**arrays(), chunk_size=CHUNK)
    problem = oracle.draw(UNITS, CHUNK, input_dim=INPUTS)
    names = ("kernel", "recurrent_kernel", "bias")
    problem = problem._replace(**dict(zip(names, weights, strict=True)))
    problem = problem._replace(h=0 * problem.h, c=0 * problem.c)
    found = loaded(ONLSTM(UNITS, CHUNK), problem)(tensor(problem.x, "float32"))
    assert_close(found, oracle.onlstm(*problem, chunk_size=CHUNK).h, SINGLE, "output")


@pytest.mark.parametrize("chunk_size", [0, 3, True])
def test_chunk_size_that_does_not_divide_raises(chunk_size):
    with pytest.raises(ValueError, match=f"chunk_size={chunk_size} does not divide the 4 units"):
        convert.from_torch(**arrays(), chunk_size=chunk_size)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("ih_weight", (K + 1, INPUTS)),
        ("hh_weight", (INPUTS, UNITS)),
        ("hh_bias", ()),
    ],
)
def test_wrong_shapes_raise_with_name(name, shape):
    with pytest.raises(ValueError, match=rf"{name} has .* rows; 4 units with chunk_size=2 have 20"):
        convert.from_torch(**arrays(**{name: shape}), chunk_size=CHUNK)


def test_weights_of_wrong_rank_raise():
    with pytest.raises(ValueError, match=r"must be matrices, \(K, input_dim\) and \(K, units\)"):
        convert.from_torch(**arrays(ih_weight=(K,)), chunk_size=CHUNK)


def layer_weights(**replaced):
    rng = np.random.default_rng(1)
    shapes = {"kernel": (INPUTS, K), "recurrent_kernel": (UNITS, K), "bias": (K,)}
    return {name: rng.normal(size=replaced.get(name, shape)) for name, shape in shapes.items()}


def test_to_torch_values():
    given = {name: array.astype("float32") for name, array in layer_weights().items()}
    found = convert.to_torch(**given, chunk_size=CHUNK)
    expected = [given["kernel"].T, given["bias"], given["recurrent_kernel"].T, np.zeros(K)]
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, 0.0, "weights")
        assert one.dtype == "float32"
    for one, name in zip(convert.from_torch(*found, chunk_size=CHUNK), given, strict=True):
        assert_close(one, given[name], 0.0, name)


@pytest.mark.parametrize(
    ("function", "make"), [(convert.from_torch, arrays), (convert.to_torch, layer_weights)]
)
def test_the_weights_are_copies(function, make):
    given = make()
    for array in function(**given, chunk_size=CHUNK):
        array[:] = 0.0
    for name, array in make().items():
        assert_close(given[name], array, 0.0, name)


@pytest.mark.parametrize(
    ("name", "shape", "match"),
    [
        ("kernel", (INPUTS, K + 1), "kernel has .* columns; 4 units with chunk_size=2 have 20"),
        ("recurrent_kernel", (UNITS + 1, K), "chunk_size=2 does not divide the 5 units of recur"),
        ("bias", (K, 1), "bias has .* columns"),
        ("recurrent_kernel", (K,), r"matrices, \(input_dim, K\) and \(units, K\)"),
    ],
)
def test_to_torch_wrong_shapes_raise(name, shape, match):
    with pytest.raises(ValueError, match=match):
        convert.to_torch(**layer_weights(**{name: shape}), chunk_size=CHUNK)


SUFFIXES = (".npz", ".safetensors")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_array_files_round_trip(suffix, tmp_path):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(3, 4))
    given = {
        "a.weight": matrix,
        "transposed": matrix.T.astype("float32"),
        "every other": matrix[::2, ::-1],
        "other byte order": matrix.astype(">f4"),
        "a number": np.float32(0.1),
        "integers": np.arange(3),
        "none at all": np.zeros((0, 2), "float16"),
    }
    path = tmp_path / f"weights{suffix}"
    convert.write_arrays(path, given)
    found = convert.read_arrays(str(path))
    assert found.keys() == given.keys()
    for name, array in given.items():
        assert found[name].dtype == array.dtype.newbyteorder("="), name
        assert np.array_equal(found[name], array), name
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_files_of_numpy_and_of_safetensors_are_read(tmp_path):
    from safetensors.numpy import load_file, save_file

    array = np.random.default_rng(0).normal(size=(2, 3)).astype("float32")
    np.savez_compressed(tmp_path / "theirs.npz", a=array)
    save_file({"a": array}, tmp_path / "theirs.safetensors")
    for suffix in SUFFIXES:
        assert np.array_equal(convert.read_arrays(tmp_path / f"theirs{suffix}")["a"], array)
        convert.write_arrays(tmp_path / f"ours{suffix}", {"a": array})
    with np.load(tmp_path / "ours.npz", allow_pickle=False) as file:
        assert np.array_equal(file["a"], array)
    assert np.array_equal(load_file(tmp_path / "ours.safetensors")["a"], array)


class Trap:
    """Running its pickle would fail the test."""

    def __reduce__(self):
        return pytest.fail, ("the pickle was run",)


def of_numpy(save, *args, **kwargs):
    file = io.BytesIO()
    save(file, *args, **kwargs)
    return file.getvalue()


def flipped(content):
    content = bytearray(content)
    content[len(content) // 2] ^= 1
    return bytes(content)


def zipped(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()


BFLOAT16 = b'{"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
DAMAGED = {
    "an object": (of_numpy(np.savez, a=np.array([Trap()], object)), ".npz"),
    "a pickle": (pickle.dumps(Trap()), ".npz"),
    "a checkpoint of PyTorch": (zipped("archive/data.pkl", pickle.dumps(Trap())), ".npz"),
    "one array": (of_numpy(np.save, np.ones(3)), ".npz"),
    "a changed byte": (flipped(of_numpy(np.savez, a=np.arange(100.0))), ".npz"),
    "no array": (zipped("a.npy", b"text"), ".npz"),
    "nothing": (b"", ".npz"),
    "bfloat16": (len(BFLOAT16).to_bytes(8, "little") + BFLOAT16 + b"ab", ".safetensors"),
    "a header too large": (b"\xff" * 64, ".safetensors"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_files_raise_and_run_no_code(kind, tmp_path):
    content, suffix = DAMAGED[kind]
    path = tmp_path / f"weights{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"weights\{suffix}: not a complete \{suffix} file"):
        convert.read_arrays(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_files_raise(suffix, tmp_path):
    path = tmp_path / f"weights{suffix}"
    convert.write_arrays(path, {"a": np.arange(100.0), "b": np.ones((2, 3), "float32")})
    whole = path.read_bytes()
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match="not a complete"):
            convert.read_arrays(path)


def test_missing_files_and_unknown_suffixes_raise(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        convert.read_arrays(tmp_path / "weights.npz")
    with pytest.raises(FileNotFoundError):
        convert.write_arrays(tmp_path / "nowhere" / "weights.npz", {"a": np.ones(2)})
    (tmp_path / "weights.pt").write_bytes(b"")
    for call in (convert.read_arrays, lambda path: convert.write_arrays(path, {})):
        with pytest.raises(ValueError, match=r"must end in \.npz or \.safetensors"):
            call(tmp_path / "weights.pt")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("array", [np.array([Trap()], object), np.array(["word"])])
def test_arrays_that_need_pickle_raise(suffix, array, tmp_path):
    path = tmp_path / f"weights{suffix}"
    convert.write_arrays(path, {"a": np.ones(2)})
    with pytest.raises(ValueError, match=r"^b is .*, not numbers"):
        convert.write_arrays(path, {"a": np.zeros(2), "b": array})
    assert np.array_equal(convert.read_arrays(path)["a"], np.ones(2))


def test_dtypes_unknown_to_safetensors_raise(tmp_path):
    path = tmp_path / "weights.safetensors"
    with pytest.raises(ValueError, match=r"weights\.safetensors: .*Store another dtype"):
        convert.write_arrays(path, {"a": np.ones(2, "complex128")})
    assert not path.exists()


def test_missing_safetensors_raises(tmp_path, monkeypatch):
    path = tmp_path / "weights.safetensors"
    convert.write_arrays(path, {"a": np.ones(2)})
    for name in [name for name in sys.modules if name.partition(".")[0] == "safetensors"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for call in (convert.read_arrays, lambda path: convert.write_arrays(path, {})):
        with pytest.raises(ImportError, match=r"needs safetensors .*: pip install safetensors$"):
            call(path)
    convert.write_arrays(tmp_path / "weights.npz", {"a": np.ones(2)})


WORDS, SIZE, LARGE = 11, 8, 12
IDS = np.array([[1, 5, 2, 10, 0], [3, 3, 9, 4, 7]])


def state_dict(tied=True, layers=3, size=SIZE, large=LARGE, chunk_size=4, dtype="float32"):
    """A state dict as of the authors' model."""
    rng = np.random.default_rng(2)
    found = {"encoder.weight": rng.normal(size=(WORDS, size))}
    sizes = [size, *[large] * (layers - 1), size]
    for index, (inputs, units) in enumerate(itertools.pairwise(sizes)):
        rows = 4 * units + 2 * units // chunk_size
        for part, shape in (
            ("ih.0.weight", (rows, inputs)),
            ("ih.0.bias", (rows,)),
            ("hh.weight", (rows, units)),
            ("hh.bias", (rows,)),
        ):
            found[f"rnn.cells.{index}.{part}"] = rng.normal(scale=0.5, size=shape)
    found["decoder.weight"] = found["encoder.weight"] if tied else rng.normal(size=(WORDS, size))
    found["decoder.bias"] = rng.normal(size=WORDS)
    return {name: array.astype(dtype) for name, array in found.items()}


def expected_logits(given, chunk_size=4):
    given = {name: array.astype("float64") for name, array in given.items()}
    x = given["encoder.weight"][IDS]
    index = 0
    while f"rnn.cells.{index}.hh.weight" in given:
        ih_weight, ih_bias, hh_weight, hh_bias = (
            given[f"rnn.cells.{index}.{part}"]
            for part in ("ih.0.weight", "ih.0.bias", "hh.weight", "hh.bias")
        )
        zeros = np.zeros((len(IDS), hh_weight.shape[1]))
        weights = ih_weight.T, hh_weight.T, ih_bias + hh_bias
        x = oracle.onlstm(x, zeros, zeros, *weights, chunk_size=chunk_size).outputs
        index += 1
    return x @ given["decoder.weight"].T + given["decoder.bias"]


def weights_of(given, **kwargs):
    return convert.language_model_from_arrays(given, 4, **kwargs).get_weights()


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


STRUCTURES = {
    "one layer": {"layers": 1},
    "untied": {"tied": False, "large": SIZE},
    "untied, one layer": {"tied": False, "layers": 1},
}


@pytest.mark.parametrize("options", STRUCTURES.values(), ids=STRUCTURES)
def test_converted_model_matches_oracle(options, float64):
    given = state_dict(**options, dtype=float64)
    model = convert.language_model_from_arrays(given, chunk_size=4, dtype=float64)
    tied = options.get("tied", True)
    # The softmax of an untied model is keras.layers.Dense, which PyTorch computes in float32.
    assert_close(model(IDS), expected_logits(given), 1e-9 if tied else SINGLE, "logits")
    assert model.get_config()["tie_weights"] == tied
    assert model.get_config()["num_layers"] == options.get("layers", 3)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_converted_model_matches_authors_results(name, shared_reference, float64):
    with np.load(shared_reference / "language_model.npz") as file:
        reference = dict(file)
    given = {
        "encoder.weight": reference["embedding"],
        "decoder.bias": reference["decoder_bias"],
        **{
            f"rnn.{key}": array
            for key, array in reference.items()
            if key.startswith("cells.") and not key.endswith(".grad")
        },
    }
    for key in [key for key in given if key.endswith("hh.weight")]:
        given[key] = given[key] / 0.55  # as their training with weight dropout would have left it
    model = convert.language_model_from_arrays(given, 4, weight_dropout=0.45, dtype=name)
    found = model(reference["tokens"], details=True)
    logits = as_array(found.logits)
    logits = logits - logits.max(-1, keepdims=True)
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    tolerance = {"float32": SINGLE, "float64": 1e-9}[name]
    assert_close(log_probabilities, reference["log_probabilities"], tolerance, "log-probabilities")
    expected = reference["distance_forget"].transpose(2, 0, 1)  # (B, layers, T)
    assert_close(found.distances["forget"], expected, tolerance, "forget distances")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("tied", [True, False])
def test_round_trip_is_bit_identical(tied, suffix, tmp_path):
    words = [f"word{index}" for index in range(WORDS)]
    model = LanguageModel(WORDS, SIZE, LARGE, 3, 4, tie_weights=tied, vocabulary=words, seed=1)
    model.build()
    for variable in model.trainable_variables:  # so that no bias is zeros
        variable.assign(np.random.default_rng(3).normal(size=variable.shape))
    convert.write_arrays(tmp_path / f"w{suffix}", convert.language_model_to_arrays(model))
    given = convert.read_arrays(tmp_path / f"w{suffix}")
    again = convert.language_model_from_arrays(given, chunk_size=4, vocabulary=words)
    assert again.vocabulary == words
    assert_same(again.get_weights(), model.get_weights())


def test_state_dict_names_shapes_and_values():
    given = state_dict()
    model = convert.language_model_from_arrays(given, chunk_size=4)
    found = convert.language_model_to_arrays(model)
    assert list(found) == list(given)
    for name, array in found.items():
        expected = given[name]
        if name.endswith("ih.0.bias"):
            expected = expected + given[name.replace("ih.0", "hh")]
        if name.endswith("hh.bias"):
            expected = np.zeros_like(expected)
        assert array.dtype == "float32"
        assert_close(array, expected, 0.0, name)
    assert not np.shares_memory(found["encoder.weight"], found["decoder.weight"])


def test_weight_dropout_scales_only_recurrent_matrices():
    given = state_dict()
    model = convert.language_model_from_arrays(given, 4, weight_dropout=0.25)
    scaled = {n: np.float32(0.75 if n.endswith("hh.weight") else 1) * a for n, a in given.items()}
    assert_same(model.get_weights(), weights_of(scaled))
    assert model.get_config()["recurrent_weight_dropout"] == 0.25
    back = convert.language_model_to_arrays(model, weight_dropout=0.25)
    for index in range(3):
        name = f"rnn.cells.{index}.hh.weight"
        assert_close(back[name], given[name], 1e-6, name)
    plain = convert.language_model_from_arrays(given, 4)
    assert plain.get_config()["recurrent_weight_dropout"] == 0.0
    other = convert.language_model_from_arrays(
        given, 4, weight_dropout=0.25, recurrent_weight_dropout=0.5, word_dropout=0.2, name="other"
    )
    config = other.get_config()
    assert (config["recurrent_weight_dropout"], config["word_dropout"]) == (0.5, 0.2)
    assert other.name == "other"


@pytest.mark.parametrize("weight_dropout", [1.0, float("nan")])
def test_invalid_weight_dropout_raises(weight_dropout):
    with pytest.raises(ValueError, match=r"weight_dropout must be a rate in \[0, 1\), got"):
        convert.language_model_from_arrays(state_dict(), 4, weight_dropout=weight_dropout)
    model = LanguageModel(WORDS, SIZE, LARGE, 3, 4)
    with pytest.raises(ValueError, match=r"weight_dropout must be a rate in \[0, 1\), got"):
        convert.language_model_to_arrays(model, weight_dropout=weight_dropout)


def test_raw_matrices_are_not_scaled():
    given = state_dict()
    expected = weights_of(given)
    for index in range(3):
        name = f"rnn.cells.{index}.hh.weight"
        given[f"{name}_raw"] = given[name]
        given[name] = np.where(given[name] > 0, given[name], 0)  # what a mask left
    for given_now in (given, {n: a for n, a in given.items() if not n.endswith("hh.weight")}):
        assert_same(weights_of(given_now, weight_dropout=0.25), expected)


def test_copy_of_a_matrix_is_ignored():
    given = state_dict()
    expected = weights_of(given)
    for index in range(3):
        given[f"rnn.cells.{index}.hh._weight"] = given[f"rnn.cells.{index}.hh.weight"].copy()
    assert_same(weights_of(given), expected)
    given["rnn.cells.1.hh._weight"][0, 0] += 1
    with pytest.raises(ValueError, match=r"rnn\.cells\.1\.hh\._weight differs from .*be a copy"):
        weights_of(given)


@pytest.mark.parametrize("dtype", ["float16", "float64", ">f4", "longdouble"])
def test_other_floating_point_dtypes(dtype):
    coarse = {name: array.astype("float16") for name, array in state_dict().items()}
    given = {name: array.astype(dtype) for name, array in coarse.items()}
    assert_same(weights_of(given), weights_of({n: a.astype("float32") for n, a in coarse.items()}))


def test_missing_decoder_means_tied_weights():
    given = state_dict()
    expected = weights_of(given)
    del given["decoder.weight"]
    assert_same(weights_of(given), expected)
    assert "decoder.weight" not in given and len(given) == 14  # what was given is left alone


@pytest.mark.parametrize(
    "name", ["encoder.weight", "rnn.cells.0.ih.0.weight", "rnn.cells.2.hh.bias", "decoder.bias"]
)
def test_missing_array_raises(name):
    given = state_dict()
    del given[name]
    with pytest.raises(ValueError, match=f"^{re.escape(name)} is missing. Pass the whole state"):
        convert.language_model_from_arrays(given, 4)


@pytest.mark.parametrize(
    "name",
    ["decoder.weight", "rnn.cells.0.ih.0.weight", "rnn.cells.2.hh.bias", "decoder.bias"],
)
@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda a: np.concatenate([a, a[:1]]), r"(has shape|has \d+ rows)"),
        (lambda a: a[..., :0], "has shape"),
        (lambda a: a[0], "has shape"),
        (lambda a: np.where(a == a.flat[-1], np.nan, a), "is not finite"),
        (lambda a: a.astype("float64") * 1e39, "is not finite in float32"),
        (lambda a: a.astype("int64"), "is int64, not floating point. Store it as float32"),
        (lambda a: a.astype(object), "is object, not floating point"),
    ],
)
def test_invalid_array_raises(name, change, match):
    given = state_dict()
    given[name] = change(given[name])
    with pytest.raises(ValueError, match=f"^{re.escape(name)} .*{match}"):
        convert.language_model_from_arrays(given, 4)


def test_different_vocabulary_sizes_raise():
    given = state_dict()
    given["encoder.weight"] = np.concatenate([given["encoder.weight"]] * 2)
    with pytest.raises(ValueError, match=r"^decoder\.bias .*encoder.weight has as many words"):
        convert.language_model_from_arrays(given, 4)


@pytest.mark.parametrize(
    "name", ["rnn.cells.0.hh.weight.grad", "rnn.cells.01.hh.weight", "module.encoder.weight"]
)
def test_unknown_array_raises(name):
    given = {name: np.ones(3, "float32"), **state_dict()}
    with pytest.raises(ValueError, match=f"^{re.escape(name)} is not in the state dict.* Leave"):
        convert.language_model_from_arrays(given, 4)
    with pytest.raises(ValueError, match="nor are 1 more arrays"):
        convert.language_model_from_arrays({**given, "another": np.ones(1)}, 4)


def test_missing_layer_raises():
    given = {n: a for n, a in state_dict().items() if not n.startswith("rnn.cells.1.")}
    with pytest.raises(ValueError, match=r"^rnn\.cells\.1\.hh\.weight is missing"):
        convert.language_model_from_arrays(given, 4)


def test_unsupported_layer_sizes_raise():
    wide, narrow = state_dict(large=LARGE), state_dict(large=SIZE)
    given = dict(wide)  # 8 -> 12 -> 8 -> 8
    for part in ("ih.0.weight", "ih.0.bias", "hh.weight", "hh.bias"):
        given[f"rnn.cells.1.{part}"] = wide[f"rnn.cells.2.{part}"]
        given[f"rnn.cells.2.{part}"] = narrow[f"rnn.cells.2.{part}"]
    with pytest.raises(ValueError, match=r"^rnn\.cells\.1\.hh\.weight has 8 units, not 12\. .*ti"):
        convert.language_model_from_arrays(given, 4)
    given = {n: a for n, a in wide.items() if not n.startswith("rnn.cells.2.")}
    given.pop("decoder.weight")
    with pytest.raises(ValueError, match=r"^rnn\.cells\.1\.hh\.weight has 12 units, not 8\. .*"):
        convert.language_model_from_arrays(given, 4)
    match = r"^rnn\.cells\.2\.hh\.weight has 8 units, not 12\. .*not tied, all have one size"
    with pytest.raises(ValueError, match=match):
        convert.language_model_from_arrays(state_dict(tied=False), 4)


def test_wrong_chunk_size_raises_with_the_right_one():
    for chunk_size in (2, 5):
        match = r"^rnn\.cells\.0\.hh\.weight .* Pass chunk_size=4\."
        with pytest.raises(ValueError, match=match):
            convert.language_model_from_arrays(state_dict(), chunk_size)
    with pytest.raises(ValueError, match="chunk_size must be an integer, 1 or above"):
        convert.language_model_from_arrays(state_dict(), 0)


def test_state_dict_of_an_lstm_raises():
    given = state_dict()
    given["rnn.cells.0.hh.weight"] = given["rnn.cells.0.hh.weight"][: 4 * LARGE]
    with pytest.raises(ValueError, match=r"48 rows for 12 units.* It is not of an ON-LSTM layer"):
        convert.language_model_from_arrays(given, 4)


def test_inferred_arguments_raise():
    for name, value in (("units", LARGE), ("tie_weights", True), ("recurrent", "lstm")):
        with pytest.raises(ValueError, match=f"{name} follows from the arrays: leave it out"):
            convert.language_model_from_arrays(state_dict(), 4, **{name: value})
    with pytest.raises(ValueError, match="vocabulary has 1 words, and vocabulary_size is 11"):
        convert.language_model_from_arrays(state_dict(), 4, vocabulary=["a"])


def test_unsupported_models_raise():
    lstm = LanguageModel(WORDS, SIZE, LARGE, recurrent="lstm")
    with pytest.raises(ValueError, match=r"has LSTM layers, .* Save it with model\.save"):
        convert.language_model_to_arrays(lstm)
    with pytest.raises(ValueError, match=r"no weights yet\. Call model\.build"):
        convert.language_model_to_arrays(LanguageModel(WORDS, SIZE, LARGE, chunk_size=4))
