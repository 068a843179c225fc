"""The ids of a run's large corpus: they are made once, unless what they are of has changed."""

import json

import numpy as np
import pytest

from keras_onlstm import text
from keras_onlstm.training import corpora
from keras_onlstm.training.corpora import IDS, ORIGIN, VOCABULARY, read_corpus

TEXTS = {"train": "a b a c\nc a\n", "valid": "a d\n", "test": "b\n"}


@pytest.fixture
def data(tmp_path):
    directory = tmp_path / "data"
    directory.mkdir()
    for part, content in TEXTS.items():
        (directory / f"{part}.txt").write_text(content)
    return directory


@pytest.fixture
def read(data, tmp_path, monkeypatch):
    """Reads the corpus as a large one: (vocabulary, ids, whether they were made anew)."""
    monkeypatch.setattr(corpora, "MAPPED", 1)
    made = []
    load = text.corpus.load
    monkeypatch.setattr(text.corpus, "load", lambda *args: (made.append(args), load(*args))[1])

    def run(*arguments, **keywords):
        made.clear()
        corpus = read_corpus(data, tmp_path, *arguments, **keywords)
        assert all(isinstance(part, np.memmap) for part in corpus[1:])
        expected = load(data, *arguments, **keywords)
        assert corpus.vocabulary == expected.vocabulary
        ids = [part.tolist() for part in corpus[1:]]
        assert ids == [part.tolist() for part in expected[1:]]
        return corpus.vocabulary, ids, bool(made)

    return run


def test_ids_are_made_once(read):
    words, ids, anew = read()
    assert anew and words == ["<eos>", "<unk>", "a", "c", "b"]
    assert read() == (words, ids, False)
    assert read(words) == (words, ids, False)  # as an evaluation does


@pytest.mark.parametrize("part", TEXTS)
def test_a_file_that_changed(read, data, part):
    """To a text of the same length."""
    read()
    path = data / f"{part}.txt"
    path.write_text(path.read_text().replace("b", "c").replace("d", "e"))
    assert read()[2]
    assert not read()[2]


def test_other_arguments(read):
    words = read()[0]
    for arguments in ({"max_words": 3}, {"level": "character"}, {"vocabulary": words[::-1]}, {}):
        assert read(**arguments)[2], arguments
        assert not read(**arguments)[2], arguments


def test_words_that_were_given_say_nothing_of_those_that_are_counted(read):
    words = ["<eos>", "<unk>", "b"]
    read(vocabulary=words)
    assert read(max_words=3)[0] == ["<eos>", "<unk>", "a"]


def test_ids_without_the_ends_of_blank_lines_are_made_anew(read, data, tmp_path):
    """Earlier versions had no <eos> for a blank line, and nothing about it in their file."""
    (data / "train.txt").write_text("a b\n\nc a\n")
    words, ids, _ = read()
    path = tmp_path / IDS / ORIGIN
    stored = json.loads(path.read_bytes())
    del stored["blank_lines"]
    earlier = np.array([2, 4, 0, 3, 2, 0], "int32")
    earlier.tofile(tmp_path / IDS / "train.ids")
    stored["bytes"]["train.ids"] = earlier.nbytes
    path.write_text(json.dumps(stored))
    assert read() == (words, ids, True)
    assert len(ids[0]) == 7
    assert read() == (words, ids, False)


@pytest.mark.parametrize("name", [ORIGIN, VOCABULARY, "train.ids", "valid.ids", "test.ids"])
@pytest.mark.parametrize("how", ["gone", "empty", "shorter", "something else"])
def test_damage(read, tmp_path, name, how):
    before = read()
    path = tmp_path / IDS / name
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        damaged = {"empty": b"", "shorter": content[:-4], "something else": b'["a"]\n'}[how]
        path.write_bytes(damaged)
    assert read() == (*before[:2], True)


def test_characters_that_end_lines_elsewhere(read, data):
    """A vocabulary of characters has one a line, whatever they are."""
    (data / "train.txt").write_text("a\x0bb\x85c\u2028\td\n", encoding="utf-8")
    words, _, _ = read(level="character")
    assert {"\x0b", "\x85", "\u2028", "\t"} <= set(words)
    assert read(level="character")[0] == words


def test_killed_while_ids_are_made(read, tmp_path, monkeypatch):
    read()

    def ends(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(text.corpus, "encode", ends)
        with pytest.raises(KeyboardInterrupt):
            read(max_words=3)
    assert read()[2]
    json.loads((tmp_path / IDS / ORIGIN).read_bytes())
