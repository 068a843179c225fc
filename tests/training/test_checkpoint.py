"""Checkpoints: every variable bit for bit, whole files or none, damage told from health."""

import re

import keras
import ml_dtypes
import numpy as np
import pytest
from keras import ops

from helpers.tiny_runs import bits
from keras_onlstm.training import checkpoint, load_checkpoint, save_checkpoint
from keras_onlstm.utils.files import replacing

X = np.random.default_rng(1).normal(size=(6, 3)).astype("float32")
Y = np.random.default_rng(2).normal(size=(6, 2)).astype("float32")


def make_model(seed=0, policy="float32", units=4):
    """A small model in which everything that training changes occurs."""
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(units, dtype=policy),
            keras.layers.BatchNormalization(dtype=policy),
            keras.layers.Dropout(0.5, seed=seed),
            keras.layers.Dense(2, dtype=policy),
        ]
    )
    # Eagerly: tracing would take longer than all else here.
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"], run_eagerly=True)
    model.optimizer.build(model.trainable_variables)
    model.train_on_batch(X, Y)
    return model


@pytest.fixture
def saved(tmp_path):
    """A model and its checkpoint."""
    model = make_model()
    path = tmp_path / "checkpoint.npz"
    save_checkpoint(path, model, {"epoch": 3})
    return path, model


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "bfloat16"])
def test_checkpoint_round_trip_is_bit_exact(tmp_path, policy):
    model = make_model(policy=policy)
    model.optimizer.learning_rate = 0.003
    for _ in range(3):
        model.train_on_batch(X, Y)
    state = {"epoch": 2, "best": 0.1 + 0.2, "history": [{"loss": 1e-17}], "none": None}
    save_checkpoint(tmp_path / "c.npz", model, state)

    names = {v.path.split("/")[-1] for v in (*model.variables, *model.optimizer.variables)}
    assert {"kernel", "moving_mean", "seed_generator_state", "iteration", "learning_rate"} <= names
    assert len(model.metrics_variables) == 4  # total and count of loss and of mae
    if policy == "bfloat16":
        assert any(dtype == "bfloat16" for dtype, *_ in bits(model))

    other = make_model(seed=7, policy=policy)
    assert sum(a != b for a, b in zip(bits(other), bits(model), strict=True)) > 15
    assert load_checkpoint(tmp_path / "c.npz", other) == state
    assert bits(other) == bits(model)
    assert float(ops.convert_to_numpy(other.optimizer.learning_rate)) == np.float32(0.003)
    # All of it matters: dropout, moments and running metrics continue identically.
    logs = [m.train_on_batch(X, Y, return_dict=True) for m in (model, other)]
    assert {k: float(v) for k, v in logs[0].items()} == {k: float(v) for k, v in logs[1].items()}
    assert bits(other) == bits(model)


def test_checkpoint_stores_nan_and_infinity(saved):
    path, model = saved
    kernel = model.trainable_variables[0]
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 0.1], "float32")
    kernel.assign(np.resize(special, kernel.shape))
    before = bits(model)
    save_checkpoint(path, model, {"epoch": 3})
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert {array.dtype.kind for array in arrays.values()} <= set("fiub")
    assert arrays["state.json"].tobytes() == b'{"epoch": 3}'
    kernel.assign(np.zeros(kernel.shape))
    load_checkpoint(path, model)
    assert bits(model) == before


def test_further_arrays_round_trip(saved):
    path, model = saved
    given = {
        "0/a": np.arange(6, dtype="int64").reshape(2, 3),
        "1/b/0": np.array([np.nan, -0.0], "float32"),
        "1/b/1": np.array([0.1, 2.5], ml_dtypes.bfloat16),
    }
    save_checkpoint(path, model, {"epoch": 1}, given)
    found = {}
    assert load_checkpoint(path, model, arrays=found) == {"epoch": 1}
    assert list(found) == list(given)
    for name, array in given.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes()
    assert load_checkpoint(path, model) == {"epoch": 1}


def assert_refused(path, match, model=None):
    model = make_model(seed=5) if model is None else model
    before = bits(model)
    with pytest.raises(ValueError, match=match) as caught:
        load_checkpoint(path, model)
    assert str(caught.value).startswith(f"{path}: ")
    assert bits(model) == before, "the model changed"


@pytest.mark.parametrize("share", [0.0, 0.01, 0.7, 0.9999])
def test_truncated_checkpoint_is_rejected(saved, share):
    path, _ = saved
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert_refused(path, r"not a complete checkpoint.*Restore it from a copy")


