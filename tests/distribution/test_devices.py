"""Data-parallel training: several replicas match one device, to rounding."""

import json

import keras
import numpy as np
import pytest

from helpers.commands import EXAMPLES, contents, free_address, ours, start
from keras_onlstm.distribution.devices import DataParallel

BACKEND = keras.backend.backend()
# A process of its own for each number of devices: they are set up once.
TRAIN = """
import json, sys
from contextlib import nullcontext
import keras, numpy as np
from keras_onlstm.models import LanguageModel
from keras_onlstm.training import AveragedSGD, TruncatedModel, Windows, evaluate_windows
from keras_onlstm.distribution.devices import DataParallel
from keras_onlstm.distribution.processes import connect

count, place = int(sys.argv[1]), json.loads(sys.argv[2])
together = connect(*place, count, {"count": count})
processes = together.__enter__()
devices = DataParallel(count) if count > 1 else None
text = np.arange(900) % 7
own = processes.index, processes.count
many = {"multiple": count * processes.count, "process": own}
windows = Windows(text, 9, window=20, variable_bptt=False, **many)
rates = ("word", "input", "hidden", "output", "recurrent_weight")
with devices.scope() if devices else nullcontext():
    keras.utils.set_random_seed(0)
    model = LanguageModel(30, 12, 24, 2, 4, seed=0, **{f"{rate}_dropout": 0.0 for rate in rates})
    reader = TruncatedModel(model, windows.rows, 2.0, 1.0)
    optimizer = AveragedSGD(5.0, global_clipnorm=0.25)
    reader.compile(devices.prepare(optimizer) if devices else optimizer)
    reader.optimizer.build(reader.trainable_variables)
    reader.optimizer.start_averaging()
    found = []
    for index in range(len(windows)):
        batch = devices.distribute(windows[index]) if devices else windows[index]
        logs = reader.train_on_batch(*batch, return_dict=True)
        found.append([float(logs["loss"]), float(logs["penalty"])])
    states = [float(abs(keras.ops.convert_to_numpy(s)).sum()) for p in reader.states for s in p]
    last = [float(abs(keras.ops.convert_to_numpy(w)).sum()) for w in model.trainable_variables]
    check = TruncatedModel(model, windows.rows)
    check.compile()
    shared = devices and keras.backend.backend() == "tensorflow"  # there one device evaluates
    held = 0 if shared else evaluate_windows(check, windows)
    with reader.optimizer.averaged_weights():
        mean = [float(abs(keras.ops.convert_to_numpy(w)).sum()) for w in model.trainable_variables]
print(json.dumps({"losses": found, "states": states, "last": last, "mean": mean, "held": held}))
together.__exit__(None, None, None)
"""


def start_training(count, place=(1, None, None)):
    return start("-c", TRAIN, count, json.dumps(place))


def finish_training(process):
    output, errors = process.communicate(timeout=400)
    assert process.returncode == 0, errors[-3000:]
    return json.loads(output.splitlines()[-1])


@pytest.fixture(scope="module")
def one():
    """The results of a single device."""
    return finish_training(start_training(1))


@pytest.mark.backend("tensorflow", "jax")
def test_two_replicas_match_one_device(one):
    """Of nine sequences one device has five, the other four and an empty one."""
    two = finish_training(start_training(2))
    if BACKEND == "tensorflow":
        one = {**one, "held": 0}
    losses = np.array(one["losses"])
    assert len(losses) > 4 and losses[0, 0] - losses[-1, 0] > 0.05
    compare(two, one)
    assert one["last"] != one["mean"]


def compare(several, one):
    for name, numbers in one.items():
        # Sums of up to 2,300 numbers.
        np.testing.assert_allclose(several[name], numbers, rtol=2e-5, atol=2e-5, err_msg=name)


COLLECTIVES = """
import json, re
import jax
jax.config.update("jax_num_cpu_devices", 2)
import keras, numpy as np
from keras_onlstm import ONLSTM
from keras_onlstm.models.regularization import WeightDroppedLSTM

devices = keras.distribution.DataParallel(auto_shard_dataset=False)
keras.distribution.set_distribution(devices)
mesh = devices.device_mesh.backend_mesh
found = []
for layer in (ONLSTM(24, 4, return_sequences=True), WeightDroppedLSTM(24, return_sequences=True)):
    layer.build((8, 5, 3))

    def loss(values, x):
        with keras.StatelessScope([*zip(layer.trainable_variables, values)]):
            return (layer(x, training=True) ** 2).sum()

    by_batch = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(mesh.axis_names[0]))
    x = jax.device_put(np.ones((8, 5, 3), "float32"), by_batch)
    gradient = jax.jit(jax.grad(loss)).lower([v.value for v in layer.trainable_variables], x)
    text = gradient.compile().as_text()
    found.append(re.findall(r" (all-\\w+|collective-\\w+|reduce-scatter)\\(", text))
print(json.dumps(found))
"""


@pytest.mark.backend("jax")
def test_devices_exchange_only_gradients():
    """Each device computes its own rows of a batch."""
    found = finish_training(start("-c", COLLECTIVES))
    assert [set(operations) for operations in found] == [{"all-reduce"}] * 2
    assert all(len(operations) <= 3 for operations in found)  # one per weight at most


@pytest.mark.backend("jax")
def test_two_processes_match_one_device(one):
    """Of nine sequences the first process has six, the second the rest and three empty ones."""
    address = free_address()
    started = [start_training(2, (2, index, address)) for index in range(2)]
    outputs = [process.communicate(timeout=200) for process in started]
    assert [process.returncode for process in started] == [0, 0], outputs
    several = json.loads(outputs[0][0].splitlines()[-1])
    assert 0.5 < one["held"] < 3
    compare(several, one)
    assert outputs[1][0] == ""


@pytest.mark.backend("torch")
def test_pytorch_is_rejected():
    with pytest.raises(ValueError, match="Several devices need TensorFlow or JAX, not torch"):
        DataParallel(2)


@pytest.mark.backend("tensorflow")
def test_too_many_devices_are_rejected():
    keras.ops.ones(1)  # from here on there is one
    with pytest.raises(ValueError, match="--devices 9: this machine has only 1"):
        DataParallel(9)


@pytest.mark.backend("tensorflow")
def test_training_command_on_two_devices(tmp_path):
    """Dropout included, so not to the same losses; resumed on one and the same terms.

    By Adam, and in bfloat16.
    """
    run = ["--preset", "debug", "--devices", 2, "--output", tmp_path / "run"]
    run += ["--compute-dtype", "bfloat16", "--optimizer", "adam", "--schedule", "cosine"]
    run += ["--learning-rate", 0.01, "--weight-decay", 0.0, "--num-layers", 1]
    process = start(EXAMPLES / "language_modeling.py", *run)
    _, errors = process.communicate(timeout=400)
    assert process.returncode == 0 and ours(errors) == [], errors
    rows = json.loads((tmp_path / "run" / "metrics.json").read_text())["epochs"]
    assert rows[1]["val_perplexity"] < rows[0]["val_perplexity"] < 13
    assert "results.json" in contents(tmp_path / "run")
