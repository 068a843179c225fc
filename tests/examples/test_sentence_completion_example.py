"""examples/sentence_completion.py: choices, parsing, files and error messages."""

import csv
import functools
import json
import shutil
import sys
import types
from collections import Counter
from itertools import pairwise

import keras
import numpy as np
import pytest

from helpers import commands
from helpers.commands import DEBUG, EXAMPLES, contents, ours
from helpers.corpora import corpora_in
from keras_onlstm.datasets import brown, conll
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.dependencies import DependencyTree, chain
from keras_onlstm.evaluation.minimal_pairs import interval
from keras_onlstm.models import LanguageModel, TreeLSTM
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig

pytestmark = pytest.mark.backend("tensorflow")

SCRIPT = EXAMPLES / "sentence_completion.py"
refused = functools.partial(commands.refused, SCRIPT)
WORDS = ["<unk>", "<root>", "the", "dog", "sleeps", "cat", "runs", "N", "barks"]
QUESTIONS = [  # (words before, candidates, words after, answer)
    (("The",), ("Dog", "cat", "eel", "fly", "hen"), ("sleeps",), 1),
    (("the", "dog"), ("runs", "sleeps", "barks", "dog", "cat"), (), 0),
    (("In", "1889"), ("a", "b", "c", "d", "e"), ("runs",), 0),  # all unknown: the first is chosen
    (("the",), ("cat", "dog", "the", "sleeps", "barks"), ("barks",), 1),
]


def sentences():
    return [[*a, word, *b] for a, candidates, b, _ in QUESTIONS for word in candidates]


