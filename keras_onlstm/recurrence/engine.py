"""The engine: runs a recurrence over a sequence and computes its gradients.

Automatic differentiation of a loop adds up the gradient of a whole kernel at every time step. The
engine does not differentiate the loop. It runs the step forward and saves what the derivative
needs, then runs the derivative of the step backward. That loop returns one row of gradients per
step, from which the gradient of each kernel follows in one large product.

A `Step` defines a recurrence; `engine_tensorflow`, `engine_jax` and `engine_torch` run the loops.
"""

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from keras import backend, tree

from keras_onlstm.recurrence import engine_jax, engine_tensorflow, engine_torch
from keras_onlstm.utils import DType, Shape, Tensors
from keras_onlstm.utils.backends_tensorflow_jax import compiled

NOT_SUPPORTED = (
    "This loop over time has a hand-written gradient: no forward-mode derivatives, no torch.vmap, "
    "and second derivatives only on JAX. Use fused=False, if the layer has that argument."
)

# A recurrent kernel with fewer entries makes operations that take longer to start than to run.
_LAUNCH_BOUND = {"tensorflow": 2**12, "jax": 2**15, "torch": 2**17}

_ENGINES = {"tensorflow": engine_tensorflow, "jax": engine_jax, "torch": engine_torch}
_engine = _ENGINES[backend.backend()]

# Matrix products, as each backend computes them fastest: see `engine_torch`.
packed, product = _engine.packed, _engine.product
rows_product, summed_product = _engine.rows_product, _engine.summed_product
stacked = _engine.stacked

Specs = Sequence[tuple[Shape, DType]]


def scan(
    function: Callable[[Tensors, Tensors], Tensors],
    carry: Tensors,
    xs: Sequence[Any],
    ys_specs: Specs,
    saved_specs: Specs = (),
    reverse: bool = False,
) -> Tensors:
    """A loop over the leading axis: `carry, y, saved = function(carry, x)` for every row of `xs`.

    All are flat tuples: `carry` of tensors, whose shapes and dtypes `function` keeps, `xs` of
    tensors (T, ...), of series that another loop saved, or of `None`. `ys_specs` and `saved_specs`
    are the `(shape, dtype)` of each tensor in `y` and `saved`, with `None` for an unknown size.
    `reverse` reads the last row first; the results have the order of `xs`. Reference
    implementations use only this; the backend differentiates the loop.

    Returns the last carry, the tensors `y` (T, ...), and series of `saved` for `stacked`.
    """
    return _engine.scan(function, carry, xs, ys_specs, saved_specs, reverse)


