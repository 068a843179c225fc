"""The step of a recurrence with gates, a hidden state and a cell state.

Three things make it fast. The inputs of all steps are multiplied with the kernel at once. Within
the loop the features come first, so that the product with the recurrent kernel reads that kernel in
the order in which it is stored. And the backward step is linear in the gradients: its factors, the
`derivatives`, follow from what the forward step saved, and small layers compute them for all steps
at once.

Axes: B batch, T time, D features of the inputs, U units, K pre-activations of all gates.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from keras import backend

from keras_onlstm.recurrence import engine
from keras_onlstm.recurrence.engine import Specs, Step
from keras_onlstm.utils import Tensor, Tensors
from keras_onlstm.utils.backends_tensorflow_jax import tensorflow_has_gpu
from keras_onlstm.utils.keras_private import direct as ops
from keras_onlstm.utils.numerics import wide_dtype

# XLA adds the bias to each row, together with what follows; PyTorch adds it to all rows at once.
_ADDS_BIAS_IN_STEP = backend.backend() != "torch"


class GatedWeights(NamedTuple):
    """The weights of a recurrence with gates."""

    kernel: Tensor  # (D, K)
    recurrent_kernel: Tensor  # (U, K)
    bias: Tensor | None = None  # (K,)
    recurrent_mask: Tensor | None = None  # (B, U) factors of the h that gates read; no gradient


@dataclasses.dataclass(frozen=True)
class GatedStep(Step):
    """A `Step` with `GatedWeights`.

    Its carry is h (U, B) and c (*cell_shape, B); c is wide: float32 or float64. Its `xs` are the
    inputs (T, B, D) and a boolean mask (T, B), or `None`; a masked step keeps both states. Its
    first output is h, (T, B, U). Subclasses define `_update`, `_local_derivatives` and
    `_gates_grad`, of pre-activations (K, B).
    """

    units: int
    dtype: str  # of inputs, hidden states and weights

    has_derivatives = True

    @property
    def width(self) -> int:
        """The number of pre-activations, K."""
        raise NotImplementedError

    @property
    def cell_shape(self) -> tuple[int, ...]:
        """The shape of the cell state of one sequence within the loop."""
        return (self.units,)

    def _constants(self):
        """Tensors that every step reads."""
        return ()

    def _other_specs(self, batch):
        """Shapes and dtypes of one row of the outputs other than h."""
        return ()

    def _update(self, z, c_tm1, constants, save):
        """The step, from its pre-activations. `save` is true if gradients will follow.

        Returns h (U, B) and c (*cell_shape, B), wide; a tuple of other outputs; and what is saved
        for `_local_derivatives`, (K, B).
        """
        raise NotImplementedError

    def _local_derivatives(self, saved, c_tm1, constants):
        """The local derivatives of one or all steps, from what `_update` saved, (..., K, B).

        Returns the derivatives of h with respect to the output gate's pre-activation and the new
        cell state; those of the new cell state with respect to its other inputs, the old cell state
        last; all (..., *cell_shape, B); and other tensors that `_gates_grad` needs.
        """
        raise NotImplementedError

    def _gates_grad(self, d_output, d_gates, d_others, others, constants):
        """The gradients of the pre-activations.

        From `d_output` (*cell_shape, B) of the output gate, `d_gates` of the other inputs of the
        new cell state but the old one, `d_others` of the other outputs, and `others` of
        `_local_derivatives`.
        """
        raise NotImplementedError

    @functools.cached_property
    def wide(self) -> str:
        """The dtype of gates and cell states."""
        return wide_dtype(self.dtype)

    def _cast(self, x, dtype):
        # A cast that changes nothing takes time in Keras, on PyTorch in every step.
        return x if self.dtype == self.wide else ops.cast(x, dtype)

    @property
    def entries(self) -> int:
        return self.units * self.width

    @property
    def compiles_products(self) -> bool:
        """True if XLA compiles the recurrent products, too."""
        # On CPUs XLA multiplies bfloat16 in float32, which is slower than TensorFlow's own product.
        slow = backend.backend() == "tensorflow" and self.dtype == "bfloat16"
        return not slow or tensorflow_has_gpu()

    def _compiled(self, method, multiplies, **options):
        """The whole step compiled, or only its pointwise part if XLA does not compile products."""
        if multiplies is self.compiles_products:
            return self.compiled(method, **options)
        return functools.partial(method, **options)

    def specs(self, carry: Tensors, xs: Tensors) -> tuple[Specs, Specs]:
        batch = carry[0].shape[-1]
        saved = [((self.width, batch), self.dtype), ((*self.cell_shape, batch), self.wide)]
        return [((batch, self.units), self.dtype), *self._other_specs(batch)], saved

    def rows(self, weights: Tensors, xs: Tensors) -> Tensors:
        inputs, mask = xs
        kernel, _, bias, _ = weights
        projected = engine.rows_product(inputs, kernel)  # (T, B, K)
        if bias is not None and not _ADDS_BIAS_IN_STEP:
            projected = projected + bias
        return projected, mask

    def prepare(self, weights: Tensors, carry: Tensors, xs: Tensors, ys: Any = None) -> Tensors:
        _, kernel, bias, mask = weights
        kernel = engine.packed(ops.transpose(kernel) if ys is None else kernel, carry[0].shape[-1])
        if bias is not None:
            bias = self._cast(bias, self.wide)[:, None] if _ADDS_BIAS_IN_STEP else None
        return kernel, None if mask is None else ops.transpose(mask), bias, *self._constants()

    def forward(self, prepared: Tensors, carry: Tensors, row: Tensors, save: bool) -> Tensors:
        forward_step = self._compiled(self._forward_step, multiplies=True, save=save)
        h, c, ys, saved = forward_step(prepared, carry, row)
        return (h, c), ys, (*saved, carry[1]) if save else ()

    def _forward_step(self, prepared, carry, row, *, save):
        (kernel_t, recurrent_mask, bias, *constants), (h_tm1, c_tm1) = prepared, carry
        h = h_tm1 if recurrent_mask is None else h_tm1 * recurrent_mask
        update = self._compiled(self._masked_update, multiplies=False, save=save)
        return update(engine.product(kernel_t, h), h_tm1, c_tm1, row, bias, constants)

    def _masked_update(self, recurrent, h_tm1, c_tm1, row, bias, constants, *, save):
        projected, mask = row
        z = self._cast(recurrent + ops.transpose(projected), self.wide)  # (K, B)
        z = z if bias is None else z + bias
        h, c, others, saved = self._update(z, c_tm1, constants, save)
        h = self._cast(h, self.dtype)
        if mask is not None:
            h, c = ops.where(mask, h, h_tm1), ops.where(mask, c, c_tm1)
        return h, c, (ops.transpose(h), *others), [self._cast(saved, self.dtype)] if save else []

    def derivatives(self, prepared: Tensors, row: Tensors) -> Tensors:
        _, _, _, *constants = prepared
        h_derivatives, c_derivatives, *others = self._masked_derivatives(row, constants)
        axis = -2 - len(self.cell_shape)
        # Stacked, so that one operation per step multiplies all of them.
        return ops.stack(h_derivatives, axis), ops.stack(c_derivatives, axis), *others

    def _masked_derivatives(self, row, constants):
        """`_local_derivatives` with the mask applied, and 1 where masked as third result."""
        _, mask, z, c_tm1 = row
        wide = self._cast(z, self.wide)
        h_derivatives, c_derivatives, *others = self._local_derivatives(wide, c_tm1, constants)
        skipped = None
        if mask is not None:  # a masked step passes on the gradients of its states unchanged
            skipped = 1.0 - ops.cast(mask, self.wide)
            mask = mask[(..., *[None for _ in self.cell_shape], slice(None))]
            h_derivatives = [ops.where(mask, x, 0.0) for x in h_derivatives]
            c_derivatives = [
                *(ops.where(mask, x, 0.0) for x in c_derivatives[:-1]),
                ops.where(mask, c_derivatives[-1], 1.0),
            ]
        return h_derivatives, c_derivatives, skipped, *others

    def backward(self, prepared: Tensors, d_carry: Tensors, d_ys: Tensors, row: Tensors) -> Tensors:
        backward_step = self._compiled(self._backward_step, multiplies=True)
        return backward_step(prepared, d_carry, d_ys, row)

    def _backward_step(self, prepared, d_carry, d_ys, row):
        (kernel, recurrent_mask, _, *constants), (dh, dc) = prepared, d_carry
        gates_grad = self._compiled(self._masked_gates_grad, multiplies=False)
        dz, d_row, passed, dc = gates_grad(dh, dc, d_ys, row, constants)
        dh = engine.product(kernel, dz)  # (U, B)
        if recurrent_mask is not None:
            dh = dh * recurrent_mask
        dh = self._cast(dh, self.wide)
        return (dh if passed is None else dh + passed, dc), (d_row,)

    def _masked_gates_grad(self, dh, dc, d_ys, row, constants):
        d_row, *d_others = d_ys
        if not self.precomputes:
            row = self._masked_derivatives(row, constants)
        h_derivatives, c_derivatives, skipped, *others = row

        def times(factors, x):
            if self.precomputes:
                return ops.unstack(factors * x, factors.shape[0])
            return [factor * x for factor in factors]

        dh = dh + self._cast(ops.transpose(d_row), self.wide)  # (U, B)
        d_output, d_cell = times(h_derivatives, ops.reshape(dh, (*self.cell_shape, -1)))
        *d_gates, dc = times(c_derivatives, dc + d_cell)
        dz = self._gates_grad(d_output, d_gates, d_others, others, constants)
        dz = self._cast(dz, self.dtype)  # (K, B)
        return dz, ops.transpose(dz), None if skipped is None else dh * skipped, dc

    def backward_rows(self, xs: Tensors) -> Tensors:
        return None, xs[1]

    def backward_specs(self, carry: Tensors, xs: Tensors) -> Specs:
        return [((carry[0].shape[-1], self.width), self.dtype)]

    def begin_backward(self, d_last: Tensors) -> Tensors:
        dh, dc = d_last
        return self._cast(dh, self.wide), dc

    def end_backward(self, d_carry: Tensors) -> Tensors:
        dh, dc = d_carry
        return self._cast(dh, self.dtype), dc

    def gradients(self, arguments: Tensors, ys: Tensors, saved: Any, rows: Tensors) -> Tensors:
        ((kernel, _, bias, recurrent_mask), (h, _), (inputs, _)), (dz,) = arguments, rows
        first = ops.expand_dims(ops.transpose(h), 0)  # (1, B, U)
        h_tm1 = ops.concatenate([first, ys[0]], 0)[:-1]  # (T, B, U)
        if recurrent_mask is not None:
            h_tm1 = h_tm1 * recurrent_mask
        d_inputs = engine.rows_product(dz, ops.transpose(kernel))
        d_kernel, d_recurrent = (engine.summed_product(x, dz) for x in (inputs, h_tm1))
        d_bias = None if bias is None else ops.sum(dz, (0, 1))
        return (d_kernel, d_recurrent, d_bias, None), (d_inputs, None)


def run_gated(
    step: GatedStep,
    weights: GatedWeights,
    inputs: Tensor,
    states: Sequence[Tensor],
    mask: Tensor | None,
    training: bool,
) -> Tensors:
    """Runs a recurrence with gates over whole sequences.

    `inputs` are (B, T, D), `states` h and c before the first step, each (B, U), and `mask` is
    boolean (B, T), `False` where a step keeps the states, or `None`. `training` is whether
    gradients will probably be needed.

    Returns h of every step (T, B, U); the last h and c (B, U), c wide; other outputs (T, ...).
    """
    weights = GatedWeights(*(None if w is None else ops.cast(w, step.dtype) for w in weights))
    h, c = (ops.transpose(state) for state in states)
    c = ops.reshape(ops.cast(c, step.wide), (*step.cell_shape, -1))
    inputs = ops.transpose(ops.cast(inputs, step.dtype), (1, 0, 2))
    xs = inputs, None if mask is None else ops.transpose(mask)
    (h, c), (rows, *others) = engine.run(step, weights, (ops.cast(h, step.dtype), c), xs, training)
    return rows, ops.transpose(h), ops.transpose(ops.reshape(c, (step.units, -1))), tuple(others)
