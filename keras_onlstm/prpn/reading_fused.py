"""The fast loop of a reading layer: its gradients are derived here by hand.

The loop back through time carries the gradients of what is remembered alone, and writes down those
of the products with the kernels, from which the gradients of all weights follow in one large
product each. What a step does between its two products is, in TensorFlow, compiled with XLA; the
products themselves are not, since alone they are faster.
"""

from typing import NamedTuple

from keras import ops

from keras_onlstm.prpn.normalization import normalized, standardized, through_standardized
from keras_onlstm.prpn.reading import Reading, look, pushed, recalled, rows
from keras_onlstm.prpn.step import EPSILON
from keras_onlstm.utils.backend_tensorflow import piece
from keras_onlstm.utils.differentiable import scan, with_gradient
from keras_onlstm.utils.numerics import largest, tanh
from keras_onlstm.utils.types import Tensor

__all__ = ["fused"]


class _Step(NamedTuple):
    """What one step leaves for the way back, or all of them. Without attention some are `None`."""

    h: Tensor  # (B, U)
    c: Tensor  # (B, U)
    read_h: Tensor  # (B, U) what the kernel was multiplied with
    read_c: Tensor  # (B, U) where the cell state went on from
    gates: Tensor  # (B, 4 U) of the LSTM
    standard: Tensor  # (B, 4 U) the product with the kernel, standardized
    deviation: Tensor  # (B, 1) that it was divided by
    key: Tensor | None = None  # (B, U)
    logits: Tensor | None = None  # (S, B)


class _Scales(NamedTuple):
    """What a step adds to and scales by, the fields of `Reading` with these names."""

    bias: Tensor
    gamma: Tensor
    beta: Tensor
    cell_gamma: Tensor
    cell_beta: Tensor


def _update(product, x, read_c, hs, cs, scales):
    """From the kernel's product to the new states: both memories, and the end of a `_Step`."""
    standard, deviation = standardized(product + scales.bias)
    z = x + scales.gamma * standard + scales.beta
    i, f, candidate, output = ops.split(z, 4, axis=-1)
    i, f, candidate, output = ops.sigmoid(i), ops.sigmoid(f), tanh(candidate), ops.sigmoid(output)
    c = f * read_c + i * candidate
    h = output * tanh(normalized(c, scales.cell_gamma, scales.cell_beta))
    gates = ops.concatenate([i, f, candidate, output], -1)
    return pushed(hs, h), pushed(cs, c), h, c, gates, standard, deviation


def _update_back(dh, dc, c, read_c, gates, standard, deviation, scales):
    """The gradients of `_update`: of z, the product, `read_c`, and the scaled cell state."""
    i, f, candidate, output = ops.split(gates, 4, axis=-1)
    cell, cell_deviation = standardized(c)
    squashed = tanh(scales.cell_gamma * cell + scales.cell_beta)
    d_scaled = dh * output * (1.0 - squashed * squashed)
    dc = dc + through_standardized(d_scaled * scales.cell_gamma, cell, cell_deviation)
    dz = [
        dc * candidate * i * (1.0 - i),
        dc * read_c * f * (1.0 - f),
        dc * i * (1.0 - candidate * candidate),
        dh * squashed * output * (1.0 - output),
    ]
    dz = ops.concatenate(dz, -1)
    d_product = through_standardized(dz * scales.gamma, standard, deviation)
    return dz, d_product, dc * f, d_scaled


def _look_back(d_read, dc, gates, key_mask, hs, cs, key, logits, d_hs, d_cs, mask):
    """The gradients of `look`: of what is remembered, of the gates, of the key's product."""
    dh = d_read if mask is None else d_read * mask
    gates, dtype = ops.transpose(gates), key.dtype  # (S, B)
    logits = ops.cast(logits, gates.dtype)
    highest = largest(logits, 0)
    raised = ops.exp(logits - highest)
    total = ops.sum(raised * gates, 0) + EPSILON
    open_share = raised / total
    share = open_share * gates
    d_share = ops.cast(ops.sum(hs * dh + cs * dc, -1), gates.dtype)
    mean = ops.sum(share * d_share, 0)
    d_gates = open_share * (d_share - mean)
    # The largest logit, which all are compared with, has a part in the shares: by EPSILON.
    top = ops.cast(logits == highest, gates.dtype)
    d_logits = share * (d_share - mean) - top / ops.sum(top, 0) * (EPSILON / total * mean)
    d_logits = ops.expand_dims(ops.cast(d_logits, dtype) / key.shape[-1] ** 0.5, -1)
    share = ops.expand_dims(ops.cast(share, dtype), -1)
    d_key = ops.sum(d_logits * hs, 0)
    if key_mask is not None:
        d_key = d_key * key_mask
    first = ops.zeros_like(d_hs[:1])
    d_hs = ops.concatenate([first, d_hs[:-1]], 0) + share * dh + d_logits * key
    d_cs = ops.concatenate([first, d_cs[:-1]], 0) + share * dc
    return d_hs, d_cs, ops.transpose(d_gates), d_key


def _scales(problem):
    return _Scales(*(getattr(problem, name) for name in _Scales._fields))


