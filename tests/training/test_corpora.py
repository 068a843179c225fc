"""The cached ids of a large corpus: computed once, and again if the text changes."""

import json

import numpy as np
import pytest

from keras_onlstm import text
from keras_onlstm.runs.language_model import LanguageModelConfig
from keras_onlstm.text import large_corpus
from keras_onlstm.text.large_corpus import ORIGIN
from keras_onlstm.training.corpora import IDS, VOCABULARY, read_corpus, split_lines

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
    monkeypatch.setattr(large_corpus, "MAPPED", 1)
    made = []
    load = text.corpus.load
    monkeypatch.setattr(text.corpus, "load", lambda *args: (made.append(args), load(*args))[1])

    def run(vocabulary=None, **values):
        made.clear()
        config = LanguageModelConfig(data=[data], **values)
        corpus = read_corpus(config, tmp_path, vocabulary)
        assert all(isinstance(part, np.memmap) for part in corpus[1:])
        level = "character" if config.characters else "word"
        expected = load(data, vocabulary, config.max_words, level)
        assert corpus.vocabulary == expected.vocabulary
        ids = [part.tolist() for part in corpus[1:]]
        assert ids == [part.tolist() for part in expected[1:]]
        return corpus.vocabulary, ids, bool(made)

    return run


def test_ids_are_cached(read):
    words, ids, anew = read()
    assert anew and words == ["<eos>", "<unk>", "a", "c", "b"]
    assert read() == (words, ids, False)
    assert read(words) == (words, ids, False)  # as an evaluation does


@pytest.mark.parametrize("part", TEXTS)
def test_changed_text_updates_the_cached_ids(read, data, part):
    """To a text of the same length."""
    read()
    path = data / f"{part}.txt"
    path.write_text(path.read_text().replace("b", "c").replace("d", "e"))
    assert read()[2]
    assert not read()[2]


def test_changed_arguments_update_the_cached_ids(read):
    words = read()[0]
    for arguments in ({"max_words": 3}, {"characters": True}, {"vocabulary": words[::-1]}, {}):
        assert read(**arguments)[2], arguments
        assert not read(**arguments)[2], arguments


def test_given_vocabulary_is_not_cached_as_the_counted_one(read):
    words = ["<eos>", "<unk>", "b"]
    read(vocabulary=words)
    assert read(max_words=3)[0] == ["<eos>", "<unk>", "a"]


def test_ids_without_blank_line_ends_are_recomputed(read, data, tmp_path):
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
def test_damaged_cache_is_recomputed(read, tmp_path, name, how):
    before = read()
    path = tmp_path / IDS / name
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        damaged = {"empty": b"", "shorter": content[:-4], "something else": b'["a"]\n'}[how]
        path.write_bytes(damaged)
    assert read() == (*before[:2], True)


def test_vocabulary_of_line_breaking_characters_round_trips(read, data):
    """A vocabulary of characters has one per line, even for characters that end lines."""
    (data / "train.txt").write_text("a\x0bb\x85c\u2028\td\n", encoding="utf-8")
    words, _, _ = read(characters=True)
    assert {"\x0b", "\x85", "\u2028", "\t"} <= set(words)
    assert read(characters=True)[0] == words


def test_killed_conversion_is_restarted(read, tmp_path, monkeypatch):
    read()

    def ends(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(text.corpus, "encode", ends)
        with pytest.raises(KeyboardInterrupt):
            read(max_words=3)
    assert read()[2]
    json.loads((tmp_path / IDS / ORIGIN).read_bytes())


def test_text_files_are_split_into_three_parts(tmp_path):
    """Of 20 lines 18 are for training; blank lines do not count."""
    lines = [f"w{number}" for number in range(50)]
    (tmp_path / "a.txt").write_text("\n\n".join(lines[:30]))
    (tmp_path / "b.txt").write_text("\n".join(lines[30:]) + "\n")
    config = LanguageModelConfig(data=[tmp_path / "a.txt", tmp_path / "b.txt"])
    found = read_corpus(config, tmp_path / "run", ["<eos>", "<unk>", *lines])
    ids = {part: getattr(found, part).tolist() for part in ("train", "valid", "test")}
    parts = split_lines(lines)
    assert parts["valid"] == ["w0", "w20", "w40"] and parts["test"] == ["w10", "w30"]
    assert sorted(line for part in parts.values() for line in part) == sorted(lines)
    for part, expected in parts.items():
        assert ids[part] == [number for word in expected for number in (2 + int(word[1:]), 0)]
    (tmp_path / "a.txt").write_text("few\n" * 10)
    with pytest.raises(ValueError, match=r"a\.txt: give a file of 20 lines or more"):
        read_corpus(LanguageModelConfig(data=[tmp_path / "a.txt"]), tmp_path / "run")


def test_debug_preset_uses_formulas_without_data(tmp_path):
    found = read_corpus(LanguageModelConfig.from_preset("debug"), tmp_path)
    assert {"(", ")", "and", "or", "not"} <= set(found.vocabulary)
    assert len(found.train) > 9 * len(found.valid) > 1000
    with pytest.raises(ValueError, match="--data is missing"):
        read_corpus(LanguageModelConfig(), tmp_path)
