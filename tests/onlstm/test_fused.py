"""The fused recurrence against the readable one: values, and gradients by everything there is.

Both are the same layer with the same weights. The loss is a random combination of all results,
drawn so that each counts; single results are looked at where a mistake could hide behind others.
"""

import re

import keras
import numpy as np
import pytest

from helpers import oracle
from helpers.checks import (
    as_array,
    assert_all_close,
    assert_close,
    assert_differ,
    finite_differences,
    loaded,
    tensor,
)
from helpers.fused import (
    ALL,
    GIVEN,
    RESULTS,
    SINGLE,
    compare,
    layer_for,
    values_and_gradients,
    weights_for,
)
from keras_onlstm import ONLSTM
from keras_onlstm.onlstm.fused_step import ONLSTMStep
from keras_onlstm.recurrence import engine, gated_step

TOLERANCE = 1e-10  # what two float64 versions may differ by


@pytest.mark.parametrize(
    ("units", "chunk_size", "batch", "time", "input_dim"),
    [
        (6, 2, 4, 1, 3),
        (6, 2, 4, 2, 3),
        (6, 1, 1, 7, 3),
        (6, 6, 3, 7, 1),
        (12, 4, 8, 5, 5),
        (12, 3, 11, 5, 2),  # columns by eights, and three
        (12, 3, 11, 9, 10),  # more than eight steps, and features, which have nothing to do with it
    ],
)
def test_shapes(units, chunk_size, batch, time, input_dim, float64):
    problem = oracle.draw(units, chunk_size, batch, time, input_dim)
    compare(problem, chunk_size, float64, TOLERANCE)


@pytest.mark.parametrize("mask", ["left", "right", "holes", "a row without any", "all"])
@pytest.mark.parametrize("go_backwards", [False, True])
def test_masks(mask, go_backwards, float64):
    problem = oracle.draw(6, 2, batch=4, time=5)
    call = {"mask": oracle.masks(4, 5)[mask]}
    compare(problem, 2, float64, TOLERANCE, call=call, go_backwards=go_backwards)


@pytest.mark.parametrize(
    "options",
    [
        {"use_bias": False},
        {"dropout": 0.4},
        {"recurrent_dropout": 0.5},
        {"recurrent_weight_dropout": 0.45},
        {"dropout": 0.4, "recurrent_dropout": 0.5, "recurrent_weight_dropout": 0.45},
        {"zero_output_for_mask": True},
    ],
    ids=lambda options: ", ".join(options),
)
def test_options(options, float64):
    problem = oracle.draw(6, 2, batch=4, time=5)
    call = {"training": True, "mask": oracle.masks(4, 5)["right"]}
    dropped = [value for name, value in options.items() if "dropout" in name]
    if dropped:
        # Two calls are compared, values and gradients: the masks have to be the same in both.
        options = {**options, "seed": 3}
        once = [
            layer_for(problem, 2, fused, dtype=float64, **options)(
                tensor(problem.x, float64), **call
            )
            for fused in (True, False)
        ]
        assert_all_close(*once, TOLERANCE, RESULTS)
        call["mask"] = None
    compare(problem, 2, float64, TOLERANCE, call=call, **options)


@pytest.mark.parametrize("used", RESULTS)
@pytest.mark.parametrize("mask", [None, "holes"])
def test_gradients_of_a_loss_of_one_result(used, mask, float64):
    problem = oracle.draw(6, 2, batch=3, time=5)
    call = {"mask": oracle.masks(3, 5)[mask]} if mask else None
    _, found = compare(problem, 2, float64, TOLERANCE, used=[used], call=call)
    for gradient, name in zip(found, GIVEN, strict=True):
        assert_differ(gradient, 0 * gradient, 1e-3, f"gradient of {used} by {name}")


@pytest.mark.parametrize("return_sequences", [False, True])
def test_gradients_of_a_loss_of_the_output(return_sequences, float64):
    problem = oracle.draw(6, 2, batch=3, time=5)
    outputs, h = (weights_for(problem)[i] for i in (0, 1))
    options = {"return_state": False, "return_distances": False, "dtype": float64}
    found, expected = (
        values_and_gradients(
            layer_for(problem, 2, fused, return_sequences=return_sequences, **options),
            problem,
            float64,
            weights=[outputs if return_sequences else h],
        )
        for fused in (True, False)
    )
    assert_all_close(found[0], expected[0], TOLERANCE, ["output"])
    assert_all_close(found[1], expected[1], TOLERANCE, GIVEN)


def test_finite_differences(float64):
    problem = oracle.draw(4, 2, batch=2, time=3, input_dim=2)
    weights = weights_for(problem)
    layer = layer_for(problem, 2, True, dtype=float64)
    mask = oracle.masks(2, 3)["holes"]
    _, found = values_and_gradients(layer, problem, float64, weights=weights, mask=mask)

    def loss(*given):
        results = oracle.onlstm(*given, chunk_size=2, mask=mask)
        # In the place of the output before the first step the layer has the same zeros.
        return sum(np.sum(y * w) for y, w in zip(results, weights, strict=True))

    expected = finite_differences(loss, [problem.x, *problem.states, *problem.weights])
    assert_all_close(found, expected, 1e-7, GIVEN)


