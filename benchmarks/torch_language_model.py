"""The language model of `language_models` with torch.nn.LSTM layers, for comparison."""

from itertools import pairwise

import torch
from language_models import CLIP, DECAY, DROPOUTS, PENALTIES, RATE, ids
from torch.nn import functional


def locked(x, rate):
    """Dropout of (B, T, U) with the same mask in every step."""
    return x * functional.dropout(torch.ones_like(x[:, :1]), rate)


def training_step(configuration, kind, device):
    """A function that runs one training step."""
    sizes = (configuration.input_dim, *configuration.units)
    layers = torch.nn.ModuleList(
        torch.nn.LSTM(d, u, batch_first=True) for d, u in pairwise(sizes)
    ).to(device, kind)
    vocabulary = configuration.vocabulary
    table = torch.nn.Parameter(
        torch.empty(vocabulary, sizes[0], device=device, dtype=kind).uniform_(-0.1, 0.1)
    )
    bias = torch.nn.Parameter(torch.zeros(vocabulary, device=device, dtype=kind))
    parameters = [table, bias, *layers.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=RATE, weight_decay=DECAY)
    inputs, targets = (
        torch.tensor(a, dtype=torch.int64, device=device) for a in ids(configuration)
    )
    states = [None] * len(layers)

    def dropped(layer):
        """The layer's parameters, with dropout of the recurrent kernel for one window."""
        kernel = functional.dropout(layer.weight_hh_l0, DROPOUTS["recurrent_weight_dropout"])
        return {**dict(layer.named_parameters()), "weight_hh_l0": kernel}

    def step():
        words = table * functional.dropout(torch.ones_like(table[:, :1]), DROPOUTS["word_dropout"])
        x = locked(functional.embedding(inputs, words), DROPOUTS["input_dropout"])
        for place, layer in enumerate(layers):
            arguments = (x,) if states[place] is None else (x, states[place])
            raw, last = torch.func.functional_call(layer, dropped(layer), arguments)
            states[place] = tuple(state.detach() for state in last)
            is_last = place == len(layers) - 1
            x = locked(raw, DROPOUTS["output_dropout" if is_last else "hidden_dropout"])
        logits = x @ table.t() + bias
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss = loss + PENALTIES[0] * x.square().mean()
        loss = loss + PENALTIES[1] * (raw[:, 1:] - raw[:, :-1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        return loss

    return step
