"""Functions to time on PyTorch. They take no arguments and wait for their results."""

import torch
from configurations import MATMULS, TORCH_LSTM
from layers import arrays, product_arrays, stack
from models import functions
from torch_language_model import training_step

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def _wait(_=None):
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def build(name, configuration, dtype):
    """Functions to time, by measure: `forward` and `train`."""
    kind = getattr(torch, dtype)
    if configuration.model:
        if name == TORCH_LSTM:
            timed = {"train": training_step(configuration, kind, DEVICE)}
        else:
            timed = functions(name, configuration, dtype)
        return {measure: lambda call=call: _wait(call()) for measure, call in timed.items()}
    if name == MATMULS:
        return _matmuls(configuration, kind)
    x, weights = (torch.tensor(a, dtype=kind, device=DEVICE) for a in arrays(configuration))
    x.requires_grad_(True)
    if name == TORCH_LSTM:
        sizes = (configuration.input_dim, *configuration.units)
        layers = [
            torch.nn.LSTM(d, u, batch_first=True, device=DEVICE, dtype=kind)
            for d, u in zip(sizes, configuration.units, strict=False)
        ]
        variables = [p for layer in layers for p in layer.parameters()]

        def call(x, training):
            for layer in layers:
                x = layer(x)[0]
            return x
    else:
        model = stack(name, configuration, "float32" if dtype == "float32" else f"mixed_{dtype}")
        variables = [v.value for v in model.trainable_variables]
        call = model

    def forward():
        with torch.no_grad():
            _wait(call(x, training=False))

    def train():
        loss = (call(x, training=True) * weights).sum()
        _wait(torch.autograd.grad(loss, [x, *variables]))

    return {"forward": forward, "train": train}


def _matmuls(configuration, dtype):
    layers = [
        {name: torch.tensor(a, dtype=dtype, device=DEVICE) for name, a in layer.items()}
        for layer in product_arrays(configuration)
    ]

    def forward():
        for a in layers:
            a["inputs"] @ a["kernel"]
            for _ in range(configuration.time):
                a["kernel_t"] @ a["h"]
        _wait()

    def train():
        forward()
        for a in layers:
            for _ in range(configuration.time):
                a["recurrent_kernel"] @ a["z"]
            a["inputs"].t() @ a["dz"], a["h_tm1"].t() @ a["dz"], a["dz"] @ a["kernel"].t()
        _wait()

    return {"forward": forward, "train": train}


def device_bytes():
    """Bytes in use on the device and their peak, or `None` if unknown."""
    if DEVICE == "cpu":
        return None
    return torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()


def device():
    return torch.cuda.get_device_name() if DEVICE == "cuda" else None


def rates(dtype):
    """A large matrix product with its number of operations, and a copy with its bytes moved."""
    size = 4096 if dtype == "float32" else 8192
    square = torch.ones((size, size), dtype=getattr(torch, dtype), device=DEVICE)
    long = torch.ones(2**28, device=DEVICE)
    return (lambda: _wait(square @ square), 2 * size**3), (lambda: _wait(long + 1), 2**31)
