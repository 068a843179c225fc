"""examples/language_modeling.py: perplexities, corpora, commands. See also test_run_contract.py."""

import functools
import json
import math
import re
import shutil

import keras
import numpy as np
import pytest
from keras import ops

from helpers import commands
from helpers.checks import NO_DROPOUT
from helpers.commands import DEBUG, EXAMPLES, contents, ours
from helpers.runs import assert_same_run, epochs, weights
from keras_onlstm.command_line.evaluate import load_config
from keras_onlstm.datasets import treebank
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.ensemble import load_eight_bit
from keras_onlstm.runs.language_model import LanguageModelConfig
from keras_onlstm.text import large_corpus
from keras_onlstm.training import corpora

# JAX would compile for minutes. `.ci/run` runs the script once on JAX and once on PyTorch.
pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "language_modeling.py"
COMPACT = ["compact", "--output", "x.npz", "--model"]
refused = functools.partial(commands.refused, SCRIPT)
command_refused = functools.partial(commands.refused, "keras-onlstm")


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs `keras-onlstm` in this process."""
    return commands.command_runner(monkeypatch, capsys)


@pytest.fixture(scope="module")
def debug_run(finished_run):
    """Directory of a finished run, not to be changed, and its output."""
    return finished_run("language_modeling")


@pytest.fixture
def copied(debug_run, tmp_path):
    return shutil.copytree(debug_run[0], tmp_path / "run")


@pytest.fixture
def data(tmp_path):
    """A corpus of a few hundred words."""
    directory = tmp_path / "data"
    directory.mkdir()
    draw = np.random.default_rng(0).choice
    for part, lines in (("train", 80), ("valid", 12), ("test", 12)):
        text = "".join(f"{' '.join(draw(list('abcdefgh'), 7))}\n" for _ in range(lines))
        (directory / f"{part}.txt").write_text(text)
    return directory


def test_debug_run_learns(debug_run):
    directory, output = debug_run
    rows = json.loads((directory / "metrics.json").read_text())["epochs"]
    assert [row["epoch"] for row in rows] == [1, 2]
    # Guessing among 13 words and <eos> has perplexity 14.
    assert rows[1]["val_perplexity"] < rows[0]["val_perplexity"] < 13
    results = json.loads((directory / "results.json").read_text())
    best = min(row["val_perplexity"] for row in rows)
    assert results["validation_perplexity"] == pytest.approx(best, rel=1e-5)
    assert f"{results['test_perplexity']:.2f}" in output and " tokens in " in output
    assert "56.17" not in output  # published figures are for the Penn Treebank only


def test_published_figures_are_shown_for_penn_treebank(run, debug_run, tmp_path, script):
    for part in ("train", "valid", "test"):
        (tmp_path / f"ptb.{part}.txt").write_text("a b\n" * 20)
    directory = shutil.copytree(debug_run[0], tmp_path / "run")
    status, output, errors = run("--evaluate", directory, "--data", tmp_path)
    assert (status, ours(errors)) == (0, []) and "56.17" in output


def test_perplexity_matches_model_applied_to_whole_text(debug_run):
    model = keras.saving.load_model(debug_run[0] / "best.keras", compile=False, safe_mode=True)
    corpus = corpora.read_corpus(load_config(debug_run[0]), debug_run[0], model.vocabulary)
    logits = model.predict_on_batch(corpus.test[None, :-1])[0].astype("float64")
    logits -= logits.max(-1, keepdims=True)
    scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    loss = -scores[np.arange(len(corpus.test) - 1), corpus.test[1:]].mean()
    results = json.loads((debug_run[0] / "results.json").read_text())
    assert results["test_loss"] == pytest.approx(loss, abs=1e-5)
    assert results["test_perplexity"] == pytest.approx(math.exp(loss), rel=1e-5)


def test_trains_on_own_corpus(run, data, tmp_path, monkeypatch):
    monkeypatch.setattr(large_corpus, "MAPPED", 100)  # treat the corpus as a large one
    output = tmp_path / "run"
    status, text, errors = run(*DEBUG, "--data", data, "--output", output, "--recurrent", "lstm")
    assert (status, ours(errors)) == (0, [])
    words = (data / "train.txt").read_text().split()
    by_frequency = sorted(set(words), key=lambda word: (-words.count(word), word))
    assert (output / "vocabulary.txt").read_text().split() == ["<eos>", "<unk>", *by_frequency]
    assert (output / "ids" / "train.ids").stat().st_size == 4 * 80 * 8
    assert "640 tokens, 10 words" in text and text.startswith("Reading") and "LSTM" in text
    ids = (output / "ids" / "train.ids").stat()
    status, text, errors = run("--evaluate", output, "--data", data)
    assert (status, ours(errors)) == (0, []) and "LSTM" in text
    assert (output / "ids" / "train.ids").stat() == ids  # not rewritten


def test_trains_on_characters_with_max_words(run, command, data, tmp_path):
    output = tmp_path / "run"
    arguments = ["--data", data, "--output", output, "--characters", "--max-words", 6]
    status, text, errors = run(*DEBUG, *arguments)
    assert (status, ours(errors)) == (0, [])
    words = (output / "vocabulary.txt").read_text().split()
    assert len(words) == 6 and words[:3] == ["<eos>", "<unk>", "_"]
    assert f"{80 * 14:,} tokens" in text
    status, text, _ = command("generate", "--model", output, "a b", "--length", 20)
    assert status == 0 and text.splitlines()[-1].startswith("a_b")
    config = json.loads((output / "config.json").read_text())
    command = "keras-onlstm train --preset debug --seed 0 --data data --max-words 6 --characters"
    assert config["command"] == command


def test_trains_on_separate_sentences(run, data, tmp_path, monkeypatch):
    """Sentences of NLTK's sample are left out unless --test-sentences is passed."""
    sentences = [line.split() for line in (data / "train.txt").read_text().splitlines()]
    held_out = [*sentences[10:15], list("hhhh")]
    sample = [treebank.ParsedSentence(tokens, None) for tokens in held_out]
    monkeypatch.setattr(treebank, "load", lambda: sample)
    arguments = [*DEBUG, "--data", data, "--sentences", "--num-layers", 1, "--epochs", 1]
    prpn = ["--model", "prpn", "--test-sentences"]
    for name, options, message in (
        ("without", [], "75 sentences, 5 fewer: without those of NLTK's sample"),
        ("with", prpn, "81 sentences, with those of NLTK's"),
    ):
        status, text, errors = run(*arguments, *options, "--output", tmp_path / name)
        assert (status, ours(errors)) == (0, []) and message in text
        results = json.loads((tmp_path / name / "results.json").read_text())
        model = keras.saving.load_model(tmp_path / name / "best.keras")
        lines = [line.split() for line in (data / "test.txt").read_text().splitlines()]
        expected = -np.concatenate(model.score(lines)).mean()
        np.testing.assert_allclose(results["test_loss"], expected, rtol=1e-5)
    assert run(*arguments, "--steps", 3, "--output", tmp_path / "again")[0] == 0
    assert run("--output", tmp_path / "again", "--resume")[0] == 0
    assert weights(tmp_path / "again") == weights(tmp_path / "without")


