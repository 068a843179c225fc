"""`keras-onlstm parse`: parses sentences into constituency trees."""

import argparse
import itertools
import json

from keras_onlstm.command_line.inputs import (
    add_exported,
    add_large,
    add_sentences,
    check_files,
    check_large,
    nothing_to,
    process,
    sentences,
)
from keras_onlstm.command_line.output import opened, read_output, write_rows
from keras_onlstm.utils.console import progress_bar
from keras_onlstm.utils.files import cannot_write

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
SHARDED = ("brackets", "json", "parquet")  # formats of shards of large files
FORMATS = ("brackets", "pretty", "json", "conll", "html", *PICTURES, "parquet")
BLOCK = 512  # sentences per block: trees are printed every few seconds
LONGEST_PICTURE = 120  # words; wider trees are printed in brackets


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
        help="a name with a suffix is a file: the trees of all sentences, or of svg and png of "
        "one. A name without a suffix is a directory: of pretty, conll, html, svg and png, a file "
        "for each sentence; of brackets, json and parquet, shards of large files (--file, a text "
        "or Parquet), which the same command resumes after a stop",
    )
    add_large(parser)
    add_exported(parser, ".onnx and .tflite")


def run(options: argparse.Namespace) -> None:
    """Prints or draws a tree for every sentence.

    Args:
        options: parsed arguments.

    Raises:
        FileNotFoundError: if a file is missing.
        OSError: if a file cannot be written.
        ValueError: if the input is empty, the model does not support the options, or one picture
            is for several sentences.
        ImportError: if a library that the model or PNG needs is not installed.
    """
    output = _check_output(options)
    directory = output is not None and output.is_directory
    check_files(options)
    if directory and options.format in SHARDED:
        return process(options, _task(options))
    if options.format == "parquet":
        return write_rows("parse", options, output, _task(options))
    if options.format == "png":
        from keras_onlstm.drawing.svg import check_png

        check_png()
    from keras_onlstm.parser import Parser

    if directory:
        write = _write_each
    elif options.format in PICTURES:
        write = _draw_one
    else:
        write = _write_page if options.format == "html" else _write_lines
    parser = Parser.load(**_load(options))
    read = parser.parse_detailed(sentences(options), block=BLOCK, punctuation=options.punctuation)
    with progress_bar("words") as bar:
        count = write(options, output, parser, _counted(read, bar), bar)
        bar.clear()
    if directory:
        suffix = _suffix(options.format)
        print(f"{output.path}: 1{suffix} to {count}{suffix}")
    elif output is not None:
        print(output.path)
    return None


def _load(options):
    """Keyword arguments of `Parser.load`."""
    models = options.model if options.model is None or len(options.model) > 1 else options.model[0]
    return {
        **{"name_or_path": models, "layer": options.layer, "method": options.method},
        **{"gate": options.gate, "provider": options.provider, "threads": options.threads},
    }


def _task(options):
    from keras_onlstm.scale.tasks import Parsing

    return Parsing(options.format, punctuation=options.punctuation, load=_load(options))


def _check_output(options):
    """Returns `--output` and checks that it fits `--format`."""
    form = options.format
    output = read_output(options, form)
    sharded = form in SHARDED and output is not None and output.is_directory
    check_large(options, sharded, ", ".join(SHARDED))
    if output is None and form in ("png", "parquet"):
        options.parser.error(f"--format {form}: needs --output, a .{form} file or a directory")
    return output


def _suffix(form):
    return ".txt" if form == "pretty" else f".{form}"


def _counted(read, bar):
    for parsed in read:
        yield parsed
        bar.update(len(parsed.words))


def _trees(options, read):
    """Yields the sentences that have a tree; raises an error if none has."""
    count = 0
    for parsed in read:
        if parsed.tree is not None:
            count += 1
            yield parsed
    if not count:
        raise nothing_to("parse", options)


def _bars(parser, parsed, punctuation):
    """The means of the used distances, with 0 for punctuation."""
    means = parsed.distances[parser.rows].mean(axis=0).tolist()
    if not punctuation:
        return means
    rest = iter(means)
    return [next(rest) if token.is_word else 0.0 for token in parsed.tokens]


def _draw_one(options, output, parser, read, bar):
    """Draws the only sentence, to a file or standard output."""
    from keras_onlstm.parsing import save_picture

    trees = list(itertools.islice(_trees(options, read), 2))
    if len(trees) > 1:
        where = "standard output" if output is None else output.path
        raise ValueError(
            f"there are several sentences, and {where} holds one picture. --output DIR, a name "
            "without a suffix, gives each a file; --format html puts all on one page."
        )
    bars = _bars(parser, trees[0], options.punctuation)
    bar.clear()
    if output is None:
        print(_shown(trees[0], options.format, bars))
    else:
        save_picture(output.path, trees[0].tree, distances=bars)
    return 1


def _write_each(options, output, parser, read, bar):
    """Writes every sentence that has a tree into a separate file."""
    from keras_onlstm.parsing import save_picture

    count = 0
    for count, parsed in enumerate(_trees(options, read), 1):
        if count == 1:
            _make(output.path)
        path = output.path / f"{count}{_suffix(options.format)}"
        bars = _bars(parser, parsed, options.punctuation)
        if options.format in PICTURES:
            save_picture(path, parsed.tree, distances=bars)
        else:
            with opened(path) as stream:
                print(_shown(parsed, options.format, bars), file=stream)
    return count


def _make(directory):
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(directory, error) from error


def _write_page(options, output, parser, read, bar):
    from keras_onlstm.parsing import draw_page

    found = list(_trees(options, read))
    bars = [_bars(parser, parsed, options.punctuation) for parsed in found]
    bar.clear()
    with opened(output and output.path) as stream:
        print(draw_page([parsed.tree for parsed in found], bars), end="", file=stream)
    return len(found)


def _write_lines(options, output, parser, read, bar):
    """Writes each sentence immediately after reading it."""
    form, count = options.format, 0
    with opened(output and output.path) as stream:
        for parsed in read:
            if output is None:
                bar.clear()
            if form != "conll":
                print(_shown(parsed, form), file=stream, flush=True)
            elif parsed.tree is not None:  # a blank line separates two sentences
                print(("\n" if count else "") + _shown(parsed, form), file=stream, flush=True)
            count += parsed.tree is not None
        if not count:
            raise nothing_to("parse", options)
    return count


def _shown(parsed, form, bars=None):
    """Formats one sentence."""
    from keras_onlstm.parsing import brackets, conll, draw, draw_page, outline

    if form == "json":
        return _json(parsed)
    if parsed.tree is None:
        return ""
    if form == "conll":
        return conll(parsed.tree)
    if form == "svg":
        return draw(parsed.tree, bars)
    if form == "html":
        return draw_page([parsed.tree], [bars]).rstrip("\n")
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
    # The tree is inserted as text, because `json.dumps` cannot write deeply nested lists.
    written = "null" if tree is None else nested_json(tree)
    return f'{json.dumps(record, ensure_ascii=False)[:-1]}, "tree": {written}}}'
