"""The engine: runs a recurrence over a sequence and computes its gradients.

Automatic differentiation of a loop adds up the gradient of a whole kernel at every time step. The
engine does not differentiate the loop. It runs the step forward, keeps what the derivative needs,
and runs the derivative of the step backward; that loop returns the gradient of every row of the
inputs, from which the gradient of each kernel follows in one large product after the loop.

What a recurrence computes is a `Step`. How a loop runs is the task of `engine_tensorflow`,
`engine_jax` and `engine_torch`.
"""

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from keras import backend, tree

from keras_onlstm.recurrence import engine_jax, engine_tensorflow, engine_torch
from keras_onlstm.utils.types import DType, Shape, Tensor, Tensors

__all__ = [
    "NOT_SUPPORTED",
    "Specs",
    "Step",
    "packed",
    "product",
    "run",
    "scan",
    "stacked",
]

NOT_SUPPORTED = (
    "This loop over time has a hand-written gradient: no forward-mode derivatives, no torch.vmap "
    "and, except on JAX, no second derivatives. Set fused=False to have them."
)

_ENGINES = {"tensorflow": engine_tensorflow, "jax": engine_jax, "torch": engine_torch}
_engine = _ENGINES[backend.backend()]

# A recurrent kernel with fewer entries makes operations that take longer to start than to run.
_LAUNCH_BOUND = {"tensorflow": 2**12, "jax": 2**17, "torch": 2**17}

Specs = Sequence[tuple[Shape, DType]]

packed = _engine.packed
product = _engine.product
scan = _engine.scan
stacked = _engine.stacked


class Step:
    """One time step of a recurrence, and its derivative.

    Subclasses are frozen dataclasses with hashable fields, because compiled functions are cached by
    the step. All tensors are arguments. Tensors come in flat tuples; an optional one may be `None`
    in `weights` and `xs`.
    """

    @property
    def entries(self) -> int:
        """Number of entries of the recurrent kernel."""
        raise NotImplementedError

    @property
    def is_launch_bound(self) -> bool:
        """True if the operations of a step take longer to start than to run.

        Then everything that can be computed outside the loop is computed there, and TensorFlow does
        not compile the step, because that takes longer than it saves.
        """
        return self.entries < _LAUNCH_BOUND[backend.backend()]

    @property
    def compiles_whole(self) -> bool:
        """True if XLA compiles whole steps on TensorFlow, false if it compiles their parts."""
        return False

    def compiled(
        self, function: Callable[..., Any], whole: bool = False, **options: Hashable
    ) -> Callable[..., Any]:
        """Compiles a function of tensors with XLA on TensorFlow.

        Args:
            function: method of the step.
            whole: whether it is a whole step.
            **options: keyword arguments of the function.

        Returns:
            A function of the other arguments.
        """
        wanted = whole is self.compiles_whole and not self.is_launch_bound
        if backend.backend() == "tensorflow" and wanted:
            # Bound methods of equal steps differ, their functions do not.
            return engine_tensorflow.compiled(function.__func__, self, **options)
        return functools.partial(function, **options) if options else function

    @property
    def has_derivatives(self) -> bool:
        """True if small steps compute their `derivatives` for all time steps before the loop."""
        return False

    def specs(self, weights: Tensors, carry: Tensors, xs: Tensors) -> tuple[Specs, Specs]:
        """Shapes and dtypes of one row of the outputs, and of what a step saves."""
        raise NotImplementedError

    def begin(self, carry: Tensors) -> Tensors:
        """The initial states in the layout of the loop."""
        return carry

    def end(self, carry: Tensors) -> Tensors:
        """Inverse of `begin`."""
        return carry

    def rows(self, weights: Tensors, xs: Tensors) -> Tensors:
        """The rows (T, ...) that the forward loop reads, as projected inputs."""
        return xs

    def prepare(self, weights: Tensors, carry: Tensors, backward: bool) -> Tensors:
        """What every step reads, computed once before a loop: kernels in its layout, constants."""
        return weights

    def forward(
        self, prepared: Tensors, carry: Tensors, row: Tensors, save: bool
    ) -> tuple[Tensors, Tensors, Tensors]:
        """One step: the new carry, a row of the outputs, and what `backward` needs if `save`."""
        raise NotImplementedError

    def derivatives(self, prepared: Tensors, row: Tensors) -> Tensors:
        """Local derivatives of one step or of all, from `xs` and what the steps saved."""
        raise NotImplementedError

    def backward_xs(self, xs: Tensors) -> Tensors:
        """The rows (T, ...) of `xs` that the backward loop reads."""
        return xs

    def begin_backward(self, last: Tensors, d_last: Tensors) -> Tensors:
        """The carry of the backward loop, from the states after the last step and their gradients."""
        return self.begin(d_last)

    def backward(
        self, prepared: Tensors, d_carry: Tensors, d_ys: Tensors, row: Tensors, derived: bool
    ) -> tuple[Tensors, Tensors]:
        """One step back: the carry of the backward loop, and one row of gradients.

        `row` is the step's `derivatives` if `derived`, else its `xs` and what it saved.
        """
        raise NotImplementedError

    def backward_specs(self, weights: Tensors, carry: Tensors, xs: Tensors) -> Specs:
        """Shapes and dtypes of the row of gradients that `backward` returns."""
        raise NotImplementedError

    def end_backward(self, d_carry: Tensors) -> Tensors:
        """The gradients of the initial states, from the carry of the backward loop."""
        return self.end(d_carry)

    def gradients(
        self, weights: Tensors, carry: Tensors, xs: Tensors, ys: Tensors, saved: Any, rows: Tensors
    ) -> tuple[Sequence[Tensor | None], Sequence[Tensor | None]]:
        """The gradients of `weights` and of `xs`, `None` for those without one.

        `rows` are all rows that `backward` returned, (T, ...).
        """
        raise NotImplementedError


