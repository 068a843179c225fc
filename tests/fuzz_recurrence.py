"""Random options thrown at the fused recurrence and at the readable one: they have to agree.

    python tests/fuzz_recurrence.py --seed 0 --count 1000

on the backend that `KERAS_BACKEND` names. A case depends only on the seed and its number. It is
run by two layers with the same weights, and their outputs, final states and gradients by all that
was given are compared.
"""

import argparse
import collections
import contextlib
import functools
import json
import sys
from typing import NamedTuple
from unittest import mock

import keras
import numpy as np
from keras import ops

from helpers import oracle
from helpers.checks import as_array, assert_close
from keras_onlstm import ONLSTM
from keras_onlstm.recurrence import engine, engine_jax

# Largest difference where values are of order 1, and times the largest gradient where that is above
# 1: a hundred units of roundoff in float32, a million in float64, twenty in half precision.
TOLERANCES = {"float64": 1e-10, "float32": 1e-5, "mixed_float16": 1e-2, "mixed_bfloat16": 8e-2}
# Data sets for each choice of options, where these are compiled: the next cases compile nothing.
SHARED = {"eager": 1, "steps": 4, "graph": 8, "xla": 12, "jit": 24}
# How many of 240 cases, the rare modes first, so that some dozens of cases have them all.
MODES = {
    "tensorflow": {"xla": 12, "steps": 12, "graph": 16, "eager": 200},
    "jax": {"eager": 4, "jit": 236},
    "torch": {"eager": 240},
}
# Modes in which layers stay small: where TensorFlow's steps are large ones, each is compiled.
SMALL = {"tensorflow": ("eager", "graph"), "jax": (), "torch": ()}
MASKS = ("left", "right", "holes", "a row without any", "all")


class Options(NamedTuple):
    """Settings of a layer and of its compiled functions."""

    mode: str
    dtype: str
    units: int
    chunk_size: int
    batch: int
    time: int
    input_dim: int
    calls: int  # above 1 only for stateful layers
    masked: bool
    initial: str  # "none", "tensors" or "variables"
    training: bool
    assigned: bool  # whether variables change between the forward and the backward pass
    large: bool  # whether the layer is taken for a large one, whose loops are others
    layer: tuple  # further arguments of the layer: pairs of name and value


class Data(NamedTuple):
    """Settings that may change without a new compilation."""

    x: list  # (B, T, D) for every call
    states: list  # h and c, (B, U)
    kept: list  # h and c that a stateful layer starts from
    masks: list  # (B, T) for every call, or empty
    weights: list  # of the layer
    seed: int  # of what is dropped
    losses: list  # factors of all results of all calls, of which the loss is the sum


def draw_options(rng, mode):
    """The `Options` of a case."""

    def chance(share):
        return bool(rng.random() < share)

    def one(*values):
        return values[rng.integers(len(values))]

    def rate():
        return one(0.0, 0.0, 0.3, 0.5)

    chunk_size = int(rng.integers(1, 6))
    stateful = chance(0.4)
    dropped = chance(0.4)
    dropouts = ("dropout", "recurrent_dropout", "recurrent_weight_dropout")
    layer = {
        "stateful": stateful,
        **{name: chance(0.5) for name in ("return_state", "return_distances", "go_backwards")},
        "return_sequences": chance(0.7),
        "use_bias": chance(0.8),
        "zero_output_for_mask": chance(0.3),
        **{name: rate() if dropped else 0.0 for name in dropouts},
    }
    empty = one("batch", "time") if chance(0.06) else None
    return Options(
        mode,
        one("float64", "float64", "float64", *TOLERANCES),
        chunk_size * int(rng.integers(1, 7)),
        chunk_size,
        0 if empty == "batch" else int(rng.integers(1, 12)),
        0 if empty == "time" else one(1, 2, 3, 4, 5, 7, 9),
        int(rng.integers(1, 6)),
        int(rng.integers(1, 4 if mode == "eager" else 3)) if stateful else 1,
        chance(0.5),
        one("none", "tensors", "tensors", "variables"),
        chance(0.6),
        chance(0.3),
        mode == "steps" or (mode not in SMALL[keras.backend.backend()] and chance(0.4)),
        tuple(layer.items()),
    )


