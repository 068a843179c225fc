"""The fast loop of PRPN's reading layers against the reference implementation, in float64."""

import re

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import EXACT, as_array, assert_all_close, assert_close, gradients, tensor
from keras_onlstm.prpn import ReadingNetwork
from keras_onlstm.prpn.recurrence import ReadingInputs, fused, reference
from keras_onlstm.recurrence import engine

MASKS = ("recurrent_mask", "read_mask", "key_mask")
CASES = [  # steps, batch, slots, units; the attention; the masks; whether steps are compiled
    (5, 3, 4, 6, True, MASKS, False),
    (1, 2, 3, 2, True, (), False),
    (9, 1, 2, 3, True, ("read_mask",), False),
    (4, 2, 6, 4, True, ("key_mask", "recurrent_mask"), True),
    (4, 3, 1, 5, False, ("recurrent_mask",), True),
    (3, 2, 1, 4, False, (), False),
]


def drawn(steps, batch, slots, units, attends, masks, rng):
    """Arrays of `ReadingInputs`, some of whose gates are closed."""
    width, states = 4 * units, (slots, batch, units)
    shapes = {"x": (steps, batch, width), "h": states, "c": states, "kernel": (units, width)}
    shapes |= dict.fromkeys(("bias", "gamma", "beta"), (width,))
    shapes |= dict.fromkeys(("cell_gamma", "cell_beta"), (units,))
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    if attends:
        row = (steps, batch, units)
        arrays |= {"keys": rng.normal(size=row), "key_kernel": rng.normal(size=(units, units))}
        arrays["gates"] = np.clip(rng.uniform(-0.5, 1.5, (steps, batch, slots)), 0.0, 1.0)
        arrays["gates"][-1, -1] = 0.0
    for name in masks:
        shape = (1, units) if name == "recurrent_mask" else row
        arrays[name] = 2.0 * rng.integers(0, 2, shape)
    return arrays


@pytest.mark.parametrize("case", range(len(CASES)))
def test_fused_loop_matches_reference(case, float64, monkeypatch):
    *sizes, attends, masks, compiled = CASES[case]
    if compiled:
        monkeypatch.setitem(engine._LAUNCH_BOUND, keras.backend.backend(), 0)
    rng = np.random.default_rng(case)
    arrays = drawn(*sizes, attends, masks, rng)
    derived = [name for name in arrays if name not in MASKS]
    fixed = {name: tensor(arrays[name], "float64") for name in masks}
    weights = tensor(rng.normal(size=(2, sizes[0], sizes[1], sizes[3])), "float64")

    def inputs(tensors):
        given = dict(zip(derived, tensors, strict=True)) | fixed
        return ReadingInputs(**dict.fromkeys(ReadingInputs._fields) | given)

    def total(run):
        def scalar(*tensors):
            return ops.sum(ops.stack(run(inputs(tensors))) * weights)

        return scalar

    values = [arrays[name] for name in derived]
    given = inputs([tensor(value, "float64") for value in values])
    assert_all_close(fused(given), reference(given), EXACT, ("hidden states", "cell states"))
    found, expected = (gradients(total(run), values) for run in (fused, reference))
    for name, one, other in zip(derived, found, expected, strict=True):
        assert np.abs(other).max() > 1e-5, name
        size = 1.0 + np.abs(other)  # that of a gate is large where all are closed
        assert_close(one / size, other / size, EXACT, name)


@pytest.mark.parametrize("attends", [True, False])
def test_network_with_reference_loop_matches_fused(attends, float64):
    x, gates = np.random.default_rng(0).normal(size=(2, 3, 4)), np.full((2, 3, 5), 0.5)
    layers = [
        ReadingNetwork(6, 2, 5, attends, fused=fused, seed=3, dtype="float64")
        for fused in (True, False)
    ]
    (one, states), (other, expected) = (layer(x, gates) for layer in layers)
    assert_close(one, other, EXACT, "outputs")
    for found, state in zip(keras.tree.flatten(states), keras.tree.flatten(expected), strict=True):
        assert_close(found, state, EXACT, "states")
    assert ReadingNetwork.from_config(layers[1].get_config()).layers[1].fused is False


@pytest.mark.backend("tensorflow", "torch")
def test_second_derivatives_raise():
    layer = ReadingNetwork(4, 1, 2, seed=0)
    x, gates = tensor(np.ones((1, 2, 3)), "float32"), tensor(np.ones((1, 2, 2)), "float32")
    match = re.escape(engine.NOT_SUPPORTED)
    if keras.backend.backend() == "torch":
        import torch

        x.requires_grad_()
        (first,) = torch.autograd.grad(layer(x, gates)[0].sum(), x, create_graph=True)
        with pytest.raises(NotImplementedError, match=match):
            first.sum().backward()
        return
    import tensorflow as tf

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = ops.sum(layer(x, gates)[0])
        first = inner.gradient(y, x)
    with pytest.raises(NotImplementedError, match=match):
        outer.gradient(first, x)


@pytest.mark.backend("jax")
def test_second_derivatives_match_reference_loop():
    import jax

    layers = [ReadingNetwork(4, 1, 2, fused=fused, seed=0) for fused in (True, False)]
    x, gates = np.linspace(-1.0, 1.0, 6).reshape(1, 2, 3), np.full((1, 2, 2), 0.5)

    def second(layer):
        layer.build(x.shape)

        def first(x):
            return jax.grad(lambda x: layer(x, gates)[0].sum() ** 2)(x)

        return jax.jit(jax.jacrev(first))(x.astype("float32"))

    found, expected = (as_array(second(layer)) for layer in layers)
    assert np.abs(expected).max() > 1e-2
    assert_close(found, expected, 1e-5, "second derivatives")
