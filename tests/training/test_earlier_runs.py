"""Runs that an earlier version started and stopped: they load, are evaluated, and resume.

Each directory of `tests/data/earlier_runs` holds a run that was stopped in mid-training, and
`finished.json`, the epochs of the same run where it was not stopped. What started them is in their
`config.json`.
"""

import json
import math
import shutil

import pytest

from helpers.package import DATA
from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.loading import load_trained
from keras_onlstm.runs.language_model import LanguageModelConfig, PRPNConfig
from keras_onlstm.runs.pair_classifier import PairClassifierConfig
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig
from keras_onlstm.training.corpora import read_corpus, read_trees
from keras_onlstm.training.language_models import evaluation, train_language_model
from keras_onlstm.training.pair_classifiers import accuracy, train_pair_classifier
from keras_onlstm.training.tree_models import train_tree_model, tree_evaluation

pytestmark = pytest.mark.backend("tensorflow")  # random numbers are the backend's

RUNS = DATA / "earlier_runs"
KINDS = ["language_model", "prpn", "tree_lstm", "pair_classifier"]
CONFIGS = {
    config.model: config
    for config in (LanguageModelConfig, PRPNConfig, TreeLSTMConfig, PairClassifierConfig)
}
VALUES = {
    "language_model": {
        "preset": "debug", "seed": 3, "units": 20, "optimizer": "asgd", "schedule": "constant",
        "activation_regularization": 2.0, "temporal_regularization": 1.0, "bptt": 20,
        "variable_bptt": True, "clipnorm": 0.25, "weight_decay": 1.2e-6, "data": (),
    },
    "prpn": {
        "preset": "debug", "optimizer": "adam_l2", "beta_1": 0.0, "epsilon": 1e-9,
        "schedule": "plateau", "plateau_factor": 0.5, "plateau_patience": 2, "weight_decay": 1e-6,
        "epochs": 4, "clipnorm": 1.0, "slots": 5,
    },
    "tree_lstm": {
        "preset": "debug", "optimizer": "sgd", "schedule": "plateau", "learning_rate": 0.5,
        "epochs": 4, "left_dependents": True, "trees": "dependencies", "clipnorm": 5.0,
    },
    "pair_classifier": {
        "preset": "debug", "schedule": "plateau", "epochs": 4, "pairs": 3000, "data": None,
    },
}  # fmt: skip


def load(kind, run=None):
    return CONFIGS[kind].load(run or RUNS / kind)


def pairs_of(config):
    return logic.generate(config.pairs, seed=0).split(6)


def resume(kind, run, steps=None):
    config = load(kind, run)
    if kind == "tree_lstm":
        return train_tree_model(run, config, read_trees(config), True, steps)
    if kind == "pair_classifier":
        return train_pair_classifier(run, config, *pairs_of(config), True, steps)
    return train_language_model(run, config, read_corpus(config, run), True, steps)


def score(kind, run):
    """The score of the best model on the validation data, as training measures it."""
    config = load(kind, run)
    if kind == "pair_classifier":
        return accuracy(load_trained(run, "classifier"), pairs_of(config)[1])
    if kind == "tree_lstm":
        model, trees = load_trained(run, "tree_language_model"), read_trees(config).validation
        return math.exp(tree_evaluation(model, trees, config.batch_size)())
    model = load_trained(run, "language_model")
    return math.exp(evaluation(model, "validation", read_corpus(config, run).valid, 10)())


def epochs(path):
    return json.loads(path.read_text())["epochs"]


@pytest.fixture
def stopped(tmp_path):
    """A function of the kind of model: the directory of a copy of its run."""

    def copied(kind):
        ignored = shutil.ignore_patterns("finished.json")
        return shutil.copytree(RUNS / kind, tmp_path / kind, ignore=ignored)

    return copied


@pytest.mark.parametrize("kind", KINDS)
def test_earlier_settings_get_current_names(kind):
    config = load(kind)
    assert config.model == kind
    assert {name: getattr(config, name) for name in VALUES[kind]} == VALUES[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_earlier_best_model_reproduces_its_score(kind):
    monitor = "val_accuracy" if kind == "pair_classifier" else "val_perplexity"
    expected = epochs(RUNS / kind / "finished.json")[0][monitor]
    assert score(kind, RUNS / kind) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["language_model", "tree_lstm", "pair_classifier"])
def test_earlier_stopped_run_resumes_to_the_same_epochs(kind, stopped):
    run = stopped(kind)
    assert resume(kind, run)
    found, expected = epochs(run / "metrics.json"), epochs(RUNS / kind / "finished.json")
    for row in (*found, *expected):
        del row["seconds"]
    assert found == [pytest.approx(row, rel=1e-5) for row in expected]


def test_earlier_stopped_prpn_resumes(stopped):
    """To the same loss of the epoch.

    Keras's Adam rounds in another way than the one of the earlier version. With a momentum of 0
    and hard gates the difference grows fast, so the epochs after it are not the same.
    """
    run = stopped("prpn")
    assert not resume("prpn", run, steps=30)
    row, expected = epochs(run / "metrics.json")[1], epochs(RUNS / "prpn" / "finished.json")[1]
    for name in ("loss", "penalty", "learning_rate"):
        assert row[name] == pytest.approx(expected[name], rel=1e-5)
    assert row["val_perplexity"] == pytest.approx(expected["val_perplexity"], rel=1e-3)
    assert resume("prpn", run)
    assert len(epochs(run / "metrics.json")) == 4


def test_earlier_run_rejects_changed_values(stopped):
    run = stopped("tree_lstm")
    path = run / "config.json"
    config = json.loads(path.read_text())
    config["values"]["units"] = 15
    path.write_text(json.dumps(config))
    with pytest.raises(ValueError, match="started with units 16, not 15"):
        resume("tree_lstm", run)
