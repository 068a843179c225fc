"""Parser, its compact models and its command line."""

import json
import sys

import keras
import numpy as np
import pytest
from keras import ops
from nltk import Tree

from helpers.checks import as_array, assert_close
from helpers.commands import command_runner
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit
from keras_onlstm.models.sentence_reader import SentenceReader
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets, build_tree, vote

VOCABULARY = ["<eos>", "<unk>", "N", "the", "cat", "saw", "a", "dog", "do", "n't", "N.N"]
SENTENCE = "The cat saw a dog"


def make(**kwargs):
    model = LanguageModel(11, 8, 16, 3, 4, vocabulary=VOCABULARY, seed=4, **kwargs)
    model.build()
    model.embeddings.assign(20 * ops.convert_to_numpy(model.embeddings))
    return model


@pytest.fixture(scope="module")
def model():
    return make()


@pytest.fixture
def parser(model):
    return Parser(model)


@pytest.mark.parametrize("layer", [1, 2, 3])
@pytest.mark.parametrize("method", ["greedy", "binary"])
def test_trees_use_the_selected_layer(model, layer, method):
    words = SENTENCE.split()
    ids = [[0, 3, 4, 5, 6, 7]]
    read = model(np.array(ids), details=True)
    distances = as_array(read.distances["forget"])[0, layer - 1, 1:]
    tree = Parser(model, layer, method).parse(SENTENCE)
    assert tree == build_tree(distances, words, method) and tree.leaves() == words
    assert_close(Parser(model).distances(SENTENCE)[layer - 1], distances, 1e-5, "distances")


@pytest.mark.parametrize("voters", [("greedy",), ("greedy", "binary")])
def test_votes_on_one_layer(model, voters):
    words = SENTENCE.split()
    for layer, row in ((None, 1), (3, 2)):
        both = Parser(model).distances(SENTENCE, "both")
        layers = len(both) // 2
        for gate, rows in (("forget", [row]), ("input", [row]), ("both", [row, layers + row])):
            parser = Parser(model, layer, "votes", voters=voters, gate=gate)
            distances = parser.distances(SENTENCE, gate)[parser.rows]
            assert parser.rows == rows and parser.gate == gate
            assert parser.parse(SENTENCE) == vote(distances, words, voters)
        assert_close(distances, both[[row, layers + row]], 0.0, "both gates")
        assert Parser(model, layer, "votes").gate == "both"


def test_tree_from_given_distances(model):
    words = SENTENCE.split()
    for options in ({}, {"method": "votes"}, {"gate": "input", "layer": 1}):
        parser = Parser(model, **options)
        distances = parser.distances(SENTENCE, parser.gate)
        assert parser.tree(distances, words) == parser.parse(SENTENCE)
    parser = Parser(model, method="votes")
    with pytest.raises(
        ValueError, match=r"at least 5 rows, got shape \(3, 5\).*distances\(sentence, 'b"
    ):
        parser.tree(parser.distances(SENTENCE), words)
    with pytest.raises(ValueError, match=r"shape \(rows, 4\).* got the shape \(2, 5\)"):
        parser.tree(parser.distances(SENTENCE, "both"), words[:4])


def test_parse_many_is_lazy_and_keeps_the_order(parser):
    draw = np.random.default_rng(0).choice
    sentences = [" ".join(draw(VOCABULARY[3:8], n)) for n in (3, 30, 1, 12, 2, 7)]
    taken = []

    def stream():
        for sentence in sentences:
            taken.append(sentence)
            yield sentence

    trees = parser.parse_many(stream(), block=4)
    first = next(trees)
    assert len(taken) == 4  # no more than needed
    found = [first, *trees]
    assert found == [parser.parse(sentence) for sentence in sentences]