def _mask(rng, shape):
    kind = rng.integers(len(MASKS) + 1)
    return oracle.masks(*shape)[MASKS[kind]] if kind < len(MASKS) else rng.random(shape) < 0.6


def result_shapes(options):
    """The shapes of what one call returns."""
    layer = dict(options.layer)
    batch, time, units = options.batch, options.time, options.units
    shapes = [(batch, time, units) if layer["return_sequences"] else (batch, units)]
    shapes += [(batch, units)] * 2 if layer["return_state"] else []
    return shapes + ([(batch, time)] * 2 if layer["return_distances"] else [])


def draw_data(rng, options):
    """The `Data` of a case."""
    sizes = (options.units, options.chunk_size, options.batch, options.time, options.input_dim)
    problems = [oracle.draw(*sizes, seed=int(rng.integers(2**31))) for _ in range(options.calls)]
    xs = [problem.x for problem in problems]
    masks = []
    if options.masked:
        masks = [_mask(rng, x.shape[:2]) for x in xs]
        worse = rng.choice([0.0, np.nan, np.inf, 1e30, 77.0])
        xs = [np.where(mask[..., None], x, worse) for x, mask in zip(xs, masks, strict=True)]
    losses = [rng.normal(size=s) for _ in range(options.calls) for s in result_shapes(options)]
    losses = [loss * (rng.random() < 0.7) for loss in losses]
    return Data(
        xs,
        problems[0].states,
        oracle.draw(*sizes, seed=int(rng.integers(2**31))).states,
        masks,
        problems[0].weights[: 3 if dict(options.layer)["use_bias"] else 2],
        int(rng.integers(2**31)),
        losses,
    )


