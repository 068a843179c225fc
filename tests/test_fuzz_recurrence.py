"""Some dozens of the cases of `fuzz_recurrence`, and what shows that it finds mistakes."""

import keras
import numpy as np
import pytest
from fuzz_recurrence import Options, check, draw, draw_data, programs, run, surroundings

from helpers.checks import EXACT, assert_all_close
from keras_onlstm.onlstm.fused_step import ONLSTMStep

# Most where a case is cheap; of what is compiled, one choice of options or two.
COUNTS = {
    "tensorflow": {"eager": 28, "graph": 8, "steps": 4},
    "jax": {"jit": 48},
    "torch": {"eager": 112},
}
NAMES = ["inputs", "kernel", "recurrent kernel", "bias"]
PLAIN = Options(
    mode="eager",
    dtype="float64",
    units=6,
    chunk_size=2,
    batch=3,
    time=4,
    input_dim=3,
    calls=1,
    masked=False,
    initial="none",
    training=True,
    assigned=False,
    large=False,
    layer=tuple(
        {
            "stateful": False,
            "use_bias": True,
            **dict.fromkeys(("return_sequences", "return_state", "return_distances"), True),
        }.items()
    ),
)


@pytest.mark.parametrize("mode", COUNTS[keras.backend.backend()])
def test_fused_and_reference_recurrence_agree(mode):
    for number in range(COUNTS[keras.backend.backend()][mode]):
        options, data = draw(0, number, mode)
        try:
            check(options, data)
        except Exception as error:
            error.add_note(f"--seed 0 --start {number} --count 1 --mode {mode}: {options}")
            raise


@pytest.mark.parametrize("training", [False, True])
def test_stored_states_give_the_gradients_of_initial_states(training):
    """The backward pass reads the states that a call started from, not those that it left."""
    mode = "jit" if keras.backend.backend() == "jax" else "eager"
    given = PLAIN._replace(mode=mode, training=training, initial="tensors")
    kept = given._replace(initial="none", layer=(*PLAIN.layer[1:], ("stateful", True)))
    data = draw_data(np.random.default_rng(3), given)
    data = data._replace(kept=data.states)
    with surroundings(given):
        inputs, _, _, *weights = run(programs(given)[1], given, data).gradients
        for program in programs(kept):
            found = run(program, kept, data).gradients
            assert_all_close(found, [inputs, *weights], EXACT, NAMES)


@pytest.mark.backend("tensorflow", "torch")
@pytest.mark.parametrize("wrong", ["dz", "dc"])
def test_gradient_errors_of_a_millionth_are_detected(wrong, monkeypatch):
    right = ONLSTMStep.backward

    def backward(*given, **options):
        (dh, dc), (dz,) = right(*given, **options)
        return ((dh, dc), (dz * 1.000001,)) if wrong == "dz" else ((dh, dc * 1.000001), (dz,))

    data = draw_data(np.random.default_rng(4), PLAIN)
    check(PLAIN, data)
    monkeypatch.setattr(ONLSTMStep, "backward", backward)
    with pytest.raises(AssertionError, match="gradients, 0: largest absolute error"):
        check(PLAIN, data)
