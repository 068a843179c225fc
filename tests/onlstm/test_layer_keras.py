"""The layer among what Keras offers: stateful, Bidirectional, models, files, its own tests."""

import keras
import numpy as np
import pytest
from keras.src import testing

from helpers import oracle
from helpers.checks import (
    SINGLE,
    as_array,
    assert_all_close,
    assert_close,
    assert_differ,
    loaded,
    tensor,
)
from keras_onlstm import ONLSTM, ONLSTMCell

UNITS, CHUNK = 6, 2
NAMES = oracle.Result._fields
EVERYTHING = {"return_sequences": True, "return_state": True}
PROBLEM = oracle.draw(UNITS, CHUNK, time=6)
X = PROBLEM.x.astype("float32")
ZEROS = np.zeros_like(PROBLEM.h)


def from_zero(problem=PROBLEM, **options):
    zeros = np.zeros_like(problem.h)
    return oracle.onlstm(problem.x, zeros, zeros, *problem.weights, chunk_size=CHUNK, **options)


@pytest.mark.parametrize("over_cell", [False, True])
def test_stateful_continues_from_last_states(over_cell):
    if over_cell:
        layer = keras.layers.RNN(ONLSTMCell(UNITS, CHUNK), stateful=True, return_sequences=True)
    else:
        layer = ONLSTM(UNITS, CHUNK, stateful=True, return_sequences=True)
    loaded(layer, PROBLEM)
    whole = from_zero().outputs
    for _ in range(2):
        parts = [layer(X[:, :2]), layer(X[:, 2:])]
        assert_all_close(parts, [whole[:, :2], whole[:, 2:]], SINGLE, ["first", "second"])
        layer.reset_state()
    assert_close(layer(X), whole, SINGLE, "after a reset")
    assert_differ(layer(X), whole, 0.01, "without a reset")


def test_stateful_takes_an_initial_state_and_keeps_the_last():
    layer = loaded(ONLSTM(UNITS, CHUNK, stateful=True), PROBLEM)
    layer(X, initial_state=[tensor(s, "float32") for s in PROBLEM.states])
    expected = oracle.onlstm(*PROBLEM, chunk_size=CHUNK)
    assert_all_close(layer.states, [expected.h, expected.c], SINGLE, ["h", "c"])


def test_stateful_keeps_its_states_in_half_precision():
    """On PyTorch, Keras's own layers restart from zeros."""
    layer = ONLSTM(UNITS, CHUNK, stateful=True, return_state=True, dtype="mixed_bfloat16")
    x = tensor(PROBLEM.x, "float32")
    _, h, c = layer(x)
    for variable, state in zip(layer.states, (h, c), strict=True):
        assert np.abs(as_array(state)).max() > 0.01
        assert_close(variable, state, 0.0, variable.path)


def test_stateful_needs_equal_batch_sizes():
    layer = loaded(ONLSTM(UNITS, CHUNK, stateful=True), PROBLEM)
    with pytest.raises(ValueError, match=r"needs batches of 4, got a batch of 3"):
        layer(X[:3])
    with pytest.raises(ValueError, match="batch size must be static"):
        ONLSTM(UNITS, stateful=True).build((None, 5, 3))


MERGED = {
    "concat": lambda ahead, back: [np.concatenate([ahead, back], -1)],
    "sum": lambda ahead, back: [ahead + back],
    "mul": lambda ahead, back: [ahead * back],
    "ave": lambda ahead, back: [(ahead + back) / 2],
    None: lambda ahead, back: [ahead, back],
}


