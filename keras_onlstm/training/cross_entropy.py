"""The loss of a language model, computed in two passes over its logits."""

from keras import backend, ops

from keras_onlstm.utils import Tensor
from keras_onlstm.utils.backends_tensorflow_jax import compiled, has_gpu, raise_on_gradient
from keras_onlstm.utils.numerics import wide_dtype

__all__ = [
    "token_losses",
]

# With fewer words TensorFlow's operation takes less time than compiling another one.
_MANY_WORDS = 1000
_REFUSAL = (
    "token_losses has first derivatives only; keras.ops.sparse_categorical_crossentropy has others."
)


def token_losses(targets: Tensor, logits: Tensor) -> Tensor:
    """The negative log-probabilities (...) of tokens (...), in nats, from logits (..., V).

    Equal to `keras.ops.sparse_categorical_crossentropy`. With many words, on TensorFlow without a
    GPU, it is compiled with XLA, which takes a third of the time.
    """
    targets, logits = ops.convert_to_tensor(targets), ops.convert_to_tensor(logits)
    if not _is_slow(logits):
        logits = ops.cast(logits, wide_dtype(logits.dtype))
        return ops.sparse_categorical_crossentropy(targets, logits, from_logits=True)
    words = logits.shape[-1]
    flat = ops.reshape(logits, (-1, words))
    chosen = ops.reshape(ops.cast(targets, "int32"), (-1,))

    @ops.custom_gradient
    def losses(logits):
        result, total = compiled(_forward)(logits, chosen)

        def gradient(upstream):
            return raise_on_gradient(
                [compiled(_backward)(logits, chosen, total, upstream)], _REFUSAL
            )[0]

        return result, gradient

    return ops.reshape(losses(flat), ops.shape(targets))


def _is_slow(logits):
    many = backend.backend() == "tensorflow" and logits.shape[-1] >= _MANY_WORDS
    return many and not has_gpu()


def _forward(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Losses (N,), and the logarithms of the sums of exponentials (N, 1)."""
    wide = ops.cast(logits, wide_dtype(logits.dtype))  # (N, V)
    total = ops.logsumexp(wide, -1, keepdims=True)
    chosen = ops.take_along_axis(wide, ops.expand_dims(targets, -1), -1)
    return ops.squeeze(total - chosen, -1), total


def _backward(logits: Tensor, targets: Tensor, total: Tensor, upstream: Tensor) -> Tensor:
    """The gradient with respect to the logits, (N, V)."""
    wide = ops.cast(logits, total.dtype)
    hit = ops.expand_dims(targets, -1) == ops.arange(wide.shape[-1], dtype=targets.dtype)
    slope = ops.exp(wide - total) - ops.cast(hit, total.dtype)
    return ops.cast(slope * ops.expand_dims(upstream, -1), logits.dtype)
