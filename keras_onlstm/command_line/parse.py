"""`keras-onlstm parse`: parses sentences into constituency trees."""

import argparse
import itertools
import json

from keras_onlstm.command_line import inputs
from keras_onlstm.command_line.output import open_output, read_output, write_rows
from keras_onlstm.utils.console import progress_bar
from keras_onlstm.utils.files import cannot_write

HELP = "parse sentences into constituency trees (unsupervised)"
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
MAX_PRETTY_WORDS = 120  # wider trees are printed in brackets


# fmt: off
def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    lines_of_file = "Each line is split into sentences; each sentence gets a tree."
    inputs.add_sentences(parser, "parse", lines_of_file)
    add = parser.add_argument
    add("--model", action="append", metavar="PATH",
        help="Trained model: a .keras, .npz, .onnx or .tflite file, or the folder of a run "
        "(default: the package's model). If repeated, the models parse together.")
    add("--layer", type=int, metavar="N",
        help="Layer whose distances build the tree (default: 2; with several models, all layers).")
    add("--method", choices=("greedy", "binary", "votes"),
        help="How distances build a tree (default: greedy; with several models, votes).")
    add("--gate", choices=("forget", "input", "both", "syntactic"),
        help="Master gate whose distances build the tree (default: forget; with --method votes, "
        "both; for a PRPN, syntactic).")
    add("--punctuation", action="store_true", help="Keep punctuation in the trees.")
    add("--format", choices=FORMATS, default="brackets",
        help="Format of the trees (default: brackets).")
    add("--output", metavar="PATH",
        help="Where to write. A name with a suffix is a file of all trees; for svg and png, of one "
        "tree. A name without a suffix is a directory: it gets one file per sentence, or for "
        "brackets, json and parquet the trees of large files, and the same command resumes a "
        "stopped run (default: standard output).")
    inputs.add_large(parser)
    inputs.add_exported(parser, ".onnx or .tflite")


# fmt: on
def run(options: argparse.Namespace) -> None:
    """Prints or draws a tree for every sentence."""
    form = options.format
    output = read_output(options, form)
    directory = output is not None and output.is_directory
    sharded = directory and form in SHARDED
    inputs.check_large(options, sharded, ", ".join(SHARDED))
    if output is None and form in ("png", "parquet"):
        options.parser.error(f"--format {form}: requires --output, a .{form} file or a directory")
    inputs.check_files(options)
    if sharded:
        return inputs.process(options, _task(options))
    if form == "parquet":
        return write_rows("parse", options, output, _task(options))
    if form == "png":
        from keras_onlstm.drawing.svg import check_png

        check_png()
    from keras_onlstm.parser import Parser

    if directory:
        write = _write_files
    elif form in PICTURES:
        write = _draw_one
    else:
        write = _write_page if form == "html" else _write_lines
    parser = Parser.load(**_load_arguments(options))
    read = parser.parse_detailed(
        inputs.sentences(options), block=BLOCK, punctuation=options.punctuation
    )
    with progress_bar("words") as bar:
        count = write(options, output, parser, _update_bar(read, bar), bar)
        bar.clear()
    if output is not None:
        suffix = _suffix(form)
        print(f"{output.path}: 1{suffix} to {count}{suffix}" if directory else output.path)
    return None


def _load_arguments(options):
    """Keyword arguments of `Parser.load`."""
    models = options.model if options.model is None or len(options.model) > 1 else options.model[0]
    names = ("layer", "method", "gate", "provider", "threads")
    return {"name_or_path": models, **{name: getattr(options, name) for name in names}}


def _task(options):
    from keras_onlstm.scale.tasks import Parsing

    load = _load_arguments(options)
    return Parsing(options.format, punctuation=options.punctuation, load=load)


def _suffix(form):
    return ".txt" if form == "pretty" else f".{form}"


def _update_bar(results, bar):
    for result in results:
        yield result
        bar.update(len(result.words))