def test_compiled_steps_of_large_layers():
    """On TensorFlow the steps of large layers are compiled with XLA; here they all are."""
    problem = oracle.draw(200, 10, batch=11, time=4, input_dim=8)
    scaled = problem._replace(recurrent_kernel=problem.recurrent_kernel / 6)
    call = {"mask": oracle.masks(11, 4)["holes"], "training": True}
    compare(scaled, 10, "float32", SINGLE, call=call)


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("mask", ["holes", None])
def test_products_outside_of_compiled_steps(mask, monkeypatch):
    """The path of half precision, in float32, where little is lost; without a mask, dropout."""
    monkeypatch.setattr(ONLSTMStep, "compiles_products", False)
    problem = oracle.draw(40, 5, batch=11, time=4)
    scaled = problem._replace(recurrent_kernel=problem.recurrent_kernel / 3)
    call = {"mask": mask and oracle.masks(11, 4)[mask], "training": True}
    options = {} if mask else {"recurrent_dropout": 0.5, "seed": 3}
    compare(scaled, 5, "float32", SINGLE, call=call, **options)


@pytest.mark.backend("jax", "torch")
def test_other_backends_do_not_ask_tensorflow_for_a_gpu(monkeypatch):
    monkeypatch.setattr(gated_step, "tensorflow_has_gpu", None)
    layer = ONLSTM(6, 2, dtype="mixed_bfloat16")
    assert layer(np.ones((2, 3, 4), "float32")).shape == (2, 6)


def root_mean_square(found, expected):
    return [np.sqrt(np.mean((a - b) ** 2)) for a, b in zip(found, expected, strict=True)]


@pytest.mark.parametrize("units", [12, 48])  # the larger one is compiled on TensorFlow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision(policy, units):
    """As close to float64 as the reference implementation, except for single roundings.

    Which library multiplies, and so where it rounds, depends on the processor: one small problem
    may be off by a quarter, four larger ones together by an eighth.
    """
    squares = []
    for seed in range(4):
        problem = oracle.draw(units, 3, batch=64, time=9, seed=seed)
        rounded = problem._replace(x=as_array(tensor(problem.x, policy[6:])))
        weights = weights_for(problem)
        expected = list(oracle.onlstm(*rounded, chunk_size=3))
        exact = layer_for(rounded, 3, False)
        expected += values_and_gradients(exact, rounded, "float32", weights=weights)[1]
        errors = []
        for fused in (True, False):
            layer = layer_for(rounded, 3, fused, dtype=policy)
            found = values_and_gradients(layer, rounded, "float32", weights=weights)
            errors.append(root_mean_square([*found[0], *map(as_array, found[1])], expected))
        squares.append(np.square(errors))
    names = [*RESULTS, *(f"gradient by {name}" for name in GIVEN)]
    for fused, readable, name in zip(*np.sqrt(np.mean(squares, 0)), names, strict=True):
        assert fused <= 1.2 * readable, f"{name}: error {fused:.3g}, of the readable {readable:.3g}"


def test_in_single_precision():
    problem = oracle.draw(12, 3, batch=11, time=7)
    compare(problem, 3, "float32", SINGLE)


def test_auto_is_the_default_and_runs_fused():
    problem = oracle.draw(6, 2)
    x = tensor(problem.x, "float32")
    default = loaded(ONLSTM(6, 2, **ALL), problem)
    assert default.fused == "auto"
    assert_all_close(default(x), layer_for(problem, 2, True)(x), 0.0, RESULTS)


def test_stateful_layer_continues(float64):
    problem = oracle.draw(6, 2, batch=3, time=8)
    layers = [layer_for(problem, 2, f, stateful=True, dtype=float64) for f in (True, False)]
    mask = oracle.masks(3, 8)["holes"]
    for part in (slice(0, 3), slice(3, 8)):
        x = tensor(problem.x[:, part], float64)
        found, expected = (layer(x, mask=mask[:, part]) for layer in layers)
        assert_all_close(found, expected, TOLERANCE, RESULTS)
    whole = layer_for(problem, 2, True, dtype=float64)(tensor(problem.x, float64), mask=mask)
    assert_all_close(found[1:3], whole[1:3], TOLERANCE, RESULTS[1:3])


def test_symbolic_lengths_and_batches():
    """One model for every length and batch, as `fit` meets them."""
    inputs = keras.Input((None, 3))
    layers = [ONLSTM(6, 2, fused=fused, **ALL) for fused in (True, False)]
    models = [keras.Model(inputs, layer(inputs)) for layer in layers]
    models[1].set_weights(models[0].get_weights())
    rng = np.random.default_rng(0)
    for batch, time in ((4, 5), (2, 5), (2, 7), (1, 1)):
        x = rng.normal(size=(batch, time, 3)).astype("float32")
        found, expected = (model.predict(x, verbose=0) for model in models)
        assert_all_close(found, expected, SINGLE, RESULTS)


