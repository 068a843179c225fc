"""Large files scored in shards match the scores of the model."""

import numpy as np
import pytest

from helpers.parsed_files import ODD, SENTENCES, records_of
from keras_onlstm import Parser
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.loading import load_model
from keras_onlstm.models import LanguageModel
from keras_onlstm.parsing import brackets
from keras_onlstm.scale.corpus import Counts, process
from keras_onlstm.scale.shards import cut, read
from keras_onlstm.scale.tasks import Parsing, Scoring


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_scores_match_the_model(tmp_path, form):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    files = [tmp_path / "odd.txt", tmp_path / "plain.txt"]
    files[0].write_bytes(ODD)
    files[1].write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    task = Scoring(form, max_words=5, load={"number": 2})
    result = process(files, tmp_path / "out", task, 20)
    rows = records_of(tmp_path / "out")
    assert [row["row"] for row in rows] == list(range(31))
    model, _ = load_model()
    scored = [(row, text) for row, text in zip(rows, texts_of(files), strict=True)
              if row["tokens"]]  # fmt: skip
    assert len(scored) == 26 and result == Counts(31, sum(r["tokens"] for r, _ in scored), 4)
    parser = Parser.load()
    words = [list(map(normalize, parser.tokenize(text))) for _, text in scored]
    unknown = [len(set(sentence) - set(model.vocabulary)) for sentence in words]
    assert [row["unknown_words"] for row, _ in scored] == unknown and any(unknown)
    expected = model.models[1].score(words)
    for (row, _), sentence, scores in zip(scored, words, expected, strict=True):
        assert row["tokens"] == len(sentence) + 1 == len(scores)
        assert abs(row["log_probability"] - scores.sum()) < 1e-3
        assert abs(row["perplexity"] / np.exp(-scores.mean()) - 1) < 1e-4
    errors = [row["error"] for row in rows if row["error"]]
    blank = {"row": 1, "tokens": 0, "unknown_words": 0, "error": None}
    assert rows[1] == {**blank, "log_probability": None, "perplexity": None}
    long = "has 6 words, more than 5."
    control = "must not contain control characters, got '\\x00' at character 2. Remove it."
    assert errors == ["has no words.", "is not UTF-8 text.", control, long]


def test_trees_of_a_keras_model(tmp_path):
    words = ["<eos>", "<unk>", "the", "cat", "saw", "a", "dog", "prices", "fell"]
    model = LanguageModel(len(words), 8, 16, chunk_size=4, vocabulary=words, seed=0)
    model(np.array([[0]]))
    model.save(tmp_path / "model.keras")
    (tmp_path / "plain.txt").write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    task = Parsing(load={"name_or_path": tmp_path / "model.keras"})
    process([tmp_path / "plain.txt"], tmp_path / "out", task, 10)
    parser = Parser.load(tmp_path / "model.keras")
    lines = [brackets(parser.parse(sentence)) for sentence in SENTENCES]
    result = "".join(path.read_text() for path in sorted((tmp_path / "out").glob("0*.txt")))
    assert result.splitlines() == lines


def texts_of(paths):
    return [text for shard in cut(paths, rows=100) for text in read(shard)]
