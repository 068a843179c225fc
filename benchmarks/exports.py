"""Compares the speed of exported layers with the LSTM operator of ONNX Runtime.

    python benchmarks/exports.py                     # 400 units, input 128, 30 steps
    python benchmarks/exports.py --quick             # tiny sizes, to check that it runs

The layer is exported to ONNX, TensorFlow Lite and SavedModel, in float32 and quantized. It is
compared with the LSTM operator of ONNX Runtime at the same sizes, with the graph that tf2onnx makes
without this package, and with the Keras layer in TensorFlow. All run in one process and take turns:
in every round each makes one warm-up call and then calls for 50 ms. Ratios compare times of the
same round. Writes exports.json and exports.md.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import report
from run import cpu_model

from keras_onlstm import ONLSTM, exporting, runtime
from keras_onlstm.utils.libraries import versions

BASELINE = "LSTM of ONNX Runtime"
PAUSE, MIN_TIME = 0.03, 0.05  # seconds before a turn and of a turn
KINDS = (None, "float16", "dynamic")


def build(units, chunk_size, input_dim):
    layer = ONLSTM(units, chunk_size, return_sequences=True)
    return keras.Sequential([keras.Input((None, input_dim), name="x"), layer])


def open_session(model, threads):
    """Returns a function that runs an ONNX model with the input x."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda x: session.run(None, {"x": x})


def lstm_operator(units, input_dim, threads):
    """Returns a function that runs ONNX Runtime's LSTM on x (B, T, D)."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)

    def weights(name, width):
        values = rng.uniform(-0.05, 0.05, (1, 4 * units, width)).astype("float32")
        return numpy_helper.from_array(values, name)

    nodes = [
        helper.make_node("Transpose", ["x"], ["rows"], perm=[1, 0, 2]),
        helper.make_node("LSTM", ["rows", "W", "R"], ["y"], hidden_size=units),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "time", input_dim])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    constants = [weights("W", input_dim), weights("R", units)]
    graph = helper.make_graph(nodes, "lstm", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return open_session(model, threads)


def plain_conversion(model, threads):
    """Returns a function that runs the reference loop of the layer as converted by tf2onnx."""
    import tf2onnx

    from keras_onlstm.exporting.graphs import make_graph
    from keras_onlstm.exporting.saved_model_tensorflow import traced

    function = traced(make_graph(model))
    converted, _ = tf2onnx.convert.from_function(function, function.input_signature, opset=18)
    return open_session(converted, threads)


def exported_layers(model, batch, threads, directory):
    """Functions of x (B, T, D) and file sizes, by name."""
    import tensorflow as tf

    runs = {}
    for kind in KINDS:
        for name, export in (("onnx", exporting.to_onnx), ("tflite", exporting.to_tflite)):
            path = Path(directory, f"{kind}.{name}")
            options = {} if name == "onnx" else {"batch": batch}
            exported = export(model, path, quantize=kind, check=False, **options)
            opened = runtime.load(path, threads=threads)
            label = {"onnx": "ONNX Runtime", "tflite": "LiteRT"}[name]
            runs[f"{label}, {kind or 'float32'}"] = (
                lambda x, run=opened.run: run(x=x),
                exported.size,
            )
    exported = exporting.to_saved_model(model, Path(directory, "saved"), check=False)
    served = tf.saved_model.load(str(exported.path))
    signature = served.signatures["layer"]
    runs["SavedModel"] = (lambda x: signature(x=tf.constant(x))["output"].numpy(), exported.size)
    compiled = tf.function(model)
    runs["TensorFlow, the Keras layer"] = (lambda x: compiled(x).numpy(), None)
    runs["tf2onnx without this package"] = (plain_conversion(model, threads), None)
    return runs


def time_calls(run, x):
    """Mean seconds of a call, after a warm-up call."""
    # The threads of the previous runtime keep spinning for a while before they sleep.
    time.sleep(PAUSE)
    run(x)
    start, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - start < MIN_TIME:
        run(x)
        calls += 1
    return (time.perf_counter() - start) / calls


def measure(options):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    units, chunk_size, input_dim, steps = (16, 4, 8, 5) if options.quick else (400, 10, 128, 30)
    model = build(units, chunk_size, input_dim)
    results = {
        "command": "python benchmarks/exports.py " + " ".join(sys.argv[1:]),
        "processor": cpu_model(),
        "versions": versions("onnxruntime", "ai-edge-litert", "tf2onnx"),
        "sizes": {"units": units, "input": input_dim, "time": steps, "threads": options.threads},
        "bytes": {},
        "seconds": {},
    }
    for batch in (1, 32):
        x = np.random.default_rng(0).normal(size=(batch, steps, input_dim)).astype("float32")
        with tempfile.TemporaryDirectory() as directory:
            runs = {BASELINE: (lstm_operator(units, input_dim, options.threads), None)}
            runs |= exported_layers(model, batch, options.threads, directory)
            results["bytes"] |= {name: size for name, (_, size) in runs.items() if size}
            seconds = {name: [] for name in runs}
            for _ in range(options.rounds):
                for name, (run, _) in runs.items():
                    seconds[name].append(time_calls(run, x))
        results["seconds"][str(batch)] = seconds
    return results


def table(results):
    """Markdown table of milliseconds and of ratios to ONNX Runtime's LSTM, with quartiles."""
    sizes = ", ".join(f"{name} {size}" for name, size in results["sizes"].items())
    lines = [f"{results['processor']}; {sizes}.", ""]
    lines += ["| | MB | batch 1, ms | ratio | batch 32, ms | ratio |", "|---|---|---|---|---|---|"]
    for name in results["seconds"]["1"]:
        size = results["bytes"].get(name)
        cells = [name, f"{size / 1e6:.2f}" if size else ""]
        for seconds in results["seconds"].values():
            low, middle, high = report.ratios(seconds[name], seconds[BASELINE])
            cells.append(f"{1e3 * float(np.median(seconds[name])):.2f}")
            cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    # fmt: off
    add("--rounds", type=int, default=21, metavar="N", help="Number of rounds. (default: 21)")
    add("--threads", type=int, default=2, metavar="N", help="Threads of a runtime. (default: 2)")
    add("--output", type=Path, default=Path("runs/benchmarks"), metavar="DIR",
        help="Folder for the results. (default: %(default)s)")
    add("--quick", action="store_true",
        help="Use tiny sizes, to check that the script works. The times are meaningless.")
    # fmt: on
    options = parser.parse_args()
    if options.rounds < 1 or options.threads < 1:
        parser.error("--rounds and --threads must be 1 or above")
    return options, parser


def main():
    options, parser = parse()
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        results = measure(options)
        text = table(results)
        report.replace(options.output / "exports.json", json.dumps(results, indent=1) + "\n")
        report.replace(options.output / "exports.md", text)
    except (ImportError, OSError) as error:
        parser.error(str(error))
    print(text)


if __name__ == "__main__":
    main()
