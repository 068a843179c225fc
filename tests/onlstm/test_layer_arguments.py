"""The layer's own arguments, its errors, and the accuracy of lower precision."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import (
    SINGLE,
    as_array,
    assert_all_close,
    assert_close,
    dtype_of,
    loaded,
    tensor,
)
from keras_onlstm import ONLSTM, ONLSTMCell

UNITS, CHUNK = 6, 2
NAMES = oracle.Result._fields
EVERYTHING = {"return_sequences": True, "return_state": True}
X = np.zeros((4, 5, 3), "float32")


def test_the_activity_regularizer_adds_its_loss():
    problem = oracle.draw(UNITS, CHUNK)
    layer = ONLSTM(UNITS, CHUNK, activity_regularizer=keras.regularizers.L2(0.5))
    output = loaded(layer, problem)(tensor(problem.x, "float32"))
    # Keras divides it by the batch size.
    expected = 0.5 * np.square(as_array(output)).sum() / len(problem.x)
    assert len(layer.losses) == 1
    assert_close(layer.losses[0], expected, SINGLE, "activity regularization")


# Largest errors measured on the three backends: bfloat16 0.0067 (a cell state of RNN, which is
# rounded at every step; 0.0042 otherwise), float16 0.0005. The tolerances are twice that.
@pytest.mark.parametrize(
    ("policy", "tolerance"), [("mixed_bfloat16", 0.014), ("mixed_float16", 0.001)]
)
def test_half_precision_stays_close(policy, tolerance):
    problem = oracle.draw(UNITS, CHUNK, time=9)
    mask = oracle.masks(4, 9)["holes"]
    expected = oracle.onlstm(*problem, chunk_size=CHUNK, mask=mask)
    half = policy.removeprefix("mixed_")
    layer = ONLSTM(UNITS, CHUNK, return_distances=True, dtype=policy, **EVERYTHING)
    states = [ops.cast(tensor(s, "float32"), half) for s in problem.states]
    call = {"initial_state": states, "mask": mask}
    x = tensor(problem.x, "float32")
    found = loaded(layer, problem)(x, **call)
    assert [dtype_of(y) for y in found] == [half] * 3 + ["float32"] * 2
    assert {w.dtype for w in layer.trainable_variables} == {"float32"}
    assert_all_close(found, expected, tolerance, NAMES)
    cell = ONLSTMCell(UNITS, CHUNK, dtype=policy)
    layer = loaded(keras.layers.RNN(cell, dtype=policy, **EVERYTHING), problem)
    found = layer(x, **call)
    assert [dtype_of(y) for y in found] == [half] * 3
    started = (np.cumsum(mask, 1) > 0)[..., None]  # before, Keras repeats the state on JAX
    outputs = np.where(started, as_array(found[0]), expected.outputs)
    assert_all_close([outputs, *found[1:]], expected[:3], tolerance, NAMES[:3])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_the_master_gates_are_computed_in_float32(policy):
    # 200 equal chunks: the distance is 1 - 201 / 400, which a sum in half precision misses by far.
    zeros = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
    layer = ONLSTM(200, 1, return_distances=True, dtype=policy, **zeros)
    _, forget_distance, input_distance = layer(np.ones((2, 3, 4), "float32"))
    half = np.full((2, 3), 1 - 201 / 400)
    assert_close(forget_distance, half, 1e-6, "forget distance")
    assert_close(input_distance, half, 1e-6, "input distance")


@pytest.mark.parametrize("shape", [(4, 3), (4, 5, 3, 1)])
def test_inputs_must_be_sequences(shape):
    with pytest.raises(ValueError, match="expected ndim=3"):
        ONLSTM(UNITS)(np.zeros(shape, "float32"))


@pytest.mark.parametrize("shapes", [[(4, UNITS)], [(4, UNITS), (4, UNITS - 1)], [(1, UNITS)] * 2])
def test_initial_states_of_another_shape_raise(shapes):
    states = [np.zeros(shape, "float32") for shape in shapes]
    with pytest.raises(ValueError, match=r"initial_state must be \[h, c\], each \(batch, 6\), got"):
        ONLSTM(UNITS)(X, initial_state=states)


def test_unroll_is_not_supported():
    with pytest.raises(ValueError, match="unroll=True is not supported"):
        ONLSTM(UNITS, unroll=True)
    assert ONLSTM(UNITS, unroll=False).unroll is False


@pytest.mark.parametrize("fused", ["yes", None, 1, 0])
def test_other_values_of_fused_raise(fused):
    with pytest.raises(ValueError, match=f"fused must be 'auto', True or False, not {fused!r}"):
        ONLSTM(UNITS, fused=fused)
