"""`keras-onlstm score`: log-probabilities of sentences under a language model."""

import argparse
import itertools
import math

from keras_onlstm.command_line.inputs import (
    add_exported,
    add_language_model,
    add_large,
    add_sentences,
    check_files,
    check_large,
    nothing_to,
    process,
    report_unknown,
    sentences,
)
from keras_onlstm.command_line.output import opened, read_output, write_rows
from keras_onlstm.utils.console import progress_bar, table

__all__ = ["EXAMPLES", "HELP", "add_arguments", "run"]

HELP = "log-probabilities and perplexities of sentences"
EXAMPLES = (
    'keras-onlstm score "the company says it will sell" "the company say it will sell"',
    "keras-onlstm score --model runs/lm --file sentences.txt",
    "keras-onlstm score - < sentences.txt",
    "keras-onlstm score --file corpus.txt --output scores --workers 2",
)
FORMATS = ("table", "json", "parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_sentences(parser)
    add_language_model(parser, "a .keras, .npz or .onnx file")
    add_exported(parser, ".onnx")
    add = parser.add_argument
    add(
        "--output",
        metavar="PATH",
        help="a name with a suffix is a file of all sentences. A name without a suffix is a "
        "directory: shards of large files (--file, a text or Parquet), which the same command "
        "resumes after a stop",
    )
    add("--format", choices=FORMATS, help="default: table, of a directory json")
    add_large(parser)


def run(options: argparse.Namespace) -> None:
    """Prints a table of sentences with the total perplexity, or writes their scores.

    Args:
        options: parsed arguments.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the input has no words, or the model predicts none.
        ImportError: if a library for the model is missing.
    """
    output = read_output(options, options.format or "table")
    directory = output is not None and output.is_directory
    form = options.format or ("json" if directory else "table")
    check_large(options, directory, " or ".join(FORMATS[1:]))
    if directory and form == "table":
        options.parser.error("--format table: is one file, whose name has a suffix")
    if output is None and form == "parquet":
        options.parser.error("--format parquet: needs --output, a .parquet file or a directory")
    check_files(options)
    if directory:
        return process(options, _task(options, form))
    if form != "table":
        return write_rows("score", options, output, _task(options, form))
    rows: list[list] = []
    unknown: list[str] = []
    total, count = 0.0, 0
    with progress_bar("tokens") as bar:
        for text, record in _scored(options):
            bar.update(record.words)
            fields = record.fields
            rows.append(
                [
                    *(text.strip(), fields["tokens"], fields["unknown_words"]),
                    *(f"{fields['log_probability']:.3f}", f"{fields['perplexity']:.2f}"),
                ]
            )
            unknown += record.unknown
            count += record.words
            total += fields["log_probability"]
    if not rows:
        raise nothing_to("score", options)
    columns = ["sentence", "tokens", "unknown", "log-probability", "perplexity"]
    with opened(output and output.path) as stream:
        print(
            "Each sentence is scored on its own, end of sentence included. Log base e.\n",
            table(columns, rows),
            f"\n{count:,} tokens, perplexity {math.exp(-total / count):.2f}",
            sep="\n",
            file=stream,
        )
    if output is not None:
        print(output.path)
    report_unknown(unknown)
    return None


def _scored(options):
    """Yields the sentences that have words, each with its `Record`.

    Raises:
        ValueError: if a sentence cannot be read.
    """
    from keras_onlstm.text.tokens import NO_WORDS

    texts, copy = itertools.tee(sentences(options))
    records = _task(options).begin()(copy)
    for number, (text, record) in enumerate(zip(texts, records, strict=True), 1):
        error = record.fields["error"]
        if record.words:
            yield text, record
        elif error not in (None, NO_WORDS):
            raise ValueError(f"sentence {number}: {error}")


def _task(options, form=FORMATS[1]):
    from keras_onlstm.scale.tasks import Scoring

    load = {
        **{"path": options.model, "number": options.model_index, "characters": options.characters},
        **{"provider": options.provider, "threads": options.threads},
    }
    return Scoring(form, load=load)
