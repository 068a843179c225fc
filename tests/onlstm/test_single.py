"""The recurrence of a single step beside the readable one, and how a layer gets another."""

import keras
import numpy as np
import pytest

from helpers import oracle
from helpers.checks import assert_all_close, assert_close, assert_differ, loaded, tensor
from keras_onlstm import ONLSTM
from keras_onlstm.onlstm import recurrence
from keras_onlstm.onlstm.recurrence import RecurrenceInputs, RecurrenceOutputs, reference, substituted

TOLERANCE = 1e-6  # the same operations in float32
TANH, SIGMOID = keras.activations.tanh, keras.activations.sigmoid


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("masked", [None, [True, False, True], [False, False, False]])
@pytest.mark.parametrize("dropped", [True, False])
def test_one_step_is_the_readable_recurrence(bias, masked, dropped):
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
    found = reference.run_single(given)
    assert_all_close(found, reference.run(given), TOLERANCE, RecurrenceOutputs._fields)
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
    found, other = (run(given) for run in (reference.run_single, reference.run))
    assert_all_close(found, other, TOLERANCE, RecurrenceOutputs._fields)
    usual = reference.run_single(given._replace(activation=TANH, recurrent_activation=SIGMOID))
    assert_differ(found.h, usual.h, 0.1, "other activations")


def test_a_layer_runs_what_takes_the_place_of_its_own():
    problem, given = oracle.draw(12, 3), []
    layer = loaded(ONLSTM(12, 3, fused=True, return_sequences=True), problem)
    x = tensor(problem.x, "float32")
    plain = layer(x)

    def doubled(problem):
        given.append((problem.inputs.shape, problem.chunk_size, problem.activation))
        found = reference.run(problem)
        return found._replace(h=2 * found.h)

    with substituted(doubled):
        assert_close(layer(x), 2 * plain, TOLERANCE, "inside")
    assert given == [(problem.x.shape, 3, TANH)]
    assert_close(layer(x), plain, 0.0, "afterwards")
    assert len(given) == 1


def test_the_innermost_counts_and_an_error_ends_it(monkeypatch):
    def ran():
        """Which recurrence runs."""
        return recurrence.run("the problem", fuse=True)

    monkeypatch.setattr(recurrence.fused, "run", lambda problem: ("fused", problem))
    assert ran() == ("fused", "the problem")
    with substituted(lambda problem: ("outer", problem)):
        with pytest.raises(KeyError), substituted(lambda problem: ("inner", problem)):
            assert ran() == ("inner", "the problem")
            raise KeyError
        assert ran() == ("outer", "the problem")
    assert ran() == ("fused", "the problem")


def test_which_one_runs_when(monkeypatch):
    """The fused one where it is wanted; else the one without a loop where there is one step."""
    ran = []

    def seen(name, original):
        return lambda problem: ran.append(name) or original(problem)

    for module, function, name in (
        (recurrence.fused, "run", "fused"),
        (reference, "run", "reference"),
        (reference, "run_single", "single"),
    ):
        monkeypatch.setattr(module, function, seen(name, getattr(module, function)))
    problem = oracle.draw(12, 3)
    for steps in (1, 2):
        for fused in ("auto", False):
            loaded(ONLSTM(12, 3, fused=fused), problem)(tensor(problem.x[:, :steps], "float32"))
    assert ran == ["fused", "single", "fused", "reference"]
