"""Benchmarks: arithmetic, tables and a quick run. Speed itself is not tested."""

import collections
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from helpers.package import ROOT

BENCHMARKS = ROOT / "benchmarks"
pytestmark = pytest.mark.keras_free


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / "run.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


def test_flops_and_bytes_match_formulas():
    from configurations import Configuration

    model = Configuration(2, 3, 5, (6, 4), 2, vocabulary=100, model="language model")
    assert model.flops("train") == 3 * 2 * 6 * (11 * 30 + 10 * 20 + 4 * 100)
    two = Configuration(batch=2, time=3, input_dim=5, units=(6, 4), chunk_size=2)
    # K is 30 and 20; each of 6 rows is multiplied with (5 + 6, 30) and (6 + 4, 20).
    assert two.flops("forward") == 2 * 6 * (11 * 30 + 10 * 20)
    assert two.flops("train") == 3 * two.flops("forward")
    both = Configuration(2, 3, 5, (6,), 2, vocabulary=100, model="classifier")
    assert both.flops("forward") == 2 * 6 * 2 * 11 * 30  # two directions, no softmax over words
    prpn = Configuration(2, 3, 5, (6, 6), 1, vocabulary=100, model="PRPN")
    products = 6 * 5 * 6 + (11 + 12) * 30 + 6 * 6 + 12 * 5 + 100 * 5
    assert prpn.flops("forward") == 2 * 6 * products
    trees = Configuration(2, 3, 5, (6,), None, vocabulary=100, model="trees")
    assert trees.flops("train") == 3 * 2 * 6 * (11 * 24 + 100 * 6)
    # The recurrent kernels in 3 steps, and 6 rows of inputs, gates and outputs, of 4 bytes each.
    numbers = 3 * (6 * 30 + 4 * 20) + 6 * (5 + 30 + 6 + 6 + 20 + 4)
    assert two.bytes_moved("forward", 4) == 4 * numbers
    assert two.bytes_moved("train", 2) == 2 * 2 * numbers


def test_ratios_compare_times_of_same_round():
    import report

    # The machine is slower in the second of three rounds, which does not change the ratios.
    assert report.ratios([1.0, 2.0, 1.0], [2.0, 4.0, 2.0]) == [0.5, 0.5, 0.5]
    assert report.quartiles([4.0, 1.0, 3.0, 2.0, 5.0]) == [2.0, 3.0, 4.0]


def make_results():
    def samples(*seconds):
        doubled = [2 * s for s in seconds]
        return {"forward": list(seconds), "train": doubled, "first": {"forward": 1, "train": 3}}

    tensorflow = {"ONLSTM": samples(2.0, 4.0), "RNN(ONLSTMCell)": samples(8.0, 16.0)}
    tensorflow["keras.layers.LSTM"] = samples(2.5, 5.0)
    torch = {"torch.nn.LSTM": samples(4.0, 8.0), "matrix products only": samples(1.0, 1.0)}
    short = {"tensorflow": tensorflow, "torch": torch}
    long = {"tensorflow": {"ONLSTM": samples(27.0, 27.0)}}
    metadata = {"python": "3", "versions": {"keras": "3"}, "device": None, "threads": 2}
    return {
        "command": "python benchmarks/run.py",
        "date": "2000-01-01",
        "machine": {"processor": "a processor", "system": "a system"},
        "quick": True,
        "backends": {"tensorflow": metadata, "torch": metadata},
        "seconds": {"language-model": {"float32": short}, "long": {"float32": long}},
        "rates": {},
        "memory": {"language-model": {"tensorflow": {"ONLSTM": 12.3}}},
    }


def test_tables_contain_medians_and_ratios():
    import report

    text = report.tables(make_results())
    ratios = "0.50 (0.50 to 0.50) | 0.80 (0.80 to 0.80)"  # to the LSTMs of PyTorch and Keras
    assert f"| TensorFlow | `ONLSTM` | 3000.0 (2500.0 to 3500.0) | {ratios} | 0.25" in text
    assert "| PyTorch | `torch.nn.LSTM` | 6000.0 (5000.0 to 7000.0) | 1.00" in text
    assert "| language-model | TensorFlow | `ONLSTM` | 12 |" in text
    # The quick sizes have 9 and 4 steps: (27 s / 3 s) / (9 / 4) = 4.
    assert report.linearity(make_results(), "float32", "forward") == {("tensorflow", "ONLSTM"): 4.0}
    assert "| TensorFlow | `ONLSTM` | 4.00 |" in text


