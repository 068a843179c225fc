"""Products of large matrices in PyTorch, through the library that its own LSTM multiplies with.

On a processor PyTorch hands products of float32 to MKL, and its LSTM hands them to oneDNN, which
can keep a matrix in the order in which its products read it. Products of a large matrix with few
columns are faster so, all the more on processors that MKL was not made for; those of a small one
are not.
"""

from collections.abc import Callable, Sequence

from keras_onlstm.utils.types import Tensor

__all__ = ["columns_of_steps", "product", "refusing", "repeated"]

# Entries of a matrix of many products, and multiplications of one product, from which on it pays.
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


def _onednn(x, turned):
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, turned, None, "none", [], "")


def product(x: Tensor, matrix: Tensor) -> Tensor:
    """The product of (M, K) and (K, N), without gradients."""
    if x.numel() * matrix.shape[1] < _MULTIPLICATIONS or not _has_onednn(matrix):
        return x @ matrix
    return _onednn(x.contiguous(), matrix.t().contiguous())


def columns_of_steps(inputs: Tensor, matrix: Tensor) -> Tensor:
    """The products (T, N, B) of the inputs (B, T, K) with a matrix (K, N), without gradients."""
    import torch

    if inputs.numel() * matrix.shape[1] < _MULTIPLICATIONS or not _has_onednn(matrix):
        return torch.einsum("btd,dk->tkb", inputs, matrix)
    x = inputs.transpose(0, 1)
    return product(x.flatten(0, 1), matrix).unflatten(0, x.shape[:2]).transpose(1, 2)


def repeated(matrix: Tensor, columns: int) -> Callable[..., Tensor]:
    """A function that multiplies a matrix (N, K) with many others (K, columns), without gradients.

    It also takes a matrix (N, columns) to add.
    """
    import torch

    if matrix.numel() < _ENTRIES or not columns or not _has_onednn(matrix):
        kept = matrix.contiguous()
        return lambda x, added=None: kept @ x if added is None else torch.addmm(added, kept, x)
    packed = torch.ops.mkldnn._reorder_linear_weight(matrix, columns)

    def multiply(x, added=None):
        turned = _onednn(x.t().contiguous(), packed)
        return (turned if added is None else turned.add_(added.t())).t().contiguous()

    return multiply


def refusing(tensors: Sequence[Tensor], message: str) -> Sequence[Tensor]:
    """The same tensors; differentiating them raises `NotImplementedError` with the message."""
    import torch

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            return tuple(x.view_as(x) for x in tensors)

        @staticmethod
        def backward(ctx, *gradients):
            raise NotImplementedError(message)

    return Identity.apply(*tensors)
