"""The pair classifier against NumPy, with padding, dropout, saving, compilation and training."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import SINGLE, as_array, assert_close, assert_differ
from keras_onlstm.models import PairClassifier

LEFT = np.array([[1, 2, 3, 4, 5, 6], [7, 8, 0, 0, 0, 0], [9, 1, 2, 0, 0, 0]])
RIGHT = np.array([[3, 4, 0], [5, 6, 7], [8, 0, 0]])


def make_model(recurrent="onlstm", dropout=0.2, seed=0, **kwargs):
    """A model with random weights and biases, so that each has an effect."""
    model = PairClassifier(
        10, 4, embedding_dim=5, units=6, chunk_size=3, recurrent=recurrent, dropout=dropout,
        seed=seed, **kwargs,
    )  # fmt: skip
    model((LEFT, RIGHT))
    generator = np.random.default_rng(seed)
    for weight in model.trainable_weights:
        weight.assign(generator.normal(size=weight.shape) * 0.5)
    return model


def compiled(model, **kwargs):
    model.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        **kwargs,
    )
    # Without them the first step is traced twice.
    model.optimizer.build(model.trainable_variables)
    return model


def weights(model):
    return {weight.path.split("/", 1)[1]: as_array(weight) for weight in model.trainable_weights}


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_logits_match_numpy(recurrent):
    model = make_model(recurrent)
    w = weights(model)
    encoded = []
    for ids in (LEFT, RIGHT):
        rows = []
        for row in ids:  # one sentence at a time, without padding and without a mask
            vectors = w["embedding/embeddings"][row[row != 0]].astype("float32")
            rows.append(as_array(model.recurrent(vectors[None]))[0])
        encoded.append(np.stack(rows))
    h1, h2 = encoded
    features = np.concatenate([h1, h2, h1 * h2, np.abs(h1 - h2)], axis=1)
    z = features @ w["hidden/kernel"] + w["hidden/bias"]
    hidden = np.where(z > 0, z, np.expm1(z))
    logits = hidden @ w["relation/kernel"] + w["relation/bias"]
    assert (z > 0).any() and (z < 0).any()
    assert_close(model((LEFT, RIGHT)), logits, SINGLE, "logits")
    assert_close(model.encode(LEFT), h1, SINGLE, "encoded")


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_padding_has_no_effect(recurrent):
    model = make_model(recurrent)
    narrow = model((LEFT, RIGHT))
    wide = model((np.pad(LEFT, ((0, 0), (0, 5))), np.pad(RIGHT, ((0, 0), (0, 1)))))
    assert_close(wide, narrow, 1e-6, "padded")
    for row in range(3):
        alone = [ids[row : row + 1, : np.count_nonzero(ids[row])] for ids in (LEFT, RIGHT)]
        assert_close(model(alone)[0], narrow[row], 1e-6, f"row {row} alone")


def test_dropout_acts_only_in_training():
    model = make_model(dropout=0.5)
    dry = make_model(dropout=0.0)
    assert_close(model((LEFT, RIGHT)), dry((LEFT, RIGHT)), 0.0, "at inference")
    assert_close(model.predict_on_batch((LEFT, RIGHT)), dry((LEFT, RIGHT)), 1e-6, "predict")
    first, second = (model((LEFT, RIGHT), training=True) for _ in range(2))
    assert_differ(first, dry((LEFT, RIGHT)), 1e-2, "in training")
    assert_differ(first, second, 1e-2, "two draws")
    assert_close(dry((LEFT, RIGHT), training=True), dry((LEFT, RIGHT)), 1e-6, "rate 0")


def test_dropout_is_applied_three_times():
    model, calls = make_model(dropout=0.5), []
    call = model.dropout.call

    def recorded(inputs, training=False):
        outputs = call(inputs, training=training)
        calls.append((tuple(inputs.shape), bool(training), (as_array(outputs) == 0).mean()))
        return outputs

    model.dropout.call = recorded
    model((LEFT, RIGHT), training=True)
    assert [shape for shape, *_ in calls] == [(3, 6, 5), (3, 3, 5), (3, 24), (3, 6)]
    assert all(training for _, training, _ in calls)
    assert all(0.1 < zeros < 0.9 for *_, zeros in calls)


def test_seed_determines_weights_and_dropout():
    def outputs(seed):
        model = PairClassifier(10, 4, units=6, chunk_size=3, seed=seed)
        return as_array(model((LEFT, RIGHT), training=True))

    keras.utils.set_random_seed(1)
    first = outputs(3)
    keras.utils.set_random_seed(1)
    assert_close(outputs(3), first, 0.0, "the same seed")
    keras.utils.set_random_seed(1)
    assert_differ(outputs(4), first, 1e-3, "another seed")


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_keras_file_round_trip(tmp_path, recurrent):
    model = compiled(make_model(recurrent, dropout=0.0, name="pairs"))
    model.train_on_batch((LEFT, RIGHT), np.array([0, 1, 2]))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert type(loaded) is PairClassifier and loaded.name == "pairs"
    assert_close(loaded((LEFT, RIGHT)), model((LEFT, RIGHT)), 0.0, "loaded")
    assert loaded.get_config() == model.get_config()
    # The optimizer goes on as well.
    logs = [m.train_on_batch((LEFT, RIGHT), np.array([0, 1, 2])) for m in (model, loaded)]
    assert_close(logs[0], logs[1], 1e-6, "loss and accuracy")
    assert_close(loaded((LEFT, RIGHT)), model((LEFT, RIGHT)), 1e-6, "trained further")


@pytest.mark.parametrize(
    "arguments, match",
    [
        ({"recurrent": "gru"}, "'onlstm' or 'lstm', not 'gru'"),
        ({"units": 7, "chunk_size": 3}, "chunk_size"),
        ({"dropout": 1.5}, "1.5"),
    ],
    ids=str,
)
def test_invalid_arguments_raise(arguments, match):
    with pytest.raises(ValueError, match=match):
        PairClassifier(10, 4, **arguments)


@pytest.mark.backend("tensorflow", "jax")
def test_compiled_step_matches_eager_step():
    classes = np.array([0, 1, 2])
    models = [compiled(make_model(dropout=0.0), jit_compile=True)]
    models.append(compiled(make_model(dropout=0.0), jit_compile=False))
    losses = [
        [float(model.train_on_batch((LEFT, RIGHT), classes)[0]) for _ in range(2)]
        for model in models
    ]
    assert losses[0][1] < losses[0][0]
    assert_close(losses[0], losses[1], 1e-5, "losses")
    ours, others = map(weights, models)
    for name, weight in ours.items():
        # Adam divides by a gradient's size: rounding counts where that is next to nothing.
        assert_close(weight, others[name], 1e-3, name)


def test_every_weight_gets_a_gradient():
    model = compiled(make_model(dropout=0.0))
    before = weights(model)
    model.train_on_batch((LEFT, RIGHT), np.array([0, 1, 2]))
    for name, value in weights(model).items():
        assert_differ(value, before[name], 1e-4, name)


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_learns_a_long_dependency(recurrent):
    """One of four classes, half of the information on each side, followed by random words."""
    keras.utils.set_random_seed(0)
    model = PairClassifier(
        7, 4, embedding_dim=8, units=12, chunk_size=3, dropout=0.0, recurrent=recurrent, seed=0
    )
    model((LEFT[:1], RIGHT[:1]))
    compiled(model)
    left, right = np.random.default_rng(0).integers(1, 7, (2, 500, 3))
    classes = (2 * (left[:, 0] > 3) + (right[:, 0] > 3)).astype("int32")
    for step in range(100):
        rows = slice(step % 4 * 100, step % 4 * 100 + 100)
        model.train_on_batch((left[rows], right[rows]), classes[rows])
    logits = ops.convert_to_numpy(model((left[400:], right[400:])))
    accuracy = (logits.argmax(-1) == classes[400:]).mean()
    assert accuracy > 0.95, f"accuracy {accuracy:.2f} on pairs that were not trained on"
