"""Loops over time on PyTorch: plain loops, behind one `torch.autograd.Function` each way.

On CPUs PyTorch computes float32 products with MKL, but those of its LSTM with oneDNN, which can
store a matrix in its own order. Products of a large matrix with few columns are faster with oneDNN,
above all on CPUs that MKL was not made for.
"""

import functools
import itertools
from typing import Any, NamedTuple

from keras import tree

from keras_onlstm.utils import Tensor, Tensors

# Minimum entries of a matrix that oneDNN multiplies many times, and minimum multiplications of a
# single product.
_ENTRIES, _MULTIPLICATIONS = 2**21, 2**31


def _has_onednn(matrix):
    import torch

    return (
        matrix.dtype == torch.float32
        and matrix.device.type == "cpu"
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


def _linear(x, matrix):
    """The product of (columns, K) and the transpose of (M, K)."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, matrix, None, "none", [], "")


class _Packed(NamedTuple):
    matrix: Tensor  # in oneDNN's own order


def packed(matrix: Tensor, columns: int) -> Any:
    """A matrix (M, K) in the form in which `product` multiplies it fastest."""
    import torch

    if matrix.numel() < _ENTRIES or not columns or not _has_onednn(matrix):
        return matrix.contiguous()
    return _Packed(torch.ops.mkldnn._reorder_linear_weight(matrix, columns))


def product(matrix: Any, x: Tensor) -> Tensor:
    """The product of a `packed` matrix with (K, columns)."""
    if isinstance(matrix, _Packed):
        # The transpose is a view; later operations accept either order.
        return _linear(x.t().contiguous(), matrix.matrix).t()
    return matrix @ x


def rows_product(x: Tensor, matrix: Tensor) -> Tensor:
    """The product of the rows (T, B, K) with a matrix (K, N)."""
    product = _large_product(x.reshape(-1, x.shape[-1]), matrix)
    return product.reshape(*x.shape[:-1], matrix.shape[1])


def summed_product(x: Tensor, y: Tensor) -> Tensor:
    """The product (M, N) of the transpose of (T, B, M) and (T, B, N)."""
    x, y = (z.reshape(-1, z.shape[-1]) for z in (x, y))
    return _large_product(x.t(), y)


def _large_product(x, y):
    if x.numel() * y.shape[1] < _MULTIPLICATIONS or not _has_onednn(y):
        return x @ y
    return _linear(x.contiguous(), y.t())


def stacked(series: Any) -> Tensor:
    """All rows (T, ...) that a loop saved."""
    import torch

    return series if torch.is_tensor(series) else torch.stack(series)


def scan(
    function: Any, carry: Tensors, xs: Any, ys_specs: Any, saved_specs: Any, reverse: bool
) -> Tensors:
    """See `keras_onlstm.recurrence.engine.scan`."""
    import torch

    columns = [
        itertools.repeat(None) if x is None else x.unbind(0) if torch.is_tensor(x) else x
        for x in xs
    ]
    rows = list(zip(*columns, strict=False))
    results = []
    for row in reversed(rows) if reverse else rows:
        carry, ys, saved = function(carry, row)
        results.append((*ys, *saved))
    count = len(ys_specs)
    if not rows:
        specs = [(s, str(d).removeprefix("torch.")) for s, d in (*ys_specs, *saved_specs)]
        empty = [carry[0].new_empty((0, *s), dtype=getattr(torch, name)) for s, name in specs]
        return carry, tuple(empty[:count]), tuple(empty[count:])
    if reverse:
        results.reverse()
    series = list(zip(*results, strict=True))
    return carry, tuple(torch.stack(y) for y in series[:count]), tuple(series[count:])


class _Call:
    """One run of a loop: its functions, and what the forward pass saves for the backward pass."""

    def __init__(self, forward, backward, step, arguments, unsupported):
        self.forward, self.backward, self.step = forward, backward, step
        self.unsupported = unsupported
        # Structures only: a tensor in here would keep itself alive.
        self.arguments = tree.map_structure(lambda _: None, arguments)
        self.results = self.saved = None

    def fail(self):
        raise NotImplementedError(self.unsupported)


@functools.cache
def _function():
    import torch

    class Function(torch.autograd.Function):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.call = inputs[0]

        @staticmethod
        def vmap(info, in_dims, call, *_):
            call.fail()

        @staticmethod
        def jvp(ctx, *_):
            ctx.call.fail()

        @staticmethod
        def backward(ctx, *_):
            ctx.call.fail()

    class Backward(Function):
        @staticmethod
        def forward(call, *tensors):
            count = len(tree.flatten(call.results))
            parts = tensors[:count], tensors[-count:]
            upstream, results = (tree.pack_sequence_as(call.results, part) for part in parts)
            arguments = tree.pack_sequence_as(call.arguments, tensors[count:-count])
            gradients = call.backward(call.step, arguments, results, call.saved, upstream)
            return tuple(tree.flatten(gradients))

    class Forward(Function):
        @staticmethod
        def forward(call, save, *tensors):
            arguments = tree.pack_sequence_as(call.arguments, tensors)
            results, call.saved = call.forward(call.step, arguments, save)
            call.results = tree.map_structure(lambda _: None, results)
            # States that no step changed must not be the inputs themselves.
            return tuple(x.view_as(x) for x in tree.flatten(results))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.call, _, *tensors = inputs
            ctx.save_for_backward(*tensors, *output)

        @staticmethod
        def backward(ctx, *upstream):
            return None, None, *Backward.apply(ctx.call, *upstream, *ctx.saved_tensors)

    return Forward


def run(
    forward: Any, backward: Any, step: Any, arguments: Any, training: bool, unsupported: str
) -> Any:
    """See `keras_onlstm.recurrence.engine.run`."""
    import torch

    tensors = tree.flatten(arguments)
    save = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors)
    call = _Call(forward, backward, step, arguments, unsupported)
    results = _function().apply(call, save, *tensors)
    return tree.pack_sequence_as(call.results, results)