def test_tokenization_as_in_the_treebank(parser):
    text = 'The 12 cats don\'t see (75.3) "dogs", or do they?'
    words = "The 12 cats do n't see 75.3 dogs or do they"
    assert parser.tokenize(text) == words.split()
    assert parser.tokenize(["(", "x"]) == ["(", "x"]
    same = parser.distances("the 99 CAT don\u2019t 1.25")
    assert (same == parser.distances(["the", "N", "cat", "do", "n't", "N.N"])).all()
    assert parser.parse("THE cat").leaves() == ["THE", "cat"]


def test_unknown_words_and_short_sentences(parser):
    assert parser.parse("zebras gallop everywhere").leaves() == ["zebras", "gallop", "everywhere"]
    assert parser.parse("cat") == Tree("X", ["cat"])
    for empty in ("", "  \r\n", "...", []):
        with pytest.raises(ValueError, match="sentence 1: has no words"):
            parser.parse(empty)
    found = list(parser.parse_detailed(["the cat", "", "a dog"]))
    assert [parsed.tree is None for parsed in found] == [False, True, False]
    assert found[1].distances.shape == (3, 0)


def test_text_is_split_into_sentences(parser):
    texts = ["The cat saw a dog. A dog saw the cat!", ["a", "cat."], "", "cat \U0001f600"]
    found = list(parser.parse_detailed(texts))
    assert [parsed.words for parsed in found] == [
        ["The", "cat", "saw", "a", "dog"],
        ["A", "dog", "saw", "the", "cat"],
        ["a", "cat."],
        [],
        ["cat"],
    ]
    assert [parsed.source for parsed in found] == [0, 0, 1, 2, 3]
    places = [(token.start, token.end) for token in found[1].tokens]
    assert [texts[0][slice(*place)] for place in places] == [*found[1].words, "!"]
    assert found[0].tree == parser.parse("The cat saw a dog")
    with pytest.raises(ValueError, match="has 2 sentences, the second begins with 'A'"):
        parser.parse(texts[0])
    whole = parser.parse(texts[0], split=False)
    assert whole.leaves() == found[0].words + found[1].words == parser.tokenize(texts[0])
    assert len(list(parser.parse_detailed(texts[:1], split=False))) == 1


def test_punctuation_in_trees(parser):
    text = 'The cat, "saw" a dog.'
    without, tree = parser.parse(text), parser.parse(text, punctuation=True)
    assert tree.leaves() == ["The", "cat", ",", '"', "saw", '"', "a", "dog", "."]
    assert tree[-1] == "." and without.leaves() == parser.tokenize(text)


BAD = [
    (b"a cat", "sentence 1 must be text, got bytes"),
    (None, "must be text or a list of words, got None"),
    ((word for word in ["a"]), "must be text or a list of words, got the type generator"),
    (["a", ""], "word 2 is empty. Leave it out"),
    (["a b"], "word 1 must not contain white space, got 'a b'"),
    (["a", "b\x1b"], r"word 2 must not contain control characters, got '\x1b' at character 2"),
]


@pytest.mark.parametrize(("sentence", "message"), BAD)
def test_invalid_sentence_raises(parser, sentence, message):
    with pytest.raises(ValueError, match=r"^sentence 1") as caught:
        parser.parse(sentence)
    assert message in str(caught.value) and len(str(caught.value).splitlines()) == 1
    with pytest.raises(ValueError, match=r"^sentence 2"):
        list(parser.parse_many(["cat", sentence]))


@pytest.mark.backend("tensorflow")
def test_model_is_traced_once_for_many_lengths(monkeypatch):
    traced, measure = [], SentenceReader.measure

    def counted(self, ids):
        traced.append(ids.shape)
        return measure(self, ids)

    monkeypatch.setattr(SentenceReader, "measure", counted)
    parser = Parser(make())
    for count in range(1, 120, 6):
        parser.parse(["cat"] * count)
    assert 1 <= len(traced) <= 2, traced


