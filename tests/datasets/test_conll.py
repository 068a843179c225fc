"""Files of dependency trees: real treebanks with known counts, damaged lines, round trips."""

import io
import random
import re
import sys
import tracemalloc
import zipfile

import pytest

from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import DependencyTree, chain, random_tree

pytestmark = pytest.mark.keras_free

TEN = """\
# sent_id = 1
# text = He can't sleep
1\tHe\the\tPRON\tPRP\t_\t4\tnsubj\t4:nsubj\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t4:aux\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t4:advmod\t_
3.1\tnow\tnow\tADV\t_\t_\t_\t_\t4:advmod\t_
4\tsleep\tsleep\tVERB\tVB\t_\t0\troot\t0:root\t_

1\t#\t#\tSYM\t#\t_\t2\tdep\t_\t_
2\t5\t5\tNUM\tCD\t_\t0\troot\t_\t_
"""
TREES = [
    DependencyTree(
        ["He", "ca", "n't", "sleep"],
        [4, 4, 4, 0],
        ["PRP", "MD", "RB", "VB"],
        ["nsubj", "aux", "advmod", "root"],
    ),
    DependencyTree(["#", "5"], [2, 0], ["#", "CD"], ["dep", "root"]),
]


def without_relations(tree):
    return DependencyTree(tree.words, tree.heads, tree.tags)


def lines_of(*rows, end="\n"):
    return "".join("\t".join(row.split()) + end for row in rows)


def test_format_is_detected(tmp_path):
    path = tmp_path / "trees"
    path.write_text(TEN)
    assert list(conll.read(path)) == TREES
    four = [zip(t.words, t.tags, map(str, t.heads), t.relations, strict=True) for t in TREES]
    text = "\n".join("".join("\t".join(row) + "\n" for row in tree) for tree in four)
    path.write_text(text)
    assert list(conll.read(path)) == TREES
    path.write_text(re.sub(r"\t[a-z]+$", "", text, flags=re.MULTILINE))
    assert list(conll.read(path)) == list(map(without_relations, TREES))
    path.write_text("# a comment\n" + text.replace("\t", "   "))
    assert list(conll.read(path)) == TREES


# Comments of three and four words whose third one is a number could be words of NLTK's columns.
COMMENTS = ("# Sentence 1", "# newdoc 7", "# page 3 left", "# line 20 x", "#", "# a b c d e")


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize("number", [3, 4, 10])
def test_comments_are_skipped(number, comment):
    if number == 10:
        rows = ["1\t#\t_\t_\tSYM\t_\t2\tdep\t_\t_", "2\t5\t_\t_\tCD\t_\t0\troot\t_\t_"]
    else:
        rows = ["#\tSYM\t2\tdep", "5\tCD\t0\troot"]
    rows = rows if number != 3 else [row.rpartition("\t")[0] for row in rows]
    tree = DependencyTree(["#", "5"], [2, 0], ["SYM", "CD"], ["dep", "root"])
    tree = without_relations(tree) if number == 3 else tree
    read = [comment, *rows, "", comment, "", "", rows[0], comment, rows[1], comment]
    assert list(conll.read(read)) == [tree, tree]
    assert list(conll.read(["#\tpage\t3", "#\tpage\t3\tx", *TEN.splitlines()])) == TREES


def test_first_word_may_be_a_number_sign():
    rest = DependencyTree(["5"], [0], ["CD"])
    number_sign = DependencyTree(["#"], [0], ["#"])
    for separator in "\t", " ":
        rows = [separator.join(row.split()) for row in ("# # 0", "", "5 CD 0")]
        assert list(conll.read(rows)) == [number_sign, rest]
        rows = [separator.join(row.split()) for row in ("# SYM 2", "5 CD 0")]
        assert list(conll.read(rows)) == [DependencyTree(["#", "5"], [2, 0], ["SYM", "CD"])]
        assert list(conll.read(["# Sentence 1 of 2", *rows])) == list(conll.read(rows))
    assert list(conll.read(["#\t#\t0"])) == [number_sign]  # the file has only this line
    assert list(conll.read(["# page 0"])) == []


def test_coarse_tags_are_read():
    coarse = [tree.tags for tree in conll.read(TEN.splitlines(), tags="coarse")]
    assert coarse == [("PRON", "AUX", "PART", "VERB"), ("SYM", "NUM")]


