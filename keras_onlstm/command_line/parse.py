"""`keras-onlstm parse`: trees of sentences."""

import argparse
import json

from keras_onlstm.command_line.inputs import add_exported, add_sentences, check_files, sentences
from keras_onlstm.utils.console import Progress

__all__ = ["EXAMPLES", "HELP", "WRITES", "add_arguments", "run"]

HELP = "trees of sentences that nobody annotated"
EXAMPLES = (
    'keras-onlstm parse "the company said it will sell its stake"',
    "keras-onlstm parse --format json --file sentences.txt",
    "keras-onlstm parse --format pretty --punctuation - < sentences.txt",
    'keras-onlstm parse --model runs/onnx/parser.onnx "prices fell"',
)
WRITES = False
FORMATS = ("brackets", "json", "pretty")
BLOCK = 512  # sentences at once: seconds of work, after which trees come out
LONGEST_PICTURE = 120  # words; a wider tree nobody reads


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_sentences(parser)
    add = parser.add_argument
    add(
        "--model",
        action="append",
        metavar="PATH",
        help="a .keras, .npz, .onnx or .tflite file, or a run; default: the package's; more than "
        "once for models that parse together",
    )
    add("--layer", type=int, help="whose distances count (default: 2, of several models all)")
    add(
        "--method",
        choices=("greedy", "binary", "votes"),
        help="default: greedy, of several models votes",
    )
    add(
        "--gate",
        choices=("forget", "input", "both", "syntactic"),
        help="whose distances count (default: forget, of votes both, of PRPN syntactic)",
    )
    add(
        "--punctuation",
        action="store_true",
        help="have punctuation in the trees (default: leave it out)",
    )
    add("--format", choices=FORMATS, default="brackets", help="default: brackets")
    add_exported(parser, ".onnx and .tflite")


def run(options: argparse.Namespace) -> None:
    """Prints a tree for every sentence.

    Args:
        options: of the command line.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if there is no word, or the model does not go with the options.
        ImportError: if what the model needs is not installed.
    """
    from keras_onlstm.parser import Parser

    check_files(options)
    parser = Parser.load(
        options.model,
        options.layer,
        options.method,
        options.provider,
        options.threads,
        gate=options.gate,
    )
    count = 0
    read = parser.read(sentences(options), block=BLOCK, punctuation=options.punctuation)
    with Progress("words") as progress:
        for parsed in read:
            count += parsed.tree is not None
            progress.clear()
            print(_shown(parsed, options.format), flush=True)
            progress.add(len(parsed.words))
    if not count:
        raise ValueError("there is no word in the input.")


def _shown(parsed, form):
    from keras_onlstm.parsing import brackets, outline

    if form == "json":
        tree = None if parsed.tree is None else brackets(parsed.tree)
        distances = [[round(float(d), 6) for d in layer] for layer in parsed.distances]
        record = {"words": parsed.words, "tree": tree, "distances": distances}
        return json.dumps(record, ensure_ascii=False)
    if parsed.tree is None:
        return ""
    if form == "pretty" and len(parsed.words) <= LONGEST_PICTURE:
        return outline(parsed.tree)
    return brackets(parsed.tree)