@pytest.mark.parametrize("sentences", ["a cat", None, {"a": 1}])
def test_invalid_sentences_raise(parser, sentences):
    for call in (parser.distances_many, lambda texts: list(parser.parse_many(texts))):
        with pytest.raises(ValueError, match=r"^sentences must be "):
            call(sentences)


def test_invalid_arguments_raise(model):
    with pytest.raises(ValueError, match="layer must be an integer, from 1 to 3, not 4"):
        Parser(model, layer=4)
    with pytest.raises(ValueError, match="method must be 'greedy', 'binary' or 'votes', not 'x'"):
        Parser(model, method="x")
    with pytest.raises(ValueError, match="gate must be 'forget', 'input' or 'both', got 'cell'"):
        Parser(model, gate="cell")
    with pytest.raises(ValueError, match=r"voters must be 'greedy', 'binary' or both, got \['x'\]"):
        Parser(model, voters=["x"])


def test_compact_file_is_accurate_and_small(model, tmp_path):
    save_eight_bit(model, tmp_path / "model.npz", {"perplexity": 90.5})
    again, about = load_eight_bit(tmp_path / "model.npz")
    assert about == {"perplexity": 90.5} and again.vocabulary == VOCABULARY
    for one, other in zip(model.trainable_variables, again.trainable_variables, strict=True):
        one, other = as_array(one), as_array(other)
        largest = np.abs(one).max(axis=0) if one.ndim == 2 else 0.0
        # Half a step of the integers, and float32's own error.
        assert (np.abs(one - other) <= largest / 254 * (1 + 1e-5)).all()
    assert_close(again.distances([SENTENCE])[0], model.distances([SENTENCE])[0], 0.02, "distances")
    large = LanguageModel(500, 64, 128, 2, 8, vocabulary=[f"w{i}" for i in range(500)], seed=0)
    large.build()
    save_eight_bit(large, tmp_path / "large.npz")
    numbers = sum(int(np.prod(v.shape)) for v in large.trainable_variables)
    assert (tmp_path / "large.npz").stat().st_size < 1.1 * numbers


def test_load(model, tmp_path):
    expected = Parser(model, 3, "binary").parse(SENTENCE)
    (tmp_path / "run").mkdir()
    model.save(tmp_path / "run" / "best.keras")
    for path in (tmp_path / "run", tmp_path / "run" / "best.keras"):
        assert Parser.load(path, layer=3, method="binary").parse(SENTENCE) == expected
    save_eight_bit(model, tmp_path / "model.npz", {"from": "a test"})
    loaded = Parser.load(str(tmp_path / "model.npz"))
    assert loaded.metadata == {"from": "a test"} and loaded.layer == 2


def test_invalid_files_raise(model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.npz: no such model"):
        Parser.load(tmp_path / "missing.npz")
    with pytest.raises(FileNotFoundError, match=r"the directory has no best\.keras"):
        Parser.load(tmp_path)
    save_eight_bit(model, tmp_path / "model.npz")
    whole = (tmp_path / "model.npz").read_bytes()
    for name in ("cut.npz", "cut.keras"):
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=rf"{name}: not a complete model"):
            Parser.load(tmp_path / name)
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    other.save(tmp_path / "other.keras")
    with pytest.raises(ValueError, match=r"other\.keras: must be a language model, got Seq"):
        Parser.load(tmp_path / "other.keras")
    np.savez(tmp_path / "pickle.npz", x=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"pickle\.npz: not a complete model"):
        Parser.load(tmp_path / "pickle.npz")


@pytest.fixture
def run(model, tmp_path, monkeypatch, capsys):
    """`keras-onlstm parse` with the model: (exit status, lines of stdout, stderr)."""
    save_eight_bit(model, tmp_path / "model.npz")
    command = command_runner(monkeypatch, capsys)

    def run(*arguments, stdin=b""):
        given = ["parse", "--model", tmp_path / "model.npz", *arguments]
        status, output, errors = command(*given, stdin=stdin)
        return status, output.splitlines(), errors

    return run