def test_tables_compare_trees_with_chains_and_planning_with_steps():
    import report

    def timed(train, planning):
        return {"train": train, "planning": planning, "first": {"train": 9.0, "planning": 0.0}}

    implementations = {
        "TreeLSTM": timed([0.6, 1.2], [0.003, 0.006]),
        "TreeLSTM(sequential=True)": timed([0.4, 0.8], [0.004, 0.008]),
    }
    results = make_results()
    results["seconds"] = {"trees": {"float32": {"tensorflow": implementations}}}
    results["rates"] = {"float32": {"tensorflow": [1e9, 1e9]}}
    text = report.tables(results)
    row = "| TensorFlow | `TreeLSTM` |"
    # 16 trees with a mean of 24 words, in 0.9 s and in 4.5 ms.
    assert f"{row} 900.0 (750.0 to 1050.0) | 427 | 1.50 (1.50 to 1.50) | 9.0 |" in text
    shares = "0.75 (0.75 to 0.75) | 0.005 (0.005 to 0.005)"
    assert f"{row} 4.5 (3.8 to 5.2) | 85333 | {shares} | 0.0 |" in text
    assert "chunk size" not in text and "of the matrix rate" not in text


def test_report_writes_tables_and_plots(tmp_path):
    source = tmp_path / "results.json"
    source.write_text(json.dumps(make_results()))
    finished = run("--report", source, "--output", tmp_path / "out")
    assert finished.returncode == 0, finished.stderr
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    plots = [f"{n}-float32.{s}" for n in ("language-model", "long") for s in ("png", "svg")]
    assert written == [*plots, "results.md"]
    assert "0.50 (0.50 to 0.50)" in (tmp_path / "out" / "results.md").read_text()


@pytest.mark.parametrize(
    "arguments", [["--configurations", "huge"], ["--report", "gone.json"]], ids=" ".join
)
def test_invalid_arguments_give_one_line(arguments):
    finished = run(*arguments)
    last = finished.stderr.strip().splitlines()[-1]
    assert finished.returncode == 2 and "Traceback" not in finished.stderr
    assert last.startswith("run.py: error:") and arguments[1] in last


def test_classifier_trains():
    from classifiers import batch, training_step
    from configurations import get

    configuration = get("classifier-32", quick=True)
    for masks in (True, False):
        ids, labels = batch(configuration, masks)
        assert (ids == 0).any() == masks and set(labels.ravel()) <= {0.0, 1.0}
    step = training_step("ONLSTM", configuration, "float32")
    losses = [float(step()) for _ in range(3)]
    assert losses[2] < losses[0] < 1.0  # starts near log 2


@pytest.mark.parametrize(
    ("configuration_name", "index", "name"),
    [("prpn-paper", 1, "PRPN, keras.layers.LSTM"), ("training-medium", 0, "LanguageModel")],
)
def test_language_model_trains(configuration_name, index, name):
    from configurations import get, implementations
    from models import training_step

    configuration = get(configuration_name, quick=True)
    assert implementations("tensorflow", configuration)[index] == name
    loss = training_step(name, configuration, "float32")()
    assert 1.0 < float(np.ravel(loss)[0]) < 3.0  # near log 7


def test_random_trees_have_edge_frequencies_of_treebank():
    from configurations import get
    from trees import LENGTHS, draw_trees

    configuration = get("trees", quick=False)
    vocabulary = ["<unk>", "<root>", *map(str, range(2, configuration.vocabulary))]
    trees, others = (draw_trees(configuration, vocabulary, seed) for seed in (0, 1))
    assert trees == draw_trees(configuration, vocabulary) and trees != others
    assert sorted(map(len, trees)) == sorted(4 * LENGTHS)
    assert sum(map(len, trees)) == configuration.tokens
    edges = collections.Counter()
    for tree in [*trees, *others]:
        assert tree.is_projective and not {"<unk>", "<root>"} & set(tree.words)
        edges.update(str(path[-1][1]) for path in tree.paths())
    # Frequencies of NLTK's treebank, which the random trees match within 2 percentage points.
    shares = {"LEFT": 0.283, "RIGHT": 0.374, "NX-LEFT": 0.206, "NX-RIGHT": 0.136}
    assert edges.keys() == shares.keys()
    for edge, share in shares.items():
        assert edges[edge] / edges.total() == pytest.approx(share, abs=0.02), edge


def test_quick_run_times_all_implementations(tmp_path):
    from configurations import get, implementations

    names = ["single", "trees"]
    finished = run(
        *("--quick", "--backends", "tensorflow", "--rounds", 2),
        *("--configurations", *names, "--output", tmp_path),
    )
    assert finished.returncode == 0, finished.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results["seconds"]) == names
    for name in names:
        timed = results["seconds"][name]["float32"]["tensorflow"]
        assert list(timed) == list(implementations("tensorflow", get(name, quick=True)))
        for samples in timed.values():
            for measure in get(name, quick=True).measures:
                assert len(samples[measure]) == 2
                assert all(math.isfinite(s) and s > 0 for s in samples[measure])
    assert "tokens/s" in (tmp_path / "results.md").read_text()
