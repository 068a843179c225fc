"""Random options thrown at the fused recurrence and at the readable one: they have to agree.

    python tests/fuzz_recurrence.py --seed 0 --count 1000

on the backend that `KERAS_BACKEND` names. A case is drawn from the seed and its number alone. It is
run by two layers with the same weights, and their outputs, final states and gradients by all that
was given are compared. What the documentation says is refused has to be refused.
"""

import argparse
import collections
import functools
import json
import sys
from typing import NamedTuple

import keras
import numpy as np

import fuzz_backends
import oracle
from checks import as_array, assert_close
from keras_onlstm import ONLSTM

# What two versions may differ by where values are of order 1, and times the largest gradient where
# that is above 1. Each rounds some hundred times, in another order than the other: a hundred units
# of roundoff of singles, and a million of doubles, which is still far below any mistake. Of halves
# the hidden states alone are rounded, once a step, and carried on: twenty units.
TOLERANCES = {"float64": 1e-10, "float32": 1e-5, "mixed_float16": 1e-2, "mixed_bfloat16": 8e-2}
# Data sets for each choice of options, where these are compiled: the next cases compile nothing.
SHARED = {"eager": 1, "steps": 4, "graph": 8, "xla": 12, "jit": 24}
# How many of all 240 cases, in this order: the rare modes come first, so that some dozens of cases
# have them all. Drawn by their shares, 200 cases had the most frequent mode alone.
MODES = {
    "tensorflow": {"xla": 12, "steps": 12, "graph": 16, "eager": 200},
    "jax": {"eager": 4, "jit": 236},
    "torch": {"eager": 240},
}
# Modes in which layers stay small: where TensorFlow's steps are large ones, each is compiled.
SMALL = {"tensorflow": ("eager", "graph"), "jax": (), "torch": ()}
MASKS = ("left", "right", "holes", "a row without any", "all")


class Options(NamedTuple):
    """What a layer, and what is compiled of it, depends on."""

    mode: str
    dtype: str
    units: int
    chunk_size: int
    batch: int
    time: int
    input_dim: int
    calls: int  # above 1 for stateful layers alone
    masked: bool
    initial: str  # "none", "tensors" or "variables"
    training: bool
    twice: bool  # whether the gradients are asked for twice
    second: bool  # whether gradients of gradients are asked for
    assigned: bool  # whether variables change between the way there and the way back
    large: bool  # whether the layer is taken for a large one, whose loops are others
    layer: tuple  # further arguments of the layer: pairs of name and value


class Data(NamedTuple):
    """What may change without anything being compiled anew."""

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
        "activation": "relu" if chance(0.03) else "tanh",
        **{name: rate() if dropped else 0.0 for name in dropouts},
    }
    empty = one("batch", "time") if chance(0.06) else None
    second = chance(0.08)
    return Options(
        mode,
        "float64" if second else one("float64", "float64", "float64", *TOLERANCES),
        chunk_size * int(rng.integers(1, 7)),
        chunk_size,
        0 if empty == "batch" else int(rng.integers(1, 12)),
        0 if empty == "time" else one(1, 2, 3, 4, 5, 7, 9),
        int(rng.integers(1, 6)),
        int(rng.integers(1, 4 if mode == "eager" else 3)) if stateful else 1,
        chance(0.5),
        one("none", "tensors", "tensors", "variables"),
        chance(0.6),
        chance(0.2),
        second,
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


class Program(NamedTuple):
    """A layer, ready to run."""

    layer: keras.Layer
    given: list  # h and c in variables, or empty
    run: object  # see `fuzz_backends.program`


@functools.lru_cache(maxsize=1)
def programs(options):
    """The two `Program`s to compare: fused and readable."""
    refused = dict(options.layer)["activation"] != "tanh"
    made = []
    for fused in ("auto" if refused else True, False):
        layer = ONLSTM(
            options.units,
            options.chunk_size,
            dtype=options.dtype,
            fused=fused,
            seed=1,
            **dict(options.layer),
        )
        layer.build((options.batch, options.time, options.input_dim))
        given = []
        if options.initial == "variables":
            shape, dtype = (options.batch, options.units), layer.variable_dtype
            given = [keras.Variable(np.zeros(shape), dtype=dtype) for _ in range(2)]
        made.append(Program(layer, given, fuzz_backends.program(layer, options, given)))
    return made


def run(program, options, data):
    """`fuzz_backends.Found` of a program."""
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
        fuzz_backends.tensors(data.x, dtype),
        fuzz_backends.tensors(states, dtype),
        fuzz_backends.tensors(data.masks, "bool"),
        fuzz_backends.tensors(data.losses, dtype),
    )


def _assert_refused(error, words, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except error as refusal:
        assert words in str(refusal), f"refused in other words: {refusal}"
    else:
        raise AssertionError(f"not refused: {words}")


def check(options, data):
    """Fails unless the two recurrences agree."""
    with fuzz_backends.surroundings(options):
        fused, readable = programs(options)
        if fused.layer.fused == "auto":
            given = {**dict(options.layer), "fused": True}
            _assert_refused(ValueError, "fused='auto'", ONLSTM, options.units, **given)
        elif options.second and keras.backend.backend() != "jax":
            _assert_refused(NotImplementedError, "ONLSTM(fused=False)", run, fused, options, data)
            return
        found, expected = (run(program, options, data) for program in (fused, readable))
        compare(found, expected, TOLERANCES[options.dtype])


def compare(found, expected, tolerance):
    """Fails where two `fuzz_backends.Found` differ, by more than the tolerance of the largest."""
    for kind, ones, others in zip(found._fields, found, expected, strict=True):
        others = [as_array(other) for other in others]
        # Values are of order 1; gradients grow with the number of steps, and their squares more.
        scale = max([1.0, *(np.abs(other).max(initial=0.0) for other in others)])
        for place, (one, other) in enumerate(zip(ones, others, strict=True)):
            assert_close(one, other, tolerance * scale, f"{kind}, {place}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--mode", choices=list(SHARED), help="one mode alone")
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
            fuzz_backends.forget()
    print(json.dumps({"backend": keras.backend.backend(), **counts}))
    sys.exit(counts["found"] > 0)


if __name__ == "__main__":
    main()