@pytest.mark.backend("tensorflow")  # nothing here depends on it
def test_command_inputs(run, tmp_path):
    status, lines, _ = run(SENTENCE, "a dog")
    parser = Parser.load(tmp_path / "model.npz")
    expected = [brackets(parser.parse(text)) for text in (SENTENCE, "a dog")]
    assert (status, lines) == (0, expected)
    (tmp_path / "windows.txt").write_bytes(b"\xef\xbb\xbfThe cat saw a dog\r\na dog\r\n")
    assert run("--file", tmp_path / "windows.txt")[1] == expected
    assert run(stdin=b"The cat saw a dog\n\na dog")[1] == [expected[0], "", expected[1]]


@pytest.mark.backend("tensorflow")  # nothing here depends on it
def test_command_formats(run):
    status, lines, _ = run("--format", "json", "--layer", 3, "--method", "binary", SENTENCE)
    found = json.loads(lines[0])
    assert status == 0 and found["words"] == SENTENCE.split()
    assert np.array(found["distances"]).shape == (3, 5)
    tree = build_tree(found["distances"][2], found["words"], "binary")
    assert found["brackets"] == brackets(tree) and found["tree"] == nested(tree)
    _, lines, _ = run("--format", "json", "a cat. A (dog)!", "...")
    records = [json.loads(line) for line in lines]
    assert [(r["source"], r["tree"]) for r in records] == [
        (0, ["a", "cat"]),
        (0, ["A", "dog"]),
        (1, None),
    ]
    first = {"text": "a", "start": 0, "end": 1, "is_word": True}
    assert records[0]["tokens"][0] == first and records[2]["brackets"] is None
    _, lines, _ = run("--format", "pretty", SENTENCE)
    assert [line.rpartition(" ")[2] for line in lines] == SENTENCE.split()
    _, lines, _ = run("--punctuation", "The cat. A dog!")
    assert [line.count(mark) for line, mark in zip(lines, ".!", strict=True)] == [1, 1]
    _, lines, _ = run("--format", "pretty", "cat " * 3000)
    assert len(lines) == 1 and lines[0].startswith("(X ")
    _, lines, _ = run("--format", "conll", "The cat", "...", "a dog")
    assert lines == ["0\tThe\t(X*", "1\tcat\t*)", "", "0\ta\t(X*", "1\tdog\t*)"]


def nested(tree):
    return [nested(child) if isinstance(child, Tree) else child for child in tree]


@pytest.mark.backend("tensorflow")  # nothing here depends on it
def test_html_pages_escape_words(run):
    _, lines, _ = run("--format", "html", "<script> $\\frac$ cat & dog", "...", "a dog")
    page = "\n".join(lines)
    assert page.count("<svg") == 2 and "<script" not in page
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")


@pytest.mark.backend("tensorflow")
def test_png_without_matplotlib_raises(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    status, _, errors = run("--format", "png", "a cat", "--output", tmp_path / "new")
    assert status == 2 and errors.endswith(": pip install resvg-py font-source-sans-pro\n")
    assert len(errors.splitlines()) == 1 and not (tmp_path / "new").exists()


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize(
    ("arguments", "stdin", "parts"),
    [
        ([], b"", ["Nothing to parse: "]),
        ([], b"a cat\n\xff\xfe\n", ["standard input, line 2", "UTF-8"]),
        (["--file", "missing.txt"], b"", ["missing.txt: no such file"]),
        (["--layer", "9", "a"], b"", ["layer must be an integer, from 1 to 3, not 9"]),
        (["--method", "best", "a"], b"", ["--method", "'best'", "--help"]),
    ],
)
def test_command_errors(run, arguments, stdin, parts):
    status, _, errors = run(*arguments, stdin=stdin)
    lines = [line for line in errors.splitlines() if "error:" in line]
    assert status == 2 and len(lines) == 1 and lines[0].startswith("keras-onlstm")
    assert all(part in lines[0] for part in parts) and "Traceback" not in errors