@pytest.mark.parametrize(
    ("merge_mode", "mask_name"),
    [("concat", None), ("sum", "left"), ("mul", "right"), ("ave", "holes"), (None, "right")],
)
def test_bidirectional_matches_two_layers_and_returns_both_distances(merge_mode, mask_name):
    mask = None if mask_name is None else oracle.masks(4, 6)[mask_name]
    layer = ONLSTM(UNITS, CHUNK, return_distances=True, **EVERYTHING)
    layer = keras.layers.Bidirectional(layer, merge_mode=merge_mode)
    dumped = keras.saving.serialize_keras_object(layer)
    layer = keras.saving.deserialize_keras_object(dumped)
    symbolic = layer(keras.Input((None, 3)))
    other = oracle.draw(UNITS, CHUNK, seed=4)._replace(x=PROBLEM.x)
    layer.set_weights([*PROBLEM.weights, *other.weights])
    options = {"mask": mask, "zero_output_for_mask": True}
    ahead, back = from_zero(**options), from_zero(other, go_backwards=True, **options)
    merged = MERGED[merge_mode](ahead.outputs, back.outputs[:, ::-1])
    # States and distances of the forward layer, then those of the backward one, whose distances
    # are in the order of reading.
    expected = [*merged, *ahead[1:], *back[1:]]
    names = [*("output", "output backwards")[: len(merged)], *NAMES[1:], *NAMES[1:]]
    assert_all_close(layer(X, mask=mask), expected, SINGLE, names)
    for found, wanted in zip(symbolic, expected, strict=True):
        pairs = zip(found.shape, wanted.shape, strict=True)
        assert all(size in (None, real) for size, real in pairs), found.shape


def test_bidirectional_distances_without_states_raise():
    options = {"return_sequences": True, "return_distances": True, "name": "ordered"}
    refusal = r"ordered: keras\.layers\.Bidirectional would merge .* return_state=True too: [^\n]*$"
    with pytest.raises(ValueError, match=refusal):
        keras.layers.Bidirectional(ONLSTM(UNITS, CHUNK, **options))
    backward = ONLSTM(UNITS, CHUNK, go_backwards=True, **options)
    plain = ONLSTM(UNITS, CHUNK, return_sequences=True)
    with pytest.raises(ValueError, match=refusal):
        keras.layers.Bidirectional(plain, backward_layer=backward)


def test_bidirectional_without_sequences_joins_the_last_outputs():
    layer = keras.layers.Bidirectional(ONLSTM(UNITS, CHUNK))
    layer.build(X.shape)
    other = oracle.draw(UNITS, CHUNK, seed=4)
    layer.set_weights([*PROBLEM.weights, *other.weights])
    mask = oracle.masks(4, 6)["left"]
    ahead = from_zero(mask=mask).outputs[:, -1]
    back = from_zero(other._replace(x=PROBLEM.x), mask=mask, go_backwards=True).outputs[:, -1]
    assert_close(layer(X, mask=mask), np.concatenate([ahead, back], -1), SINGLE, "output")


@pytest.mark.parametrize("over_cell", [False, True])
def test_models_with_unknown_sizes(over_cell):
    layer = ONLSTM(UNITS, CHUNK, return_sequences=True)
    if over_cell:
        layer = keras.layers.RNN(ONLSTMCell(UNITS, CHUNK), return_sequences=True)
    inputs = keras.Input((None, 3))
    outputs = layer(inputs)
    assert outputs.shape == (None, None, UNITS)
    layer.set_weights(PROBLEM.weights)
    functional = keras.Model(inputs, outputs)
    sequential = keras.Sequential([keras.Input((None, 3)), layer])
    expected = from_zero().outputs
    for model in (functional, sequential):
        assert_close(model(X), expected, SINGLE, "called")
    # Compiled, with sizes known only when it runs.
    for batch, time in ((4, 6), (3, 2)):
        found = functional.predict(X[:batch, :time], verbose=0)
        assert_close(found, expected[:batch, :time], SINGLE, "predicted")


def test_states_may_be_inputs_of_a_model():
    layer = ONLSTM(UNITS, CHUNK, return_distances=True, **EVERYTHING)
    inputs = [keras.Input((None, 3)), keras.Input((UNITS,)), keras.Input((UNITS,))]
    model = keras.Model(inputs, layer(inputs[0], initial_state=inputs[1:]))
    layer.set_weights(PROBLEM.weights)
    found = model([a.astype("float32") for a in PROBLEM[:3]])
    assert_all_close(found, oracle.onlstm(*PROBLEM, chunk_size=CHUNK), SINGLE, NAMES)


