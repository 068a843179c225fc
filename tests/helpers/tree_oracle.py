"""TreeLSTM in NumPy float64, written from equations 1 to 7 and read from the tree itself.

It knows neither steps nor grids: a word asks the tree for its dependents, and goes down.
"""

import numpy as np

NAMES = ("gen_l", "gen_r", "gen_nx_l", "gen_nx_r")


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def cell(arrays, name, x, h, c):
    gates = arrays[f"{name}.ih.weight"] @ x + arrays[f"{name}.ih.bias"]
    gates = gates + arrays[f"{name}.hh.weight"] @ h + arrays[f"{name}.hh.bias"]
    i, f, o, u = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(u)
    return sigmoid(o) * np.tanh(c), c


def deep(arrays, name, x, states):
    new = []
    for layer, (h, c) in enumerate(states):
        h, c = cell(arrays, f"{name}.{layer}", x, h, c)
        new.append((h, c))
        x = h
    return new


def depth(arrays, name):
    return sum(f"{name}.{layer}.ih.bias" in arrays for layer in range(9))


def hidden(arrays, heads, ids, root):
    """The h of the last layer for every word, (n, U)."""
    units = arrays["output"].shape[1]
    vectors = np.asarray(arrays["embedding"], "float64")[[root, *ids]]
    first = np.full(units, 0.01)
    states = {0: [(first, first)] * depth(arrays, "gen_r")}
    waiting = [0]
    while waiting:
        head = waiting.pop()
        own = [place for place, above in enumerate(heads, 1) if above == head]
        left = [place for place in own if place < head][::-1]  # nearest first
        right = [place for place in own if place > head]
        for places, begin, go_on in ((left, "gen_l", "gen_nx_l"), (right, "gen_r", "gen_nx_r")):
            source = head
            for number, place in enumerate(places):
                name, x = (go_on if number else begin), vectors[source]
                if name == "gen_r" and depth(arrays, "ld"):
                    read = [(first, first)] * depth(arrays, "ld")
                    for dependent in left[::-1]:  # farthest first
                        read = deep(arrays, "ld", vectors[dependent], read)
                    x = np.concatenate([x, read[-1][0]])
                states[place] = deep(arrays, name, x, states[source])
                source = place
        waiting += own
    return np.array([states[place][-1][0] for place in range(1, len(ids) + 1)])


def log_probabilities(arrays, heads, ids, root):
    """log P(w | D(w)) of every word, (n,)."""
    logits = hidden(arrays, heads, ids, root) @ np.asarray(arrays["output"], "float64").T
    logits = logits + arrays.get("output_bias", 0.0)
    logits = logits - logits.max(-1, keepdims=True)
    chosen = logits[np.arange(len(ids)), ids]
    return chosen - np.log(np.exp(logits).sum(-1))