class Step:
    """One time step of a recurrence, and its derivative.

    Subclasses are frozen dataclasses with hashable fields, because compiled functions are cached by
    the step: all tensors are arguments, in flat tuples. Those in `weights` and `xs` may be `None`.
    """

    has_derivatives = False  # whether `derivatives` is defined

    @property
    def entries(self) -> int:
        """Number of entries of the recurrent kernel. With 0, TensorFlow compiles nothing."""
        return 0

    @property
    def is_launch_bound(self) -> bool:
        """True if the operations of a step take longer to start than to run.

        Then TensorFlow does not compile the step, because that takes longer than it saves.
        """
        return self.entries < _LAUNCH_BOUND[backend.backend()]

    @property
    def precomputes(self) -> bool:
        """True if the `derivatives` of all steps are computed before the backward loop."""
        return self.has_derivatives and self.is_launch_bound

    def compiled(self, method: Any, **options: Hashable) -> Callable[..., Any]:
        """A method with keyword arguments, compiled with XLA on TensorFlow if that pays.

        It should not return its arguments, because XLA copies them.
        """
        if backend.backend() == "tensorflow" and not self.is_launch_bound:
            # Bound methods of equal steps differ, their functions do not.
            return compiled(method.__func__, self, **options)
        return functools.partial(method, **options) if options else method

    def specs(self, carry: Tensors, xs: Tensors) -> tuple[Specs, Specs]:
        """Shapes and dtypes of one row of the outputs, and of what a step saves."""
        raise NotImplementedError

    def rows(self, weights: Tensors, xs: Tensors) -> Tensors:
        """The rows (T, ...) that the forward loop reads: `xs`, projected for example."""
        return xs

    def prepare(self, weights: Tensors, carry: Tensors, xs: Tensors, ys: Any = None) -> Tensors:
        """Tensors that all steps share: kernels in the loop's layout, constants.

        The outputs `ys` are given only to the backward loop.
        """
        return weights

    def forward(self, prepared: Tensors, carry: Tensors, row: Tensors, save: bool) -> Tensors:
        """One step: the new carry, a row of the outputs, and, if `save`, what `backward` needs."""
        raise NotImplementedError

    def backward_rows(self, xs: Tensors) -> Tensors:
        """The rows (T, ...) of `xs` that the backward loop reads."""
        return xs

    def derivatives(self, prepared: Tensors, row: Tensors) -> Tensors:
        """Local derivatives of one or all steps, from `backward_rows` and saved tensors."""
        raise NotImplementedError

    def begin_backward(self, d_last: Tensors) -> Tensors:
        """The carry of the backward loop, from the gradients of the last states."""
        return d_last

    def backward(self, prepared: Tensors, d_carry: Tensors, d_ys: Tensors, row: Tensors) -> Tensors:
        """One backward step: the new carry of the backward loop, and one row of gradients.

        `row` is one time step of the results of `derivatives` if the step `precomputes`; otherwise
        of `backward_rows`, followed by the saved tensors.
        """
        raise NotImplementedError

    def backward_specs(self, carry: Tensors, xs: Tensors) -> Specs:
        """Shapes and dtypes of the row of gradients that `backward` returns."""
        raise NotImplementedError

    def end_backward(self, d_carry: Tensors) -> Tensors:
        """The gradients of the initial states, from the last carry of the backward loop."""
        return d_carry

    def gradients(self, arguments: Tensors, ys: Tensors, saved: Any, rows: Tensors) -> Tensors:
        """The gradients of `weights` and `xs`, or `None`, from the rows (T, ...) of `backward`.

        `arguments` are `weights`, `carry` and `xs`.
        """
        raise NotImplementedError


def run(step: Step, weights: Tensors, carry: Tensors, xs: Tensors, training: bool) -> Tensors:
    """Runs a recurrence over a whole sequence, with hand-written gradients.

    `weights` are the same for all steps, `carry` are the states before the first step, and `xs`,
    (T, ...), have one row per step. `training` is whether gradients will probably be needed:
    TensorFlow cannot know it, and without it runs the forward pass again if they are needed.

    Returns the states after the last step, and the outputs (T, ...).
    """
    return _engine.run(_forward, _backward, step, (weights, carry, xs), training, NOT_SUPPORTED)


def _forward(step, arguments, save):
    """The results of `run`, and the series that the loop saved for `_backward`."""
    weights, carry, xs = arguments
    prepared = step.prepare(weights, carry, xs)

    def body(carry, row):
        return step.forward(prepared, carry, row, save)

    ys_specs, saved_specs = step.specs(carry, xs)
    rows = step.rows(weights, xs)
    carry, ys, saved = scan(body, carry, rows, ys_specs, saved_specs if save else ())
    return (carry, ys), saved


def _backward(step, arguments, results, saved, upstream):
    """The gradients of all arguments."""
    (weights, carry, xs), (_, ys), (d_last, d_ys) = arguments, results, upstream
    prepared = step.prepare(weights, carry, xs, ys)
    rows = *step.backward_rows(xs), *(map(stacked, saved) if step.precomputes else saved)
    if step.precomputes:
        rows = step.derivatives(prepared, rows)

    def body(d_carry, row):
        d_y, row = row[: len(d_ys)], row[len(d_ys) :]
        return *step.backward(prepared, d_carry, d_y, row), ()

    d_carry, specs = step.begin_backward(d_last), step.backward_specs(carry, xs)
    d_carry, rows, _ = scan(body, d_carry, (*d_ys, *rows), specs, reverse=True)
    d_weights, d_xs = step.gradients(arguments, ys, saved, rows)
    d_weights = tree.pack_sequence_as(weights, list(d_weights))
    return d_weights, step.end_backward(d_carry), tuple(d_xs)


class Substitution:
    """A context in which another `function` runs, for example while a model is exported."""

    def __init__(self, name: str) -> None:
        self.function: ContextVar[Callable[..., Any] | None] = ContextVar(name, default=None)

    @contextmanager
    def __call__(self, other: Callable[..., Any]) -> Iterator[None]:
        token = self.function.set(other)
        try:
            yield
        finally:
            self.function.reset(token)
