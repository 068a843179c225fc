"""What `custom_gradient` has of its own for PyTorch."""

from collections.abc import Sequence

from keras_onlstm.utils.types import Tensor

__all__ = ["refusing"]


def refusing(tensors: Sequence[Tensor], message: str) -> Sequence[Tensor]:
    """The tensors, of which there is no gradient but a `NotImplementedError` with the message."""
    import torch

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *tensors):
            return tuple(x.view_as(x) for x in tensors)

        @staticmethod
        def backward(ctx, *gradients):
            raise NotImplementedError(message)

    return Identity.apply(*tensors)
