"""Checkpoints: every variable bit for bit, whole files or none, damage told from health."""

import errno
import gc
import io
import itertools
import os
import zipfile

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from keras_onlstm.training import checkpoint, load_checkpoint, save_checkpoint
from keras_onlstm.utils.files import replacing, write_json
from keras_onlstm.utils.reading import read_json

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


def bits(model):
    """What every variable holds: names do not matter, the order does."""
    variables = [*model.variables, *model.metrics_variables, *model.optimizer.variables]
    arrays = [np.ascontiguousarray(ops.convert_to_numpy(variable)) for variable in variables]
    return [(str(array.dtype), array.shape, array.tobytes()) for array in arrays]


@pytest.fixture
def saved(tmp_path):
    """A model and its checkpoint."""
    model = make_model()
    path = tmp_path / "checkpoint.npz"
    save_checkpoint(path, model, {"epoch": 3})
    return path, model


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "bfloat16"])
def test_round_trip_of_every_bit(tmp_path, policy):
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
    # All of it counts: dropout, moments and running metrics go on alike.
    logs = [m.train_on_batch(X, Y, return_dict=True) for m in (model, other)]
    assert {k: float(v) for k, v in logs[0].items()} == {k: float(v) for k, v in logs[1].items()}
    assert bits(other) == bits(model)


def test_special_values_survive(saved):
    path, model = saved
    kernel = model.trainable_variables[0]
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 0.1], "float32")
    kernel.assign(np.resize(special, kernel.shape))
    before = bits(model)
    save_checkpoint(path, model, {})
    kernel.assign(np.zeros(kernel.shape))
    load_checkpoint(path, model)
    assert bits(model) == before


def test_only_numbers_in_the_file(saved):
    path, _ = saved
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    assert {array.dtype.kind for array in arrays.values()} <= set("fiub")
    assert arrays["state.json"].tobytes() == b'{"epoch": 3}'


# --- Damage -------------------------------------------------------------------------------------


def assert_refused(path, match, model=None):
    model = make_model(seed=5) if model is None else model
    before = bits(model)
    with pytest.raises(ValueError, match=match) as caught:
        load_checkpoint(path, model)
    assert str(caught.value).startswith(f"{path}: ")
    assert bits(model) == before, "the model changed"


@pytest.mark.parametrize("share", [0.0, 0.0003, 0.01, 0.3, 0.7, 0.95, 0.9999])
def test_truncated_file(saved, share):
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


def test_no_flipped_bits_go_unnoticed(tmp_path):
    """A damaged file is refused, or the byte carries nothing (such as the time in a ZIP header)."""
    path, model = small_checkpoint(tmp_path)
    data, before = path.read_bytes(), bits(model)
    directory = data.index(b"PK\x01\x02")  # of the ZIP archive, which makes readers stumble most
    refused = 0
    positions = [*range(0, directory, 13), *range(directory, directory + 46), *range(-22, 0)]
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


@given(data=st.binary(max_size=200), kind=st.sampled_from([b"", b"PK\x03\x04", b"\x93NUMPY"]))
@settings(max_examples=30)
def test_any_other_bytes_are_refused(tmp_path_factory, data, kind):
    path = tmp_path_factory.getbasetemp() / "any.npz"
    path.write_bytes(kind + data)
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    assert_refused(path, "not a complete checkpoint", model)


def test_an_npy_file_is_refused(saved):
    path, _ = saved
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
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


def test_pickles_are_not_opened(saved):
    path, _ = saved
    Bomb.exploded = False
    rewritten(path, kernel=lambda kernel: np.array([Bomb()], dtype=object))
    with np.load(path, allow_pickle=True) as file:  # it would go off
        [file[name] for name in file.files]
    assert Bomb.exploded
    Bomb.exploded = False
    assert_refused(path, "kernel holds pickled objects")
    assert not Bomb.exploded


@pytest.mark.parametrize(
    "change",
    [lambda a: a.astype("float64"), lambda a: a.astype("U"), lambda a: a.astype("complex64")],
    ids=["float64", "text", "complex"],
)
def test_arrays_of_another_dtype_are_refused(saved, change):
    path, _ = saved
    rewritten(path, bias=change)
    assert_refused(path, r"bias.*the model wants float32.*Resume with the arguments")


def test_arrays_of_another_shape_are_refused(saved):
    path, _ = saved
    assert_refused(path, r"\(3, 4\).*the model wants.*\(3, 5\)", make_model(units=5))


