"""Minimal pairs: the published files, hostile ones, tables, and those of the package's grammar."""

import collections
import pickle
import struct
import time

import pytest

from keras_onlstm.datasets import syntactic_grammar
from keras_onlstm.datasets.syntactic_evaluation import (
    ROWS,
    MinimalPair,
    load,
    read_table,
    write_table,
)

pytestmark = pytest.mark.keras_free

# Tuples in the published files, by construction.
COUNTS = {
    "long_vp_coord": 400, "npi_across_anim": 4800, "npi_across_inanim": 5760,
    "obj_rel_across_anim": 11200, "obj_rel_across_inanim": 11200,
    "obj_rel_no_comp_across_anim": 11200, "obj_rel_no_comp_across_inanim": 11200,
    "obj_rel_no_comp_within_anim": 11200, "obj_rel_no_comp_within_inanim": 11200,
    "obj_rel_within_anim": 11200, "obj_rel_within_inanim": 11200, "prep_anim": 16800,
    "prep_inanim": 5600, "reflexive_sent_comp": 3360, "reflexives_across": 22400,
    "sent_comp": 1680, "simple_agrmt": 140, "simple_npi_anim": 120, "simple_npi_inanim": 144,
    "simple_reflexives": 280, "subj_rel": 11200, "vp_coord": 840,
}  # fmt: skip
PAIR = ("the author laughs", "the author laugh")
THREE = ("no authors ever", "the authors ever", "most authors ever")


def cases(sentences=PAIR):
    return {"sing": [sentences]}


@pytest.fixture
def directory(tmp_path):
    """A directory of small files of all constructions."""
    for name in COUNTS:
        data = pickle.dumps(cases(THREE if "npi" in name else PAIR), protocol=2)
        (tmp_path / f"{name}.pickle").write_bytes(data)
    return tmp_path


def assert_rejected(directory, data, *parts):
    path = directory / "simple_agrmt.pickle"
    path.write_bytes(data if isinstance(data, bytes) else pickle.dumps(data))
    with pytest.raises(ValueError, match="pickle") as error:
        load(directory)
    for part in ("simple_agrmt.pickle", *parts):
        assert part in str(error.value)


def test_published_files(shared_data):
    pairs = load(shared_data / "LM_syneval")
    assert collections.Counter(pair.construction for pair in pairs) == COUNTS
    assert {name for row in ROWS for name in row.constructions} == set(COUNTS)
    assert len(pairs) == 163_124
    assert sum(len(pair.sentences) for pair in pairs) == 337_072
    assert {len(p.sentences) for p in pairs if "npi" in p.construction} == {3}
    assert {len(p.sentences) for p in pairs if "npi" not in p.construction} == {2}
    simple = [pair for pair in pairs if pair.construction == "simple_agrmt"]
    assert simple[0] == MinimalPair("simple_agrmt", "sing_MS_MV", PAIR)
    assert {pair.case for pair in simple} == {"sing_MS_MV", "plur_MS_MV"}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_every_protocol(directory, protocol):
    data = pickle.dumps(cases(("l'été\u2028", "l\u00e9t\u00e9")), protocol)
    (directory / "simple_agrmt.pickle").write_bytes(data)
    found = next(pair for pair in load(directory) if pair.construction == "simple_agrmt")
    assert found.sentences == ("l'été\u2028", "l\u00e9t\u00e9")


