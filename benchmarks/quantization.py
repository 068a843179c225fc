"""Measures the effect of quantization on perplexity, trees and accuracy on logical inference.

    python benchmarks/quantization.py --text ptb --classifier runs/logic_inference --pairs logic

The language models of the package, or those of --language-model, are exported to ONNX and
TensorFlow Lite in every precision. Trees are scored on NLTK's treebank sample. Perplexity is
measured on the sentences of a test text (--text) with the first model, and accuracy on the
published test pairs (--classifier, --pairs). Writes quantization.md.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import report

from keras_onlstm import Parser, exporting, parsing, runtime
from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.datasets import treebank
from keras_onlstm.loading import load_model
from keras_onlstm.text.corpus import find, sentences

PRECISIONS = (None, "float16", "dynamic")
BATCH = 16


def exports(model, graph, directory):
    """Exports a graph in every format and precision; yields name, path and size in bytes."""
    for precision in PRECISIONS:
        for extension, export, options in (
            ("onnx", exporting.to_onnx, {}),
            ("tflite", exporting.to_tflite, {"batch": BATCH}),
        ):
            path = Path(directory, f"{graph}_{precision}.{extension}")
            exported = export(model, path, graph, quantize=precision, check=False, **options)
            label = {"onnx": "ONNX", "tflite": "TensorFlow Lite"}[extension]
            yield f"{label}, {precision or 'float32'}", path, exported.size


def perplexity(model, texts):
    scores = model.score(texts)
    return float(np.exp(-sum(s.sum() for s in scores) / sum(len(s) for s in scores)))


def parse(parser, corpus):
    trees = list(parser.parse_many([sentence.tokens for sentence in corpus]))
    scores = parsing.score(trees, [sentence.tree for sentence in corpus])
    return trees, 100 * scores["f1"]


def predict(run, pairs):
    """Predicted classes of pairs of id lists, in batches of similar length."""
    order = sorted(range(len(pairs)), key=lambda i: max(map(len, pairs[i])))
    classes = np.zeros(len(pairs), int)
    for start in range(0, len(order), BATCH):
        group = order[start : start + BATCH]
        sides = []
        for side in (0, 1):
            rows = [pairs[i][side] for i in group]
            ids = np.zeros((BATCH, max(map(len, rows))), "int32")
            for row, values in enumerate(rows):
                ids[row, : len(values)] = values
            sides.append(ids)
        classes[group] = run(left=sides[0], right=sides[1])["probabilities"].argmax(-1)[
            : len(group)
        ]
    return classes


def language_rows(options, directory):
    model, _ = load_model(options.language_model)
    corpus = treebank.load()[: options.sentences]
    expected, f1 = parse(Parser(model), corpus)
    texts = None
    if options.text:
        texts = list(sentences(find(options.text, "test")))[: options.sentences]
    first = getattr(model, "models", [model])[0]
    rows = {"Keras": ["", f"{perplexity(first, texts):.2f}" if texts else "", f"{f1:.2f}", ""]}
    for name, path, size in exports(model, "parser", directory):
        trees, f1 = parse(Parser.load(path), corpus)
        same = sum(tree == other for tree, other in zip(trees, expected, strict=True))
        rows[name] = [f"{size / 1e6:.2f}", "", f"{f1:.2f}", f"{same} of {len(expected)}"]
        print(name, rows[name], flush=True)
    if texts:
        for name, path, size in exports(first, "language_model", directory):
            value = perplexity(runtime.ExportedModel(runtime.load(path)), texts)
            rows[name][:2] = [f"{rows[name][0]}, {size / 1e6:.2f}", f"{value:.2f}"]
            print(name, rows[name], flush=True)
    header = ["", "MB (parser, language model)", "perplexity", "F1", "same trees"]
    return header, rows


def classifier_rows(options, directory):
    model, _ = load_model(options.classifier)
    buckets = logic.load(options.pairs).test.values()
    corpus = [pair for bucket in buckets for pair in bucket][:: options.every]
    pairs = [(logic.encode(pair.left), logic.encode(pair.right)) for pair in corpus]
    labels = np.array([logic.LABELS.index(pair.label) for pair in corpus])

    def run_keras(**ids):
        logits = model((ids["left"], ids["right"]))
        return {"probabilities": keras.ops.convert_to_numpy(keras.ops.softmax(logits))}

    expected = predict(run_keras, pairs)
    rows = {"Keras": ["", f"{100 * np.mean(expected == labels):.2f}", ""]}
    for name, path, size in exports(model, "classifier", directory):
        predicted = predict(runtime.load(path).run, pairs)
        accuracy = f"{100 * np.mean(predicted == labels):.2f}"
        rows[name] = [
            f"{size / 1e6:.2f}",
            accuracy,
            f"{int(np.sum(predicted == expected))} of {len(expected)}",
        ]
        print(name, rows[name], flush=True)
    return ["", "MB", "accuracy", "same answers"], rows


def table(header, rows):
    lines = [header, ["---"] * len(header), *([name, *cells] for name, cells in rows.items())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    # fmt: off
    add("--language-model", metavar="PATH",
        help="Run or file of a language model. Default: the models of the package.")
    add("--text", metavar="DIR", help="Folder of a corpus. Measures perplexity on its test text.")
    add("--classifier", metavar="PATH",
        help="Run of logic_inference.py. Measures accuracy; needs --pairs.")
    add("--pairs", metavar="DIR", help="Folder of the published pairs of formulas.")
    add("--sentences", type=int, default=10_000, metavar="N",
        help="Use the first N sentences of each text. (default: %(default)s)")
    add("--every", type=int, default=1, metavar="N", help="Use every N-th pair. (default: 1)")
    add("--output", type=Path, default=Path("runs/benchmarks"), metavar="DIR",
        help="Folder for the table. (default: %(default)s)")
    # fmt: on
    options = parser.parse_args()
    if bool(options.classifier) != bool(options.pairs):
        parser.error("--classifier and --pairs must be passed together")
    start = time.time()
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as directory:
            texts = [table(*language_rows(options, directory))]
            if options.classifier:
                texts.append(table(*classifier_rows(options, directory)))
        report.replace(options.output / "quantization.md", "\n".join(texts))
    except (ImportError, OSError, ValueError) as error:
        parser.error(str(error))
    print("\n".join(texts))
    print(f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
