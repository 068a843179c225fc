"""The fused recurrence compared with the reference implementation."""

import numpy as np
from keras import ops

from helpers import oracle
from helpers.checks import as_array, assert_all_close, gradients, loaded, tensor
from keras_onlstm import ONLSTM

SINGLE = 1e-5
ALL = {"return_sequences": True, "return_state": True, "return_distances": True}


RESULTS = oracle.Result._fields


GIVEN = ("inputs", "h", "c", "kernel", "recurrent_kernel", "bias")


def layer_for(problem, chunk_size, fused, **options):
    units = problem.h.shape[1]
    return loaded(ONLSTM(units, chunk_size, fused=fused, **{**ALL, **options}), problem)


def values_and_gradients(layer, problem, dtype, *, weights, **call):
    """Results, and gradients of their weighted sum with respect to inputs, states and weights."""

    def results(x, h, c):
        found = layer(x, initial_state=[h, c], **call)
        return found if isinstance(found, tuple) else (found,)

    def loss(*given):
        found = [ops.cast(y, dtype) for y in results(*given)]
        return sum(ops.sum(y * tensor(w, dtype)) for y, w in zip(found, weights, strict=True))

    given = [np.asarray(a, dtype) for a in (problem.x, *problem.states)]
    found = results(*(tensor(a, dtype) for a in given))
    return list(map(as_array, found)), gradients(loss, given, layer.trainable_variables)


def weights_for(problem, used=RESULTS, seed=5):
    """Random weights of the results; 0 for results that are not in `used`."""
    batch, time, units = *problem.x.shape[:2], problem.h.shape[1]
    shapes = [(batch, time, units), (batch, units), (batch, units), (batch, time), (batch, time)]
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(size=shape) for shape in shapes]
    return [w if name in used else 0 * w for name, w in zip(RESULTS, drawn, strict=True)]


def compare(problem, chunk_size, dtype, tolerance, used=RESULTS, call=None, **options):
    found, expected = (
        values_and_gradients(
            layer_for(problem, chunk_size, fused, dtype=dtype, **options),
            problem,
            dtype,
            weights=weights_for(problem, used),
            **(call or {}),
        )
        for fused in (True, False)
    )
    assert_all_close(found[0], expected[0], tolerance, RESULTS)
    # Gradients grow with the number of steps; the tolerance is for values of order 1.
    scale = max(1.0, *(np.abs(g).max(initial=0.0) for g in expected[1]))
    names = [f"gradient by {name}" for name in GIVEN[: len(expected[1])]]
    assert_all_close(found[1], expected[1], tolerance * scale, names)
    return found
