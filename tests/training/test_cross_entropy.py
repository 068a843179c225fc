"""token_losses: values and gradients for small and large vocabularies, in every precision."""

import numpy as np
import pytest
from keras import ops

from helpers.checks import EXACT, SINGLE, as_array, assert_close, dtype_of, gradients, tensor
from keras_onlstm.training import bptt
from keras_onlstm.training.bptt import token_losses

FEW, MANY = 7, 1003
RNG = np.random.default_rng(3)


def draw(words, scale=3.0):
    """Targets (2, 3), logits (2, 3, V) and weights of the losses (2, 3)."""
    targets = RNG.integers(0, words, (2, 3))
    return targets, scale * RNG.normal(size=(2, 3, words)), RNG.normal(size=(2, 3))


def expected(targets, logits):
    """Losses, and the derivative of each with respect to its logits."""
    top = logits.max(-1, keepdims=True)
    shares = np.exp(logits - top) / np.exp(logits - top).sum(-1, keepdims=True)
    hit = np.eye(logits.shape[-1])[targets]
    return -np.log((shares * hit).sum(-1)), shares - hit


def found(targets, logits, weights, dtype):
    """Losses, and the gradient of their weighted sum."""
    losses = token_losses(tensor(targets, "int32"), tensor(logits, dtype))
    weights = tensor(weights, dtype)
    (slopes,) = gradients(lambda x: ops.sum(token_losses(targets, x) * weights), [logits])
    return losses, slopes


@pytest.mark.parametrize("words", [FEW, MANY])
def test_losses_and_gradients_match_the_equations(words, float64):
    targets, logits, weights = draw(words)
    losses, slopes = found(targets, logits, weights, float64)
    wanted, steps = expected(targets, logits)
    assert_close(losses, wanted, EXACT, "losses")
    assert_close(slopes, steps * weights[..., None], EXACT, "slopes")


@pytest.mark.parametrize("words", [FEW, MANY])
def test_bfloat16_logits_have_float32_losses(words):
    targets, logits, _ = draw(words)
    narrow = tensor(logits, "bfloat16")
    losses = token_losses(tensor(targets, "int32"), narrow)
    assert dtype_of(losses) == "float32"
    assert_close(losses, expected(targets, as_array(narrow))[0], SINGLE, "losses")


@pytest.mark.parametrize("words", [FEW, MANY])
def test_extreme_logits(words):
    """Their exponentials overflow and underflow."""
    logits = np.where(np.arange(words) == 4, 1e4, -1e4)[None, None].astype("float32")
    for target, loss in ((4, 0.0), (5, 2e4)):
        losses, slopes = found(np.array([[target]]), logits, np.ones((1, 1)), "float32")
        assert_close(losses, [[loss]], 0.0, f"loss of {target}")
        steps = (np.arange(words) == 4) * 1.0 - (np.arange(words) == target)
        assert_close(slopes, steps[None, None], 0.0, f"slopes of {target}")


@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("compiled", [False, True])
def test_losses_in_graphs_of_unknown_shape(compiled):
    import tensorflow as tf

    signature = [tf.TensorSpec((None, None), "int32"), tf.TensorSpec((None, None, MANY), "float64")]

    @tf.function(input_signature=signature, jit_compile=compiled)
    def function(targets, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = token_losses(targets, logits)
        return losses, tape.gradient(losses, logits)

    for steps in (3, 1, 0):
        targets, logits, _ = draw(MANY)
        targets, logits = targets[:, :steps], logits[:, :steps]
        losses, slopes = function(targets.astype("int32"), logits)
        for one, wanted in zip((losses, slopes), expected(targets, logits), strict=True):
            assert_close(one, wanted, EXACT, f"{steps} steps")


@pytest.mark.backend("tensorflow")
def test_gpu_uses_the_operation_of_keras(monkeypatch):
    import tensorflow as tf

    targets, logits, _ = draw(MANY)
    monkeypatch.setattr(bptt, "compiled", None)
    with pytest.raises(TypeError):
        token_losses(targets, logits)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    assert_close(token_losses(targets, logits), expected(targets, logits)[0], EXACT, "losses")


@pytest.mark.backend("tensorflow")
def test_second_derivatives_raise():
    import tensorflow as tf

    targets, logits, _ = draw(MANY)
    x = tf.constant(logits)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            loss = tf.reduce_sum(token_losses(targets, x))
        slopes = inner.gradient(loss, x)
    match = r"use keras\.ops\.sparse_categorical_crossentropy\."
    with pytest.raises(NotImplementedError, match=match):
        outer.gradient(slopes, x)
