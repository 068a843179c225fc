"""NLTK's dependency treebank: its published counts, and its sentences in another treebank."""

import zipfile

import pytest

from helpers.corpora import corpora_in
from keras_onlstm.datasets import brown, dependency_treebank, treebank
from keras_onlstm.text.vocabulary import frequent

pytestmark = pytest.mark.keras_free


@pytest.fixture
def nltk_data(shared_data):
    with corpora_in(shared_data / "nltk_data"):
        yield


def test_parts_have_published_counts(nltk_data):
    parts = [dependency_treebank.load(part) for part in ("train", "validation", "test")]
    assert [len(part) for part in parts] == [3_262, 314, 338]
    assert [sum(map(len, part)) for part in parts] == [78_539, 7_638, 7_907]
    trees = dependency_treebank.load()
    assert trees == [tree for part in parts for tree in part]
    assert all(tree.is_projective and tree.relations is None for tree in trees)
    lengths = list(map(len, trees))
    assert min(lengths) == 1 and max(lengths) == 249
    assert len({word for tree in trees for word in tree.words}) == 11_968
    assert len({tag for tree in trees for tag in tree.tags}) == 45


@pytest.mark.parametrize(
    ("normalized", "words", "unknown"), [(True, 4_598, 0.1155), (False, 5_147, 0.1391)]
)
def test_vocabulary_sizes(normalized, words, unknown, nltk_data):
    train, test = (dependency_treebank.load(part, normalized) for part in ("train", "test"))
    vocabulary = frequent(tree.words for tree in train)
    assert len(vocabulary) == words and vocabulary[:2] == ["<unk>", "<root>"]
    known = set(vocabulary)
    is_unknown = [word not in known for tree in test for word in tree.words]
    assert sum(is_unknown) / len(is_unknown) == pytest.approx(unknown, abs=5e-5)


def test_normalized_changes_only_words(nltk_data):
    plain, tree = (dependency_treebank.load("train", normalized)[0] for normalized in (False, True))
    assert plain.words[:5] == ("Pierre", "Vinken", ",", "61", "years")
    assert tree.words[:5] == ("pierre", "vinken", ",", "N", "years")
    assert (tree.heads, tree.tags) == (plain.heads, plain.tags)


def test_frequent_sorts_and_filters_words():
    sentences = [["b", "a", "a"], ["b", "c", "<unk>", "<unk>"]]
    assert frequent(sentences) == ["<unk>", "<root>", "a", "b"]
    assert frequent(sentences, min_count=1, special=["<eos>"]) == ["<eos>", "<unk>", "a", "b", "c"]
    assert frequent([], min_count=3) == ["<unk>", "<root>"]
    with pytest.raises(ValueError, match="min_count must be an integer, 1 or above, not 0"):
        frequent(sentences, min_count=0)


def test_unknown_part_raises_an_error(nltk_data):
    with pytest.raises(ValueError, match="^part .*'train', 'validation' or 'test'"):
        dependency_treebank.load("dev")


def test_missing_treebank_raises_an_error(tmp_path):
    with (
        corpora_in(tmp_path),
        pytest.raises(FileNotFoundError, match="the corpus dependency_treebank. Run python"),
    ):
        dependency_treebank.load()


@pytest.mark.parametrize("module", [brown, dependency_treebank, treebank])
def test_damaged_archives_raise_an_error(module, tmp_path):
    name = module.__name__.rpartition(".")[2]
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / f"{name}.zip").write_bytes(b"PK\3\4 and no more")
    match = rf"^corpora/{name}\.zip of nltk_data: .*\. Restore it from its source\.$"
    with corpora_in(tmp_path), pytest.raises(ValueError, match=match):
        module.load()


def test_damaged_files_raise_an_error(shared_data, tmp_path):
    directory = tmp_path / "corpora"
    with zipfile.ZipFile(shared_data / "nltk_data/corpora/dependency_treebank.zip") as archive:
        archive.extractall(directory)
    path = directory / "dependency_treebank" / "wsj_0160.dp"
    with corpora_in(tmp_path):
        assert len(dependency_treebank.load("validation")) == 314
        path.write_text("Yes\tUH\t2\n")
        with pytest.raises(
            ValueError, match=r"wsj_0160\.dp, line 1: word 1, 'Yes': its head must be an"
        ):
            dependency_treebank.load("validation")
        path.unlink()
        assert len(dependency_treebank.load("test")) == 338
    with corpora_in(tmp_path), pytest.raises(ValueError, match=r"wsj_0160\.dp: cannot be read"):
        dependency_treebank.load("validation")