def _forward(problem):
    """`_Step` of all steps, each of its tensors with a leading axis T."""
    units, dtype = problem.h.shape[-1], problem.h.dtype
    entries = 4 * units**2
    quick_look, update = piece(look, entries), piece(_update, entries)
    scales, names = _scales(problem), tuple(rows(problem))

    def body(carry, row):
        hs, cs = carry
        row = dict(zip(names, row, strict=True))
        read_h, read_c, *keyed = recalled(problem, row, hs, cs, quick_look)
        hs, cs, h, c, *kept = update(read_h @ problem.kernel, row["x"], read_c, hs, cs, scales)
        return (hs, cs), (h, c, read_h, read_c, *kept, *keyed)

    slots, batch = problem.h.shape[:2]
    shapes = [(batch, units)] * 4 + [(batch, 4 * units)] * 2 + [(batch, 1)]
    shapes += [(batch, units), (slots, batch)] if problem.attends else []
    specs = [(shape, dtype) for shape in shapes]
    return _Step(*scan(body, (problem.h, problem.c), tuple(rows(problem).values()), specs)[1])


def _backward(problem, steps, d_states):
    """The gradients of a `Reading`, by name, from those of all states (2, T, B, U)."""
    units, dtype = problem.h.shape[-1], problem.h.dtype
    slots, batch = problem.h.shape[:2]
    entries = 4 * units**2
    look_back, update_back = piece(_look_back, entries), piece(_update_back, entries)
    scales, mask = _scales(problem), problem.recurrent_mask
    kernel = ops.transpose(problem.kernel)  # (4 U, U)
    length = ops.shape(steps.h)[0]
    given = {"d_h": d_states[0], "d_c": d_states[1]}
    kept = ("c", "read_c", "gates", "standard", "deviation")  # of `_Step`
    given |= {f"kept_{name}": getattr(steps, name) for name in kept}
    series = [
        ops.concatenate([problem.h, steps.h], 0),
        ops.concatenate([problem.c, steps.c], 0),
    ]
    if problem.attends:
        given |= {"key": steps.key, "logits": steps.logits}
        given |= {"place": ops.arange(length, dtype="int32")}
        masks = ("gates", "key_mask", "read_mask")
        given |= {name: x for name, x in rows(problem).items() if name in masks}
    key_kernel = ops.transpose(problem.key_kernel) if problem.attends else None

    def body(carry, row):
        d_hs, d_cs, d_last = carry
        row = dict(zip(given, row, strict=True))
        dh, dc = row["d_h"] + d_hs[-1] + d_last, row["d_c"] + d_cs[-1]
        left = (row[f"kept_{name}"] for name in kept)
        dz, d_product, dc, d_scaled = update_back(dh, dc, *left, scales)
        d_read = d_product @ kernel
        if not problem.attends:
            d_read = d_read if mask is None else d_read * mask
            return (d_read[None], dc[None], d_last), (dz, d_product, d_scaled)
        shape = (slots, ops.shape(dh)[0], units)
        place = (row["place"], zero, zero)
        hs, cs = (ops.slice(x, place, shape) for x in series)
        opened = row["gates"], row.get("key_mask")
        remembered = (hs, cs, row["key"], row["logits"], d_hs, d_cs, mask)
        d_hs, d_cs, d_gates, d_key = look_back(d_read, dc, *opened, *remembered)
        d_last = d_key @ key_kernel
        if "read_mask" in row:
            d_last = d_last * row["read_mask"]
        return (d_hs, d_cs, d_last), (dz, d_product, d_scaled, d_gates, d_key)

    nothing, zero = ops.zeros_like(problem.h), ops.convert_to_tensor(0, "int32")
    specs = [((batch, size), dtype) for size in (4 * units, 4 * units, units)]
    if problem.attends:
        specs += [((batch, slots), problem.gates.dtype), ((batch, units), dtype)]
    start = (nothing, nothing, ops.zeros_like(problem.h[0]))
    (d_hs, d_cs, d_last), (dz, d_products, d_scaled, *keyed) = scan(
        body, start, tuple(given.values()), specs, reverse=True
    )
    d_hs = ops.concatenate([d_hs[:-1], d_hs[-1:] + d_last], 0)
    cell = standardized(steps.c)[0]

    def flat(x):
        return ops.reshape(x, (-1, x.shape[-1]))

    gradients = {
        "x": dz,
        "h": d_hs,
        "c": d_cs,
        "kernel": ops.transpose(flat(steps.read_h)) @ flat(d_products),
        "bias": ops.sum(flat(d_products), 0),
        "gamma": ops.sum(flat(dz * steps.standard), 0),
        "beta": ops.sum(flat(dz), 0),
        "cell_gamma": ops.sum(flat(d_scaled * cell), 0),
        "cell_beta": ops.sum(flat(d_scaled), 0),
    }
    if problem.attends:
        read = series[0][slots - 1 : slots - 1 + length]
        read = read if problem.read_mask is None else read * problem.read_mask
        d_gates, d_keys = keyed
        gradients |= {"gates": d_gates, "keys": d_keys}
        gradients["key_kernel"] = ops.transpose(flat(read)) @ flat(d_keys)
    return gradients


def fused(problem: Reading) -> Tensor:
    """`readable`, faster. Masks have no gradients."""
    tensors = {name: x for name, x in problem._asdict().items() if x is not None}

    def forward(*values):
        whole = problem._replace(**dict(zip(tensors, values, strict=True)))
        steps = _forward(whole)

        def backward(d_states):
            gradients = _backward(whole, steps, d_states)
            return [gradients.get(name) for name in tensors]

        return ops.stack([steps.h, steps.c]), backward

    return with_gradient(forward, list(tensors.values()), "ReadingNetwork(fused=False)")