@pytest.mark.parametrize(
    ("argument", "value", "shown"),
    [
        ("activation", None, "linear"),
        ("recurrent_activation", keras.layers.LeakyReLU(name="leaky"), "LeakyReLU"),
    ],
)
def test_unsupported_activations_raise(argument, value, shown):
    message = rf"fused=True: {argument} is .*{re.escape(shown)}.*fused='auto'"
    with pytest.raises(ValueError, match=message):
        ONLSTM(6, 2, fused=True, **{argument: value})
    problem = oracle.draw(6, 2)
    x = tensor(problem.x, "float32")
    found, expected = (
        layer_for(problem, 2, fused, **{argument: value})(x) for fused in ("auto", False)
    )
    assert_all_close(found, expected, 0.0, RESULTS)


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("units", [6, 200])
def test_xla_compiles_the_whole_model(units):
    import tensorflow as tf

    problem = oracle.draw(units, 2, batch=11, time=4)
    problem = problem._replace(recurrent_kernel=problem.recurrent_kernel * 2 / units)
    layer = layer_for(problem, 2, True)
    mask = tf.constant(oracle.masks(11, 4)["holes"])
    weights = weights_for(problem)

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            results = layer(x, mask=mask, training=True)
            loss = sum(
                tf.reduce_sum(y * tensor(w, "float32"))
                for y, w in zip(results, weights, strict=True)
            )
        return results, tape.gradient(loss, [x, *(v.value for v in layer.trainable_variables)])

    x = tensor(problem.x, "float32")
    plain, compiled = step(x), tf.function(step, jit_compile=True)(x)
    assert_all_close(compiled[0], plain[0], SINGLE, RESULTS)
    for found, expected in zip(compiled[1], plain[1], strict=True):
        scale = max(1.0, np.abs(as_array(expected)).max())
        assert_close(found, expected, SINGLE * scale, "gradient")


@pytest.mark.backend("tensorflow")
def test_lengths_share_compiled_steps():
    import tensorflow as tf

    from keras_onlstm.utils.backends_tensorflow_jax import compiled

    layer = ONLSTM(200, 10, return_sequences=True)
    layer.build((None, None, 8))
    compiled.cache_clear()

    @tf.function(reduce_retracing=True)
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True))
        return tape.gradient(loss, [v.value for v in layer.trainable_variables])

    rng = np.random.default_rng(0)
    for time in (7, 5, 9, 6, 12, 3, 8):
        step(tf.constant(rng.normal(size=(4, time, 8)).astype("float32")))
    assert step.experimental_get_tracing_count() <= 2
    one = ONLSTMStep(200, "float32", 10)
    forward = compiled(ONLSTMStep._forward_step, one, save=True)
    backward = compiled(ONLSTMStep._backward_step, one)
    for function in (forward, backward):
        assert function.experimental_get_tracing_count() <= 2
    assert compiled.cache_info().misses == 2
    # Both steps, with and without a static size of the batch: at most four compilations.


@pytest.mark.backend("tensorflow")
def test_upstream_gradients_of_unknown_shape():
    import tensorflow as tf

    problem = oracle.draw(6, 2, batch=11)
    layer = layer_for(problem, 2, True)

    def gradient(x, hide):
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = layer(x, training=True)[0]
            h = hide(h)
            loss = tf.reduce_sum(h * h)
        return tape.gradient(loss, x)

    def hidden(x):
        return tf.py_function(lambda y: y, [x], tf.float32)

    x = tensor(problem.x, "float32")
    found = tf.function(lambda x: gradient(x, hidden))(x)
    assert_close(found, gradient(x, tf.identity), SINGLE, "gradient by the inputs")


@pytest.mark.backend("torch")
def test_gradient_of_persistent_tape_twice():
    problem = oracle.draw(6, 2)
    layer = layer_for(problem, 2, True)
    import torch

    x = torch.tensor(problem.x, dtype=torch.float32, requires_grad=True)
    loss = layer(x)[0].sum()
    first = torch.autograd.grad(loss, x, retain_graph=True)[0]
    assert_close(torch.autograd.grad(loss, x)[0], first, 0.0, "second gradient")


@pytest.mark.backend("torch")
def test_nothing_is_saved_without_gradients(monkeypatch):
    import torch

    saved, forward = [], engine._forward

    def seen(step, arguments, save):
        saved.append(save)
        return forward(step, arguments, save)

    monkeypatch.setattr(engine, "_forward", seen)
    problem = oracle.draw(6, 2)
    layer, x = loaded(ONLSTM(6, 2), problem), tensor(problem.x, "float32")
    layer(x)
    with torch.no_grad():
        layer(x)
    layer.trainable = False
    layer(x)
    assert saved == [True, False, False]
