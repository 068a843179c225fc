"""Training in several processes: shared values, rejected options, failing processes."""

import json
import shutil
import signal
import socket
import subprocess
import time

import keras
import numpy as np
import pytest

from helpers import commands
from helpers.commands import EXAMPLES, contents, environment, free_address, ours, start
from keras_onlstm.distribution.processes import connect

SCRIPT = EXAMPLES / "language_modeling.py"


def ends(started, seconds=240):
    """Exit statuses, standard outputs and lines of errors."""
    started = list(started)  # all are started before the first is waited for
    try:
        outputs = [process.communicate(timeout=seconds) for process in started]
    except subprocess.TimeoutExpired:
        for process in started:
            process.send_signal(signal.SIGABRT)  # `start` lets Python print where each process is
        outputs = [process.communicate() for process in started]
        pytest.fail("\n".join(f"{out[-3000:]}\n{errors[-6000:]}" for out, errors in outputs))
    statuses = [process.returncode for process in started]
    return statuses, [output for output, _ in outputs], [ours(errors) for _, errors in outputs]


def slurm(index):
    """Variables of a job of two tasks on this machine."""
    return {
        "SLURM_JOB_ID": "1",
        "SLURM_NTASKS": "2",
        "SLURM_PROCID": str(index),
        "SLURM_LOCALID": str(index),
        "SLURM_STEP_NODELIST": "localhost",
    }


SHARE = """
import json, sys
from pathlib import Path
from keras_onlstm.text import large_corpus
from keras_onlstm.training import corpora
from keras_onlstm.runs.language_model import LanguageModelConfig
from keras_onlstm.distribution.processes import connect

index, directory = int(sys.argv[1]), Path(sys.argv[2])
with connect(2, None, None, 2, {"--seed": 0, "--data": None}) as processes:
    print("together")
    first = processes.on_first(lambda: processes.index + 7)
    shared = [processes.index, processes.gather("a" * index), first]
    texts = []
    for large_corpus.MAPPED in (10_000, 10):  # of a large one, only process 0 reads the text
        data = directory / ("nowhere" if index and large_corpus.MAPPED == 10 else "data")
        config = LanguageModelConfig(data=[data])
        corpus = corpora.read_corpus(config, directory / "run", processes=processes)
        ids = [part.tolist() for part in corpus[1:]]
        texts.append([corpus.vocabulary, ids, type(corpus.train).__name__])
    (directory / f"{index}.json").write_text(json.dumps([shared, texts]))
    large_corpus.MAPPED = 10_000
    config = LanguageModelConfig(data=[directory / ["data", "other"][index]])
    corpora.read_corpus(config, directory, processes=processes)
"""


@pytest.mark.backend("jax")
def test_processes_share_values_and_corpora(tmp_path):
    """JAX finds the processes in the variables of Slurm. Corpora that differ are refused."""
    for name, train in (("data", "a b a\nb c"), ("other", "a b a\nb b c")):
        (tmp_path / name).mkdir()
        for part, text in (("train", train), ("valid", "a c"), ("test", "b")):
            (tmp_path / name / f"{part}.txt").write_text(text)
    port = free_address().rpartition(":")[2]
    statuses, outputs, errors = ends(
        start("-c", SHARE, index, tmp_path, JAX_COORDINATOR_PORT=port, **slurm(index))
        for index in range(2)
    )
    ids = [[2, 3, 2, 0, 3, 4, 0], [2, 4, 0], [3, 0]]
    texts = [[["<eos>", "<unk>", "a", "b", "c"], ids, kind] for kind in ("ndarray", "memmap")]
    for index in range(2):
        found = json.loads((tmp_path / f"{index}.json").read_text())
        assert found == [[index, ["", "a"], 7], texts]
        name = tmp_path / ["data", "other"][index]
        assert errors[index][-1].startswith(f"ValueError: {name}: the digest of its text is ")
    assert statuses == [1, 1] and "together" in outputs[0] and outputs[1] == ""


JOIN = """
import json, sys
from keras_onlstm.distribution.processes import connect

with connect(*json.loads(sys.argv[1]), {}, timeout=float(sys.argv[2]), heartbeat=15) as processes:
    print("together", flush=True)
    while True:
        processes.wait()
"""


def join(*place, patience=60, **variables):
    return start("-c", JOIN, json.dumps(place), patience, **variables)


@pytest.mark.backend("jax")
@pytest.mark.parametrize(
    ("count", "devices", "found"), [(3, (1, 1), "2 processes"), (2, (1, 2), "with 1, 2 devices")]
)
def test_mismatched_processes_and_devices_are_rejected(count, devices, found):
    variables = {"JAX_COORDINATOR_PORT": free_address().rpartition(":")[2]}
    statuses, _, errors = ends(
        join(count, None, None, devices[index], **variables, **slurm(index)) for index in range(2)
    )
    assert statuses == [1, 1]
    for lines in errors:
        assert lines[-1].startswith(f"ValueError: --num-processes {count}, --devices ")
        assert found in lines[-1]


@pytest.mark.backend("jax")
def test_silent_process_ends_the_others():
    """As if the network was cut. A process that is killed: see below."""
    address = free_address()
    processes = [join(2, index, address, 1) for index in range(2)]
    assert "together\n" in iter(processes[0].stdout.readline, "")
    processes[1].send_signal(signal.SIGSTOP)
    assert processes[0].wait(timeout=60) != 0
    processes[1].kill()
    ends(processes)


