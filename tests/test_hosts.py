"""Training on several hosts: what they agree on, what ends them, and what a run keeps of it."""

import json
import queue
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

import commands
from commands import EXAMPLES, contents, environment, free_address, ours, start
from keras_onlstm.training import corpora
from keras_onlstm.training.hosts import ALONE, Hosts, Place, place
from keras_onlstm.training.meeting import Meeting

SCRIPT = EXAMPLES / "language_modeling.py"


def on_both(function):
    """What a function of `Hosts` returns or raises on each of two, which are threads here."""
    address, losses = free_address(), queue.Queue()

    def call(index):
        hosts = Hosts(Meeting(address, 2, index, losses.put, 20.0))
        try:
            result = function(hosts)
            hosts.leave()
        except (OSError, ValueError) as error:
            hosts.fail(error)
            return error
        return result

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(call, range(2)))
    assert losses.empty()
    return results


def test_what_the_first_host_says():
    assert on_both(lambda hosts: hosts.of_first(lambda: hosts.index + 7)) == [7, 7]
    assert on_both(lambda hosts: (hosts.which, hosts.is_first)) == [((0, 2), True), ((1, 2), False)]
    assert ALONE.of_first(lambda: 3) == 3
    ALONE.wait()
    ALONE.agree({"a": 1}, "{}")


def test_hosts_that_were_started_alike():
    assert on_both(lambda hosts: hosts.agree({"--seed": 0, "--data": None}, "{}")) == [None, None]


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [({"--seed": 0}, {"--seed": 1}, "--seed: it is 1 on host 1, and 0 on host 0."),
     ({"--seed": 0}, {}, "--seed: it is None on host 1, and 0 on host 0."),
     ({}, {"--x": [2]}, "--x: it is [2] on host 1, and None on host 0.")],
)  # fmt: skip
def test_hosts_that_were_started_differently(first, second, says):
    """Each says so itself, and none calls another lost."""
    errors = on_both(lambda hosts: hosts.agree([first, second][hosts.index], "{}"))
    assert [str(error) for error in errors] == [f"{says} Start all hosts with the same."] * 2


def test_a_shared_directory_is_left_as_it_was(tmp_path):
    for directory in (tmp_path, tmp_path / "new"):
        on_both(lambda hosts, directory=directory: hosts.check_shared(directory))
    assert contents(tmp_path) == {"new": False}


def test_a_directory_that_is_not_shared(tmp_path):
    places = [tmp_path / "first" / "run", tmp_path / "second" / "run"]
    errors = on_both(lambda hosts: hosts.check_shared(places[hosts.index], seconds=0.3))
    for error, directory in zip(errors, places, strict=True):
        assert str(error).startswith(f"{directory}: host 1 does not see what host 0 writes there.")
    assert contents(tmp_path) == {"first": False}


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    address, losses = free_address(), queue.Queue()

    def call(index):
        hosts = Hosts(Meeting(address, 2, index, losses.put, 20.0))
        try:
            hosts.check_shared(tmp_path / "file" / "run")
        except OSError as error:
            hosts.fail(error)
            return error

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(call, range(2))
    assert str(first).startswith(f"{tmp_path}/file/run: cannot be written")
    assert isinstance(second, ConnectionError)
    assert losses.get(timeout=5).endswith(f"has ended: {first}")


@pytest.mark.parametrize("limit", [10, 10_000])
def test_a_corpus_that_all_read(tmp_path, monkeypatch, limit):
    """A large one the first alone turns into ids: the others do without the text."""
    monkeypatch.setattr(corpora, "MAPPED", limit)
    data, run = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    for part, text in (("train", "a b a\nb c"), ("valid", "a c"), ("test", "b")):
        (data / f"{part}.txt").write_text(text)
    elsewhere = tmp_path / "nowhere" if limit == 10 else data
    first, second = on_both(
        lambda hosts: corpora.read_corpus([data, elsewhere][hosts.index], run, hosts=hosts)
    )
    for corpus in (first, second):
        assert corpus.vocabulary == ["<eos>", "<unk>", "a", "b", "c"]
        ids = [part.tolist() for part in corpus[1:]]
        assert ids == [[2, 3, 2, 0, 3, 4, 0], [2, 4, 0], [3, 0]]
        assert isinstance(corpus.train, np.memmap) == (limit == 10)
    assert (run / "ids").is_dir() == (limit == 10)


def test_corpora_that_differ(tmp_path):
    for name, word in (("first", "a"), ("second", "b")):
        (tmp_path / name).mkdir()
        for part in ("train", "valid", "test"):
            text = word if part == "test" else "a b"  # the vocabulary is the same
            (tmp_path / name / f"{part}.txt").write_text(text)
    names = ["first", "second"]
    errors = on_both(
        lambda hosts: corpora.read_corpus(tmp_path / names[hosts.index], tmp_path, hosts=hosts)
    )
    for error, name in zip(errors, names, strict=True):
        assert str(error).startswith(f"{tmp_path / name}: the digest of its text: it is ")


