"""LanguageModel against the numbers of the authors' model, and what its dropouts do."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import (
    NO_DROPOUT,
    as_array,
    assert_all_close,
    assert_close,
    assert_differ,
    gradients,
    tensor,
)
from keras_onlstm import convert
from keras_onlstm.datasets import syntactic_grammar
from keras_onlstm.evaluation.minimal_pairs import score_pairs
from keras_onlstm.loading import load_model
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.regularization import (
    activation_regularization,
    temporal_activation_regularization,
)

TOLERANCE = 1e-9
PARTS = ("ih.0.weight", "ih.0.bias", "hh.weight", "hh.bias")


@pytest.fixture(scope="module")
def reference(shared_reference):
    with np.load(shared_reference / "language_model.npz") as file:
        return dict(file)


@pytest.fixture
def model(reference, float64):
    model = LanguageModel(19, 8, 16, 3, int(reference["chunk_size"]), dtype=float64, **NO_DROPOUT)
    model.build()
    model.embeddings.assign(reference["embedding"])
    model.softmax_bias.assign(reference["decoder_bias"])
    for index, layer in enumerate(model.recurrent_layers):
        arrays = [reference[f"cells.{index}.{part}"] for part in PARTS]
        layer.set_weights(convert.from_torch(*arrays, chunk_size=int(reference["chunk_size"])))
    return model


def log_probabilities(logits):
    shifted = logits - ops.stop_gradient(ops.max(logits, -1, keepdims=True))
    return shifted - ops.log(ops.sum(ops.exp(shifted), -1, keepdims=True))


def losses(model, reference, mask=None):
    found = model(ops.convert_to_tensor(reference["tokens"]), mask=mask, details=True)
    chosen = np.eye(19)[reference["targets"]]
    scores = ops.sum(log_probabilities(found.logits) * tensor(chosen, "float64"), -1)
    return (
        -ops.sum(scores) / reference["tokens"].size,
        activation_regularization(found.output, 2.0, mask),
        temporal_activation_regularization(found.raw_output, 1.0, mask),
    )


def test_values_match_reference(model, reference):
    found = model(ops.convert_to_tensor(reference["tokens"]), details=True)
    expected = reference["log_probabilities"]
    assert_close(log_probabilities(found.logits), expected, TOLERANCE, "log-probabilities")
    for name, gate in (("distance_forget", "forget"), ("distance_in", "input")):
        distances = ops.transpose(found.distances[gate], (1, 2, 0))  # (layers, T, B)
        assert_close(distances, reference[name], TOLERANCE, name)
    names = ("cross_entropy", "activation_regularization", "temporal_activation_regularization")
    expected = [reference[name] for name in names]
    assert_all_close(losses(model, reference), expected, TOLERANCE, names)
    everything = np.ones(reference["tokens"].shape, bool)
    assert_all_close(losses(model, reference, everything), expected, TOLERANCE, names)


def test_gradients_match_reference(model, reference):
    variables = model.trainable_variables
    found = gradients(lambda: sum(losses(model, reference)), [], variables)
    by_path = {v.path.split("/", 1)[1]: g for v, g in zip(variables, found, strict=True)}
    expected = reference["embedding_grad"].copy()
    # The authors' code keeps the last word's vector from learning where it is looked up: it hands
    # PyTorch the padding index -1, which means that word. Their row is the softmax's part alone.
    output = as_array(model(ops.convert_to_tensor(reference["tokens"]), details=True).output)
    last = np.exp(reference["log_probabilities"][:, :, -1]) - (reference["targets"] == 18)
    part = np.einsum("bt,bte->e", last, output) / last.size
    assert_close(expected[-1], part, TOLERANCE, "the authors' gradient by the last word")
    assert_differ(by_path["embeddings"][-1], part, 1e-4, "gradient by the last word")
    assert_close(by_path["embeddings"][:-1], expected[:-1], TOLERANCE, "gradient by embeddings")
    assert_close(
        by_path["softmax_bias"], reference["decoder_bias_grad"], TOLERANCE, "gradient by bias"
    )
    for index in range(3):
        start = f"recurrent_{index}/onlstm_cell/"
        kernel, recurrent, bias = (
            by_path[start + name] for name in ("kernel", "recurrent_kernel", "bias")
        )
        expected = [reference[f"cells.{index}.{part}.grad"] for part in PARTS]
        assert_all_close(
            [kernel.T, bias, recurrent.T, bias],
            expected,
            TOLERANCE,
            [f"gradient by {part} of layer {index}" for part in PARTS],
        )


def test_published_parameter_count():
    model = LanguageModel(10000)
    model.build()
    assert model.count_params() == 25_220_840


def test_states_carry_over(model, reference):
    ids = ops.convert_to_tensor(reference["tokens"])
    whole = model(ids, details=True)
    first = model(ids[:, :5], details=True)
    second = model(ids[:, 5:], states=first.states, details=True)
    both = ops.concatenate([first.logits, second.logits], 1)
    assert_close(both, whole.logits, TOLERANCE, "logits")
    for found, expected in zip(second.states, whole.states, strict=True):
        assert_all_close(found, expected, TOLERANCE, ["h", "c"])


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_keras_file_round_trip(recurrent, tmp_path):
    words = ["<eos>", "<unk>", *(f"word{index}" for index in range(18))]
    model = LanguageModel(20, 8, 16, chunk_size=4, recurrent=recurrent, vocabulary=words)
    ids = np.arange(12).reshape(2, 6)
    expected = model(ids)
    model.score([words[:3]])  # what reading compiles is no part of the file
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.vocabulary == words
    assert_close(loaded(ids), expected, 0.0, "logits")


@pytest.mark.parametrize("name", NO_DROPOUT)
@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_each_dropout_has_an_effect(name, recurrent):
    options = {**NO_DROPOUT, name: 0.5}
    model = LanguageModel(20, 8, 16, chunk_size=4, recurrent=recurrent, seed=1, **options)
    ids = np.tile(np.arange(6), (2, 2))
    model.build()
    model.embeddings.assign(10 * model.embeddings)  # so that every word moves the gates
    quiet = model(ids)
    assert_close(model(ids), quiet, 0.0, "inference")
    first, second = (model(ids, training=True) for _ in range(2))
    assert_differ(first, quiet, 1e-4, "effect")
    assert_differ(first, second, 1e-4, "two draws")


def test_word_dropout_drops_whole_words():
    from keras_onlstm.models.regularization import word_dropout

    dropped = as_array(word_dropout(ops.ones((1000, 3)), 0.3, seed=1))
    assert np.all((dropped == 0).all(1) | (np.abs(dropped - 1 / 0.7) < 1e-6).all(1))
    assert_close((dropped[:, 0] == 0).mean(), 0.3, 0.08, "share of words dropped")


def test_regularization_ignores_masked_steps():
    rng = np.random.default_rng(0)
    outputs = rng.normal(size=(2, 5, 3))
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    squares = [outputs[0, :3] ** 2, outputs[1] ** 2]
    changes = [np.diff(outputs[0, :3], axis=0) ** 2, np.diff(outputs[1], axis=0) ** 2]
    x = tensor(outputs, "float32")
    expected = 2.0 * np.concatenate(squares).mean()
    assert_close(activation_regularization(x, 2.0, mask), expected, 1e-6, "activation")
    expected = 3.0 * np.concatenate(changes).mean()
    assert_close(temporal_activation_regularization(x, 3.0, mask), expected, 1e-6, "temporal")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"recurrent": "gru"}, r"'onlstm' or 'lstm', .* 'gru'"),
        ({"vocabulary": ["a"]}, "1 words.*vocabulary_size is 20"),
        (
            {"vocabulary": [*"abcdefghijklmnopqrs", ["t"]]},
            r"vocabulary\[19\] must be a string, got \['t'\]",
        ),
        ({"num_layers": 101}, "num_layers must be an integer, from 1 to 100, not 101"),
    ],
)
def test_invalid_arguments_raise(arguments, match):
    with pytest.raises(ValueError, match=match):
        LanguageModel(20, **{"embedding_dim": 8, "units": 16, "chunk_size": 4, **arguments})


WORDS = ["<eos>", "<unk>", *"abcdefgh"]
SENTENCES = ["a b c", "h", "a zebra c d e f g h a b c", "", "b"]


def reader(**kwargs):
    model = LanguageModel(10, 8, 16, 3, 4, vocabulary=WORDS, seed=2, **kwargs)
    model.build()
    model.embeddings.assign(20 * ops.convert_to_numpy(model.embeddings))
    return model


def alone(model, sentence):
    """Ids of one sentence between two <eos>, and the output of the model."""
    words = [word if word in WORDS else "<unk>" for word in sentence.split()]
    ids = np.array([[WORDS.index(word) for word in ["<eos>", *words, "<eos>"]]])
    return ids, model(ids, details=True)


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_scores_are_log_probabilities_of_the_words(recurrent):
    model = reader(recurrent=recurrent)
    found = model.score([SENTENCES[0].split(), *SENTENCES[1:]])
    for sentence, scores in zip(SENTENCES, found, strict=True):
        ids, read = alone(model, sentence)
        expected = as_array(log_probabilities(read.logits))[0, np.arange(ids.size - 1), ids[0, 1:]]
        assert_close(scores, expected, 1e-5, sentence)
    assert_differ(found[1][0], found[4][0], 0.01, "scores of two words")
    for scores, words in zip(found, model.score(SENTENCES, end=False), strict=True):
        assert_close(words, scores[:-1], 1e-5, "scores without the end")


def test_scores_of_a_trained_model_match_float64():
    """Against one sentence at a time in float64, over 10,000 words."""
    model = load_model()[0].models[0]
    embeddings, bias = as_array(model.embeddings), as_array(model.softmax_bias)
    chunk_size = model.get_config()["chunk_size"]
    scores = score_pairs(model, syntactic_grammar.generate(count=1, seed=1))
    assert len(scores) > 40
    for sentence, found in list(scores.items())[::4]:  # the equations are slow
        ids = model.encode(f"<eos> {sentence} <eos>")
        x = embeddings[ids[:-1]][None]  # (1, T, E)
        for layer in model.recurrent_layers:
            zeros = np.zeros((1, layer.units))
            weights = [as_array(w) for w in layer.trainable_weights]
            x = oracle.onlstm(x, zeros, zeros, *weights, chunk_size=chunk_size).outputs
        logits = x[0] @ embeddings.T + bias  # (T, V)
        expected = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        assert_close(found, expected[np.arange(len(ids) - 1), ids[1:]], 1e-4, sentence)


def test_distances_match_single_sentences():
    model = reader()
    found = model.distances(SENTENCES)
    for sentence, distances in zip(SENTENCES, found, strict=True):
        _, read = alone(model, sentence)
        expected, written = (as_array(read.distances[gate])[0, :, 1:-1] for gate in model.gates)
        assert distances.shape == (3, len(sentence.split()))
        assert_close(distances, expected, 1e-5, sentence)
        assert_close(model.distances([sentence], gate="input")[0], written, 1e-5, sentence)
    with pytest.raises(ValueError, match="gate must be 'forget', 'input' or 'both', got 'output'"):
        model.distances(["a"], gate="output")


def test_model_without_vocabulary_raises():
    bare = LanguageModel(10, 8, 16, 3, 4)
    with pytest.raises(ValueError, match="no vocabulary with <eos> and <unk>"):
        bare.score(["a"])
    other = LanguageModel(2, 8, 16, 3, 4, vocabulary=["a", "b"])
    with pytest.raises(ValueError, match="no vocabulary with <eos> and <unk>"):
        other.distances(["a"])
    with pytest.raises(ValueError, match="This model has no distances, because it is an LSTM"):
        reader(recurrent="lstm").distances(["a"])
