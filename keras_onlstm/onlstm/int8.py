"""The matrices of a cell in 8 bits, as Keras's `quantize("int8")` asks for them.

Every column of a matrix is stored as integers from -127 to 127 and one scale, as in
`keras.layers.Dense`. A step multiplies with `integers / scale`, in the cell's compute dtype: gates,
`cumax` and states are what they were, for in 8 bits the sums of master gates lose the distances.
What `quantize`, `quantized_build` and `quantized_call` are for is in Keras's guide "Writing
Quantization-Compatible Layers".
"""

from typing import Any, Protocol

import keras
from keras import ops

from keras_onlstm.utils.types import Tensor

__all__ = ["Int8Kernels", "no_mode"]


class _Named(Protocol):
    name: str
    path: str | None


def no_mode(layer: _Named, mode: str) -> ValueError:
    """The error that refuses a mode of quantization other than int8."""
    return ValueError(
        f"{layer.path or layer.name}: ON-LSTM has weights in 'int8', not in {mode!r}. Use 'int8', "
        "or keep this layer as it is: model.quantize(..., filters=lambda layer: not "
        "isinstance(layer, keras_onlstm.ONLSTMCell))."
    )


class Int8Kernels(keras.layers.Layer):
    """The part of `ONLSTMCell` that holds `kernel` and `recurrent_kernel`, in 8 bits or not."""

    @property
    def kernel(self) -> Any:
        """(input_dim, K): the variable; in 8 bits a tensor of what the integers stand for."""
        return self._matrix("kernel")

    @property
    def recurrent_kernel(self) -> Any:
        """(units, K), likewise."""
        return self._matrix("recurrent_kernel")

    def _matrix(self, name: str) -> Tensor:
        stored = getattr(self, f"_{name}")
        if self.quantization_mode is None:
            return stored
        scale = getattr(self, f"{name}_scale")  # (K,)
        return ops.cast(ops.cast(stored, scale.dtype) / scale, self.compute_dtype)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Replaces the matrices by such of 8 bits. They are not trained after that; the bias is.

        Args:
            mode: `"int8"`.
            type_check: without effect; Keras gives it.
            config: `keras.quantizers.Int8QuantizationConfig`, whose `weight_quantizer` is taken.
                Inputs and states stay as they are: its `activation_quantizer` is not.

        Raises:
            ValueError: for another mode, a layer that was not built or is in 8 bits already, or a
                quantizer that has not one scale for each column.
        """
        if mode != "int8":
            raise no_mode(self, str(mode))
        quantizer = config.weight_quantizer or keras.quantizers.AbsMaxQuantizer(axis=0)
        values = {}
        for name in ("kernel", "recurrent_kernel"):
            matrix = getattr(self, f"_{name}")
            values[f"_{name}"], scale = quantizer(matrix, to_numpy=True)
            if tuple(scale.shape) != (1, matrix.shape[1]):
                raise ValueError(
                    f"{self.path}: weight_quantizer gives scales of shape {tuple(scale.shape)}, "
                    f"not one for each of the {matrix.shape[1]} columns of {name}. Give it axis=0."
                )
            values[f"{name}_scale"] = ops.squeeze(scale, 0)
        shapes = [tuple(values[name].shape) for name in ("_kernel", "_recurrent_kernel")]
        del self._kernel, self._recurrent_kernel  # Keras forgets the variables
        self.quantized_build(shapes, mode)
        for name, value in values.items():
            getattr(self, name).assign(value)
        policy: Any = getattr(self, "dtype_policy")  # noqa: B009, its setter has no type
        self.dtype_policy = keras.dtype_policies.get(f"{mode}_from_{policy.name}")

    def quantized_build(self, input_shape: Any, mode: str) -> None:
        """Makes the variables of 8 bits.

        Args:
            input_shape: the shapes of `kernel` and `recurrent_kernel`.
            mode: `"int8"`.
        """
        if mode != "int8":
            raise no_mode(self, mode)
        for name, shape in zip(("kernel", "recurrent_kernel"), input_shape, strict=True):
            for attribute, of, start, dtype in (
                (f"_{name}", shape, "zeros", "int8"),
                (f"{name}_scale", shape[1:], "ones", None),
            ):
                variable = self.add_weight(
                    shape=of,
                    name=attribute.lstrip("_"),
                    initializer=start,
                    dtype=dtype,
                    trainable=False,
                    autocast=False,
                )
                setattr(self, attribute, variable)
        self._is_quantized = True

    def quantized_call(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)  # what is in 8 bits are the matrices that it reads