def test_empty_columns_become_none():
    (tree,) = conll.read(["1\ta\t_\t_\t_\t_\t0\t_\t_\t_"])
    assert tree == DependencyTree(["a"], [0])
    (tree,) = conll.read(["_\t_\t2\tx", "b\tB\t0\t_"])  # in part
    assert tree == DependencyTree(["_", "b"], [2, 0], ["_", "B"], ["x", "_"])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.rstrip("\n"),
        lambda text: "\n\n" + text.replace("\n\n", "\n \n\t\n\n") + "\n\n",
        lambda text: text + "\n# the end\n",
        lambda text: text.replace("# sent_id", "#sent\tid"),
    ],
)
def test_line_ends_blank_lines_and_comments_change_nothing(change, tmp_path):
    text = change(TEN)
    path = tmp_path / "trees.conllu"
    path.write_bytes(text.encode())
    assert list(conll.read(path)) == TREES
    assert list(conll.read(str(path))) == TREES
    with open(path, encoding="utf-8", newline="") as stream:
        assert list(conll.read(stream)) == TREES
    with open(path, "rb") as stream:
        assert list(conll.read(stream)) == TREES
    assert list(conll.read(io.BytesIO(text.encode()))) == TREES


def test_standard_input_is_named_in_errors(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a b\n"))
    sys.stdin.name = "<stdin>"
    with pytest.raises(ValueError, match=r"^standard input, line 1: must have 10 columns"):
        list(conll.read(sys.stdin))


def test_files_without_sentences_have_no_trees(tmp_path):
    (tmp_path / "empty").touch()
    assert list(conll.read(tmp_path / "empty")) == []
    assert list(conll.read(["", "# nothing", ""])) == []


GOOD = "1 the _ DT DT _ 2 det _ _"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1 the _ DT DT _ 2 det _"], r"line 3: must have 10 columns like the first, got 9\."),
        (["3 a _ DT DT _ 2 det _ _"], r"line 3, column 1: the ID must be 1, got '3'\. IDs number"),
        ([GOOD, "2 a _ DT DT _ ² d _ _"], r"line 4, column 7: the head must be .*, got '²'"),
        (
            [GOOD, f"2 a _ DT DT _ {'9' * 5000} d _ _"],
            r"line 4, column 7: the head must be .*, got '999",
        ),
    ],
)
def test_damaged_lines_raise_an_error_that_names_them(rows, message, tmp_path):
    path = tmp_path / "bad.conll"
    text = lines_of("1 yes _ UH UH _ 0 root _ _", "") + lines_of(*rows)
    path.write_text(text, encoding="utf-8")
    for invalid in ("raise", "skip"):  # damaged lines are never skipped
        reader = conll.read(path, invalid=invalid)
        assert next(reader).words == ("yes",)
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}, {message}") as caught:
            list(reader)
        assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\t\t0\n", "line 1, column 2: is empty"),
        (
            "a\tDT\t\n",
            "line 1, column 3: the head must be the number of a word, or 0 for ROOT, got ''",
        ),
        ("1\ta\t_\tDT\tDT\n", r"line 1: must have 10 columns separated by tabs .* got 5\."),
    ],
)
def test_damaged_lines_of_few_columns_raise_an_error(text, message):
    with pytest.raises(ValueError, match=f"^lines, {message}"):
        list(conll.read(io.StringIO(text)))


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ("2 1 0", "word 1, 'w1': its heads form a cycle"),
        ("0 0 1", "exactly one word must depend on ROOT, got word 1, 'w1' and word 2, 'w2'"),
        ("0 _ 1", "word 2, 'w2', has no head"),
    ],
)
def test_sentences_that_are_not_trees_raise_an_error_or_are_skipped(heads, message):
    bad = [f"w{place}\tT\t{head}" for place, head in enumerate(heads.split(), 1)]
    rows = ["a\tA\t0", "", "# a comment", *bad, "", "b\tB\t0"]
    with pytest.raises(ValueError, match=f"^trees, line 4: {message}"):
        list(conll.read(rows, name="trees"))
    reader = conll.read(rows, invalid="skip", name="trees")
    assert [tree.words for tree in reader] == [("a",), ("b",)]
    assert reader.skipped == 1
    assert len(reader.reasons) == 1 and reader.reasons[0].startswith(f"trees, line 4: {message}")


@pytest.mark.parametrize("argument", ["tags", "invalid"])
def test_unknown_arguments_raise_an_error(argument):
    with pytest.raises(ValueError, match=f"{argument} must be '.*' or '.*', not 'gold'"):
        conll.read([], **{argument: "gold"})


