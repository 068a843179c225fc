"""Ensemble: distances, files, and votes."""

import io
import json
import sys

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import SINGLE, as_array, assert_close
from keras_onlstm import command_line, exporting
from keras_onlstm.models import Ensemble, LanguageModel, PairClassifier
from keras_onlstm.models.ensemble import load_eight_bit, save_eight_bit
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets, build_tree, vote
from keras_onlstm.runtime import ExportedModel
from keras_onlstm.runtime import load as load_graph

VOCABULARY = ["<eos>", "<unk>", "N", "the", "cat", "saw", "a", "dog", "do", "n't"]
SENTENCES = ["the cat saw a dog", "a zebra", "", "do n't", "the cat the cat the cat saw N dog"]


def small_model(layers, seed, vocabulary=VOCABULARY, **options):
    model = LanguageModel(10, 8, 16, layers, 4, vocabulary=vocabulary, seed=seed, **options)
    model.build()
    model.embeddings.assign(20 * ops.convert_to_numpy(model.embeddings))  # gates move
    return model


@pytest.fixture(scope="module")
def models():
    return [small_model(3, 4), small_model(2, 5)]


@pytest.fixture(scope="module")
def ensemble(models):
    return Ensemble(models)


@pytest.mark.parametrize("gate", ["forget", "input"])
def test_distances_match_single_models(ensemble, models, gate):
    assert (ensemble.num_layers, ensemble.layers_per_model) == (5, (3, 2))
    assert ensemble.vocabulary == VOCABULARY and ensemble.encode("the gnu") == [3, 1]
    found = ensemble.distances(SENTENCES, gate)
    apart = [model.distances(SENTENCES, gate) for model in models]
    for together, *each in zip(found, *apart, strict=True):
        assert_close(together, np.concatenate(each), 1e-6, gate)
    assert len({row.tobytes() for row in found[0]}) == 5


def test_call_details(ensemble, models):
    ids = np.array([[0, 3, 4, 5], [0, 6, 7, 0]])
    found = ensemble(ids, details=True)
    apart = [model(ids, details=True) for model in models]
    assert list(found.distances) == ["forget", "input"]
    for name, distances in found.distances.items():
        expected = np.concatenate([as_array(one.distances[name]) for one in apart], axis=1)
        assert_close(distances, expected, 1e-6, name)
    assert_close(ensemble(ids), found.distances["forget"], 0.0, "without details")


def test_keras_file_round_trip(ensemble, tmp_path):
    ensemble.save(tmp_path / "both.keras")
    again = keras.saving.load_model(tmp_path / "both.keras", compile=False, safe_mode=True)
    assert isinstance(again, Ensemble) and again.layers_per_model == (3, 2)
    assert again.name == ensemble.name and again.vocabulary == VOCABULARY
    for found, expected in zip(
        again.distances(SENTENCES), ensemble.distances(SENTENCES), strict=True
    ):
        assert_close(found, expected, 1e-6, "distances")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (list, "models must contain at least one model"),
        (
            lambda: [small_model(2, 0), PairClassifier(9, 7, units=20)],
            r"model 2: .* got PairClassifier",
        ),
        (
            lambda: [small_model(2, 0), small_model(2, 0, recurrent="lstm")],
            "model 2: has no dis",
        ),
        (
            lambda: [LanguageModel(size, 8, 16, 2, 4) for size in (10, 10, 11)],
            "model 3: its vocabulary differs from that of model 1",
        ),
    ],
)
def test_incompatible_models_raise(make, match):
    with pytest.raises(ValueError, match=match):
        Ensemble(make())


SENTENCE = "the cat saw a dog do n't saw the N a"


@pytest.mark.parametrize("voters", [("greedy",), ("binary",), ("greedy", "binary")])
def test_votes_of_all_layers_or_one_layer(models, voters):
    parser = Parser(models, voters=voters)
    distances, words = parser.distances(SENTENCE, "both"), SENTENCE.split()
    forget = parser.distances(SENTENCE)
    assert_close(distances[:5], forget, 0.0, "distances of the forget gates")
    assert distances.shape == (10, 11)
    assert (parser.layer, parser.method, parser.gate) == (None, "votes", "both")
    assert parser.parse(SENTENCE) == vote(distances, words, voters)
    parser = Parser(models, voters=voters, gate="forget")
    assert parser.parse(SENTENCE) == vote(forget, words, voters)
    parser = Parser(models, 2, voters=voters)
    assert parser.parse(SENTENCE) == vote(distances[[1, 4, 6, 9]], words, voters)
    (parsed,) = parser.parse_detailed([SENTENCE])
    assert_close(parsed.distances, distances, 0.0, "distances")


