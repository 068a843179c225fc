"""The kernels of a cell in 8 bits, for Keras's `quantize("int8")`.

Every column of a matrix is stored as integers from -127 to 127 and one scale, as in
`keras.layers.Dense`. A step multiplies with `integers / scale`, in the cell's compute dtype. Gates,
`cumax` and states are not quantized, because 8-bit sums of master gates lose the distances. Keras's
guide "Writing Quantization-Compatible Layers" explains `quantize`, `quantized_build` and
`quantized_call`.
"""

from typing import Any, Protocol

import keras
from keras import ops

from keras_onlstm.utils import Tensor


class _Named(Protocol):
    name: str
    path: str | None


def check_mode(layer: _Named, mode: str | None) -> None:
    """Raises a `ValueError` for a quantization mode other than int8."""
    if mode != "int8":
        raise ValueError(
            f"{layer.path or layer.name}: ON-LSTM has weights in 'int8', not in {str(mode)!r}. Use "
            "'int8', or exclude this layer: model.quantize(..., filters=lambda layer: not "
            "isinstance(layer, keras_onlstm.ONLSTMCell))."
        )


class Int8Kernels(keras.layers.Layer):
    """The part of `ONLSTMCell` that holds `kernel` and `recurrent_kernel`, quantized or not."""

    @property
    def kernel(self) -> Any:
        """(input_dim, K): the variable, or a dequantized tensor."""
        return self._matrix("kernel")

    @property
    def recurrent_kernel(self) -> Any:
        """(units, K): the variable, or a dequantized tensor."""
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
        """Replaces both kernels by 8-bit kernels. After that, only the bias is trainable.

        Args:
            mode: `"int8"`.
            type_check: ignored; Keras passes it.
            config: `keras.quantizers.Int8QuantizationConfig`, of which the `weight_quantizer` is
                used, not the `activation_quantizer`: inputs and states are not quantized.

        Raises:
            ValueError: for another mode, a layer that is not built or already quantized, or a
                quantizer without one scale per column.
        """
        check_mode(self, mode)
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
        del self._kernel, self._recurrent_kernel  # Keras stops tracking them
        self.quantized_build(shapes, "int8")
        for name, value in values.items():
            getattr(self, name).assign(value)
        policy: Any = getattr(self, "dtype_policy")  # noqa: B009, its setter has no type
        self.dtype_policy = keras.dtype_policies.get(f"int8_from_{policy.name}")

    def quantized_build(self, input_shape: Any, mode: str) -> None:
        """Creates the 8-bit variables. `input_shape` has the shapes of both kernels."""
        check_mode(self, mode)
        for name, shape in zip(("kernel", "recurrent_kernel"), input_shape, strict=True):
            options: dict[str, Any] = {"trainable": False, "autocast": False}
            matrix = self.add_weight(shape, "zeros", "int8", name=name, **options)
            scale = self.add_weight(shape[1:], "ones", name=f"{name}_scale", **options)
            setattr(self, f"_{name}", matrix)
            setattr(self, f"{name}_scale", scale)
        self._is_quantized = True

    def quantized_call(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)  # it reads dequantized kernels