def test_missing_files_raise_an_error(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(FileNotFoundError, match=r": no such file\."):
            conll.read(path)


def test_read_holds_one_sentence_in_memory():
    def rows():
        for _ in range(20_000):
            yield from ("a\tA\t2\n", "b\tB\t0\n", "\n")

    tracemalloc.start()
    try:
        count = sum(len(tree) for tree in conll.read(rows()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 40_000
    assert peak < 200_000  # bytes; all trees would need millions


def test_write_has_ten_columns(tmp_path):
    conll.write(TREES[1:], tmp_path / "trees")
    expected = lines_of("1 # _ # # _ 2 dep _ _", "2 5 _ CD CD _ 0 root _ _") + "\n"
    assert (tmp_path / "trees").read_bytes() == expected.encode()


def test_written_trees_are_read_unchanged(tmp_path):
    draw = random.Random(0)
    alphabet = 'a#_ \u2028\x0b\x85\xa0é日😀"0\ufeff'
    trees = []
    for seed in range(300):
        words = [
            "".join(draw.choices(alphabet, k=draw.randint(1, 4)))
            for _ in range(draw.choice((1, 2, 3, 9)))
        ]
        tree = random_tree(words, seed)
        tags = [word + "T" for word in words] if draw.random() < 0.5 else None
        relations = [word + "r" for word in words] if draw.random() < 0.5 else None
        trees.append(DependencyTree(words, tree.heads, tags, relations))
    conll.write(iter(trees), tmp_path / "trees")
    assert list(conll.read(tmp_path / "trees")) == trees
    conll.write(
        conll.read(tmp_path / "trees"), tmp_path / "trees"
    )  # overwrites the file that it reads
    assert list(conll.read(tmp_path / "trees")) == trees


@pytest.mark.parametrize("word", ["a\tb", "a\nb", "a\rb", "\r", "\ud800"])
def test_write_rejects_words_with_tabs_line_ends_or_surrogates(word, tmp_path):
    path = tmp_path / "trees"
    path.write_text("before")
    for arguments in (([word, "x"], [2, 0]), (["y", "x"], [2, 0], [word, "t"])):
        with pytest.raises(ValueError, match=r"^tree 2, word 1, "):
            conll.write([chain(["x"]), DependencyTree(*arguments)], path)
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("part", "sentences", "words", "crossed"),
    [("train", 12_544, 204_577, 288), ("dev", 2_001, 25_147, 31), ("test", 2_077, 25_094, 26)],
)
def test_english_web_treebank_has_published_counts(part, sentences, words, crossed, shared_data):
    path = shared_data / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu"
    trees = list(conll.read(path))
    assert len(trees) == sentences and sum(map(len, trees)) == words
    assert sum(not tree.is_projective for tree in trees) == crossed


def test_multiword_tokens_and_empty_nodes_are_left_out(shared_data, tmp_path):
    text = "".join(
        (shared_data / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu").read_text("utf-8")
        for part in ("train", "dev", "test")
    )
    ids = [line.split("\t")[0] for line in text.split("\n") if "\t" in line]
    assert [sum(mark in id for id in ids) for mark in "-."] == [3_327, 43]
    trees = list(conll.read(io.BytesIO(text.encode())))
    assert sum(map(len, trees)) == len(ids) - 3_327 - 43
    conll.write(trees, tmp_path / "trees")
    assert list(conll.read(tmp_path / "trees")) == trees


@pytest.fixture(scope="module")
def conll2007(shared_data):
    with zipfile.ZipFile(shared_data / "nltk_data" / "corpora" / "conll2007.zip") as archive:
        return {name: archive.read(f"conll2007/{name}") for name in ("eus.train", "esp.train")}


def test_basque_sentences_with_several_roots_are_skipped(conll2007):
    """1,007 of 2,595 sentences have several words under ROOT."""
    text = conll2007["eus.train"]
    reader = conll.read(io.BytesIO(text), invalid="skip", encoding="latin-1")
    trees = list(reader)
    assert (len(trees), reader.skipped) == (2_595 - 1_007, 1_007)
    assert len(reader.reasons) == 10
    assert all("exactly one word must depend on ROOT" in reason for reason in reader.reasons)
    assert sum(not tree.is_projective for tree in trees) == 233
    with pytest.raises(
        ValueError, match=r"^lines, line 49: exactly one word must depend on ROOT, got word "
    ):
        list(conll.read(io.BytesIO(text), encoding="latin-1"))
    with pytest.raises(ValueError, match=r"^lines, line 604: is not UTF-8 text"):
        list(conll.read(io.BytesIO(text), invalid="skip"))


def test_spanish_treebank_has_published_counts(conll2007):
    trees = list(conll.read(io.BytesIO(conll2007["esp.train"])))
    assert len(trees) == 2_949 and sum(map(len, trees)) == 75_822
    assert trees[0].words[:4] == ("El", "aumento", "del", "índice")
    assert trees[0].tags[:2] == ("da", "nc") and trees[0].relations[:2] == ("_", "SUJ")
