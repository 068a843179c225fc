"""`keras-onlstm evaluate`: F1 on a treebank, and errors. test_train.py tests perplexity."""

import re

import pytest

from helpers.commands import contents, ours, run_command
from helpers.commands import refused as refused_by
from keras_onlstm.datasets import treebank
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.ensemble import save_eight_bit
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import balanced, left_branching, right_branching, score

pytestmark = pytest.mark.backend("tensorflow")  # nothing here depends on it

SHORT = """( (S (NP-SBJ (DT The) (NN company)) (VP (VBD said) (SBAR (-NONE- 0) (S (NP (PRP it))
    (VP (MD will) (VP (VB sell) (NP (PRP$ its) (NN stake))))))) (. .)) )
( (S (NP (NP (NNS Shares)) (PP (IN of) (NP (DT the) (NN bank)))) (VP (VBD fell)
    (NP (CD 12.5) (NNS points))) (. .)) )
"""
LONG = """( (S (NP (DT The) (NN new) (NN law)) (VP (VBZ takes) (NP (NN effect)) (PP (IN in)
    (NP (NNP January))) (SBAR (IN although) (S (NP (NNS critics)) (VP (VBD asked) (S (VP (TO to)
    (VP (VB wait) (PP (IN for) (NP (DT another) (NN year)))))))))) (. .)) )
"""


def refused(result, *parts):
    refused_by("keras-onlstm", result, *parts)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    words = ["<eos>", "<unk>", "N.N", "the", "company", "said", "it", "will", "sell", "bank"]
    model = LanguageModel(len(words), 8, 16, 3, 4, vocabulary=words, seed=0)
    model.build()
    path = tmp_path_factory.mktemp("model") / "model.npz"
    save_eight_bit(model, path)
    return path


@pytest.fixture
def trees(tmp_path):
    """Files of three trees, one of which has more than 10 words."""
    for name, text in (("short", SHORT), ("long", LONG)):
        (tmp_path / f"{name}.mrg").write_text(text)
    return [tmp_path / "short.mrg", tmp_path / "long.mrg"]


def percent(value):
    return "" if value is None else f"{100 * value:.1f}"


def f1(trees, sentences):
    """F1 by sentence, of the corpus, and of sentences of at most 10 words."""
    golds = [sentence.tree for sentence in sentences]
    short = [index for index, sentence in enumerate(sentences) if len(sentence.tokens) <= 10]
    everything = score(trees, golds)
    brief = score([trees[index] for index in short], [golds[index] for index in short])
    return [percent(x) for x in (everything["f1"], everything["corpus_f1"], brief["f1"])]


def rows_of(text):
    """The cells of the table by the names of its rows."""
    lines = text.splitlines()[3:]
    return {re.split(r"  +", line)[0]: re.split(r"  +", line.rstrip())[1:] for line in lines}


def test_f1_matches_the_trees(model, trees):
    status, text, errors = run_command("evaluate", "--model", model, "--treebank", *trees)
    assert (status, ours(errors)) == (0, [])
    sentences = treebank.read(trees)
    assert [len(sentence.tokens) for sentence in sentences] == [8, 7, 15]
    assert text.startswith("3 sentences\n")
    header = re.split(r"  +", text.splitlines()[1])
    assert header == ["F1 in percent", "by sentence", "corpus", "to 10 words"]
    rows = rows_of(text)
    parsed = list(Parser.load(model).parse_many(sentence.tokens for sentence in sentences))
    assert rows[str(model)] == f1(parsed, sentences)
    for name, make in (
        ("balanced trees", balanced),
        ("left-branching trees", left_branching),
        ("right-branching trees", right_branching),
    ):
        assert rows[name] == f1([make(sentence.tokens) for sentence in sentences], sentences)
    assert "random trees" in rows and len(rows) == 5


def test_several_models_and_the_default_model(model, trees):
    both = run_command("evaluate", "--model", model, model, "--treebank", *trees)[1]
    assert rows_of(both) == rows_of(
        run_command("evaluate", "--model", model, "--treebank", *trees)[1]
    )
    status, text, errors = run_command("evaluate", "--treebank", *trees)
    assert (status, ours(errors)) == (0, [])
    sentences = treebank.read(trees)
    parsed = list(Parser.load().parse_many(sentence.tokens for sentence in sentences))
    assert rows_of(text)["the package's parser"] == f1(parsed, sentences)


def test_no_sentence_of_at_most_10_words(model, trees):
    status, text, errors = run_command("evaluate", "--model", model, "--treebank", trees[1])
    assert (status, ours(errors)) == (0, [])
    assert all(len(cells) == 2 for cells in rows_of(text).values())  # the third is empty
    assert "nan" not in text.lower() and "none" not in text.lower()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["--model is missing. Pass the folder of a trained run"]),
        (["--model", "gone"], ["gone/config.json: no such file"]),
        (["--model", "gone.npz", "--treebank", "long.mrg"], ["gone.npz: no such model"]),
        (["--treebank", "gone.mrg"], ["gone.mrg: no such file"]),
        (["--treebank", "empty.mrg"], ["empty.mrg: contains no tree"]),
        (["--treebank", "text.mrg"], ["text.mrg", "line 1"]),
        (["--treebank", "open.mrg"], ["open.mrg, line 1: is not a tree"]),
        (["--treebank", "stops.mrg"], ["--treebank stops.mrg: contains no words"]),
        (["--treebank", "latin.mrg"], ["latin.mrg, line 1: is not UTF-8"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_errors_are_one_line(arguments, parts, trees, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.mrg").write_text("\n\n")
    (tmp_path / "text.mrg").write_text("Shares fell.\n")
    (tmp_path / "open.mrg").write_text("( (S (NN a)\n")
    (tmp_path / "stops.mrg").write_text("( (S (. .)) )\n")
    (tmp_path / "latin.mrg").write_bytes(b"( (S (NN \xff)) )\n")
    before = contents(tmp_path)
    refused(run_command("evaluate", *arguments), *parts)
    assert contents(tmp_path) == before
