"""Results and gradients of several calls of a layer, the way each backend goes about it.

What `fuzz_recurrence` compares. `program` makes one function of a layer; where the mode says so, it
is compiled, once for all the data that it is given.
"""

import contextlib
from typing import NamedTuple
from unittest import mock

import keras
import numpy as np
from keras import ops

from keras_onlstm.onlstm.recurrence import fused_jax, fused_step


class Found(NamedTuple):
    """What one run found. Lists of tensors."""

    results: list  # of all calls, one after the other
    kept: list  # the final states of a stateful layer
    gradients: list  # by the inputs of every call, the states that were given, the variables
    again: list  # the same, asked for once more
    second: list  # gradients of the sum of the squares of `gradients`, by the same


def forward(layer, options, xs, states, masks, losses):
    """The loss, the sum of all results times what each counts, and the results."""
    results = []
    for call, x in enumerate(xs):
        found = layer(
            x,
            initial_state=states if states and call == 0 else None,
            mask=masks[call] if masks else None,
            training=options.training,
        )
        results += found if isinstance(found, tuple) else [found]
    weighted = (ops.cast(y, w.dtype) * w for y, w in zip(results, losses, strict=True))
    return sum(ops.sum(product) for product in weighted), results


def program(layer, options, given):
    """A function of `xs`, `states`, `masks` and `losses` that returns `Found`.

    Args:
        layer: built, with its variables set before every run.
        options: `fuzz_recurrence.Options`.
        given: h and c in variables, or empty: then they come as `states`, or not at all.
    """
    make = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[keras.backend.backend()]
    return make(layer, options, given)


@contextlib.contextmanager
def surroundings(options):
    """What has to hold while a layer is made and run."""
    with contextlib.ExitStack() as stack:
        if keras.backend.backend() == "jax":
            import jax

            stack.enter_context(jax.enable_x64(options.dtype == "float64"))
        if options.large:
            stack.enter_context(mock.patch.dict(fused_step._SMALL, {keras.backend.backend(): 0}))
            # What was traced for small layers, or is in here for large ones, counts here alone.
            fused_jax._differentiable.cache_clear()
            stack.callback(fused_jax._differentiable.cache_clear)
        yield


def forget():
    """Lets go of what was compiled."""
    keras.backend.clear_session()
    if keras.backend.backend() == "jax":
        import jax

        jax.clear_caches()


def _squares(gradients):
    return sum(ops.sum(ops.square(g)) for g in gradients)


def _assign_anew(variables):
    for variable in variables:
        variable.assign(0.5 - variable)


def _tensorflow(layer, options, given):
    import tensorflow as tf

    def gradient(tape, loss, by):
        return tape.gradient(loss, by, unconnected_gradients="zero")

    def run(xs, states, masks, losses):
        variables = [*layer.trainable_variables, *given]
        by = [*xs, *states, *(v.value for v in variables)]
        with tf.GradientTape() as outer:
            outer.watch([*xs, *states])
            with tf.GradientTape(persistent=options.twice) as tape:
                tape.watch([*xs, *states])
                loss, results = forward(layer, options, xs, states or given, masks, losses)
            kept = [tf.identity(v.value) for v in layer.states or []]
            if options.assigned:
                _assign_anew([*variables, *(layer.states or [])])
            found = gradient(tape, loss, by)
            again = gradient(tape, loss, by) if options.twice else found
            squares = _squares(found) if options.second else None
        second = gradient(outer, squares, by) if options.second else []
        return Found(results, kept, found, again, second)

    if options.mode in ("eager", "steps"):
        return run
    if options.mode == "xla" or layer.stateful:
        return tf.function(run, jit_compile=options.mode == "xla")

    def unknown(arrays):
        return [tf.TensorSpec([None, None, *a.shape[2:]], a.dtype) for a in arrays]

    def traced(xs, states, masks, losses):
        if not compiled:
            of_states = [tf.TensorSpec([None, options.units], s.dtype) for s in states]
            of_losses = [tf.TensorSpec([None] * len(w.shape), w.dtype) for w in losses]
            signature = [unknown(xs), of_states, unknown(masks), of_losses]
            compiled.append(tf.function(run, input_signature=signature))
        return compiled[0](xs, states, masks, losses)

    compiled = []
    return traced


def _jax(layer, options, given):
    import jax

    trainable, others = [*layer.trainable_variables, *given], layer.non_trainable_variables

    def scalar(values, other_values, masks, losses):
        xs, states, variable_values = values
        mapping = [*zip(trainable, variable_values, strict=True)]
        mapping += zip(others, other_values, strict=True)
        with keras.StatelessScope(state_mapping=mapping) as scope:
            loss, results = forward(layer, options, xs, states or given, masks, losses)
            kept = [scope.get_current_value(v) for v in layer.states or []]
        return loss, (results, kept)

    def squares(*arguments):
        return _squares(jax.tree.leaves(jax.grad(scalar, has_aux=True)(*arguments)[0]))

    def run(*arguments):
        found, (results, kept) = jax.grad(scalar, has_aux=True)(*arguments)
        second = jax.grad(squares)(*arguments) if options.second else []
        return [results, kept, *map(jax.tree.leaves, (found, found, second))]

    compiled = jax.jit(run) if options.mode == "jit" else run

    def with_values(xs, states, masks, losses):
        values = xs, states, [v.value for v in trainable]
        return Found(*compiled(values, [v.value for v in others], masks, losses))

    return with_values


def _torch(layer, options, given):
    import torch

    def gradient(loss, by, **how):
        if not loss.requires_grad:
            return [torch.zeros_like(x) for x in by]
        found = torch.autograd.grad(loss, by, allow_unused=True, **how)
        return [torch.zeros_like(x) if g is None else g for x, g in zip(by, found, strict=True)]

    def run(xs, states, masks, losses):
        for x in (*xs, *states):
            x.requires_grad_()
        by = [*xs, *states, *(v.value for v in (*layer.trainable_variables, *given))]
        loss, results = forward(layer, options, xs, states or given, masks, losses)
        kept = [v.value.clone() for v in layer.states or []]
        if options.assigned:  # of what was given, PyTorch itself refuses that
            _assign_anew(layer.states or [])
        found = gradient(loss, by, retain_graph=True, create_graph=options.second)
        again = gradient(loss, by, retain_graph=True) if options.twice else found
        second = gradient(_squares(found), by) if options.second else []
        return Found(results, kept, found, again, second)

    def detached(*arguments):
        return Found(*([x.detach() for x in part] for part in run(*arguments)))

    return detached


def tensors(arrays, dtype):
    """NumPy arrays as tensors of their own: what a program does to them it does to nothing else."""
    return [ops.convert_to_tensor(np.array(a), dtype=dtype) for a in arrays]