OF_THE_CELL = {
    "units": 6,
    "chunk_size": 3,
    "activation": "relu",
    "recurrent_activation": "hard_sigmoid",
    "use_bias": True,
    "kernel_initializer": "he_normal",
    "recurrent_initializer": "glorot_normal",
    "bias_initializer": "ones",
    "unit_forget_bias": True,
    "kernel_regularizer": keras.regularizers.L1(0.1),
    "recurrent_regularizer": keras.regularizers.L2(0.2),
    "bias_regularizer": keras.regularizers.L1L2(0.1, 0.2),
    "kernel_constraint": keras.constraints.MaxNorm(0.3),
    "recurrent_constraint": keras.constraints.NonNeg(),
    "bias_constraint": keras.constraints.UnitNorm(),
    "dropout": 0.1,
    "recurrent_dropout": 0.2,
    "recurrent_weight_dropout": 0.3,
    "seed": 5,
    "name": "ordered",
    "dtype": "mixed_bfloat16",
    "trainable": False,
}
OF_THE_LAYER = {
    "return_sequences": True,
    "return_state": True,
    "return_distances": True,
    "go_backwards": True,
    "stateful": True,
    "fused": False,
    "zero_output_for_mask": True,
    "activity_regularizer": keras.regularizers.L2(0.4),
}


@pytest.mark.parametrize(
    ("make", "arguments"), [(ONLSTMCell, OF_THE_CELL), (ONLSTM, {**OF_THE_CELL, **OF_THE_LAYER})]
)
def test_configuration_round_trip(make, arguments):
    layer = make(**arguments)
    config = layer.get_config()
    plain = make(6).get_config()
    assert arguments.keys() <= config.keys()
    kept = [n for n in arguments if config[n] == plain[n] and n not in ("units", "use_bias")]
    assert not kept, f"no effect on the configuration: {kept}"
    again = make.from_config(config)
    assert again.get_config() == config
    dumped = keras.saving.serialize_keras_object(layer)
    assert keras.saving.deserialize_keras_object(dumped).get_config() == config
    assert make(6, use_bias=False).get_config()["use_bias"] is False


def model_with_both(seed=7):
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(5, 3, mask_zero=True)(inputs)
    x = ONLSTM(6, 2, return_sequences=True, recurrent_weight_dropout=0.2, seed=seed)(x)
    x = keras.layers.Bidirectional(ONLSTM(4, 2, return_sequences=True, dropout=0.2))(x)
    cells = [ONLSTMCell(6, 3, recurrent_dropout=0.2), ONLSTMCell(4, 1)]
    model = keras.Model(inputs, keras.layers.RNN(cells)(x))
    rng = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(0.1, 0.5, variable.shape))
    return model


def test_files(tmp_path):
    ids = np.array([[3, 1, 4, 1, 0], [2, 2, 0, 0, 0]], "int32")
    model = model_with_both()
    expected = model(ids)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert_close(again(ids), expected, 0.0, "output of the loaded model")
    model.save_weights(tmp_path / "model.weights.h5")
    other = model_with_both(seed=8)
    assert_differ(other(ids), expected, 0.01, "another model")
    other.load_weights(tmp_path / "model.weights.h5")
    assert_close(other(ids), expected, 0.0, "output with the loaded weights")


RUNS = {
    "defaults": {"units": 4},
    "chunks": {"units": 4, "chunk_size": 2, "use_bias": False},
    "dropouts": {
        "units": 4,
        "dropout": 0.1,
        "recurrent_dropout": 0.2,
        "recurrent_weight_dropout": 0.3,
        "unit_forget_bias": True,
    },
}


def run_layer_test(make, arguments, **options):
    testing.TestCase().run_layer_test(
        make,
        init_kwargs=arguments,
        expected_num_trainable_weights=2 if arguments.get("use_bias") is False else 3,
        expected_num_non_trainable_weights=0,
        expected_num_seed_generators=1,
        **options,
    )


@pytest.mark.parametrize("case", RUNS)
def test_keras_layer_test_of_the_cell(case):
    run_layer_test(
        ONLSTMCell,
        RUNS[case],
        input_shape=(3, 5),
        call_kwargs={"states": [np.zeros((3, 4), "float32")] * 2},
        run_training_check=False,
        run_mixed_precision_check=False,
    )


@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")  # by run_layer_test itself
@pytest.mark.parametrize(
    ("case", "return_sequences"), list(zip(RUNS, (False, True, True), strict=True))
)
def test_keras_layer_test_of_the_layer(case, return_sequences):
    run_layer_test(
        ONLSTM,
        {**RUNS[case], "return_sequences": return_sequences},
        input_shape=(3, 2, 5),
        expected_output_shape=(3, 2, 4) if return_sequences else (3, 4),
        supports_masking=True,
    )
