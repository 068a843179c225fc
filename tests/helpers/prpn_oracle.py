"""PRPN in float64 NumPy, one word at a time, written from equations 4 to 14 of Shen et al. 2018.

It shares no code with the package. Where the paper differs from the published code, it does what
that does. Weights are a dictionary of arrays under the names of the published code, as PyTorch has
them: linear (out, in), convolutions (out, in, width). Nothing is dropped, and batch normalization
takes its stored statistics.

Axes: B batch, T time, E size of a word vector, U units, L look-back, S slots, V words.
"""

from typing import NamedTuple

import numpy as np


class Settings(NamedTuple):
    slots: int  # S
    lookback: int  # L
    resolution: float
    hard: bool
    layers: int  # of the reading network
    residual_blocks: int
    parsing_network: bool = True
    reading_attention: bool = True
    predict_attention: bool = True


class State(NamedTuple):
    """The state after a word. The newest entries are first, except in `words`."""

    words: np.ndarray  # (B, L, E), oldest first
    distances: np.ndarray  # (B, S)
    memory: list  # (h, c) of every reading layer, each (B, S, U)


class Result(NamedTuple):
    log_probabilities: np.ndarray  # (B, T, V)
    distances: np.ndarray  # (B, T)
    gates: np.ndarray  # (B, T, S), of the reading network
    next_gates: np.ndarray  # (B, T, S), of the predict network
    reading: np.ndarray  # (B, T, R, S), attention of every reading layer
    predict: np.ndarray  # (B, T, S), of the predict network
    state: State


def initial_state(weights, settings, batch):
    """The `State` before a text: no words, and infinite distances."""
    size, units = weights["encoder.weight"].shape[1], weights["parser.gate.1.bias"].shape[0]
    slots = (batch, settings.slots, units)
    return State(
        np.zeros((batch, settings.lookback, size)),
        np.full((batch, settings.slots), np.inf),
        [(np.zeros(slots), np.zeros(slots)) for _ in range(settings.layers)],
    )


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def batch_norm(x, weights, name):
    mean, variance = weights[f"{name}.running_mean"], weights[f"{name}.running_var"]
    x = (x - mean) / np.sqrt(variance + 1e-5)
    return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def layer_norm(x, weights, name):
    scaled = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True, ddof=1) + 1e-6)
    return weights[f"{name}.gamma"] * scaled + weights[f"{name}.beta"]


def syntactic_distances(window, weights):
    """(B, L + 1, E) -> distance before the last word and estimate of the next distance, (B,)."""
    kernel = weights["parser.gate.1.weight"]  # (U, E, L + 1)
    x = np.einsum("ble,uel->bu", window, kernel) + weights["parser.gate.1.bias"]
    x = np.maximum(batch_norm(x, weights, "parser.gate.2"), 0.0)
    halves = np.split(x, 2, axis=1)
    kernel, bias = weights["parser.gate.5.weight"][..., 0], weights["parser.gate.5.bias"]
    return [sigmoid(half @ kernel[i] + bias[i]) for i, half in enumerate(halves)]


def structural_gates(distance, history, settings):
    """(B,), (B, S) newest first -> gates (B, S) of the attention to earlier words."""
    if not settings.parsing_network:
        return np.ones(history.shape)
    difference = (distance[:, None] - history) / settings.resolution
    if settings.hard:
        alpha = np.clip(difference + 1.0, 0.0, 1.0)
    else:
        alpha = np.where(np.isinf(history), 0.0, sigmoid(10.0 * difference + 5.0))
    return np.cumprod(alpha, axis=1)


def attention(key, memory, gates):
    """(B, U), (B, S, U), (B, S) -> weights (B, S)."""
    logits = np.einsum("bu,bsu->bs", key, memory) / np.sqrt(memory.shape[-1])
    weights = np.exp(logits - logits.max(1, keepdims=True)) * gates
    return weights / (weights.sum(1, keepdims=True) + 1e-8)


def lstm(x, h, c, weights, name):
    projected = layer_norm(linear(x, weights, f"{name}.ih.0"), weights, f"{name}.ih.1")
    projected += layer_norm(linear(h, weights, f"{name}.hh.0"), weights, f"{name}.hh.1")
    i, f, candidate, o = np.split(projected, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(candidate)
    return sigmoid(o) * np.tanh(layer_norm(c, weights, f"{name}.c_norm")), c


def pushed(memory, row):
    return np.concatenate([row[:, None], memory[:, :-1]], axis=1)


def step(ids, state, weights, settings):
    """One word: (B,) -> log-probabilities (B, V), distance, both gates, state."""
    embedding = weights["encoder.weight"]
    window = np.concatenate([state.words, embedding[ids][:, None]], axis=1)
    distance, estimate = syntactic_distances(window, weights)
    history = pushed(state.distances, distance)
    gates = structural_gates(distance, history, settings)
    next_gates = structural_gates(estimate, history, settings)
    remembered = state.memory[-1][0]  # state of the top layer before this word
    x, memory, shares, looked = embedding[ids], [], [], np.zeros_like(gates)
    for index, (hs, cs) in enumerate(state.memory):
        name = f"reader.{index}"
        h, c = hs[:, 0], cs[:, 0]
        if settings.reading_attention:
            key = linear(np.concatenate([x, h], axis=1), weights, f"{name}.projector_summ.1")
            shares.append(attention(key, hs, gates))
            h, c = (np.einsum("bs,bsu->bu", shares[-1], rows) for rows in (hs, cs))
        h, c = lstm(x, h, c, weights, f"{name}.memory_rnn")
        memory.append((pushed(hs, h), pushed(cs, c)))
        x = h
    summary = np.zeros_like(x)
    if settings.predict_attention:
        key = linear(x, weights, "predictor.projector_pred.1")
        looked = attention(key, remembered, next_gates)
        summary = np.einsum("bs,bsu->bu", looked, remembered)
    y = np.concatenate([x, summary], axis=1)
    for index in range(settings.residual_blocks):
        name = f"predictor.res.res.{index}"
        inner = batch_norm(linear(y, weights, f"{name}.0"), weights, f"{name}.1")
        inner = batch_norm(
            linear(np.maximum(inner, 0.0), weights, f"{name}.4"), weights, f"{name}.5"
        )
        y = np.maximum(y + inner, 0.0)
    y = np.tanh(batch_norm(linear(y, weights, "predictor.ffd.1"), weights, "predictor.ffd.2"))
    logits = y @ weights.get("decoder.weight", embedding).T + weights["decoder.bias"]
    top = logits.max(1, keepdims=True)
    log_probabilities = logits - top - np.log(np.exp(logits - top).sum(1, keepdims=True))
    state = State(window[:, 1:], history, memory)
    shares = np.array(shares).reshape(len(shares), *gates.shape).swapaxes(0, 1)  # (B, R, S)
    return log_probabilities, distance, gates, next_gates, shares, looked, state


def run(ids, weights, settings, state=None):
    """(B, T) -> `Result`."""
    state = initial_state(weights, settings, len(ids)) if state is None else state
    rows = []
    for column in ids.T:
        *row, state = step(column, state, weights, settings)
        rows.append(row)
    return Result(*(np.stack(parts, axis=1) for parts in zip(*rows, strict=True)), state)