def fan(words):
    """A tree in which all words depend on the last one."""
    return DependencyTree(words, [len(words)] * (len(words) - 1) + [0])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Questions, their trees, and runs with the files that an evaluation needs. Read only."""
    directory = tmp_path_factory.mktemp("files")
    answers = [[*a, candidates[right], *b] for a, candidates, b, right in QUESTIONS]
    for name, texts in (("questions", sentences()), ("answers", answers)):
        text = "".join(f"<s> {' '.join(words)} </s>\n" for words in texts)
        (directory / f"Holmes.lm_format.{name}.txt").write_text(text)
    conll.write(map(fan, sentences()), directory / "fans.conll")
    runs = {
        "tree": ("dependencies", False, True),
        "ld": ("dependencies", True, True),
        "chain": ("chain", False, True),
        "cased": ("dependencies", False, False),
    }
    for seed, (name, (shape, left_dependents, normalizes)) in enumerate(runs.items()):
        model = TreeLSTM(
            len(WORDS), 4, 8, left_dependents=left_dependents, vocabulary=WORDS, seed=seed
        )
        model.build()
        for weight in (model.embeddings, model.softmax_kernel):
            weight.assign(20 * keras.ops.convert_to_numpy(weight))
        (directory / name).mkdir()
        model.save(directory / name / "best.keras")
        config = TreeLSTMConfig(trees=shape, normalize=normalizes).to_json()
        (directory / name / "config.json").write_text(json.dumps(config))
    return directory


def options(files, *runs):
    return [
        *("--questions", files, "--trees", files / "fans.conll"),
        *(("--models", *(files / name for name in runs)) if runs else ()),
    ]


def reference_choices(model, shape, normalize_word):
    """Choices by sentences that are scored separately. Ties choose the first one."""
    choices = []
    for before, candidates, after, _ in QUESTIONS:
        best, choice = -np.inf, None
        for index, candidate in enumerate(candidates):
            words = [normalize_word(w) for w in (*before, candidate, *after)]
            words = [w if w in WORDS else "<unk>" for w in words]
            score = model.log_probability([shape(words)])[0]
            if score > best:
                best, choice = score, index
        choices.append(choice)
    return choices


def test_choices_match_separately_scored_sentences(run, files, tmp_path):
    output = tmp_path / "out"
    status, text, errors = run(*options(files, "tree", "ld", "chain", "cased"), "--output", output)
    assert (status, ours(errors)) == (0, [])
    results = json.loads((output / "results.json").read_text())["MSR"]
    with open(output / "choices.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert [row[:3] for row in rows] == [
        ["MSR", str(number), candidates[answer]]
        for number, (_, candidates, _, answer) in enumerate(QUESTIONS, 1)
    ]
    distinct = set()
    for column, (name, title, shape, normalize_word) in enumerate(
        [
            ("tree", "TreeLSTM", fan, normalize),
            ("ld", "LdTreeLSTM", fan, normalize),
            ("chain", "LSTM", chain, normalize),
            ("cased", "TreeLSTM", fan, str),
        ],
        start=3,
    ):
        model = keras.saving.load_model(files / name / "best.keras")
        choices = reference_choices(model, shape, normalize_word)
        assert choices[2] == 0
        distinct.add(tuple(choices))
        assert header[column] == f"{title}, {files / name}"
        assert [row[column] for row in rows] == [
            question[1][choice] for question, choice in zip(QUESTIONS, choices, strict=True)
        ]
        right = [choice == question[3] for choice, question in zip(choices, QUESTIONS, strict=True)]
        known = [False, True, False, True]
        groups = results[header[column]]
        for group, correct in {
            "all": right,
            "validation": right[:2],
            "test": right[2:],
            "known": [r for r, is_known in zip(right, known, strict=True) if is_known],
        }.items():
            low, high = interval(sum(correct), len(correct))
            assert groups[group] == {
                "right": sum(correct), "questions": len(correct),
                "accuracy": sum(correct) / len(correct), "lowest": low, "highest": high,
            }  # fmt: skip
    assert len(distinct) > 1, "all models make the same choices"
    # The baseline follows the order of the vocabulary and chooses the first of unknown words.
    frequent = {name: groups for name, groups in results.items() if "frequent" in name}
    assert len(frequent) == 2  # with and without normalization
    lower, cased = (groups["all"]["right"] for groups in frequent.values())
    # It chooses Dog, dog, a, the with normalization and cat, dog, a, the without. "a" and "cat" are
    # correct.
    assert (lower, cased) == (1, 2)
    assert "published: LdTreeLSTM (400)" in text and text.count(" minus TreeLSTM, ") == 3


def test_crossing_trees_are_projectivized(run, files, tmp_path):
    trees = list(map(fan, sentences()))
    words = trees[5].words  # of three
    trees[5] = DependencyTree(words, [3, 0, 2])
    crossing = [t if len(t) != 4 else DependencyTree(t.words, [3, 4, 4, 0]) for t in trees]
    conll.write(crossing, tmp_path / "trees.conll")
    status, text, errors = run(
        *("--questions", files, "--trees", tmp_path / "trees.conll"),
        *("--models", files / "tree", "--output", tmp_path / "out"),
    )
    assert (status, ours(errors)) == (0, [])
    count = sum(not tree.is_projective for tree in crossing)
    assert count and f"{count:,} trees were not projective and have been projectivized" in text


def test_evaluates_on_blanks(run, files, shared_data, tmp_path):
    arguments = ["--blanks", "--models", files / "chain", "--output", tmp_path / "out"]
    with corpora_in(shared_data / "nltk_data"):
        status, text, _ = run(*arguments)
    gaps = (tmp_path / "out" / "choices.csv").read_text().count("\nblanks,")
    assert status == 0 and "published" not in text
    assert f"{gaps} questions from 338 sentences" in text and f"blanks, {gaps} questions" in text


def test_debug_models_answer_all_questions(run, tmp_path):
    output = tmp_path / "out"
    with corpora_in():  # no corpus is needed
        status, text, errors = run(*DEBUG, "--output", output)
    assert (status, ours(errors)) == (0, []), errors
    results = json.loads((output / "results.json").read_text())
    groups = results["synthetic questions"]
    for title in ("TreeLSTM", "LdTreeLSTM", "LSTM"):
        name = next(name for name in groups if name.startswith(f"{title}, "))
        assert groups[name]["all"]["questions"] == 40
        assert groups[name]["all"]["right"] == 40, "the grammar determines the answers"
    assert groups["most frequent in the training text"]["all"]["right"] < 20
    assert {path.name for path in output.iterdir() if path.is_dir()} == {
        "tree_lstm", "ld_tree_lstm", "lstm",
    }  # fmt: skip
    assert "chance" in text and (output / "choices.csv").is_file()


class Token(types.SimpleNamespace):
    pass


class Doc(list):
    def __init__(self, vocab, words):
        assert vocab == "vocabulary"
        super().__init__(Token(i=i, text=w, tag_="NN", dep_="dep") for i, w in enumerate(words))
        for token in self:
            token.head = self[-1]


class Pipeline:
    vocab, pipe_names = "vocabulary", ["tagger", "parser"]

    def pipe(self, documents):
        yield from documents


@pytest.fixture
def spacy(monkeypatch):
    """A fake spaCy whose model makes all words depend on the last one."""
    module, tokens = types.ModuleType("spacy"), types.ModuleType("spacy.tokens")
    tokens.Doc = Doc
    models = {"fans": Pipeline(), "tagger": types.SimpleNamespace(pipe_names=["tagger"])}

    def load(name, exclude):
        if name not in models:
            raise OSError("[E050] Can't find model.\n It is not there.")
        return models[name]

    module.load = load
    monkeypatch.setitem(sys.modules, "spacy", module)
    monkeypatch.setitem(sys.modules, "spacy.tokens", tokens)


def test_parse_writes_trees_of_questions(run, spacy, files, tmp_path):
    trees = tmp_path / "new" / "trees.conll"
    status, text, errors = run("--questions", files, "--trees", trees, "--parse", "fans")
    assert (status, ours(errors)) == (0, [])
    assert "20 trees. 0 were projectivized. In 0 several words depended on ROOT" in text
    expected = [tree.words for tree in map(fan, sentences())]
    parsed = list(conll.read(trees))
    assert [tree.words for tree in parsed] == expected
    assert [tree.heads for tree in parsed] == [fan(words).heads for words in expected]
    assert parsed[0].tags == ("NN",) * 3
    before = contents(tmp_path)
    refused(run("--questions", files, "--trees", trees, "--parse", "fans"), trees, "exists already")
    assert contents(tmp_path) == before


def test_spacy_trees_get_one_root_and_no_crossing_arcs(script):
    from _spacy import SpacyTrees

    trees = SpacyTrees(Pipeline())
    words, tags = list("abcd"), ["NN"] * 4
    # b, c and d depend on ROOT: b becomes the head of c and d.
    tree = trees.tree(words, [2, 0, 0, 0], tags, tags)
    assert (tree.heads, trees.rooted, trees.lifted) == ((2, 0, 2, 2), 1, 0)
    # The arc from c to a crosses b, the head of c's head: a is attached to b.
    tree = trees.tree(words, [3, 0, 4, 2], tags, tags)
    assert tree.is_projective and tree.heads == (2, 0, 4, 2)
    assert (trees.rooted, trees.lifted) == (1, 1)
    # Both: d is attached to a, so that its arc crosses another one.
    tree = trees.tree(words, [0, 4, 2, 0], tags, tags)
    assert (tree.heads, trees.rooted, trees.lifted) == ((0, 4, 2, 1), 2, 1)


def test_prepare_brown_splits_by_files(run, spacy, monkeypatch, tmp_path):
    files = {f"c{number:02}": [[f"w{number}", "x"]] for number in range(40)}
    monkeypatch.setattr(brown, "load_files", lambda: files)
    status, _, errors = run("--prepare-brown", tmp_path / "brown", "--parse", "fans")
    assert (status, ours(errors)) == (0, [])
    words = {
        part: [tree.words[0] for tree in conll.read(tmp_path / "brown" / f"{part}.conll")]
        for part in ("train", "valid", "test")
    }
    assert (words["valid"], words["test"]) == (["w0", "w20"], ["w10", "w30"])
    assert len(words["train"]) == 36 and not set(words["train"]) & {"w0", "w10", "w20", "w30"}
    refused(run("--prepare-brown", tmp_path / "brown", "--parse", "fans"), "train.conll", "exists")


def test_brown_keeps_words_and_drops_doubled_punctuation(shared_data):
    with corpora_in(shared_data / "nltk_data"):
        files = brown.load_files()
    assert len(files) == 500 and sum(map(len, files.values())) == 57_340
    assert " ".join(files["ca01"][0]).startswith("The Fulton County Grand Jury said Friday an")
    pairs = Counter(
        pair
        for sentences in files.values()
        for words in sentences
        for pair in pairwise(words)
        if len(set(pair)) == 1
    )
    assert pairs["had", "had"] == 63 and pairs["that", "that"] == 14
    assert not any(len(word) == 1 and not word.isalnum() for word, _ in pairs)
    # Of 1,161,192 tokens, 6,051 are the second of a doubled punctuation mark.
    assert sum(len(words) for sentences in files.values() for words in sentences) == 1_155_141


def test_rejects_trees_of_other_sentences(run, files, tmp_path):
    trees = list(map(fan, sentences()))
    path, output = tmp_path / "trees.conll", tmp_path / "out"
    arguments = ["--questions", files, "--trees", path, "--models", files / "tree"]
    arguments += ["--output", output]
    conll.write(trees[:-1], path)
    refused(run(*arguments), path, "19 trees for 20 sentences", "sentences again")
    conll.write([*trees[:3], fan(["The", "flea", "sleeps"]), *trees[4:]], path)
    refused(run(*arguments), path, "tree 4: word 2 must be 'fly'", "'fly'")
    assert not output.exists()


def test_rejects_runs_of_other_scripts(run, files, tmp_path):
    other = tmp_path / "other"
    arguments = [*options(files), "--models", other, "--output", tmp_path / "out"]
    refused(run(*arguments), other, "config.json: no such file", "dependency_language_model.py")
    other.mkdir()
    bush = TreeLSTMConfig().to_json() | {"trees": "bush"}
    (other / "config.json").write_text(json.dumps(bush))
    refused(run(*arguments), other / "config.json", "trees must be 'dependencies' or 'chain'")
    shutil.copy(files / "chain" / "config.json", other)
    model = LanguageModel(3, 4, 8, 1, 4, vocabulary=["<eos>", "<unk>", "a"])
    model.build()
    model.save(other / "best.keras")
    refused(run(*arguments), "must be a TreeLSTM, not a LanguageModel")
    assert not (tmp_path / "out").exists()


def test_rejects_spacy_models_without_parser(run, spacy, files, monkeypatch, tmp_path):
    arguments = ["--questions", files, "--trees", tmp_path / "trees.conll", "--parse"]
    refused(
        run(*arguments, "en_core"), "--parse en_core", "[E050] Can't find model. It is not there."
    )
    refused(run(*arguments, "tagger"), "--parse tagger", "has no parser")
    monkeypatch.setitem(sys.modules, "spacy", None)
    refused(run(*arguments, "fans"), "pip install spacy")
    assert contents(tmp_path) == {}
