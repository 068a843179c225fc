"""The language model of `language_models` with torch.nn.LSTM layers."""

from itertools import pairwise

import torch
from language_models import CLIPNORM, DROPOUTS, LEARNING_RATE, PENALTIES, WEIGHT_DECAY, ids
from torch.nn import functional


def locked_dropout(x, rate):
    """Dropout of (B, T, U) with the same mask in every time step."""
    return x * functional.dropout(torch.ones_like(x[:, :1]), rate)


def training_step(configuration, kind, device):
    """Returns a function that runs one training step."""
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
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    inputs, targets = (
        torch.tensor(a, dtype=torch.int64, device=device) for a in ids(configuration)
    )
    states = [None] * len(layers)

    def drop_weights(layer):
        """The parameters of a layer, with dropout of the recurrent kernel."""
        kernel = functional.dropout(layer.weight_hh_l0, DROPOUTS["recurrent_weight_dropout"])
        return {**dict(layer.named_parameters()), "weight_hh_l0": kernel}

    def step():
        words = table * functional.dropout(torch.ones_like(table[:, :1]), DROPOUTS["word_dropout"])
        x = locked_dropout(functional.embedding(inputs, words), DROPOUTS["input_dropout"])
        for index, layer in enumerate(layers):
            arguments = (x,) if states[index] is None else (x, states[index])
            raw, last = torch.func.functional_call(layer, drop_weights(layer), arguments)
            states[index] = tuple(state.detach() for state in last)
            is_last = index == len(layers) - 1
            x = locked_dropout(raw, DROPOUTS["output_dropout" if is_last else "hidden_dropout"])
        logits = x @ table.t() + bias
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
        loss = loss + PENALTIES[0] * x.square().mean()
        loss = loss + PENALTIES[1] * (raw[:, 1:] - raw[:, :-1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIPNORM)
        optimizer.step()
        return loss

    return step
