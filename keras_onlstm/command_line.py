"""The command `keras-onlstm`."""

from keras_onlstm.console import ArgumentParser, report  # isort: split

import json
import os
import sys
from pathlib import Path

__all__ = ["main"]

FORMATS = ("brackets", "json", "pretty")
LONGEST_PICTURE = 120  # words; a wider tree nobody reads


def _arguments(arguments):
    parser = ArgumentParser(prog="keras-onlstm", description="Ordered neurons on the command line.")
    commands = parser.add_subparsers(dest="command", required=True)
    parse = commands.add_parser("parse", help="trees of sentences that nobody annotated")
    add = parse.add_argument
    add("sentences", nargs="*", metavar="SENTENCE", help="default: one a line of standard input")
    add("--file", action="append", default=[], metavar="FILE", help="one sentence a line")
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
        choices=("forget", "input", "both"),
        help="whose distances count (default: forget, of votes both)",
    )
    add("--format", choices=FORMATS, default="brackets", help="default: brackets")
    add("--provider", choices=("cpu", "cuda"), default="cpu", help="of .onnx files; default: cpu")
    add("--threads", type=int, metavar="N", help="of .onnx and .tflite files")
    return parser, parser.parse_args(arguments)


def _lines(name, stream):
    for number, line in enumerate(stream, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}, line {number}: is not UTF-8 text ({error.reason}). Convert it first."
            ) from error


def _sentences(options):
    yield from options.sentences
    for path in options.file:
        with open(path, "rb") as file:
            yield from _lines(path, file)
    if not options.sentences and not options.file:
        yield from _lines("standard input", sys.stdin.buffer)


def _shown(parsed, form):
    from keras_onlstm.parsing import brackets

    if form == "json":
        tree = None if parsed.tree is None else brackets(parsed.tree)
        distances = [[round(float(d), 6) for d in layer] for layer in parsed.distances]
        found = {"words": parsed.words, "tree": tree, "distances": distances}
        return json.dumps(found, ensure_ascii=False)
    if parsed.tree is None:
        return ""
    if form == "pretty" and len(parsed.words) <= LONGEST_PICTURE:
        return _picture(parsed.tree)
    return brackets(parsed.tree)


def _picture(tree):
    from nltk.tree.prettyprinter import TreePrettyPrinter

    return TreePrettyPrinter(tree).text()


def _parse(options):
    from keras_onlstm.parser import Parser

    for path in options.file:
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such file.")
    parser = Parser.load(
        options.model,
        options.layer,
        options.method,
        options.provider,
        options.threads,
        gate=options.gate,
    )
    count = 0
    for parsed in parser.read(_sentences(options)):
        count += parsed.tree is not None
        print(_shown(parsed, options.format), flush=True)
    if not count:
        raise ValueError("there is no word in the input.")


def main(arguments=None):
    """Runs a command line; the user's mistakes end in one line and exit status 2.

    Args:
        arguments: list of strings, or `None`: those of the process.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    parser, options = _arguments(arguments)
    report(parser, lambda: _parse(options), writes=False)