@pytest.mark.backend("jax")
@pytest.mark.parametrize("index", [0, None])
def test_missing_process_times_out(index):
    address = None if index is None else free_address()
    _, _, ((*_, line),) = ends([join(2, index, address, 1, patience=0.5)])
    assert (
        "no job of Slurm" if index is None else "not all processes connected within 0.5 seconds"
    ) in line


@pytest.mark.backend("jax")
def test_invalid_process_options_are_rejected():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for count, place in [(2, "10.0.0.1"), (2, "a:b"), (2, f"localhost:{port}"), (1, "a:1")]:
            match = f"--coordinator {place}: give ADDRESS:PORT"
            match = "need --num-processes N" if count == 1 else match
            with pytest.raises(ValueError, match=match), connect(count, 0, place, 1, {}):
                pass


# The training command. These tests start processes, which takes seconds, so they share runs.

SMALL = [
    "--preset", "debug", "--devices", 2, "--num-layers", 1, "--no-variable-bptt", "--epochs", 3,
    "--bptt", 40, "--learning-rate", 1.0,
]  # fmt: skip

# The script, with processes whose loss is noticed sooner.
TRAIN = """
import functools, sys
sys.argv[:2] = ["language_modeling.py"]
import language_modeling as script
from keras_onlstm.distribution import processes
processes.connect = functools.partial(processes.connect, heartbeat=15)
parser, options = script.parse_arguments()
script.report(parser, lambda: script.main(options))
"""


def train(output, *arguments, own=((), ())):
    shared = ["--output", output, "--num-processes", 2, "--coordinator", free_address()]
    shared += ["--patience", 120]
    path = f"{EXAMPLES}:{environment()['PYTHONPATH']}"
    return [
        start(
            *("-c", TRAIN, index, *shared, *arguments, "--process-id", index, *own[index]),
            PYTHONPATH=path,
        )
        for index in range(2)
    ]


def wait_for_epochs(output, count, processes):
    path = output / "metrics.json"
    end = time.monotonic() + 100
    while not path.is_file() or len(json.loads(path.read_text())["epochs"]) < count:
        ended = [process for process in processes if process.poll() is not None]
        assert time.monotonic() < end and not ended, ends(ended)
        time.sleep(0.05)


def trained(output):
    """The variables and the metrics of a run."""
    with np.load(output / "checkpoint.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "state.json"}
    rows = json.loads((output / "metrics.json").read_text())["epochs"]
    return arrays, [{name: row[name] for name in row if name != "seconds"} for row in rows]


def hint(output):
    return f"{output}: if a process ends, the others end too. Then start all again with --resume."


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    output = tmp_path_factory.mktemp("processes") / "run"
    statuses, outputs, errors = ends(train(output, *SMALL))
    assert (statuses, errors) == ([0, 0], [[hint(output)]] * 2)
    return output, outputs


@pytest.mark.backend("jax")
def test_only_the_first_process_writes_and_prints(unbroken):
    output, (first, second) = unbroken
    assert first.count("Epoch ") == 3 and "Perplexity" in first
    assert second == ""
    names = set(contents(output))
    assert {"config.json", "checkpoint.npz", "best.keras", "results.json"} <= names
    assert {name for name in names if name.startswith(".")} <= {".lock"}
    config = json.loads((output / "config.json").read_text())
    assert (config["num_processes"], config["devices"]) == (2, 2)


@pytest.mark.backend("jax")
def test_resume_after_killed_processes_matches_uninterrupted_run(unbroken, run, tmp_path):
    output = tmp_path / "run"
    for killed in (1, 0):
        resume = () if killed else ("--resume",)
        processes = train(output, *(SMALL if killed else resume))
        wait_for_epochs(output, 2 - killed, processes)
        processes[killed].kill()
        statuses, _, errors = ends(processes)
        assert statuses[killed] == -signal.SIGKILL and statuses[1 - killed] != 0
        assert hint(output) in errors[1 - killed]
        if killed:
            shutil.copytree(output, tmp_path / "single")

    statuses, _, errors = ends(train(output, "--resume"))
    assert (statuses, errors) == ([0, 0], [[hint(output)]] * 2)
    arrays, rows = trained(output)
    expected, expected_rows = trained(unbroken[0])
    assert arrays.keys() == expected.keys() and rows == expected_rows
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)

    single = tmp_path / "single"
    assert run("--resume", "--output", single, "--num-processes", "1", "--devices", "1")[0] == 0
    arrays, rows = trained(single)
    for name, array in arrays.items():
        # Sums in another order.
        np.testing.assert_allclose(array, expected[name], rtol=2e-5, atol=2e-5, err_msg=name)
    assert rows[2]["val_perplexity"] == pytest.approx(expected_rows[2]["val_perplexity"], rel=2e-5)


@pytest.mark.backend("jax")
def test_processes_with_different_arguments_are_rejected(tmp_path):
    seeds = [["--seed", 0], ["--seed", 1]]
    statuses, outputs, errors = ends(train(tmp_path / "run", *SMALL, own=seeds))
    line = "language_modeling.py: error: --seed is 0 on process 0 and 1 on process 1."
    assert statuses == [2, 2] and "Epoch" not in outputs[0] and outputs[1] == ""
    assert errors == [[f"{line} Start all processes with the same."]] * 2
    assert contents(tmp_path) == {}


@pytest.mark.backend("tensorflow", "torch")
def test_other_backends_are_rejected(run, tmp_path):
    several = ["--num-processes", 2, "--process-id", 0]
    result = run("--output", tmp_path / "run", "--preset", "debug", *several)
    needs = f"--num-processes 2: needs JAX (KERAS_BACKEND=jax), not {keras.backend.backend()}."
    commands.refused(SCRIPT, result, needs)
    assert contents(tmp_path) == {}
