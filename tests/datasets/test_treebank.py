"""Files of bracketed trees: the sentences are those that NLTK's reader finds."""

import pytest

from helpers.corpora import corpora_in
from keras_onlstm.datasets import treebank

pytestmark = pytest.mark.keras_free

TREES = "( (S (NP (NNS Shares)) (VP (VBD fell) (NP (CD 12.5))) (. .)) )\n"


def test_read_and_load_give_the_same_sentences(shared_data, tmp_path):
    with corpora_in(shared_data / "nltk_data"):
        from nltk.corpus import treebank as sample

        expected = treebank.load()
        for name in sample.fileids():
            with sample.open(name) as file:
                (tmp_path / name).write_text(file.read())
    assert treebank.read(sorted(tmp_path.iterdir())) == expected
    assert len(expected) == 3914


def test_read_accepts_indented_trees_and_skips_punctuation(tmp_path):
    """A tree may have several lines. Sentences that have only punctuation are left out."""
    first, second = tmp_path / "first.mrg", tmp_path / "second.mrg"
    first.write_text(TREES + "( (X (. .)) )\n")
    second.write_text("  (S\n    (NP (DT The)\n (NN cat))\n  (VP (VBD saw)))")
    sentences = treebank.read([first, str(second)])
    assert [sentence.tokens for sentence in sentences] == [["shares", "fell", "N.N"],
                                                           ["the", "cat", "saw"]]  # fmt: skip
    assert str(sentences[1].tree) == "(S (NP the cat) (VP saw))"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "contains no tree"),
        (TREES.encode() + b"( (S (NN a)\n", "line 2: is not a tree"),
        (TREES.encode() + b"( (S a (NN b)) )\n", "line 2: is not a tree"),
        (TREES.encode() + b"( (S (NN \xff)) )\n", "line 2: is not UTF-8 text"),
    ],
)
def test_damaged_files_raise_an_error(tmp_path, content, message):
    path = tmp_path / "trees.mrg"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        treebank.read([path])
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"gone\.mrg: no such file"):
        treebank.read([tmp_path / "gone.mrg"])