def run(
    step: Step, weights: Tensors, carry: Tensors, xs: Tensors, training: bool
) -> tuple[Tensors, Tensors]:
    """Runs a recurrence over a whole sequence, with hand-written gradients.

    Args:
        step: `Step`.
        weights: tuple of tensors or `None`, the same for all time steps.
        carry: tuple of tensors, the states before the first step.
        xs: tuple of tensors (T, ...) or `None`, with one row per step.
        training: whether gradients will probably be needed. TensorFlow cannot know it; without
            `training` it runs the forward pass again if they are needed.

    Returns:
        `(carry, ys)`: the states after the last step and a tuple of outputs (T, ...).

    Raises:
        NotImplementedError: with the message `NOT_SUPPORTED`, if derivatives other than first ones
            are computed, in TensorFlow and PyTorch, or in forward mode or under `torch.vmap`.
    """
    return _engine.run(_forward, _backward, step, (weights, carry, xs), training, NOT_SUPPORTED)


def _forward(step, arguments, save):
    """The results of `run`, and the series that the loop saved for `_backward`."""
    weights, carry, xs = arguments
    prepared = step.prepare(weights, carry, backward=False)
    forward = step.compiled(step.forward, whole=True, save=save)

    def body(carry, row):
        return forward(prepared, carry, row)

    ys_specs, saved_specs = step.specs(weights, carry, xs)
    specs = ys_specs, saved_specs if save else ()
    last, ys, saved = scan(body, step.begin(carry), step.rows(weights, xs), *specs)
    return (step.end(last), ys), saved


def _backward(step, arguments, results, saved, upstream):
    """The gradients of all arguments."""
    (weights, carry, xs), (last, ys), (d_carry, d_ys) = arguments, results, upstream
    prepared = step.prepare(weights, carry, backward=True)
    derived = step.has_derivatives and step.is_launch_bound
    rows = (*step.backward_xs(xs), *(stacked(x) if derived else x for x in saved))
    if derived:
        rows = step.derivatives(prepared, rows)
    backward = step.compiled(step.backward, whole=True, derived=derived)
    outputs = len(d_ys)

    def body(d_carry, row):
        return (*backward(prepared, d_carry, row[:outputs], row[outputs:]), ())

    start = step.begin_backward(last, d_carry)
    specs = step.backward_specs(weights, carry, xs)
    d_carry, rows, _ = scan(body, start, (*d_ys, *rows), specs, reverse=True)
    d_weights, d_xs = step.gradients(weights, carry, xs, ys, saved, rows)
    d_weights = tree.pack_sequence_as(weights, list(d_weights))
    return d_weights, step.end_backward(d_carry), tuple(d_xs)