@pytest.mark.parametrize("method", ["greedy", "binary"])
def test_trees_of_mean_distances(ensemble, method):
    distances, words = Parser(ensemble).distances(SENTENCE), SENTENCE.split()
    for layer, rows in ((1, [0, 3]), (2, [1, 4]), (None, range(5))):
        mean = np.mean([distances[row].astype("float64") for row in rows], axis=0)
        found = Parser(ensemble, layer, method).parse(SENTENCE)
        assert found == build_tree(mean, words, method)


def test_parser_of_a_list_of_one_model(models):
    parser = Parser(models[:1])
    assert parser.model is models[0] and (parser.layer, parser.method) == (2, "greedy")


def test_compact_file_round_trip(ensemble, models, tmp_path):
    save_eight_bit(ensemble, tmp_path / "both.npz", [{"seed": 4}, {"seed": 5}])
    found, about = load_eight_bit(tmp_path / "both.npz")
    assert found.layers_per_model == (3, 2) and about == [{"seed": 4}, {"seed": 5}]
    for number, (model, again) in enumerate(zip(models, found.models, strict=True)):
        save_eight_bit(model, tmp_path / f"{number}.npz", number)
        assert again.vocabulary == VOCABULARY
        alone, _ = load_eight_bit(tmp_path / f"{number}.npz")
        for one, other in zip(again.trainable_variables, alone.trainable_variables, strict=True):
            assert_close(one, other, 0.0, one.path)
    paths = [tmp_path / "0.npz", str(tmp_path / "1.npz")]
    parser = Parser.load(paths)
    assert parser.metadata == [0, 1] and parser.model.layers_per_model == (3, 2)
    assert_close(parser.distances(SENTENCE), found.distances([SENTENCE])[0], 0.0, "distances")
    with np.load(tmp_path / "both.npz") as file:
        assert file["about.json"].tobytes().count(b"dog") == 1


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("suffix", [".onnx", ".tflite"])
def test_exported_files_match(ensemble, tmp_path, suffix):
    write = exporting.to_onnx if suffix == ".onnx" else exporting.to_tflite
    written = write(ensemble, tmp_path / f"parser{suffix}", metadata=["a test"])
    assert written.graphs == ("parser",) and written.difference.largest < SINGLE
    model = ExportedModel(load_graph(written.path))
    assert (model.num_layers, model.layers_per_model) == (5, (3, 2))
    for gate in ("forget", "input"):
        expected = ensemble.distances(SENTENCES, gate)
        for found, wanted in zip(model.distances(SENTENCES, gate), expected, strict=True):
            assert_close(found, wanted, SINGLE, gate)
    parser = Parser.load(written.path)
    assert parser.metadata == ["a test"] and parser.method == "votes"
    assert parser.parse(SENTENCE) == Parser(ensemble).parse(SENTENCE)
    if suffix == ".onnx":
        assert written.operators["Scan"] == 5


@pytest.mark.backend("tensorflow")
def test_saved_model_metadata(ensemble, tmp_path):
    written = exporting.to_saved_model(ensemble, tmp_path / "served")
    assert written.graphs == ("parser",) and written.difference.largest < SINGLE
    described = json.loads((written.path / "assets.extra" / "keras_onlstm.json").read_text())
    assert described["members"] == [3, 2]


@pytest.mark.backend("tensorflow")  # nothing here depends on it
def test_parse_command(models, tmp_path, monkeypatch, capsys):
    arguments = []
    for number, model in enumerate(models):
        save_eight_bit(model, tmp_path / f"{number}.npz")
        arguments += ["--model", str(tmp_path / f"{number}.npz")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))

    def run(*more):
        command_line.main(["parse", *arguments, *more, SENTENCE])
        return capsys.readouterr().out.strip()

    paths = arguments[1::2]
    for more, options in (
        ([], {}),
        (["--layer", "2"], {"layer": 2}),
        (["--layer", "1", "--method", "binary"], {"layer": 1, "method": "binary"}),
        (["--method", "votes"], {"method": "votes"}),
    ):
        assert run(*more) == brackets(Parser.load(paths, **options).parse(SENTENCE))
    found = json.loads(run("--format", "json"))
    assert np.array(found["distances"]).shape == (10, 11)
    with pytest.raises(SystemExit):
        run("--layer", "3")
    assert "from 1 to 2, not 3" in capsys.readouterr().err
