"""Derivatives beyond gradients: the readable recurrence has them, the fused one may refuse them.

What is asked for in each of a backend's ways has to be right. All refusals say the same.
"""

import re

import keras
import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import as_array, assert_close, finite_differences, gradients, loaded, tensor
from keras_onlstm import ONLSTM
from keras_onlstm.recurrence.engine import NOT_SUPPORTED

PROBLEM = oracle.draw(4, 2, batch=2, time=3, input_dim=2)
MASK = oracle.masks(2, 3)["holes"]
DIRECTION = np.random.default_rng(8).normal(size=PROBLEM.x.shape)


def layer_for(fused, dtype):
    return loaded(ONLSTM(4, 2, fused=fused, return_sequences=True, dtype=dtype), PROBLEM)


def loss_of(layer):
    def loss(x):
        return ops.sum(ops.square(layer(x, mask=MASK[: len(x)], training=True)))

    return loss


def _tensorflow(loss, x, v):
    import tensorflow as tf

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = loss(x)
        return tape.gradient(found, x)

    def second():
        with tf.GradientTape() as tape:
            tape.watch(x)
            along = tf.reduce_sum(gradient(x) * v)
        return tape.gradient(along, x)

    def forward(function):
        # Else TensorFlow traces a function for the derivative of every operation.
        tf.config.run_functions_eagerly(True)
        try:
            with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
                found = function(x)
            return accumulator.jvp(found)
        finally:
            tf.config.run_functions_eagerly(False)

    return {
        "second": {"two tapes": second, "forward over backward": lambda: forward(gradient)},
        "first": {"forward": lambda: forward(loss)},
        "refused": {"two tapes in a graph": tf.function(second)},
    }


def _jax(loss, x, v):
    import jax

    return {
        "first": {
            "jvp": lambda: jax.jvp(loss, (x,), (v,))[1],
            "jvp of what is compiled": lambda: jax.jvp(jax.jit(loss), (x,), (v,))[1],
            "compiled jvp": lambda: jax.jit(lambda v: jax.jvp(loss, (x,), (v,))[1])(v),
        }
    }


def _torch(loss, x, v):
    import torch
    from torch.autograd import forward_ad

    def second():
        y = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(y), y, create_graph=True)
        return torch.autograd.grad((gradient * v).sum(), y)[0]

    def dual():
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(loss(forward_ad.make_dual(x, v))).tangent

    def along(x):
        return (torch.func.grad(loss)(x) * v).sum()

    def each_row(function):
        return torch.func.vmap(function)(x[:, None])

    return {
        "second": {
            "create_graph": second,
            "torch.func.grad twice": lambda: torch.func.grad(along)(x),
            "jvp of grad": lambda: torch.func.jvp(torch.func.grad(loss), (x,), (v,))[1],
        },
        "first": {
            "dual numbers": dual,
            "torch.func.jvp": lambda: torch.func.jvp(loss, (x,), (v,))[1],
        },
        "gradient": {"vmap of grad": lambda: each_row(torch.func.grad(loss))[:, 0]},
    }