def small_checkpoint(directory):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    model.compile(keras.optimizers.SGD(0.1), "mse", run_eagerly=True)
    model.train_on_batch(X[:, :2], Y)
    save_checkpoint(directory / "small.npz", model, {"epoch": 1})
    return directory / "small.npz", model


def test_flipped_bits_are_detected(tmp_path):
    """A damaged file is refused, or the byte carries nothing (such as the time in a ZIP header)."""
    path, model = small_checkpoint(tmp_path)
    data, before = path.read_bytes(), bits(model)
    directory = data.index(b"PK\x01\x02")  # of the ZIP archive, which makes readers stumble most
    refused = 0
    positions = [*range(0, directory, 29), *range(directory, directory + 46), *range(-22, 0)]
    for position in positions:
        damaged = bytearray(data)
        damaged[position] ^= 0x09
        path.write_bytes(damaged)
        try:
            state = load_checkpoint(path, model)
            assert state == {"epoch": 1}, f"byte {position}: the state differs"
        except ValueError as error:
            refused += 1
            assert str(error).startswith(f"{path}: "), f"byte {position}: {error}"
        assert bits(model) == before, f"byte {position}: the model changed"
    assert refused > len(positions) / 2


@pytest.mark.parametrize(
    "write", [lambda file: np.save(file, np.zeros(3)), lambda file: np.savez(file, kernel=X)]
)
def test_other_numpy_files_are_rejected(saved, write):
    path, _ = saved
    with open(path, "wb") as file:
        write(file)
    assert_refused(path, "not a complete checkpoint")


def rewritten(path, **changes):
    """The checkpoint with some of its arrays, named by their ends, replaced."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for ending, change in changes.items():
        name = next(name for name in arrays if name.endswith(ending))
        arrays[name] = change(arrays[name])
    with open(path, "wb") as file:
        np.savez(file, **arrays)


class Bomb:
    exploded = False

    def __reduce__(self):
        return setattr, (Bomb, "exploded", True)


def test_pickles_are_not_loaded(saved):
    path, _ = saved
    Bomb.exploded = False
    rewritten(path, kernel=lambda kernel: np.array([Bomb()], dtype=object))
    with np.load(path, allow_pickle=True) as file:  # it would go off
        [file[name] for name in file.files]
    assert Bomb.exploded
    Bomb.exploded = False
    assert_refused(path, "pickle")
    assert not Bomb.exploded


@pytest.mark.parametrize("dtype", ["float64", "U", "complex64"])
def test_arrays_of_another_dtype_are_rejected(saved, dtype):
    path, _ = saved
    rewritten(path, bias=lambda bias: bias.astype(dtype))
    assert_refused(path, r"bias.*but the model needs float32.*Resume with the arguments")


def test_checkpoint_of_another_model_is_rejected(saved):
    path, _ = saved
    assert_refused(path, r"\(3, 4\).*but the model needs.*\(3, 5\)", make_model(units=5))
    _, other = small_checkpoint(path.parent)
    assert_refused(path, "belongs to another model.*Resume with the arguments", other)
    model = make_model()
    model.compile("sgd", "mse", metrics=["mae"], run_eagerly=True)  # another optimizer
    model.train_on_batch(X, Y)
    assert_refused(path, "belongs to another model", model)


@pytest.mark.parametrize("text", [b"", b"\xff", b'{"epoch": 3'])
def test_damaged_state_is_rejected(saved, text):
    path, _ = saved
    rewritten(path, **{"state.json": lambda _: np.frombuffer(text, "uint8")})
    assert_refused(path, "not a complete checkpoint")


def test_missing_checkpoint_is_reported(tmp_path):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    for path in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"^{re.escape(str(path))}: no such checkpoint"):
            load_checkpoint(path, model)


@pytest.mark.parametrize("error", [KeyboardInterrupt, TypeError])
def test_interrupted_write_keeps_the_previous_checkpoint(saved, monkeypatch, error):
    path, model = saved
    before = path.read_bytes()

    def savez(file, **arrays):
        file.write_bytes(before[:100])
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint.np, "savez", savez)
    with pytest.raises(error):
        save_checkpoint(path, model, {"epoch": object() if error is TypeError else 4})  # no JSON
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_replacing_keeps_the_file_after_an_error(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        assert (temporary.parent.parent, temporary.name) == (tmp_path, "notes.txt")
        temporary.write_text("ne")
        assert path.read_text() == "old"
        raise RuntimeError
    assert path.read_text() == "old"
    with pytest.raises(OSError, match="cannot be written"), replacing(path):
        pass  # writes nothing
    assert path.read_text() == "old"
    with replacing(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
