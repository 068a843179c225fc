"""Text corpora as ids: the Penn Treebank and small files."""

import io

import numpy as np
import pytest

from keras_onlstm import text

pytestmark = pytest.mark.keras_free


def write(directory, train="a b a\n\nc a\n", valid="a d\n", test="b\n"):
    for name, content in (("train", train), ("valid", valid), ("test", test)):
        data = content if isinstance(content, bytes) else content.encode()
        (directory / f"{name}.txt").write_bytes(data)
    return directory


def test_penn_treebank_has_published_sizes(shared_data):
    corpus = text.corpus.load(shared_data / "ptb")
    # Mikolov's version has 10,000 words, including <unk> and the end of sentences.
    assert len(corpus.vocabulary) == 10_000
    assert [len(part) for part in corpus[1:]] == [929_589, 73_760, 82_430]
    assert all(part.max() < 10_000 for part in corpus[1:])
    first = " ".join(corpus.vocabulary[i] for i in corpus.test[:9])
    assert first == "no it was n't black monday <eos> but while"
    assert corpus.vocabulary[:4] == ["<eos>", "<unk>", "the", "N"]


def test_ids_follow_vocabulary(tmp_path):
    corpus = text.corpus.load(write(tmp_path))
    assert corpus.vocabulary == ["<eos>", "<unk>", "a", "b", "c"]
    assert corpus.train.tolist() == [2, 3, 2, 0, 0, 4, 2, 0]
    assert corpus.valid.tolist() == [2, 1, 0]  # d is not in the training text
    assert corpus.test.tolist() == [3, 0]
    again = text.corpus.load(tmp_path, vocabulary=["c", "<unk>", "<eos>"])
    assert again.train.tolist() == [1, 1, 1, 2, 2, 0, 1, 2]


WIKITEXT = (
    " \n = Robert Boulter = \n \n Robert Boulter is an English film . \n \n"
    " = = Career = = \n \n In 2000 Boulter had a role . \n \n"
)


@pytest.mark.parametrize(
    ("content", "tokens"),
    [
        (WIKITEXT, 32),  # 4 + 7 + 5 + 7 words, 9 lines
        (WIKITEXT.replace(" \n", "\n").replace("\n ", "\n"), 32),
        (WIKITEXT.replace("\n", "\r\n"), 32),
        (WIKITEXT.rstrip(), 31),  # without the blank line at the end
        ("a b\n", 3),
        ("a b", 3),
        ("a b\n\n", 4),
        ("\n\na b\n", 5),
    ],
)
def test_every_line_ends_with_eos(content, tokens, tmp_path):
    """Published token counts include blank lines, like those of the authors of AWD-LSTM."""
    (tmp_path / "a.txt").write_bytes(content.encode())
    vocabulary = text.corpus.read_vocabulary([tmp_path / "a.txt"])
    for cache in None, tmp_path / "a.ids":
        ids = text.corpus.encode(tmp_path / "a.txt", vocabulary, cache=cache)
        lines = io.StringIO(content, newline="\n")
        expected = [word for line in lines for word in [*line.split(), "<eos>"]]
        assert [vocabulary[i] for i in ids] == expected and len(ids) == tokens


def test_blank_lines_are_not_sentences(tmp_path):
    write(tmp_path, train=WIKITEXT)
    vocabulary = text.corpus.load(tmp_path).vocabulary
    write(tmp_path, train=WIKITEXT.replace(" \n \n", "\n").removeprefix(" \n"))
    assert text.corpus.load(tmp_path).vocabulary == vocabulary


def test_max_words_keeps_most_frequent(tmp_path):
    corpus = text.corpus.load(write(tmp_path, train="z y y x x\n"), max_words=4)
    assert corpus.vocabulary == ["<eos>", "<unk>", "x", "y"]
    assert corpus.train.tolist() == [1, 3, 3, 2, 2, 0]


def test_character_level(tmp_path):
    corpus = text.corpus.load(write(tmp_path, train="ab a\r\n\n b\n"), level="character")
    found = [corpus.vocabulary[i] for i in corpus.train]
    assert found == ["a", "b", "_", "a", "<eos>", "<eos>", "_", "b", "<eos>"]


def test_crlf_and_byte_order_mark_are_ignored(tmp_path):
    corpus = text.corpus.load(write(tmp_path, train=b"\xef\xbb\xbfa b\r\nb\r\n"))
    assert [corpus.vocabulary[i] for i in corpus.train] == ["a", "b", "<eos>", "b", "<eos>"]


def test_memory_mapped_ids_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(text.corpus, "_BLOCK", 3)  # several blocks
    seen = []
    write(tmp_path)
    mapped = text.corpus.load(tmp_path, cache=tmp_path, progress=seen.append)
    for found, expected in zip(mapped[1:], text.corpus.load(tmp_path)[1:], strict=True):
        assert isinstance(found, np.memmap)
        assert found.tolist() == expected.tolist()
    assert seen[:3] == [4, 8, 8]
    assert sorted(p.name for p in tmp_path.glob("*.ids")) == ["test.ids", "train.ids", "valid.ids"]


@pytest.mark.parametrize(
    ("texts", "match"),
    [
        ({"train": " \n\n"}, "train.txt: the text has no words"),
        ({"valid": ""}, "valid.txt: the text has no words"),
        ({"train": b"a\n\xff\xfe\n"}, r"train.txt, line 2: is not UTF-8 text"),
        ({"test": b"a\x00b\n"}, r"test.txt, line 1 is not text"),
    ],
)
def test_rejects_invalid_files(texts, match, tmp_path):
    write(tmp_path, **texts)
    with pytest.raises(ValueError, match=match):
        text.corpus.load(tmp_path, cache=tmp_path)
    assert not [path for path in tmp_path.iterdir() if ".part" in path.name]


def test_reports_missing_file(tmp_path):
    write(tmp_path)
    (tmp_path / "valid.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no valid\.txt.*A corpus is a directory"):
        text.corpus.load(tmp_path)