def _with_trees(options, results):
    """Yields the sentences that have a tree; raises an error if none has."""
    count = 0
    for result in results:
        if result.tree is not None:
            count += 1
            yield result
    if not count:
        raise inputs.no_words("parse", options)


def _mean_distances(parser, result, punctuation):
    """Means of the distances that build the tree, with 0 for punctuation."""
    means = result.distances[parser.rows].mean(axis=0).tolist()
    if not punctuation:
        return means
    remaining = iter(means)
    return [next(remaining) if token.is_word else 0.0 for token in result.tokens]


def _draw_one(options, output, parser, results, bar):
    """Draws the only sentence, to a file or standard output."""
    from keras_onlstm.parsing import save_picture

    trees = list(itertools.islice(_with_trees(options, results), 2))
    if len(trees) > 1:
        target = "standard output" if output is None else output.path
        raise ValueError(
            f"{target} can contain only one picture, but there are several sentences. Write one "
            "file per sentence with --output DIR, or all on one page with --format html."
        )
    distances = _mean_distances(parser, trees[0], options.punctuation)
    bar.clear()
    if output is None:
        print(_format_result(trees[0], options.format, distances))
    else:
        save_picture(output.path, trees[0].tree, distances=distances)
    return 1


def _write_files(options, output, parser, results, bar):
    """Writes every sentence that has a tree into a separate file."""
    from keras_onlstm.parsing import save_picture

    count = 0
    for count, result in enumerate(_with_trees(options, results), 1):
        if count == 1:
            try:
                output.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise cannot_write(output.path, error) from error
        path = output.path / f"{count}{_suffix(options.format)}"
        distances = _mean_distances(parser, result, options.punctuation)
        if options.format in PICTURES:
            save_picture(path, result.tree, distances=distances)
        else:
            with open_output(path) as stream:
                print(_format_result(result, options.format, distances), file=stream)
    return count


def _write_page(options, output, parser, results, bar):
    from keras_onlstm.parsing import draw_page

    results = list(_with_trees(options, results))
    distances = [_mean_distances(parser, result, options.punctuation) for result in results]
    bar.clear()
    with open_output(output and output.path) as stream:
        print(draw_page([result.tree for result in results], distances), end="", file=stream)
    return len(results)


def _write_lines(options, output, parser, results, bar):
    """Writes each sentence immediately after reading it."""
    form, count = options.format, 0
    with open_output(output and output.path) as stream:
        for result in results:
            if output is None:
                bar.clear()
            if form != "conll":
                print(_format_result(result, form), file=stream, flush=True)
            elif result.tree is not None:  # a blank line separates two sentences
                separator = "\n" if count else ""
                print(separator + _format_result(result, form), file=stream, flush=True)
            count += result.tree is not None
        if not count:
            raise inputs.no_words("parse", options)
    return count


def _format_result(result, form, distances=None):
    """One sentence as text in a format."""
    from keras_onlstm.parsing import brackets, conll, draw, draw_page, outline

    if form == "json":
        return _json(result)
    if result.tree is None:
        return ""
    if form == "conll":
        return conll(result.tree)
    if form == "svg":
        return draw(result.tree, distances)
    if form == "html":
        return draw_page([result.tree], [distances]).rstrip("\n")
    if form == "pretty" and len(result.words) <= MAX_PRETTY_WORDS:
        return outline(result.tree)
    return brackets(result.tree)


def _json(result):
    from keras_onlstm.parsing import brackets, nested_json

    tree = result.tree
    record = {
        "source": result.source,
        "words": result.words,
        "tokens": [token._asdict() for token in result.tokens],
        "distances": [[round(float(d), 6) for d in layer] for layer in result.distances],
        "brackets": None if tree is None else brackets(tree),
    }
    # The tree is inserted as text, because `json.dumps` cannot write deeply nested lists.
    tree_json = "null" if tree is None else nested_json(tree)
    return f'{json.dumps(record, ensure_ascii=False)[:-1]}, "tree": {tree_json}}}'
