"""Checks of the arguments of an export, and of the exported file against Keras."""

import collections
import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

from keras_onlstm import runtime
from keras_onlstm.exporting.graphs import ModelGraph, draw_inputs
from keras_onlstm.onlstm.recurrence import reference, substituted
from keras_onlstm.prpn import recurrence as prpn_recurrence
from keras_onlstm.utils import StrPath, Tensor
from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.libraries import is_installed

BATCHES, TIMES = (3, 1), (2, 17, 1)
# Largest accepted difference from Keras, by precision of the weights. A millionth of the value is
# added. float32 rounds at 6e-8, and sums of hundreds of terms accumulate that. float16 has 11 bits,
# "weights" has 8, and "dynamic" rounds inputs to 8 bits too. These limits only catch mistakes in a
# graph; docs/export_onnx.md reports how quantization changes results.
TOLERANCES = {None: 1e-5, "float16": 0.05, "weights": 1.0, "dynamic": 1.0}


class Difference(NamedTuple):
    """Largest difference between a file and Keras, over all outputs and sizes."""

    largest: float
    output: str | None  # name of the output that has it
    sizes: tuple[int, int] | None  # (batch, time) of the inputs that gave it


def keras_outputs(graph: ModelGraph, inputs: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Outputs of the graph in Keras, with the reference recurrence."""
    if graph.reference is not None:
        return graph.reference(**inputs)
    with substituted(reference), prpn_recurrence.substituted(prpn_recurrence.reference):
        outputs = graph.function(inputs)
    return {name: keras.ops.convert_to_numpy(value) for name, value in outputs.items()}


def compare(
    run: Callable[..., Mapping[str, np.ndarray]],
    graph: ModelGraph,
    quantize: str | None = None,
    batches: Sequence[int] = BATCHES,
) -> Difference:
    """Runs a graph in its runtime and in Keras on the same random inputs.

    Raises `ValueError` if the names or shapes of outputs differ, or their values differ too much
    for the precision of the file.
    """
    worst, tolerance, too_far = Difference(0.0, None, None), TOLERANCES[quantize], False
    for batch, steps in itertools.product(batches, TIMES):
        inputs = draw_inputs(graph, batch, steps, seed=steps)
        expected, outputs = keras_outputs(graph, inputs), run(**inputs)
        shapes, keras_shapes = (
            {name: results[name].shape for name in sorted(results)}
            for results in (outputs, expected)
        )
        if shapes != keras_shapes:
            raise ValueError(
                f"the exported file has outputs of shapes {shapes}, Keras of {keras_shapes}."
            )
        for name, value in expected.items():
            errors = np.abs(outputs[name].astype("float64") - value)
            errors[np.isnan(errors)] = np.inf
            error = float(np.max(errors, initial=0.0))
            too_far |= bool(np.any(errors > tolerance + 1e-6 * np.abs(value)))
            if error > worst.largest:
                worst = Difference(error, name, (batch, steps))
    if too_far:
        raise ValueError(
            f"the exported file differs from Keras by {worst.largest:.3g}, more than "
            f"{tolerance:g}, in the output {worst.output} for inputs of size (batch, time) = "
            f"{worst.sizes}. Nothing was written."
        )
    return worst


def measure_latency(run: Callable[..., object], graph: ModelGraph, batch: int = 1) -> float:
    """Median time in seconds of 15 runs with 17 tokens, or with one token for the graph `step`."""
    inputs, times = draw_inputs(graph, batch, 17), []
    for _ in range(15):
        start = time.perf_counter()
        run(**inputs)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def count_operators(names: Iterable[str]) -> dict[str, int]:
    """Counts each operator; the most frequent comes first."""
    return dict(collections.Counter(names).most_common())


class Exported(NamedTuple):
    """An exported file.

    Attributes:
        path: `Path`.
        graphs: tuple of names.
        size: in bytes.
        operators: counts by name, the most frequent first.
        difference: `Difference` from Keras, or `None` if unchecked.
        latency: median seconds of a run with batch 1 and 17 tokens; `None` if unchecked.
    """

    path: Path
    graphs: tuple[str, ...]
    size: int
    operators: dict[str, int]
    difference: Difference | None
    latency: float | None


def check_request(
    path: StrPath, suffix: str, quantize: str | None = None, quantizations: tuple[str, ...] = ()
) -> Path:
    """Checks the file extension, quantization, backend and directory before exporting."""
    backend = keras.backend.backend()
    if backend != "tensorflow":
        install = "" if is_installed("tensorflow") else "pip install tensorflow, "
        raise ValueError(
            f"Exporting needs TensorFlow, but Keras runs on {backend}. Save the model, {install}"
            "and export it with KERAS_BACKEND=tensorflow."
        )
    if quantize not in (None, *quantizations):
        *names, last = map(repr, (None, *quantizations))
        raise ValueError(f"quantize must be {', '.join(names)} or {last}, got {quantize!r}.")
    path = Path(path)
    if path.suffix != suffix and suffix:
        raise ValueError(f"{path}: the name of the file must end in {suffix}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent}: this folder does not exist. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path.parent}: this folder is not writable. Choose another one.")
    if suffix and path.is_dir():
        raise IsADirectoryError(f"{path}: is a directory. Choose the name of a file.")
    return path


def write_checked(
    path: Path,
    content: bytes,
    graph: ModelGraph,
    operators: Iterable[str],
    *,
    quantize: str | None,
    check: bool,
    provider: str = "cpu",
    batch: int | None = None,
) -> Exported:
    """Writes a file of one graph, which replaces `path` only if the results match Keras.

    `batch` is the fixed batch size of the file, `None` if it takes any.
    """
    difference = seconds = None
    with replacing(path) as temporary:
        temporary.write_bytes(content)
        if check:
            run = runtime.load(temporary, provider).run
            difference = compare(run, graph, quantize, BATCHES if batch is None else (batch,))
            seconds = measure_latency(run, graph, batch or 1)
    counts = count_operators(operators)
    return Exported(path, (graph.name,), path.stat().st_size, counts, difference, seconds)


def describe(exported: Exported) -> str:
    """Summary of an export."""
    counts = [f"{name} {count}" for name, count in list(exported.operators.items())[:8]]
    lines = [
        f"{exported.path}: {', '.join(exported.graphs)}",
        f"  size        {exported.size / 1e6:.2f} MB",
        f"  operators   {sum(exported.operators.values())}: {', '.join(counts)}, ...",
    ]
    if exported.difference is None or exported.latency is None:
        lines.append("  not checked")
    else:
        lines.append(f"  difference  {exported.difference.largest:.2g} from Keras at most")
        text = "a token" if exported.graphs[0] == "step" else "a sentence of 17 tokens"
        lines.append(f"  latency     {1e3 * exported.latency:.2f} ms for {text}")
    return "\n".join(lines)