def test_bfloat16_run_resumes_exactly_and_is_evaluated_in_float32(run, tmp_path):
    bfloat16 = [*DEBUG, "--compute-dtype", "bfloat16", "--num-layers", 1, "--output"]
    for name, options in (("whole", []), ("stopped", ["--steps", 30])):
        assert run(*bfloat16, tmp_path / name, *options)[0] == 0
    assert run("--output", tmp_path / "stopped", "--resume")[0] == 0
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")
    model = keras.saving.load_model(tmp_path / "whole" / "best.keras", compile=False)
    assert {layer.dtype_policy.name for layer in model.recurrent_layers} == {"float32"}
    results = json.loads((tmp_path / "whole" / "results.json").read_text())
    rows = epochs(tmp_path / "whole")
    best = min(float(row["val_perplexity"]) for row in rows)
    assert results["validation_perplexity"] == pytest.approx(best, rel=1e-5)
    assert float(rows[1]["loss"]) < float(rows[0]["loss"])


def test_bfloat16_loss_is_close_to_float32_loss(run, tmp_path):
    """Without dropout and with a zero learning rate, the losses differ by rounding only."""
    options = [text for name in NO_DROPOUT for text in (f"--{name.replace('_', '-')}", 0)]
    options += ["--learning-rate", "1e-20", "--epochs", 1, "--num-layers", 1]
    losses = []
    for dtype in ("float32", "bfloat16"):
        output = ["--compute-dtype", dtype, "--output", tmp_path / dtype]
        assert run(*DEBUG, *options, *output)[0] == 0
        losses.append(float(epochs(tmp_path / dtype)[0]["loss"]))
    # bfloat16 has 8 significant bits. Rounding errors of single words largely cancel in the mean.
    assert 1e-6 < abs(losses[1] - losses[0]) < 2**-8 * losses[0]


