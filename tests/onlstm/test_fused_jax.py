"""The fused recurrence in JAX: what is compiled of it, and how often. Its values: `test_fused`."""

import numpy as np
import pytest
from keras import ops

from helpers import oracle
from helpers.checks import loaded, tensor
from keras_onlstm import ONLSTM
from keras_onlstm.recurrence import engine, engine_jax

pytestmark = pytest.mark.backend("jax")

PROBLEM = oracle.draw(6, 2, batch=3, time=5)


def small_layer():
    return loaded(ONLSTM(6, 2, fused=True, return_sequences=True), PROBLEM)


def traced(function, problem=PROBLEM):
    """The jaxpr of a function of the inputs."""
    import jax

    return jax.make_jaxpr(function)(problem.x.astype("float32"))


def gradient_of(layer):
    import jax

    return jax.grad(lambda x: ops.sum(layer(x)))


def loops(jaxpr):
    """The scans of a computation, those of the compiled functions that it calls included."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            yield equation
        elif equation.primitive.name in ("jit", "pjit"):
            yield from loops(equation.params["jaxpr"].jaxpr)


def test_inference_saves_nothing():
    layer, gates = small_layer(), "f32[5,30,3]"  # (T, K, B)
    inference, training = (str(traced(function)) for function in (layer, gradient_of(layer)))
    assert gates in training and gates not in inference


def test_loops_are_inlined_into_the_caller():
    """XLA moves nothing across the border of a function that is called, so there must be none.

    JAX inlines the functions while it traces (until 0.10) or while it lowers (from 0.11 on).
    """
    import jax

    gradient = jax.jit(gradient_of(small_layer()))
    lowered = gradient.lower(tensor(PROBLEM.x, "float32")).as_text()
    main = lowered.partition("func.func public @main")[2].partition("func.func private")[0]
    assert main.count("stablehlo.while") == lowered.count("stablehlo.while") == 2


@pytest.mark.parametrize(("units", "inside"), [(6, False), (200, True)])
def test_small_layers_compute_derivatives_outside_the_loop(units, inside):
    """Of all steps at once: the backward pass of a large layer has exponentials in every step."""
    problem = oracle.draw(units, 2, batch=3, time=5)
    layer = loaded(ONLSTM(units, 2, fused=True), problem)
    _, backward = loops(traced(gradient_of(layer), problem))
    assert (" exp " in str(backward.params["jaxpr"])) is inside


def test_eager_calls_of_one_shape_compile_once():
    layer, x = small_layer(), tensor(PROBLEM.x, "float32")
    engine_jax._differentiable.cache_clear()
    for factor in (1.0, 2.0, 3.0):
        layer(x * np.float32(factor))
    recurrence = engine_jax._differentiable(engine._forward, engine._backward)
    assert recurrence._cache_size() == 1
    # Each of these would stay with JAX for ever.
    assert engine_jax._identity.cache_info().currsize == 1