@pytest.mark.parametrize(
    ("variables", "index"),
    [({"SLURM_NTASKS": "4", "SLURM_PROCID": "3"}, 3),
     ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2"}, 2),
     ({"PMI_SIZE": "4", "PMI_RANK": "1"}, 1)],
)  # fmt: skip
def test_what_launchers_say(variables, index):
    address = "10.0.0.1:7000"
    assert place(4, None, address, variables) == Place(4, index, address)
    assert place(4, 0, address, variables).host_id == 0
    with pytest.raises(ValueError, match=r"--hosts 3: .* has started 4 processes"):
        place(3, None, address, variables)
    assert place(1, None, None, variables) == Place()


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("node001", "node001"), ("node001,host2", "node001"), ("node[001-015],host2", "node001"),
     ("node[001,007-015]", "node001"), ("gpu-7", "gpu-7"), ("a.b.c", "a.b.c")],
)  # fmt: skip
def test_the_first_machine_of_a_job_of_slurm(nodes, first):
    variables = {"SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_STEP_NODELIST": nodes}
    assert place(2, environment=variables | {"SLURM_JOB_ID": "5000"}) == (2, 1, f"{first}:62344")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((2, None, "a:1"), "--hosts 2: which of them is this"),
     ((2, 1, None), "--hosts 2: where does host 0 listen"),
     ((2, 2, "a:1"), "--host-id 2: hosts are 0 to 1"),
     ((2, -1, "a:1"), "--host-id -1: hosts are 0 to 1"),
     ((1, 0, None), "go with --hosts N"),
     ((1, None, "a:1"), "go with --hosts N")],
)  # fmt: skip
def test_a_place_that_is_not_known(arguments, says):
    with pytest.raises(ValueError, match=says):
        place(*arguments, environment={})


KILLED = """
import sys, threading, time
from keras_onlstm.training.hosts import Place, joined
index = int(sys.argv[1])
with joined(Place(2, index, sys.argv[2]), sys.argv[3], {}) as hosts:
    print("together")
    if index == int(sys.argv[4]):
        raise ValueError("my disk is full.") if sys.argv[5] == "raises" else SystemExit(5)
    time.sleep(60)
"""


@pytest.mark.parametrize("how", ["raises", "exits"])
@pytest.mark.parametrize("index", [0, 1])
def test_the_others_end_with_a_line(tmp_path, index, how):
    """Whatever they are waiting for."""
    address = free_address()
    begin = time.monotonic()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", KILLED, str(host), address, str(tmp_path), str(index), how],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        for host in range(2)
    ]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert time.monotonic() - begin < 30
    other = 1 - index
    assert processes[index].returncode == (1 if how == "raises" else 5)
    assert processes[other].returncode == 1
    (line,) = outputs[other][1].splitlines()
    reason = "my disk is full." if how == "raises" else "exit status 5."
    assert line.startswith(f"-c: error: host {index} (")
    assert line.endswith(f") has ended: {reason} Start all hosts again.")
    assert [output for output, _ in outputs] == ["together\n", ""] or other == 0


# The example. All that follows starts processes, which takes seconds: they share what they can.

SMALL = [
    "--preset", "smoke", "--devices", 2, "--set", "num_layers=1", "jitter=false", "epochs=3",
    "window=40", "learning_rate=1.0",
]  # fmt: skip


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the script's command line in this process: (exit status, stdout, stderr)."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import language_modeling

    return commands.runner(SCRIPT, language_modeling, monkeypatch, capsys)


def train(output, *arguments, hosts=2):
    address = free_address()
    return [
        start(SCRIPT, "--output", output, "--hosts", hosts, "--host-id", index, "--coordinator",
              address, *arguments)
        for index in range(hosts)
    ]  # fmt: skip


def ends(processes, seconds=120):
    """Exit statuses, standard outputs and lines of errors."""
    outputs = [process.communicate(timeout=seconds) for process in processes]
    statuses = [process.returncode for process in processes]
    return statuses, [output for output, _ in outputs], [ours(errors) for _, errors in outputs]


def wait_for_epochs(output, count, processes):
    path = output / "metrics.json"
    end = time.monotonic() + 100
    while not path.is_file() or len(json.loads(path.read_text())["epochs"]) < count:
        ended = [process for process in processes if process.poll() is not None]
        assert time.monotonic() < end and not ended, ends(ended)
        time.sleep(0.05)


def trained(output):
    """What a run has learnt, and what it has measured."""
    with np.load(output / "checkpoint.npz") as file:
        arrays = {name: file[name] for name in file.files if name != "state.json"}
    rows = json.loads((output / "metrics.json").read_text())["epochs"]
    return arrays, [{name: row[name] for name in row if name != "seconds"} for row in rows]