class Harm:
    """Its pickle writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled_classes_are_rejected(directory, tmp_path, protocol):
    harm = tmp_path / "harm"
    data = pickle.dumps({"sing": [PAIR, Harm(harm)]}, protocol)
    assert_rejected(directory, data, "refused", "GLOBAL")
    assert not harm.exists()


@pytest.mark.parametrize("value", [{1}, 1, b"x", None, True, 10**30, collections.OrderedDict()])
def test_values_other_than_strings_are_rejected(directory, value):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps({"sing": [(value, "b")]}, protocol)
        assert_rejected(directory, data, "refused", "it has the opcode")


def nested(levels):
    """A tuple that contains twice, by reference, a tuple that contains twice ...: 2**levels."""
    steps = b"".join(b"h%c0h%c\x86q%c" % (n, n, n + 1) for n in range(levels))
    return b"\x80\x02X\x01\x00\x00\x00aq\x00" + steps.replace(b"0", b"") + b"."


@pytest.mark.parametrize(
    "data",
    [
        nested(25),
        b"}" + nested(25)[2:-1] + b"]s.",  # as a key, which would be hashed
        b"(" * 20_000 + b"t" * 20_000 + b".",
        b"}" + b"X\x01\x00\x00\x00a" + b"\x85" * 2_000_000 + b"]s.",
        b"}(" + b"]" * 20_000 + b"a" * 20_000 + b"u.",
        b"\x80\x02}X\x01\x00\x00\x00a]q\x00h\x00as.",
        b"\x80\x02}r" + struct.pack("<I", 2**31) + b"j\x01\x00\x00\x00.",
    ],
    ids=["references", "key of references", "tuples", "deep key", "lists", "itself", "large memo"],
)
def test_nested_pickles_are_rejected_at_once(directory, data):
    """They are not built, hashed or printed."""
    start = time.process_time()
    assert_rejected(directory, data, "refused")
    assert time.process_time() - start < 1


def test_references_to_tuples_are_read_and_to_lists_rejected(directory):
    """With references to lists the pairs would be the square of the file."""
    once = b"\x80\x02}(X\x01\x00\x00\x00a]q\x00(X\x03\x00\x00\x00b c\x86e"
    assert_rejected(directory, once + b"X\x01\x00\x00\x00bh\x00u.")
    shared = [PAIR] * 3  # Python writes references to the tuple, which are fine
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps({"sing": shared}, protocol)
        (directory / "simple_agrmt.pickle").write_bytes(data)
        assert [pair.sentences for pair in load(directory)].count(PAIR) >= 3
        assert_rejected(
            directory, pickle.dumps({"sing": shared, "plur": shared}, protocol), "refused"
        )


@pytest.mark.parametrize(
    "data", [b"", b"no pickle", pickle.dumps(cases())[:-5], b"\x80\x02}q\x00h\x05.", b"(l", b"0."]
)
def test_incomplete_pickles_are_rejected(directory, data):
    assert_rejected(directory, data)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ({}, "has no cases"),
        ([PAIR], "refused"),
        ({"sing": PAIR}, "refused"),
        ({"sing": [("a",)]}, "refused"),
        ({"sing": [["a", "b"]]}, "refused"),
        ({"sing": [("\ud800", "a")]}, "surrogates"),
        ({"sing": [PAIR, ("a", " ")]}, "'sing', item 2"),
    ],
)
def test_other_contents_are_rejected(directory, content, part):
    assert_rejected(directory, content, part)


def test_missing_files_and_directories_raise_an_error(directory):
    (directory / "vp_coord.pickle").unlink()
    with pytest.raises(FileNotFoundError, match=r"vp_coord\.pickle: no such file.*git clone"):
        load(directory)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(directory / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"mine\.tsv: no such file"):
        read_table(directory / "mine.tsv")


def test_written_table_is_read_unchanged(tmp_path):
    pairs = [
        MinimalPair("agreement", "plural", PAIR),
        MinimalPair("polarity", "é", THREE),
        MinimalPair("quotes", '"', ('he said "', '"he said')),
        # Python's reader of such tables stops at 131,072 characters.
        MinimalPair("long", "b", ("x" * 200_000, "y " * 100_000 + "z")),
    ]
    for some in (pairs, pairs[:1]):
        write_table(tmp_path / "pairs.tsv", some)
        assert read_table(tmp_path / "pairs.tsv") == some
    lines = (tmp_path / "pairs.tsv").read_text().splitlines()
    assert lines == [
        "construction\tcase\tgrammatical\tungrammatical",
        "agreement\tplural\tthe author laughs\tthe author laugh",
    ]


def test_read_table_from_windows(tmp_path):
    text = "\ufeffcase\tconstruction\tungrammatical\tgrammatical\r\nx\ty\t b  c \ta\r\n\r\n"
    (tmp_path / "pairs.tsv").write_bytes(text.encode())
    assert read_table(tmp_path / "pairs.tsv") == [MinimalPair("y", "x", ("a", "b c"))]


HEADER = "construction\tcase\tgrammatical\tungrammatical\n"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "the first line must name the columns"),
        ("construction\tcase\tcase\tgrammatical\tungrammatical\n", "first line"),
        (HEADER, "no minimal pairs"),
        (HEADER + "a\tb\tc d\n", "line 2: must have 4 columns like the first line, got 3"),
        (HEADER + "a\tb\tc\td\n\na\tb\tc\t \n", "line 4: ungrammatical is empty"),
        (HEADER + "a\tb\tc\tc\n", "line 2: the sentences must differ"),
        (HEADER.encode() + b"a\tb\t\xff\tc\n", "not UTF-8"),
    ],
)
def test_damaged_tables_raise_an_error(tmp_path, text, part):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=part) as error:
        read_table(path)
    assert str(path) in str(error.value)


def test_write_table_rejects_tabs(tmp_path):
    path = tmp_path / "pairs.tsv"
    write_table(path, [MinimalPair("a", "b", PAIR)])
    before = path.read_bytes()
    with pytest.raises(ValueError, match="must not contain tabs"):
        write_table(path, [MinimalPair("a", "b\tc", PAIR)])
    assert path.read_bytes() == before


SINGULAR = {"is", "himself", "herself"}


def test_grammar_covers_every_construction():
    pairs = syntactic_grammar.generate(count=30)
    assert {pair.construction for pair in pairs} == set(COUNTS)
    for pair in pairs:
        assert len(pair.sentences) == (3 if "npi" in pair.construction else 2)
        assert len({len(sentence.split()) for sentence in pair.sentences}) == 1
        assert len(set(pair.sentences)) == len(pair.sentences)
    assert len(set(pairs)) == len(pairs)
    cases = collections.Counter((pair.construction, pair.case) for pair in pairs)
    assert max(cases.values()) == 30 and min(cases.values()) >= 20


def _agrees(noun, word):
    """Whether a word has the number of a noun: nouns end in s where verbs do not."""
    plural = noun.endswith("s")
    if word in SINGULAR | {"are", "themselves"}:
        return plural == (word not in SINGULAR)
    return plural != word.endswith("s")


def test_only_grammatical_sentences_agree():
    """The word that differs agrees with its subject only in the grammatical sentence."""
    for pair in syntactic_grammar.generate(count=200):
        if "npi" in pair.construction:
            first, second, third = (sentence.split() for sentence in pair.sentences)
            assert first[0] == "no" and second[0] == "the" and third[0] == "most"
            assert ("no" in second) == ("across" in pair.construction)
            assert "no" not in third
            continue
        good, bad = (sentence.split() for sentence in pair.sentences)
        (index,) = [i for i, (a, b) in enumerate(zip(good, bad, strict=True)) if a != b]
        subject = good[1]
        if "within" in pair.construction:  # the clause has a subject
            subject = good[index - 1]
        if "sent_comp" in pair.construction:
            subject = good[4]
        assert _agrees(subject, good[index]), pair
        assert not _agrees(subject, bad[index]), pair
        number = "plural" if subject.endswith("s") else "singular"
        assert pair.case.startswith(number)


def test_grammar_depends_on_the_seed():
    first = syntactic_grammar.generate(count=5)
    assert first == syntactic_grammar.generate(count=5)
    assert first != syntactic_grammar.generate(count=5, seed=1)
    with pytest.raises(ValueError, match="count must be an integer, 1 or above, not 0"):
        syntactic_grammar.generate(count=0)


def test_grammar_has_only_words_of_the_penn_treebank(shared_data):
    text = (shared_data / "ptb" / "ptb.train.txt").read_text()
    known = set(text.split())
    words = {w for pair in syntactic_grammar.generate() for s in pair.sentences for w in s.split()}
    assert words <= known
