"""examples/sentence_completion.py: what it chooses, parses, writes; one line for every mistake."""

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
    (("In", "1889"), ("a", "b", "c", "d", "e"), ("runs",), 0),  # unknown: the first of equals
    (("the",), ("cat", "dog", "the", "sleeps", "barks"), ("barks",), 1),
]


def sentences():
    return [[*a, word, *b] for a, candidates, b, _ in QUESTIONS for word in candidates]


def fan(words):
    """The tree in which all words depend on the last one."""
    return DependencyTree(words, [len(words)] * (len(words) - 1) + [0])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Questions, their trees, and runs as far as evaluating needs them. Not to be changed."""
    directory = tmp_path_factory.mktemp("files")
    answers = [[*a, candidates[right], *b] for a, candidates, b, right in QUESTIONS]
    for name, some in (("questions", sentences()), ("answers", answers)):
        text = "".join(f"<s> {' '.join(words)} </s>\n" for words in some)
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


def chosen(model, shape, word):
    """Choices by sentences that are scored one by one, the first of equals by strict comparison."""
    choices = []
    for before, candidates, after, _ in QUESTIONS:
        best, choice = -np.inf, None
        for place, candidate in enumerate(candidates):
            words = [word(w) for w in (*before, candidate, *after)]
            words = [w if w in WORDS else "<unk>" for w in words]
            found = model.log_probability([shape(words)])[0]
            if found > best:
                best, choice = found, place
        choices.append(choice)
    return choices


def test_choices_of_trained_runs(run, files, tmp_path):
    output = tmp_path / "out"
    status, text, errors = run(*options(files, "tree", "ld", "chain", "cased"), "--output", output)
    assert (status, ours(errors)) == (0, [])
    results = json.loads((output / "results.json").read_text())["MSR"]
    with open(output / "choices.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert [row[:3] for row in rows] == [
        ["MSR", str(number), one[1][one[3]]] for number, one in enumerate(QUESTIONS, 1)
    ]
    seen = set()
    for column, (name, title, shape, word) in enumerate(
        [
            ("tree", "TreeLSTM", fan, normalize),
            ("ld", "LdTreeLSTM", fan, normalize),
            ("chain", "LSTM", chain, normalize),
            ("cased", "TreeLSTM", fan, str),
        ],
        start=3,
    ):
        model = keras.saving.load_model(files / name / "best.keras")
        choices = chosen(model, shape, word)
        assert choices[2] == 0
        seen.add(tuple(choices))
        assert header[column] == f"{title}, {files / name}"
        assert [row[column] for row in rows] == [
            one[1][choice] for one, choice in zip(QUESTIONS, choices, strict=True)
        ]
        right = [choice == one[3] for choice, one in zip(choices, QUESTIONS, strict=True)]
        known = [False, True, False, True]
        found = results[header[column]]
        for group, rows_of in {
            "all": right,
            "validation": right[:2],
            "test": right[2:],
            "known": [one for one, k in zip(right, known, strict=True) if k],
        }.items():
            low, high = interval(sum(rows_of), len(rows_of))
            assert found[group] == {
                "right": sum(rows_of), "questions": len(rows_of),
                "accuracy": sum(rows_of) / len(rows_of), "lowest": low, "highest": high,
            }  # fmt: skip
    assert len(seen) > 1, "the models differ"
    # By the order of the vocabulary: dog before cat, the first of the unknown, and so on.
    frequent = {name: found for name, found in results.items() if "frequent" in name}
    assert len(frequent) == 2  # in lower case, and not
    lower, cased = (found["all"]["right"] for found in frequent.values())
    # Normalized: Dog, dog, a, the; as they are: cat, dog, a, the. Right are the third, and the cat.
    assert (lower, cased) == (1, 2)
    assert "published: LdTreeLSTM (400)" in text and text.count(" minus TreeLSTM, ") == 3


def test_crossing_trees_are_made_projective(run, files, tmp_path):
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
    made = sum(not tree.is_projective for tree in crossing)
    assert made and f"{made:,} trees were not projective, and are made so" in text


def test_blanks(run, files, shared_data, tmp_path):
    told = ["--blanks", "--models", files / "chain", "--output", tmp_path / "out"]
    with corpora_in(shared_data / "nltk_data"):
        status, text, _ = run(*told)
    gaps = (tmp_path / "out" / "choices.csv").read_text().count("\nblanks,")
    assert status == 0 and "published" not in text
    assert f"{gaps} of 338 sentences have a gap" in text and f"blanks, {gaps} questions" in text


def test_debug(run, tmp_path):
    output = tmp_path / "out"
    with corpora_in():  # it needs no corpus
        status, text, errors = run(*DEBUG, "--output", output)
    assert (status, ours(errors)) == (0, []), errors
    results = json.loads((output / "results.json").read_text())
    made_up = results["made-up questions"]
    for title in ("TreeLSTM", "LdTreeLSTM", "LSTM"):
        name = next(name for name in made_up if name.startswith(f"{title}, "))
        assert made_up[name]["all"]["questions"] == 40
        assert made_up[name]["all"]["right"] == 40, "the grammar leaves no choice"
    assert made_up["most frequent in the training text"]["all"]["right"] < 20
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
    """A stand-in for spaCy whose model hangs all words on the last one."""
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


def test_trees_of_the_questions(run, spacy, files, tmp_path):
    trees = tmp_path / "new" / "trees.conll"
    status, text, errors = run("--questions", files, "--trees", trees, "--parse", "fans")
    assert (status, ours(errors)) == (0, [])
    assert "20 trees; 0 were not projective and are made so, 0 had several words" in text
    expected = [tree.words for tree in map(fan, sentences())]
    found = list(conll.read(trees))
    assert [tree.words for tree in found] == expected
    assert [tree.heads for tree in found] == [fan(words).heads for words in expected]
    assert found[0].tags == ("NN",) * 3
    before = contents(tmp_path)
    refused(run("--questions", files, "--trees", trees, "--parse", "fans"), trees, "exists already")
    assert contents(tmp_path) == before


def test_what_becomes_of_several_roots_and_crossing_arcs(script):
    from _spacy import SpacyTrees

    trees = SpacyTrees(Pipeline())
    words, tags = list("abcd"), ["NN"] * 4
    # b, c and d depend on ROOT: c and d get b.
    tree = trees.tree(words, [2, 0, 0, 0], tags, tags)
    assert (tree.heads, trees.rooted, trees.lifted) == ((2, 0, 2, 2), 1, 0)
    # The arc from c to a crosses b, the head of c's head: a goes up.
    tree = trees.tree(words, [3, 0, 4, 2], tags, tags)
    assert tree.is_projective and tree.heads == (2, 0, 4, 2)
    assert (trees.rooted, trees.lifted) == (1, 1)
    # Both: d goes to a, across b's dependent.
    tree = trees.tree(words, [0, 4, 2, 0], tags, tags)
    assert (tree.heads, trees.rooted, trees.lifted) == ((0, 4, 2, 1), 2, 1)


def test_brown_is_parsed_by_files(run, spacy, monkeypatch, tmp_path):
    files = {f"c{number:02}": [[f"w{number}", "x"]] for number in range(40)}
    monkeypatch.setattr(brown, "load_files", lambda: files)
    status, _, errors = run("--prepare-brown", tmp_path / "brown", "--parse", "fans")
    assert (status, ours(errors)) == (0, [])
    found = {
        part: [tree.words[0] for tree in conll.read(tmp_path / "brown" / f"{part}.conll")]
        for part in ("train", "valid", "test")
    }
    assert (found["valid"], found["test"]) == (["w0", "w20"], ["w10", "w30"])
    assert len(found["train"]) == 36 and not set(found["train"]) & {"w0", "w10", "w20", "w30"}
    refused(run("--prepare-brown", tmp_path / "brown", "--parse", "fans"), "train.conll", "exists")


def test_words_of_brown_as_they_are(shared_data):
    with corpora_in(shared_data / "nltk_data"):
        files = brown.load_files()
    assert len(files) == 500 and sum(map(len, files.values())) == 57_340
    assert " ".join(files["ca01"][0]).startswith("The Fulton County Grand Jury said Friday an")
    pairs = Counter(
        pair
        for some in files.values()
        for words in some
        for pair in pairwise(words)
        if len(set(pair)) == 1
    )
    assert pairs["had", "had"] == 63 and pairs["that", "that"] == 14  # words, which stay
    assert not any(len(word) == 1 and not word.isalnum() for word, _ in pairs)
    # 1,161,192 tokens, 6,051 of them the second of a doubled mark of punctuation.
    assert sum(len(words) for some in files.values() for words in some) == 1_155_141


def test_trees_that_do_not_match(run, files, tmp_path):
    trees = list(map(fan, sentences()))
    path, output = tmp_path / "trees.conll", tmp_path / "out"
    told = ["--questions", files, "--trees", path, "--models", files / "tree", "--output", output]
    conll.write(trees[:-1], path)
    refused(run(*told), path, "19 trees for 20 sentences", "Parse the sentences again")
    conll.write([*trees[:3], fan(["The", "flea", "sleeps"]), *trees[4:]], path)
    refused(run(*told), path, "tree 4: word 2 must be 'fly'", "'fly'")
    assert not output.exists()


def test_a_run_of_another_script(run, files, tmp_path):
    other = tmp_path / "other"
    told = [*options(files), "--models", other, "--output", tmp_path / "out"]
    refused(run(*told), other, "config.json: no such file", "dependency_language_model.py")
    other.mkdir()
    bush = TreeLSTMConfig().to_json() | {"trees": "bush"}
    (other / "config.json").write_text(json.dumps(bush))
    refused(run(*told), other / "config.json", "trees must be 'dependencies' or 'chain'")
    shutil.copy(files / "chain" / "config.json", other)
    model = LanguageModel(3, 4, 8, 1, 4, vocabulary=["<eos>", "<unk>", "a"])
    model.build()
    model.save(other / "best.keras")
    refused(run(*told), "LanguageModel, and this script needs a TreeLSTM")
    assert not (tmp_path / "out").exists()


def test_models_that_do_not_parse(run, spacy, files, monkeypatch, tmp_path):
    told = ["--questions", files, "--trees", tmp_path / "trees.conll", "--parse"]
    refused(run(*told, "en_core"), "--parse en_core", "[E050] Can't find model. It is not there.")
    refused(run(*told, "tagger"), "--parse tagger", "has no parser")
    monkeypatch.setitem(sys.modules, "spacy", None)
    refused(run(*told, "fans"), "pip install spacy")
    assert contents(tmp_path) == {}