def ways(loss, dtype):
    """Kind of derivative -> the backend's APIs for it -> functions without arguments."""
    x, v = tensor(PROBLEM.x, dtype), tensor(DIRECTION, dtype)
    return {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[keras.backend.backend()](
        loss, x, v
    )


def gradient_at(loss):
    return lambda x: gradients(loss, [x])[0]


# PyTorch's own rules for forward mode call torch.jit.script, which is deprecated. The category of
# the warning depends on the version: DeprecationWarning until 2.13, FutureWarning from 2.14 on.
@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_only_the_reference_supports_other_derivatives(float64, monkeypatch):
    # Rows of the same mask, which vmap reads one at a time.
    monkeypatch.setitem(globals(), "MASK", np.repeat(MASK[:1], 2, 0))
    loss = loss_of(layer_for(False, float64))
    gradient = gradient_at(loss)

    def along(x):
        return np.sum(gradient(x) * DIRECTION)

    expected = {
        "gradient": lambda: gradient(PROBLEM.x),
        "first": lambda: along(PROBLEM.x),
        "second": lambda: finite_differences(
            lambda far: along(PROBLEM.x + far * DIRECTION), [np.zeros(1)]
        )[0],
    }
    found = ways(loss, float64)
    for asked in expected.keys() & found.keys():
        right = expected[asked]()
        for way, compute in found[asked].items():
            derived = as_array(compute())
            if asked == "second":
                derived = np.sum(derived * DIRECTION, keepdims=True).ravel()
            assert_close(derived, right, 1e-7, f"{asked}, {way}")
    for asked in ways(loss_of(layer_for(True, float64)), float64).values():
        for way in asked.values():
            with pytest.raises(NotImplementedError, match=re.escape(NOT_SUPPORTED)):
                way()


@pytest.mark.backend("jax")
@pytest.mark.parametrize("mask", [None, "holes"])
def test_second_derivatives_in_jax(mask, float64):
    import jax

    problem = oracle.draw(4, 2, batch=2, time=3, input_dim=2)
    everything = {"return_sequences": True, "return_state": True, "return_distances": True}
    mask = None if mask is None else MASK
    rng = np.random.default_rng(5)
    factors = [rng.normal(size=shape) for shape in ((2, 3, 4), (2, 4), (2, 4), (2, 3), (2, 3))]

    def first(fused):
        layer = loaded(ONLSTM(4, 2, fused=fused, dtype=float64, **everything), problem)

        def loss(x, *variables):
            with keras.StatelessScope(zip(layer.trainable_variables, variables, strict=True)):
                found = layer(x, mask=mask)
            return sum(ops.sum(y * w) for y, w in zip(found, factors, strict=True))

        return jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))

    def squares(fused):
        gradient = first(fused)
        return lambda *given: sum(ops.sum(g**2) for g in gradient(*given))

    given = [problem.x, *problem.weights]
    names = ["inputs", "kernel", "recurrent kernel", "bias"]
    readable = jax.jit(squares(False))
    # A number before the arrays change, because JAX computes asynchronously.
    expected = finite_differences(lambda *given: float(readable(*given)), given)
    by_all = range(len(given))
    for way in (jax.grad, jax.jacfwd):
        found = jax.jit(way(squares(True), argnums=tuple(by_all)))(*given)
        for one, other, name in zip(found, expected, names, strict=True):
            assert_close(one, other, 1e-6, f"{way.__name__} of the gradients' squares by {name}")


@pytest.mark.parametrize("units", [4, 200])  # one whose steps are compiled on TensorFlow
def test_jacobians(float64, units):
    """All rows of the backward pass at once, as the backends prefer, against one at a time."""
    problem = oracle.draw(units, 2, batch=2, time=3)
    x = tensor(problem.x, float64)

    def jacobian(fused, at_once):
        layer = loaded(ONLSTM(units, 2, fused=fused, dtype=float64), problem)

        def outputs(x):
            return ops.sum(layer(x, training=True)[:, :4], 0)

        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                found = outputs(x)
            return tape.jacobian(found, x, experimental_use_pfor=at_once)
        if keras.backend.backend() == "jax":
            import jax

            return jax.jacrev(outputs)(x) if at_once else jax.jacfwd(outputs)(x)
        from torch.autograd.functional import jacobian

        return jacobian(outputs, x, vectorize=at_once)

    expected = jacobian(fused=False, at_once=False)
    assert_close(jacobian(fused=True, at_once=True), expected, 1e-10, "Jacobian by the inputs")


@pytest.mark.backend("torch")
def test_gradients_by_torch_func(float64):
    import torch

    expected = gradient_at(loss_of(layer_for(False, float64)))(PROBLEM.x)
    loss = loss_of(layer_for(True, float64))
    found = torch.func.grad(loss)(torch.tensor(PROBLEM.x))
    assert_close(found, expected, 1e-10, "gradient by the inputs")
