"""The fast loop of an LSTM in training: its gradients are derived here by hand.

The loop back through time carries the gradients of both states alone and writes down those of the
gate pre-activations, from which that of the recurrent kernel follows in one large product, where
automatic differentiation would add up a whole kernel's gradient at every step. What a step does
after its product is, in TensorFlow, compiled with XLA; the product itself is faster alone.

Axes: B batch, T time, U units. The gates lie as in Keras: input, forget, candidate, output.
"""

from collections.abc import Sequence

from keras import ops

from keras_onlstm.utils.backend_tensorflow import piece
from keras_onlstm.utils.differentiable import scan, with_gradient
from keras_onlstm.utils.numerics import tanh, wide_dtype
from keras_onlstm.utils.types import Tensor

__all__ = ["run"]


def _update(z, h_tm1, c_tm1, mask=None):
    """From the pre-activations (B, 4 U) to h, c and the gates, the last two wide."""
    i, f, candidate, output = ops.split(ops.cast(z, c_tm1.dtype), 4, axis=-1)
    i, f, candidate, output = ops.sigmoid(i), ops.sigmoid(f), tanh(candidate), ops.sigmoid(output)
    c = f * c_tm1 + i * candidate
    h = ops.cast(output * tanh(c), z.dtype)
    if mask is not None:
        h, c = ops.where(mask > 0, h, h_tm1), ops.where(mask > 0, c, c_tm1)
    return h, c, ops.concatenate([i, f, candidate, output], -1)


def _update_back(d_row, dh, dc, gates, c, c_tm1, mask=None):
    """The gradients of `_update`, all wide: of z, of c before, and of h before but by z.

    The last is `None` where every step counts.
    """
    i, f, candidate, output = ops.split(gates, 4, axis=-1)
    dh = dh + ops.cast(d_row, dh.dtype)
    squashed = tanh(c)
    d_cell = dc + dh * output * (1.0 - squashed * squashed)
    dz = [
        d_cell * candidate * i * (1.0 - i),
        d_cell * c_tm1 * f * (1.0 - f),
        d_cell * i * (1.0 - candidate * candidate),
        dh * squashed * output * (1.0 - output),
    ]
    dz, d_before, passed = ops.concatenate(dz, -1), d_cell * f, None
    if mask is not None:
        dz, d_before = ops.where(mask > 0, dz, 0.0), ops.where(mask > 0, d_before, dc)
        passed = ops.where(mask > 0, 0.0, dh)
    return dz, d_before, passed


def _forward(projected, h, c, recurrent_kernel, *masks):
    """h, c and the gates after every step: (T, B, U), (T, B, U) and (T, B, 4 U)."""
    batch, units = h.shape
    update = piece(_update, 4 * units**2)

    def body(carry, row):
        h, c, gates = update(row[0] + carry[0] @ recurrent_kernel, *carry, *row[1:])
        return (h, c), (h, c, gates)

    specs = [((batch, units), h.dtype), ((batch, units), c.dtype), ((batch, 4 * units), c.dtype)]
    return scan(body, (h, c), (projected, *masks), specs)[1]


def _backward(upstream, kept, h, c, recurrent_kernel, *masks):
    """The gradients of what `_forward` is given, from those of all h and of the last c."""
    rows, cells, gates = kept
    batch, units = h.shape
    back = piece(_update_back, 4 * units**2)
    turned, length = ops.transpose(recurrent_kernel), ops.shape(rows)[0]
    h_tm1, c_tm1 = (
        ops.concatenate([ops.expand_dims(first, 0)[:length], after[:-1]], 0)
        for first, after in ((h, rows), (c, cells))
    )

    def body(carry, row):
        dz, dc, passed = back(row[0], *carry, *row[1:])
        dz = ops.cast(dz, h.dtype)
        dh = ops.cast(dz @ turned, c.dtype)
        return (dh if passed is None else dh + passed, dc), (dz,)

    start = (ops.zeros_like(c), ops.cast(upstream[-1], c.dtype))
    xs = (upstream[:-1], gates, cells, c_tm1, *masks)
    (dh, dc), (dz,) = scan(body, start, xs, [((batch, 4 * units), h.dtype)], reverse=True)
    read, flat = (ops.reshape(x, (-1, x.shape[-1])) for x in (h_tm1, dz))
    return dz, ops.cast(dh, h.dtype), dc, ops.transpose(read) @ flat, *[None] * len(masks)


def run(
    projected: Tensor,
    states: Sequence[Tensor],
    recurrent_kernel: Tensor,
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """An LSTM over whole sequences, with tanh and sigmoid. All gradients are had once.

    Args:
        projected: (B, T, 4 U), the inputs times the kernel, and the bias.
        states: h and c, each (B, U), before the first step.
        recurrent_kernel: (U, 4 U), in the dtype of the others.
        mask: boolean (B, T), `True` where a step counts; others leave the states alone.

    Returns:
        h after every step, (B, T, U), and c after the last one, (B, U). Cell states are computed in
        32 bits at the least.
    """
    h, c = states

    def forward(*given):
        kept = _forward(*given)
        last = ops.concatenate([ops.expand_dims(given[2], 0), kept[1]], 0)[-1:]

        def backward(upstream):
            return _backward(upstream, kept, *given[1:])

        return ops.concatenate([kept[0], ops.cast(last, h.dtype)], 0), backward

    projected, c = ops.transpose(projected, (1, 0, 2)), ops.cast(c, wide_dtype(c.dtype))
    # As numbers: on JAX what is differentiated has no booleans.
    masks = [] if mask is None else [ops.cast(ops.transpose(mask)[..., None], c.dtype)]
    result = with_gradient(
        forward, [projected, h, c, recurrent_kernel, *masks], "keras.layers.LSTM"
    )
    return ops.transpose(result[:-1], (1, 0, 2)), result[-1]
