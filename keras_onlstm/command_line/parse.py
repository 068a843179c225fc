"""`keras-onlstm parse`: trees of sentences."""

import argparse
import itertools
import json
import sys
from pathlib import Path

from keras_onlstm.command_line.inputs import (
    add_exported,
    add_sentences,
    check_files,
    nothing_to,
    sentences,
)
from keras_onlstm.command_line.large import add_large, check_large, process
from keras_onlstm.utils.files import cannot_write, replacing
from keras_onlstm.utils.progress import Progress

__all__ = ["EXAMPLES", "HELP", "add_arguments", "run"]

HELP = "trees of sentences that nobody annotated"
EXAMPLES = (
    'keras-onlstm parse "the company said it will sell its stake"',
    "keras-onlstm parse --format json --file sentences.txt",
    "keras-onlstm parse --format pretty --punctuation - < sentences.txt",
    'keras-onlstm parse --format svg "prices fell" > tree.svg',
    "keras-onlstm parse --format html --file sentences.txt --output trees.html",
    "keras-onlstm parse --format png --file sentences.txt --output trees",
    'keras-onlstm parse --model runs/onnx/parser.onnx "prices fell"',
    "keras-onlstm parse --file corpus.txt --output trees --workers 2",
)
PICTURES = ("svg", "png")
SHARDED = ("brackets", "json", "parquet")  # that files of many rows are written in
FORMATS = ("brackets", "pretty", "json", "conll", "html", *PICTURES, "parquet")
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
    add(
        "--output",
        metavar="PATH",
        help="of svg and png, a file for one sentence, or a directory; of html, a file; of "
        "brackets, json and parquet, a directory of shards of large files (--file, a text or "
        "Parquet), where the same command goes on after a stop",
    )
    add_large(parser)
    add_exported(parser, ".onnx and .tflite")


def run(options: argparse.Namespace) -> None:
    """Prints a tree for every sentence, or draws them.

    Args:
        options: of the command line.

    Raises:
        FileNotFoundError: if a file is missing.
        OSError: if a picture cannot be written.
        ValueError: if there is no word, or the model does not go with the options, or there are
            several sentences and room for one picture.
        ImportError: if what the model needs, or PNG, is not installed.
    """
    _check_output(options)
    from keras_onlstm.parser import Parser

    check_files(options)
    if options.output is not None and options.format in SHARDED:
        return _parse_files(options)
    if options.format == "png":
        from keras_onlstm.utils.png import check_png

        check_png()
    parser = Parser.load(
        options.model,
        options.layer,
        options.method,
        options.provider,
        options.threads,
        gate=options.gate,
    )
    read = parser.read(sentences(options), block=BLOCK, punctuation=options.punctuation)
    with Progress("words") as progress:
        if options.format in PICTURES:
            count = _draw(options, parser, _counted(read, progress), progress)
        elif options.format == "html":
            count = _write_page(options, parser, _counted(read, progress), progress)
        else:
            count = _print(options, read, progress)
    if not count:
        raise nothing_to("parse", options)
    return None


def _parse_files(options):
    """Parses large files into a directory."""
    from keras_onlstm.scale.tasks import Parsing

    models = options.model if options.model is None or len(options.model) > 1 else options.model[0]
    load = {
        **{"name_or_path": models, "layer": options.layer, "method": options.method},
        **{"gate": options.gate, "provider": options.provider, "threads": options.threads},
    }
    punctuation = options.punctuation
    process(options, Parsing(options.format, punctuation=punctuation, load=load))


def _check_output(options):
    """Refuses an --output that does not go with --format."""
    form, error = options.format, options.parser.error
    sharded = form in SHARDED and options.output is not None
    check_large(options, sharded, ", ".join(SHARDED))
    if options.output is None:
        if form in ("png", "parquet"):
            what = "a .png file or a directory" if form == "png" else "a directory"
            error(f"--format {form}: needs --output, {what}")
        return
    path = Path(options.output)
    if sharded:
        if path.exists() and not path.is_dir():
            error(f"--output {path}: is a file; --format {form} writes a directory")
        return
    if form not in (*PICTURES, "html"):
        error(f"--output: --format {form} is printed, > writes a file")
    if form == "html" and path.is_dir():
        error(f"--output {path}: is a directory, and html is one file")
    if form != "html" and path.suffix in (".html", *(f".{other}" for other in PICTURES)):
        if path.suffix != f".{form}" and not path.is_dir():
            error(f"--output {path}: does not end in .{form}, and is no directory")
    elif form != "html" and path.exists() and not path.is_dir():
        error(f"--output {path}: is a file; name one that ends in .{form}, or a directory")


