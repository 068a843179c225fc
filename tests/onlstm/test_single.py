"""The reference implementation of a single step, and which recurrence a layer runs."""

import keras
import numpy as np
import pytest

from helpers import oracle
from helpers.checks import assert_all_close, assert_close, assert_differ, loaded, tensor
from keras_onlstm import ONLSTM
from keras_onlstm.onlstm import recurrence
from keras_onlstm.onlstm.recurrence import (
    RecurrenceInputs,
    RecurrenceOutputs,
    reference,
    substituted,
)
from keras_onlstm.recurrence import engine

TOLERANCE = 1e-6  # the same operations in float32
TANH, SIGMOID = keras.activations.tanh, keras.activations.sigmoid


def first_of_loop(given):
    """The loop's result for one step: it runs two, the second of which is masked."""
    mask = given.mask
    if mask is None:
        mask = tensor(np.ones((3, 1)), "bool")
    two = given._replace(
        inputs=keras.ops.concatenate([given.inputs] * 2, 1),
        mask=keras.ops.concatenate([mask, tensor(np.zeros((3, 1)), "bool")], 1),
    )
    found = reference(two)
    sequences = {name: getattr(found, name)[:, :1] for name in found._fields if "last" not in name}
    return found._replace(**sequences)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", [None, [True, False, True], [False, False, False]])
@pytest.mark.parametrize("dropped", [True, False])
def test_one_step_without_a_loop_matches_the_loop(bias, masked, dropped):
    problem = oracle.draw(12, 3, batch=3, time=1, seed=5)
    given = [tensor(array, "float32") for array in problem]
    factors = np.random.default_rng(1).uniform(0.0, 2.0, (3, 12))
    given = RecurrenceInputs(
        *(given if bias else [*given[:-1], None]),
        chunk_size=3,
        activation=TANH,
        recurrent_activation=SIGMOID,
        mask=None if masked is None else tensor(np.reshape(masked, (3, 1)), "bool"),
        recurrent_mask=tensor(factors, "float32") if dropped else None,
    )
    found = reference(given)
    assert_all_close(found, first_of_loop(given), TOLERANCE, RecurrenceOutputs._fields)
    exact = oracle.onlstm(
        *problem[:5],
        problem.bias if bias else 0.0,
        chunk_size=3,
        mask=None if masked is None else np.reshape(masked, (3, 1)),
        recurrent_factors=factors if dropped else 1.0,
    )
    expected = [exact.h, exact.c, exact.forget_distance, exact.input_distance]
    assert_all_close(found[1:], expected, TOLERANCE, RecurrenceOutputs._fields[1:])


def test_one_step_with_other_activations():
    given = RecurrenceInputs(
        *(tensor(array, "float32") for array in oracle.draw(12, 3, batch=3, time=1, seed=6)),
        chunk_size=3,
        activation=keras.activations.relu,
        recurrent_activation=keras.activations.hard_sigmoid,
    )
    found = reference(given)
    assert_all_close(found, first_of_loop(given), TOLERANCE, RecurrenceOutputs._fields)
    usual = reference(given._replace(activation=TANH, recurrent_activation=SIGMOID))
    assert_differ(found.h, usual.h, 0.1, "other activations")


def test_layer_runs_a_substituted_recurrence():
    problem, given = oracle.draw(12, 3), []
    layer = loaded(ONLSTM(12, 3, fused=True, return_sequences=True), problem)
    x = tensor(problem.x, "float32")
    plain = layer(x)

    def doubled(problem):
        given.append((problem.inputs.shape, problem.chunk_size, problem.activation))
        found = reference(problem)
        return found._replace(h=2 * found.h)

    with substituted(doubled):
        assert_close(layer(x), 2 * plain, TOLERANCE, "inside")
    assert given == [(problem.x.shape, 3, TANH)]
    assert_close(layer(x), plain, 0.0, "afterwards")
    assert len(given) == 1


def test_innermost_substitution_applies_and_errors_end_it(monkeypatch):
    def ran():
        """Which recurrence runs."""
        return recurrence.run("the problem", fuse=True)

    monkeypatch.setattr(recurrence, "fused", lambda problem: ("fused", problem))
    assert ran() == ("fused", "the problem")
    with substituted(lambda problem: ("outer", problem)):
        with pytest.raises(KeyError), substituted(lambda problem: ("inner", problem)):
            assert ran() == ("inner", "the problem")
            raise KeyError
        assert ran() == ("outer", "the problem")
    assert ran() == ("fused", "the problem")


def test_one_step_of_the_reference_runs_without_a_loop(monkeypatch):
    ran = []

    def seen(name, original):
        return lambda *given, **options: ran.append(name) or original(*given, **options)

    for module, name in ((recurrence, "fused"), (recurrence, "reference"), (engine, "scan")):
        monkeypatch.setattr(module, name, seen(name, getattr(module, name)))
    layer = loaded(ONLSTM(12, 3, fused=False), oracle.draw(12, 3))
    x = tensor(oracle.draw(12, 3).x, "float32")
    for steps in (1, 2):
        layer(x[:, :steps])
    assert ran == ["reference", "reference", "scan"]


def test_fused_argument_selects_the_recurrence(monkeypatch):
    ran = []
    for name in ("fused", "reference"):
        original = getattr(recurrence, name)

        def seen(problem, name=name, original=original):
            ran.append(name)
            return original(problem)

        monkeypatch.setattr(recurrence, name, seen)
    problem = oracle.draw(12, 3)
    for fused in ("auto", False):
        loaded(ONLSTM(12, 3, fused=fused), problem)(tensor(problem.x, "float32"))
    assert ran == ["fused", "reference"]