def test_generate_depends_on_seed_and_temperature(command, debug_run):
    before = contents(debug_run[0])

    def words(*options):
        status, output, errors = command("generate", "--model", debug_run[0], "( a", *options)
        assert (status, ours(errors)) == (0, [])
        return output.split()

    assert len({tuple(words("--seed", n)) for n in range(4)}) == 4
    # With top-k 1 or a very low temperature, the most likely word is always chosen.
    greedy = words("--top-k", 1, "--seed", 1, "--length", 12)
    assert greedy[:2] == ["(", "a"] and len(greedy) <= 14
    assert greedy == words("--temperature", 1e-4, "--seed", 2, "--length", 12)
    assert contents(debug_run[0]) == before


def test_generate_stops_at_end_of_sentence(command, debug_run, monkeypatch):
    def predict_eos(model, *args, **kwargs):
        output = call(model, *args, **kwargs)
        return output._replace(logits=1000.0 * ops.one_hot(ops.zeros_like(args[0]), 13))

    call = LanguageModel.__call__
    monkeypatch.setattr(LanguageModel, "__call__", predict_eos)
    status, output, _ = command("generate", "--model", debug_run[0], "( a")
    assert status == 0 and output == "( a\n"


@pytest.fixture
def formulas(tmp_path):
    """The corpus that a debug run generates."""
    directory = tmp_path / "formulas"
    directory.mkdir()
    corpora._corpus_folder(LanguageModelConfig.from_preset("debug"), directory, True)
    return directory


def test_compact_model_matches_run(command, debug_run, formulas, tmp_path):
    before = contents(debug_run[0])
    path = tmp_path / "model.npz"
    arguments = ["compact", "--model", debug_run[0], "--data", formulas]
    status, output, errors = command(*arguments, "--output", path)
    assert (status, ours(errors)) == (0, [])
    model, metadata = load_eight_bit(path)
    results = json.loads((debug_run[0] / "results.json").read_text())
    assert metadata["test_perplexity"] == results["test_perplexity"]
    assert metadata["command"] == "keras-onlstm train --preset debug --seed 0"
    exact, rounded = map(float, re.findall(r"perplexity (\S+), with 8 bits (\S+)", output)[0])
    assert exact == pytest.approx(results["validation_perplexity"], abs=0.01)
    assert abs(rounded - exact) < 0.1
    assert len(model.score(["( a"])[0]) == 3
    assert contents(debug_run[0]) == before


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("valid.txt", b"a b\n\xff\xfe c\n", ["valid.txt", "line 2", "UTF-8"]),
        ("train.txt", b"a b\n", ["training", "3 tokens are too few"]),
    ],
)
def test_rejects_unusable_corpus(run, data, tmp_path, name, content, parts):
    (data / name).write_bytes(content)
    output = tmp_path / "run"
    refused(run(*DEBUG, "--data", data, "--output", output), *parts)
    assert not output.exists()


def test_short_validation_text_is_accepted(run, data, tmp_path):
    (data / "valid.txt").write_bytes(b"a b\n")
    assert run(*DEBUG, "--data", data, "--output", tmp_path / "run", "--epochs", 1)[0] == 0


def test_resume_rejects_changed_corpus(run, data, tmp_path):
    output = tmp_path / "run"
    assert run(*DEBUG, "--data", data, "--output", output, "--steps", 3)[0] == 0
    before = contents(output)
    text = (data / "train.txt").read_text()
    (data / "train.txt").write_text(text.replace("a", "z"))
    refused(run("--output", output, "--resume"), output / "vocabulary.txt", "is not the vocabulary")
    (output / "vocabulary.txt").unlink()
    refused(run("--output", output, "--resume"), output / "vocabulary.txt", "no such file")
    del before["vocabulary.txt"]
    assert contents(output) == before


@pytest.mark.parametrize(
    ("name", "text", "arguments", "message"),
    [
        ("results.json", "{}", COMPACT, "parameters is missing"),
        ("config.json", '{"model": "language_model", "data": 3}', COMPACT, "data must be a list"),
        ("vocabulary.txt", "\udcff\n", ["--resume", "--output"], "is not UTF-8 text"),
    ],
)
def test_rejects_damaged_files_of_a_run(run, command, copied, name, text, arguments, message):
    (copied / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    if arguments[0] == "compact":
        command_refused(command(*arguments, copied), copied / name, message)
    else:
        refused(run(*arguments, copied), copied / name, message)


def test_rejects_model_without_eos(run, copied):
    model = LanguageModel(4, 4, 4, 1, chunk_size=2, vocabulary=["a", "b", "c", "d"])
    model.build()
    model.save(copied / "best.keras")
    refused(run("--evaluate", copied), copied, "no vocabulary with <eos> and <unk>")