def _counted(read, progress):
    """The sentences that have a tree."""
    for parsed in read:
        progress.add(len(parsed.words))
        if parsed.tree is not None:
            yield parsed


def _bars(parser, parsed, punctuation):
    """The mean of the distances that count, and nothing below punctuation."""
    means = parsed.distances[parser.rows].mean(axis=0).tolist()
    if not punctuation:
        return means
    rest = iter(means)
    return [next(rest) if token.is_word else 0.0 for token in parsed.tokens]


def _draw(options, parser, read, progress):
    """Draws every sentence, one into a file or onto standard output, many into a directory."""
    from keras_onlstm.parsing.pictures import draw, write_picture

    output = None if options.output is None else Path(options.output)
    single = output is None or (output.suffix == f".{options.format}" and not output.is_dir())
    if single:
        read = list(itertools.islice(read, 2))
        if len(read) > 1:
            way = "--format html puts all on one page, --output DIR"
            raise ValueError(
                f"there are several sentences, and {output or 'standard output'} holds one "
                f"picture: {way if output is None else '--output DIR'} gives each a file."
            )
    count = 0
    missing: frozenset[str] = frozenset()
    for count, parsed in enumerate(read, 1):
        bars = _bars(parser, parsed, options.punctuation)
        if output is None:
            progress.clear()
            print(draw(parsed.tree, bars))
            continue
        if not single:
            _make(output)
        path = output if single else output / f"{count}.{options.format}"
        missing |= write_picture(path, parsed.tree, distances=bars)
    if count and output is not None:
        progress.clear()
        print(output if single else f"{output}: 1.{options.format} to {count}.{options.format}")
    if missing:
        _say_what_fonts_lack(options, missing)
    return count


def _say_what_fonts_lack(options, missing):
    from keras_onlstm.utils.png import lacking

    line = f"{options.parser.prog}: {lacking(missing)}; --format svg shows them"
    print(line, file=sys.stderr)


def _make(directory):
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(directory, error) from error


def _write_page(options, parser, read, progress):
    from keras_onlstm.parsing import draw_page

    trees, bars = [], []
    for parsed in read:
        trees.append(parsed.tree)
        bars.append(_bars(parser, parsed, options.punctuation))
    progress.clear()
    if trees and options.output is None:
        print(draw_page(trees, bars), end="")
    elif trees:
        with replacing(options.output) as temporary:
            temporary.write_text(draw_page(trees, bars), encoding="utf-8")
        print(options.output)
    return len(trees)


def _print(options, read, progress):
    count = 0
    for parsed in read:
        count += parsed.tree is not None
        progress.clear()
        if options.format == "conll":
            _print_conll(parsed.tree, count)
        else:
            print(_shown(parsed, options.format), flush=True)
        progress.add(len(parsed.words))
    return count


def _print_conll(tree, count):
    from keras_onlstm.parsing import conll

    if tree is not None:  # a blank line parts two sentences
        print(("\n" if count > 1 else "") + conll(tree), flush=True)


def _shown(parsed, form):
    from keras_onlstm.parsing import brackets, outline

    if form == "json":
        return _json(parsed)
    if parsed.tree is None:
        return ""
    if form == "pretty" and len(parsed.words) <= LONGEST_PICTURE:
        return outline(parsed.tree)
    return brackets(parsed.tree)


def _json(parsed):
    from keras_onlstm.parsing import brackets, nested_json

    tree = parsed.tree
    record = {
        "source": parsed.source,
        "words": parsed.words,
        "tokens": [token._asdict() for token in parsed.tokens],
        "distances": [[round(float(d), 6) for d in layer] for layer in parsed.distances],
        "brackets": None if tree is None else brackets(tree),
    }
    # The tree is put in as text: as lists, a deep one is more than `json.dumps` takes.
    written = "null" if tree is None else nested_json(tree)
    return f'{json.dumps(record, ensure_ascii=False)[:-1]}, "tree": {written}}}'