def draw(seed, number, mode=None):
    """The case of that number: its `Options` and `Data`; in the mode, or in that of the number."""
    if mode is None:
        counts = MODES[keras.backend.backend()]
        modes = [mode for mode, count in counts.items() for _ in range(count)]
        mode = modes[number % len(modes)]
    options = draw_options(np.random.default_rng([seed, number // SHARED[mode], 1]), mode)
    return options, draw_data(np.random.default_rng([seed, number, 2]), options)


class Found(NamedTuple):
    """The results of one run, lists of tensors."""

    results: list  # of all calls, one after the other
    kept: list  # the final states of a stateful layer
    gradients: list  # by the inputs of every call, the states that were given, the variables


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

    The states `given`, if any, are variables.
    """
    make = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[keras.backend.backend()]
    return make(layer, options, given)


@contextlib.contextmanager
def surroundings(options):
    """Contexts in which a layer is made and run."""
    with contextlib.ExitStack() as stack:
        if keras.backend.backend() == "jax":
            import jax

            stack.enter_context(jax.enable_x64(options.dtype == "float64"))
        if options.large:
            stack.enter_context(mock.patch.dict(engine._LAUNCH_BOUND, {keras.backend.backend(): 0}))
            # Functions traced for small layers must not be reused for large ones.
            engine_jax._differentiable.cache_clear()
            stack.callback(engine_jax._differentiable.cache_clear)
        yield


def forget():
    """Lets go of what was compiled."""
    keras.backend.clear_session()
    if keras.backend.backend() == "jax":
        import jax

        jax.clear_caches()


def _assign_anew(variables):
    for variable in variables:
        variable.assign(0.5 - variable)


def _tensorflow(layer, options, given):
    import tensorflow as tf

    def run(xs, states, masks, losses):
        variables = [*layer.trainable_variables, *given]
        by = [*xs, *states, *(v.value for v in variables)]
        with tf.GradientTape() as tape:
            tape.watch([*xs, *states])
            loss, results = forward(layer, options, xs, states or given, masks, losses)
        kept = [tf.identity(v.value) for v in layer.states or []]
        if options.assigned:
            _assign_anew([*variables, *(layer.states or [])])
        return Found(results, kept, tape.gradient(loss, by, unconnected_gradients="zero"))

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

    def run(*arguments):
        found, (results, kept) = jax.grad(scalar, has_aux=True)(*arguments)
        return [results, kept, jax.tree.leaves(found)]

    compiled = jax.jit(run) if options.mode == "jit" else run

    def with_values(xs, states, masks, losses):
        values = xs, states, [v.value for v in trainable]
        return Found(*compiled(values, [v.value for v in others], masks, losses))

    return with_values


def _torch(layer, options, given):
    import torch

    def run(xs, states, masks, losses):
        for x in (*xs, *states):
            x.requires_grad_()
        by = [*xs, *states, *(v.value for v in (*layer.trainable_variables, *given))]
        loss, results = forward(layer, options, xs, states or given, masks, losses)
        kept = [v.value.clone() for v in layer.states or []]
        if options.assigned:  # of what was given, PyTorch itself refuses that
            _assign_anew(layer.states or [])
        found = [None] * len(by)
        if loss.requires_grad:
            found = torch.autograd.grad(loss, by, allow_unused=True)
        found = [torch.zeros_like(x) if g is None else g for x, g in zip(by, found, strict=True)]
        return Found(results, kept, found)

    def detached(*arguments):
        return Found(*([x.detach() for x in part] for part in run(*arguments)))

    return detached


def tensors(arrays, dtype):
    """NumPy arrays as tensors of their own: what a program does to them it does to nothing else."""
    return [ops.convert_to_tensor(np.array(a), dtype=dtype) for a in arrays]


class Program(NamedTuple):
    """A layer, ready to run."""

    layer: keras.Layer
    given: list  # h and c in variables, or empty
    run: object  # see `program`


@functools.lru_cache(maxsize=1)
def programs(options):
    """The two `Program`s to compare: fused and readable."""
    made = []
    for fused in (True, False):
        given = {"dtype": options.dtype, "fused": fused, "seed": 1, **dict(options.layer)}
        layer = ONLSTM(options.units, options.chunk_size, **given)
        layer.build((options.batch, options.time, options.input_dim))
        given = []
        if options.initial == "variables":
            shape, dtype = (options.batch, options.units), layer.variable_dtype
            given = [keras.Variable(np.zeros(shape), dtype=dtype) for _ in range(2)]
        made.append(Program(layer, given, program(layer, options, given)))
    return made


def run(program, options, data):
    """`Found` of a program."""
    layer, dtype = program.layer, program.layer.variable_dtype
    for variables, values in (
        (layer.trainable_variables, data.weights),
        (layer.states or [], data.kept),
        (program.given, data.states),
        ([layer.cell.seed_generator.state], [[data.seed, 0]]),
    ):
        for variable, value in zip(variables, values, strict=False):
            variable.assign(value)
    states = data.states if options.initial == "tensors" else []
    return program.run(
        tensors(data.x, dtype),
        tensors(states, dtype),
        tensors(data.masks, "bool"),
        tensors(data.losses, dtype),
    )


def check(options, data):
    """Fails unless the two recurrences agree."""
    with surroundings(options):
        found, expected = (run(program, options, data) for program in programs(options))
    for kind, ones, others in zip(found._fields, found, expected, strict=True):
        others = [as_array(other) for other in others]
        # Values are of order 1; gradients grow with the number of steps.
        scale = max([1.0, *(np.abs(other).max(initial=0.0) for other in others)])
        for place, (one, other) in enumerate(zip(ones, others, strict=True)):
            assert_close(one, other, TOLERANCES[options.dtype] * scale, f"{kind}, {place}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--mode", choices=list(SHARED), help="only this mode")
    arguments = parser.parse_args()
    counts = collections.Counter()
    for number in range(arguments.start, arguments.start + arguments.count):
        options, data = draw(arguments.seed, number, arguments.mode)
        counts[options.mode] += 1
        try:
            check(options, data)
        except Exception as error:
            counts["found"] += 1
            case = f"--seed {arguments.seed} --start {number} --count 1 --mode {options.mode}"
            print(f"{case}\n    {type(error).__name__}: {error}\n    {options}", flush=True)
        if number % 200 == 199:
            programs.cache_clear()
            forget()
    print(json.dumps({"backend": keras.backend.backend(), **counts}))
    sys.exit(counts["found"] > 0)


if __name__ == "__main__":
    main()