def test_another_model_is_refused(saved):
    path, _ = saved
    _, other = small_checkpoint(path.parent)
    assert_refused(path, "belongs to another model.*Resume with the arguments", other)
    model = make_model()
    model.compile("sgd", "mse", metrics=["mae"], run_eagerly=True)  # another optimizer
    model.train_on_batch(X, Y)
    assert_refused(path, "belongs to another model", model)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"epoch": 3'])
def test_a_damaged_state_is_refused(saved, text):
    path, _ = saved
    rewritten(path, **{"state.json": lambda _: np.frombuffer(text, "uint8")})
    assert_refused(path, "not a complete checkpoint")


def test_no_state_is_refused(saved):
    path, _ = saved
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist() if "state.json" not in name}
    with zipfile.ZipFile(path, "w") as new:
        for name, content in members.items():
            new.writestr(name, content)
    assert_refused(path, "not a complete checkpoint")


def test_what_check_raises_leaves_the_model_untouched(saved):
    path, _ = saved
    model = make_model(seed=5)
    before = bits(model)

    def check(state):
        assert state == {"epoch": 3}
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        load_checkpoint(path, model, check)
    assert bits(model) == before


def test_a_missing_file_or_a_directory(tmp_path):
    model = make_model()
    before = bits(model)
    for path in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no such checkpoint\. Start") as caught:
            load_checkpoint(path, model)
        assert str(caught.value).startswith(f"{path}: ")
    assert bits(model) == before


# --- Interrupted writes -------------------------------------------------------------------------


class FullDisk(io.FileIO):
    """A file on a disk with room for `room` more bytes."""

    room = 0

    def write(self, data):
        size = memoryview(data).nbytes
        if size > FullDisk.room:
            super().write(memoryview(data).cast("B")[: FullDisk.room])
            FullDisk.room = 0
            raise OSError(errno.ENOSPC, "No space left on device")
        FullDisk.room -= size
        return super().write(data)


# NumPy 2.0 leaves the archive open, which fails again when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("room", [0, 1, 100, 3000])
def test_a_full_disk_leaves_the_checkpoint_before(saved, monkeypatch, room):
    path, model = saved
    before = path.read_bytes()
    assert len(before) > 3000
    model.train_on_batch(X, Y)
    FullDisk.room = room
    with monkeypatch.context() as patch:
        patch.setattr(zipfile.io, "open", lambda file, mode: FullDisk(file, "wb+"))
        with pytest.raises(OSError, match="No space left") as caught:
            save_checkpoint(path, model, {"epoch": 4})
    assert str(caught.value).startswith(f"{path}: cannot be written")
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert load_checkpoint(path, model) == {"epoch": 3}
    del caught
    gc.collect()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
def test_an_interrupted_write_leaves_the_checkpoint_before(saved, monkeypatch, error):
    path, model = saved
    before = path.read_bytes()

    def savez(file, **arrays):
        file.write_bytes(before[:100])
        raise error("now")

    monkeypatch.setattr(checkpoint.np, "savez", savez)
    with pytest.raises(error):
        save_checkpoint(path, model, {"epoch": 4})
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_state_that_is_no_json_leaves_the_checkpoint_before(saved):
    path, model = saved
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save_checkpoint(path, model, {"epoch": object()})
    assert path.read_bytes() == before


def test_what_a_kill_left_behind_is_replaced(saved):
    path, model = saved
    place = path.parent / ".checkpoint.npz.dead.part"
    place.mkdir()
    (place / path.name).write_bytes(b"half")
    save_checkpoint(path, model, {"epoch": 4})
    assert place.exists()  # another process may be at it
    os.utime(place, (0, 0))
    save_checkpoint(path, model, {"epoch": 4})
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert load_checkpoint(path, model) == {"epoch": 4}


# --- Files --------------------------------------------------------------------------------------


def test_replacing_needs_the_whole_file(tmp_path):
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


def test_json_round_trip_and_errors(tmp_path):
    path = tmp_path / "config.json"
    content = {"a": [1, 0.1, None], "b": {"ü": "ü"}}
    write_json(path, content)
    assert read_json(path, dict, "Do that.") == content
    whole = path.read_bytes()
    for damaged in (b"", whole[:10], whole[:-3], b"[1]", b"3", b"null", b"\xff\xfe"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"Do that\.$") as caught:
            read_json(path, dict, "Do that.")
        assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(FileNotFoundError, match=r"no such file\. Do that\.$"):
        read_json(tmp_path / "other.json", dict, "Do that.")
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert path.read_bytes() == b"\xff\xfe"
    assert list(tmp_path.iterdir()) == [path]


def test_nesting_beyond_the_stack_is_an_error_of_one_kind(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("".join(itertools.repeat("[", 100_000)))
    with pytest.raises(ValueError, match="not valid JSON"):
        read_json(path, dict, "Do that.")
