"""examples/syntactic_evaluation.py: corpora and table of results. See also test_run_contract.py."""

import csv
import functools
import json
from dataclasses import replace

import keras
import numpy as np
import pytest

from helpers import commands
from helpers.commands import DEBUG, EXAMPLES, contents, ours
from helpers.corpora import corpora_in
from keras_onlstm.datasets import syntactic_evaluation, syntactic_grammar
from keras_onlstm.datasets.syntactic_evaluation import ROWS, MinimalPair, write_table
from keras_onlstm.evaluation.minimal_pairs import difference_interval, interval, mcnemar
from keras_onlstm.models import LanguageModel
from keras_onlstm.training.language_models import _optimizer, _schedules, make_model
from keras_onlstm.training.optimizers import PlateauSchedule

pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "syntactic_evaluation.py"
WORDS = ["<eos>", "<unk>", ".", "the", "cat", "cats", "sleeps", "sleep", "dog", "dogs"]
refused = functools.partial(commands.refused, SCRIPT)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Directories of two runs with the files that an evaluation needs."""
    directory = tmp_path_factory.mktemp("runs")
    for seed, recurrent in enumerate(("onlstm", "lstm")):
        model = LanguageModel(
            len(WORDS), 8, 16, 2, 4, recurrent=recurrent, vocabulary=WORDS, seed=seed
        )
        model.build()
        model.embeddings.assign(20 * keras.ops.convert_to_numpy(model.embeddings))
        (directory / recurrent).mkdir()
        model.save(directory / recurrent / "best.keras")
    return [directory / "onlstm", directory / "lstm"]


@pytest.fixture
def pairs(tmp_path):
    """A table of minimal pairs, some with a word outside the vocabulary."""
    animals = ["cat", "dog", "bird"]
    items = [
        MinimalPair("simple_agrmt", "sing", (f"the {a} sleeps", f"the {a} sleep")) for a in animals
    ]
    items += [MinimalPair("mine", "plur", (f"the {a}s sleep", f"the {a} sleep")) for a in animals]
    write_table(tmp_path / "pairs.tsv", items)
    return tmp_path / "pairs.tsv"


def log_probability(model, sentence):
    """Log-probability of the words and the full stop, in float64."""
    ids = np.array([model.encode(f"<eos> {sentence} .")])
    logits = keras.ops.convert_to_numpy(model(ids[:, :-1]))[0].astype("float64")
    scores = logits - np.log(np.exp(logits - logits.max()).sum(-1, keepdims=True)) - logits.max()
    return scores[np.arange(ids.shape[1] - 1), ids[0, 1:]].sum()


def read_results(run):
    rows = json.loads((run / "syntactic_evaluation.json").read_text())["rows"]
    return {(row["name"], row["case"]): row for row in rows}


def test_accuracies_match_models(run, models, pairs):
    status, text, errors = run("--evaluate", *models, "--pairs", pairs)
    assert (status, ours(errors)) == (0, [])
    correct = []
    for directory in models:
        model = keras.saving.load_model(directory / "best.keras", compile=False)
        rows = read_results(directory)
        correct.append({})
        for name, key in (("simple_agrmt", "Simple"), ("mine", "mine")):
            items = syntactic_evaluation.read_table(pairs)
            right = [
                log_probability(model, p.sentences[0]) > log_probability(model, p.sentences[1])
                for p in items
                if p.construction == name
            ]
            correct[-1][key] = right
            row = rows[key, ""]
            assert (row["right"], row["pairs"]) == (sum(right), 3)
            assert row["accuracy"] == pytest.approx(sum(right) / 3)
            assert (row["lowest"], row["highest"]) == pytest.approx(interval(sum(right), 3))
            assert (row["known"], row["all"]) == ((3, 3) if name == "simple_agrmt" else (2, 3))
        with open(directory / "syntactic_evaluation.csv", newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        assert [line["name"] for line in lines] == ["Simple", "Simple", "mine", "mine"]
    line = next(line for line in text.splitlines() if line.startswith("  mine"))
    both = [right["mine"] for right in correct]
    difference = difference_interval(*both)
    assert f"{100 * difference[0]:+.1f}" in line
    assert f"{100 * difference[1]:+.1f} to {100 * difference[2]:+.1f}" in line
    assert f"{mcnemar(*both):.3f}" in line
    assert "66.7" in line  # percentage of pairs whose differing words are known
    assert "ON-LSTM onlstm" in text and "LSTM lstm" in text


def test_known_skips_pairs_with_unknown_words(run, models, pairs):
    status, _, errors = run("--evaluate", models[0], "--pairs", pairs, "--known")
    assert (status, ours(errors)) == (0, [])
    rows = read_results(models[0])
    assert (rows["mine", ""]["pairs"], rows["mine", ""]["known"]) == (2, 2)
    assert rows["mine", ""]["all"] == rows["mine", "plur"]["all"] == 3


def test_differing_compares_only_differing_words(run, models, pairs):
    everything = run("--evaluate", models[0], "--pairs", pairs)[1]
    status, _, errors = run("--evaluate", models[0], "--pairs", pairs, "--differing")
    assert (status, ours(errors)) == (0, []) and "mine" in everything
    model = keras.saving.load_model(models[0] / "best.keras", compile=False)
    items = [p for p in syntactic_evaluation.read_table(pairs) if p.construction == "mine"]
    right = [
        model.score([good])[0][1] > model.score([bad])[0][1]
        for good, bad in (p.sentences for p in items)
    ]
    assert read_results(models[0])["mine", ""]["right"] == sum(right)


def test_table_of_trained_run(finished_run):
    output, text = finished_run("syntactic_evaluation")
    titles = [line.strip() for line in text.splitlines()]
    for row in ROWS:
        assert any(title.startswith(row.name) for title in titles)
    assert "Subject-verb agreement, long distance" in titles
    simple = next(title for title in titles if title.startswith("Simple"))
    assert simple.split()[-2:] == ["99", "100"]  # published
    # The model was trained on sentences of this grammar.
    assert read_results(output)["Simple", ""]["accuracy"] > 0.6


def test_brown_is_added_to_other_corpus(script, tmp_path, monkeypatch):
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_text(f"{part} text\n\nof two lines\n")
    brown = [[f"word{n}", "more"] for n in range(40)]
    monkeypatch.setattr(script.brown, "load", lambda: brown)
    config = script.SyntaxConfig.from_preset("debug", brown=True, data=[str(tmp_path)])
    texts = {part: text.splitlines() for part, text in script.texts(config).items()}
    assert texts["train"][:3] == ["train text .", "of two lines .", "word1 more ."]
    assert texts["valid"] == ["valid text .", "of two lines .", "word0 more .", "word20 more ."]
    assert texts["test"] == ["test text .", "of two lines .", "word10 more .", "word30 more ."]
    assert len(texts["train"]) == 2 + 36
    corpus = script.load_corpus(config, tmp_path)
    assert "." in corpus.vocabulary and corpus.vocabulary[0] == "<eos>"
    assert len(corpus.valid) == (3 + 4 + 3 + 3) + 4  # words and full stops, ends of lines
    brown_only = script.texts(replace(config, data=()))
    assert brown_only["valid"].splitlines() == ["word0 more .", "word20 more ."]


def test_grammar_sentences_are_spread_over_text(script, tmp_path):
    lines = [f"line {n}" for n in range(200)]
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.txt").write_text("\n".join(lines) + "\n")
    config = script.SyntaxConfig(data=[str(tmp_path)], grammar=100)
    texts = {part: text.splitlines() for part, text in script.texts(config).items()}
    assert texts["valid"] == texts["test"] == [f"{line} ." for line in lines]
    own = [line for line in texts["train"] if line.startswith("line ")]
    drawn = [line for line in texts["train"] if not line.startswith("line ")]
    assert own == texts["valid"] and len(drawn) == len(set(drawn)) == 100
    whole = syntactic_grammar.generate(count=10**6)
    correct = {f"{pair.sentences[0]} ." for pair in whole}
    assert correct.issuperset(drawn)
    constructions = {pair.construction for pair in whole if f"{pair.sentences[0]} ." in drawn}
    assert len(constructions) == len({pair.construction for pair in whole})
    # They are spread evenly: each half of the text has between one and two thirds of them.
    assert 33 <= sum(line in drawn for line in texts["train"][:150]) <= 67
    assert texts == {part: text.splitlines() for part, text in script.texts(config).items()}


def test_paper_preset_matches_published_recipe(script):
    config = script.SyntaxConfig.from_preset("paper", brown=True)
    model = make_model(config, ["<eos>", "<unk>", "a"])
    model.build()
    optimizer = _optimizer(config)
    assert config.initialization == "published"  # the output bias starts at 0
    assert [layer.cell.units for layer in model.recurrent_layers] == [650, 650]
    assert model.embeddings.shape == (3, 200) and model.softmax.units == 3
    assert float(optimizer.learning_rate) == 20.0
    assert optimizer.global_clipnorm == 0.25
    (schedule,) = _schedules(config, optimizer)
    assert isinstance(schedule, PlateauSchedule)


def test_plateau_lowers_learning_rate(run, pairs, tmp_path):
    values = ["--optimizer", "sgd", "--schedule", "plateau", "--learning-rate", "1e-30"]
    values += ["--epochs", 3, "--batch-size", 100]
    output = tmp_path / "run"
    status, _, errors = run(*DEBUG, *values, "--output", output, "--pairs", pairs)
    assert (status, ours(errors)) == (0, [])
    rows = json.loads((output / "metrics.json").read_text())["epochs"]
    # At this rate nothing is learnt, so later epochs are not better.
    rates = [row["learning_rate"] for row in rows]
    assert rates == pytest.approx([1e-30, 0.25e-30, 0.0625e-30]) or rates == pytest.approx(
        [1e-30, 1e-30, 0.25e-30]
    )


def test_write_pairs_writes_grammar(run, tmp_path):
    path = tmp_path / "pairs.tsv"
    status, text, errors = run("--write-pairs", path)
    assert (status, ours(errors)) == (0, [])
    assert syntactic_evaluation.read_table(path) == syntactic_grammar.generate()
    assert f"{len(syntactic_grammar.generate()):,} minimal pairs" in text


def test_reads_published_pairs(run, shared_data, tmp_path):
    path = tmp_path / "pairs.tsv"
    status, text, errors = run("--pairs", shared_data / "LM_syneval", "--write-pairs", path)
    assert (status, ours(errors)) == (0, []) and "163,124 minimal pairs" in text


def test_rejects_invalid_pairs(run, models, tmp_path):
    path = tmp_path / "pairs.tsv"
    before = contents(models[0])
    path.write_text("construction\tcase\tgrammatical\tungrammatical\na\tb\tc d\tc\n")
    refused(
        run("--evaluate", models[0], "--pairs", path, "--differing"), "'c d' and 'c'", "numbers of"
    )
    path.write_text("construction\tcase\tgrammatical\tungrammatical\na\tb\tc d\tc\te\n")
    refused(run("--evaluate", models[0], "--pairs", path), path, "line 2", "columns")
    (tmp_path / "simple_agrmt.pickle").write_bytes(b"\x80\x02cos\nsystem\n.")
    refused(run("--evaluate", models[0], "--pairs", tmp_path), "long_vp_coord.pickle", "git clone")
    assert contents(models[0]) == before


def test_reports_missing_brown_corpus(run, tmp_path):
    output = tmp_path / "run"
    with corpora_in():
        refused(run("--brown", "--output", output), "brown", "nltk.downloader")
    assert not output.exists()
