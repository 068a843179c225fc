"""Large files parsed by a cluster of two machines on loopback, one of which is lost."""

import os
import socket
import subprocess
import sys

import pytest

from helpers import graphs
from helpers.commands import environment
from keras_onlstm import Parser
from keras_onlstm.parsing import brackets
from keras_onlstm.scale import ray_cluster
from keras_onlstm.scale.corpus import Counts, process
from keras_onlstm.scale.shards import Shard
from keras_onlstm.scale.tasks import Parsing

pytestmark = pytest.mark.keras_free
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # or Ray leaves the loopback addresses
cluster_utils = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")

SENTENCES = ["the cat saw", "a dog", "dog", "", "do n't"]
ROWS, SHARD = 200_000, 2000
DRAWN = [(n * n + n // 5) % 5 for n in range(ROWS)]
NODE = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster():
    os.environ |= environment() | {"RAY_USAGE_STATS_ENABLED": "0"}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=NODE)
    yield cluster
    cluster.shutdown()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory = tmp_path_factory.mktemp("corpus")
    graphs.write_onnx(directory / "parser.onnx")
    (directory / "corpus.txt").write_text("".join(f"{SENTENCES[row]}\n" for row in DRAWN))
    return directory


@pytest.fixture
def task(files):
    return Parsing(load={"name_or_path": str(files / "parser.onnx"), "threads": 1})


def test_lost_machine(cluster, files, task, tmp_path):
    """The rows are those of one process, each once."""
    second = cluster.add_node(**NODE)
    completed = []

    def progress(*rows):
        completed.append(rows)
        if len(completed) == 20:
            cluster.remove_node(second, allow_graceful=False)

    corpus, output = [files / "corpus.txt"], tmp_path / "out"
    result = process(corpus, output, task, SHARD, None, progress, cluster.address)
    parser = Parser.load(**task.load)
    trees = [brackets(parser.parse(s)) if s else "" for s in SENTENCES]
    counts = [len(s.split()) for s in SENTENCES]
    assert result == Counts(ROWS, sum(counts[row] for row in DRAWN), 0)
    assert (
        completed == sorted(completed)
        and len(completed) == ROWS // SHARD
        and completed[-1] == (ROWS, ROWS)
    )
    written = [path.read_text() for path in sorted(output.glob("0*.txt"))]
    assert written == [
        "".join(f"{trees[row]}\n" for row in DRAWN[start : start + SHARD])
        for start in range(0, ROWS, SHARD)
    ]
    assert {path.suffix for path in output.iterdir()} <= {".txt", ".json", ""}


def test_parse_command(cluster, files, tmp_path):
    (tmp_path / "few.txt").write_text("the cat saw\n\na dog\n")
    program = "from keras_onlstm.command_line import main; main()"
    model = ["--model", files / "parser.onnx", "--threads", 1, "--ray", cluster.address]
    arguments = ["parse", "--file", "few.txt", "--output", "out", *model]
    completed = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        cwd=tmp_path,
        env=environment(),
        text=True,
    )
    assert completed.stdout == "out: 3 rows; 5 words\n"
    assert "Traceback" not in completed.stderr and "raylet" not in completed.stderr
    trees = (tmp_path / "out" / "00000.txt").read_text().splitlines()
    assert [line[:2] for line in trees] == ["(X", "", "(X"]


def test_errors_of_a_worker_are_raised(cluster, files, task, tmp_path):
    corpus = [files / "corpus.txt"]
    missing = task._replace(load={"name_or_path": str(tmp_path / "none.npz")})
    with pytest.raises(FileNotFoundError, match=r"none\.npz: no such model"):
        process(corpus, tmp_path / "out", missing, ROWS, 1, ray=cluster.address)
    assert {path.name for path in (tmp_path / "out").iterdir()} <= {".lock"}
    shard = Shard(str(tmp_path / "elsewhere.txt"), 0, 1, 0, 1)
    with pytest.raises(
        FileNotFoundError, match=r"elsewhere\.txt .* does not exist on another machine"
    ):
        list(ray_cluster.run([(shard, tmp_path / "0.txt")], task, 1, cluster.address))


def test_missing_cluster_raises(files, task, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ConnectionError, match=f"--ray {address}: no Ray cluster answers there"):
        process([files / "corpus.txt"], tmp_path / "out", task, ROWS, 1, ray=address)