def line_of_loss(errors, index):
    (line,) = errors
    assert line.startswith(f"language_modeling.py: error: host {index} ("), line
    assert line.endswith(
        "Start all hosts again with --resume: they go on from the last checkpoint."
    )
    return line


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    output = tmp_path_factory.mktemp("hosts") / "run"
    statuses, outputs, errors = ends(train(output, *SMALL))
    assert (statuses, errors) == ([0, 0], [[], []])
    return output, outputs


@pytest.mark.backend("jax")
def test_only_the_first_host_writes_and_prints(unbroken):
    output, (first, second) = unbroken
    assert first.count("Epoch ") == 3 and "Perplexity" in first and "Gloo" not in first
    assert second == ""
    names = set(contents(output))
    assert {"config.json", "checkpoint.npz", "best.keras", "results.json"} <= names
    assert {name for name in names if name.startswith(".")} <= {".lock"}
    config = json.loads((output / "config.json").read_text())
    assert (config["arguments"]["hosts"], config["arguments"]["devices"]) == (2, 2)


@pytest.mark.backend("jax")
def test_hosts_that_die_and_the_same_bits_after_it(unbroken, run, tmp_path):
    """First host 1 is ended, then host 0 killed; the run goes on to the same weights."""
    output = tmp_path / "run"
    processes = train(output, *SMALL)
    wait_for_epochs(output, 1, processes)
    processes[1].terminate()
    killed = time.monotonic()
    statuses, _, errors = ends(processes)
    assert statuses == [1, -signal.SIGTERM] and time.monotonic() - killed < 60
    assert line_of_loss(errors[0], 1).partition(")")[2].startswith(" is gone.")
    shutil.copytree(output, tmp_path / "alone")

    processes = train(output, "--resume")
    wait_for_epochs(output, 2, processes)
    processes[0].kill()
    killed = time.monotonic()
    statuses, _, errors = ends(processes)
    assert statuses == [-signal.SIGKILL, 1] and time.monotonic() - killed < 60
    line_of_loss(errors[1], 0)

    statuses, _, errors = ends(train(output, "--resume"))
    assert (statuses, errors) == ([0, 0], [[], []])
    arrays, rows = trained(output)
    expected, expected_rows = trained(unbroken[0])
    assert arrays.keys() == expected.keys() and rows == expected_rows
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)

    alone = tmp_path / "alone"
    assert run("--resume", "--output", alone, "--hosts", "1", "--devices", "1")[0] == 0
    arrays, rows = trained(alone)
    for name, array in arrays.items():
        # Sums in another order.
        np.testing.assert_allclose(array, expected[name], rtol=2e-5, atol=2e-5, err_msg=name)
    assert rows[2]["val_perplexity"] == pytest.approx(expected_rows[2]["val_perplexity"], rel=2e-5)


@pytest.mark.backend("jax")
def test_hosts_of_other_arguments_write_nothing(tmp_path):
    address, output = free_address(), tmp_path / "run"
    processes = [
        start(SCRIPT, *SMALL, "--hosts", 2, "--host-id", index, "--coordinator", address,
              "--seed", index, "--output", output)
        for index in range(2)
    ]  # fmt: skip
    statuses, outputs, errors = ends(processes)
    line = "language_modeling.py: error: --seed: it is 1 on host 1, and 0 on host 0."
    assert statuses == [2, 2] and outputs == ["", ""]
    assert errors == [[f"{line} Start all hosts with the same."]] * 2
    assert contents(tmp_path) == {}


@pytest.mark.backend("jax")
def test_hosts_that_do_not_come_together(run, tmp_path):
    address = free_address()
    hosts = ["--output", tmp_path / "run", "--preset", "smoke", "--hosts", 2, "--patience", 0.3]
    lines = (
        "host 1 of 2 did not come within 0.3 s.",
        f"{address}: host 0 cannot be reached there within 0.3 s",
    )
    for index, says in enumerate(lines):
        arguments = [*hosts, "--coordinator", address, "--host-id", index]
        commands.refused(SCRIPT, run(*map(str, arguments)), says)
    commands.refused(SCRIPT, run(*map(str, hosts)), "--hosts 2: which of them is this?")
    commands.refused(SCRIPT, run(*map(str, hosts), "--devices", "11"), "--devices 11", "2 hosts")
    assert contents(tmp_path) == {}


@pytest.mark.backend("tensorflow", "torch")
def test_other_backends_are_refused(run, tmp_path):
    arguments = ["--output", tmp_path / "run", "--preset", "smoke", "--hosts", 2, "--host-id", 0]
    result = run(*map(str, arguments), "--coordinator", free_address())
    needs = f"--hosts 2: needs JAX (KERAS_BACKEND=jax), not {keras.backend.backend()}."
    commands.refused(SCRIPT, result, needs)
    assert contents(tmp_path) == {}
