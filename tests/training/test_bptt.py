"""TruncatedModel: windows give the loss of the whole text, and gradients stop between them."""

import keras
import numpy as np
import pytest
from keras import ops

from helpers.checks import (
    NO_DROPOUT,
    as_array,
    assert_all_close,
    assert_close,
    assert_differ,
    gradients,
)
from keras_onlstm.models import LanguageModel
from keras_onlstm.models.regularization import (
    activation_regularization,
    temporal_activation_regularization,
)
from keras_onlstm.training import ResetStates, TruncatedModel, Windows, evaluate_windows

TEXT = np.random.default_rng(2).integers(0, 9, 400)


def make(dtype="float32", recurrent="onlstm", seed=3, **kwargs):
    model = LanguageModel(
        9, 8, 16, 2, 4, recurrent=recurrent, seed=seed, dtype=dtype, **(NO_DROPOUT | kwargs)
    )
    model.build()
    return model


def compiled(model, rows, *strengths, optimizer=None):
    """A reader whose optimizer has its variables: without them, a step is traced twice."""
    reader = TruncatedModel(model, rows, *strengths)
    reader.compile(optimizer or keras.optimizers.SGD(0.0))
    reader.optimizer.build(reader.trainable_variables)
    return reader


def loss_of_training(reader, batch):
    return reader.train_on_batch(*batch, return_dict=True)["loss"]


def loss_of_testing(reader, batch):
    return reader.test_on_batch(*batch, return_dict=True)["loss"]


def loss_at_once(model, text, rows):
    """Mean negative log-probability over (rows, tokens), read from zero states in one piece."""
    pieces = text[: len(text) // rows * rows].reshape(rows, -1)
    logits = as_array(model(pieces[:, :-1])).astype("float64")
    logits -= logits.max(-1, keepdims=True)
    scores = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -np.take_along_axis(scores, pieces[:, 1:, None], -1).mean()


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
@pytest.mark.parametrize("rows", [1, 4])
def test_windows_match_the_loss_of_the_whole_text(recurrent, rows):
    model = make(recurrent=recurrent)
    model.embeddings.assign(5 * ops.convert_to_numpy(model.embeddings))  # so that states matter
    text = TEXT[: 100 * rows]
    windows = Windows(text, rows, window=17, variable_bptt=False)  # the last one is padded
    assert windows[len(windows) - 1][2].min() == 0
    reader = TruncatedModel(model, rows)
    reader.compile()
    expected = loss_at_once(model, text, rows)
    assert_close(evaluate_windows(reader, windows), expected, 1e-6, "the loss")
    assert_close(evaluate_windows(reader, windows), expected, 1e-6, "the loss, read again")
    # It matters that states are kept.
    reader.reset_states()
    losses = []
    for index in range(len(windows)):
        losses.append(loss_of_testing(reader, windows[index]) * windows[index][2].sum())
        reader.reset_states()
    assert_differ(sum(losses) / windows.text[:, 1:].size, expected, 2e-5, "the loss without states")


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_states_carry_over_in_mixed_precision(recurrent):
    model = make("mixed_bfloat16", recurrent)
    reader = compiled(model, 2)
    ids = TEXT[:20].reshape(2, 10)
    inputs = {"ids": ids, "mask": np.ones((2, 10), bool), "rows": np.arange(2)}
    loss_of_testing(reader, (inputs, ids, np.ones((2, 10), "float32")))
    expected = keras.tree.flatten(model(ids, details=True).states)
    for variable, state in zip(keras.tree.flatten(reader.states), expected, strict=True):
        assert np.abs(as_array(state)).max() > 1e-3
        assert_close(variable, state, 1e-2 * np.abs(as_array(state)).max(), variable.path)


class Recording(keras.optimizers.SGD):
    """Stores the gradients of the last step in variables, and takes no step."""

    def build(self, variables):
        super().build(variables)
        self.gradients = [self.add_variable_from_reference(v, name="gradient") for v in variables]

    def apply(self, grads, trainable_variables=None):
        super().apply([0.0 * ops.convert_to_tensor(g) for g in grads], trainable_variables)
        for variable, gradient in zip(self.gradients, grads, strict=True):
            variable.assign(ops.convert_to_tensor(gradient))


@pytest.mark.parametrize("recurrent", ["onlstm", "lstm"])
def test_gradients_and_penalties_match_a_model_with_constant_states(recurrent):
    """Compared with the language model, with the states as constants."""

    model = make(recurrent=recurrent)
    windows = Windows(TEXT, 4, window=15)
    reader = compiled(model, 4, 2.0, 1.0, optimizer=Recording(1.0))
    for index in range(3):
        inputs, targets, weights = windows[index]
        states = [[as_array(state).copy() for state in pair] for pair in reader.states]
        logs = reader.train_on_batch(inputs, targets, weights, return_dict=True)
    assert weights.min() == 0 and np.abs(states[0][0]).max() > 0
    found = [as_array(gradient) for gradient in reader.optimizer.gradients]

    def loss():
        known = [[ops.convert_to_tensor(state) for state in pair] for pair in states]
        given = ops.convert_to_tensor(inputs["mask"])
        read = model(inputs["ids"], states=known, mask=given, details=True)
        scores = ops.log_softmax(read.logits)
        picked = ops.sum(scores * ops.one_hot(targets, 9), -1) * ops.convert_to_tensor(weights)
        penalty = activation_regularization(read.output, 2.0, given)
        penalty = penalty + temporal_activation_regularization(read.raw_output, 1.0, given)
        return -ops.sum(picked) / float(weights.sum()) + penalty, penalty

    value, penalty = loss()
    assert_close(logs["loss"], ops.convert_to_numpy(value), 1e-5, "the loss")
    assert_close(logs["penalty"], ops.convert_to_numpy(penalty), 1e-6, "the penalty")
    assert logs["penalty"] > 1e-3
    variables = reader.trainable_variables
    expected = gradients(lambda: loss()[0], [], variables)
    assert_all_close(found, expected, 1e-6, [variable.path for variable in variables])


def test_penalties_and_dropout_apply_only_in_training():
    model, losses = make(output_dropout=0.5), []
    batch = Windows(TEXT, 4, window=15)[0]
    for strength in (0.0, 100.0):
        reader = compiled(model, 4, strength, strength)
        losses.append(loss_of_testing(reader, batch))
        assert abs(loss_of_training(reader, batch) - losses[-1]) > 1e-4
    assert losses[0] == losses[1]


def test_padding_does_not_change_loss_and_states():
    model, found = make(), []
    inputs, targets, weights = Windows(TEXT, 4, window=15)[0]
    for more in (0, 9):
        ids, mask, y, w = (
            np.pad(x, ((0, 0), (0, more)))
            for x in (inputs["ids"], inputs["mask"], targets, weights)
        )
        reader = compiled(model, 4, 2.0, 1.0)
        given = {"ids": ids, "mask": mask, "rows": inputs["rows"]}
        loss = loss_of_training(reader, (given, y, w))
        found.append([loss, *(as_array(state) for pair in reader.states for state in pair)])
    assert_all_close(*found, 1e-6, ["loss", *"hchc"])


def test_states_are_reset_before_an_epoch():
    reader = TruncatedModel(make(), 4)
    reader.compile()
    reader.test_on_batch(*Windows(TEXT, 4, window=15)[0])
    assert all(np.abs(as_array(state)).max() > 0 for pair in reader.states for state in pair)
    callback = ResetStates()
    callback.set_model(reader)
    callback.on_epoch_begin(1)
    assert all(np.abs(as_array(state)).max() == 0 for pair in reader.states for state in pair)
