"""`keras-onlstm score`: how likely a language model finds sentences."""

import argparse
import itertools
import math
from pathlib import Path

from keras_onlstm.command_line.inputs import (
    add_exported,
    add_language_model,
    add_sentences,
    check_files,
    nothing_to,
    report_unknown,
    sentences,
)
from keras_onlstm.command_line.large import add_large, check_large, process
from keras_onlstm.utils.console import table
from keras_onlstm.utils.progress import Progress

__all__ = ["EXAMPLES", "HELP", "add_arguments", "run"]

HELP = "log-probabilities and perplexities of sentences"
EXAMPLES = (
    'keras-onlstm score "the company says it will sell" "the company say it will sell"',
    "keras-onlstm score --model runs/lm --file sentences.txt",
    "keras-onlstm score - < sentences.txt",
    "keras-onlstm score --file corpus.txt --output scores --workers 2",
)
FORMATS = ("json", "parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add_sentences(parser)
    add_language_model(parser, "a .keras, .npz or .onnx file")
    add_exported(parser, ".onnx")
    add = parser.add_argument
    add(
        "--output",
        metavar="DIR",
        help="for large files (--file, a text or Parquet): a directory of shards, where the same "
        "command goes on after a stop",
    )
    add("--format", choices=FORMATS, help="of shards (default: json)")
    add_large(parser)


def run(options: argparse.Namespace) -> None:
    """Prints a table of sentences, and the perplexity of all of them, or writes those of files.

    Args:
        options: of the command line.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if there is no word, or the model predicts none.
        ImportError: if what the model needs is not installed.
    """
    _check_output(options)
    check_files(options)
    if options.output is not None:
        return process(options, _task(options))
    rows: list[list] = []
    unknown: list[str] = []
    total, count = 0.0, 0
    with Progress("tokens") as progress:
        for text, record in _scored(options):
            progress.add(record.words)
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
    print("Each sentence is scored on its own, end of sentence included. Log base e.\n")
    print(table(["sentence", "tokens", "unknown", "log-probability", "perplexity"], rows))
    print(f"\n{count:,} tokens, perplexity {math.exp(-total / count):.2f}")
    report_unknown(unknown)
    return None


def _scored(options):
    """The sentences that have words, each with its `Record`.

    Raises:
        ValueError: if a sentence cannot be read.
    """
    from keras_onlstm.text.splitting import NO_WORDS

    texts, copy = itertools.tee(sentences(options))
    records = _task(options).begin()(copy)
    for number, (text, record) in enumerate(zip(texts, records, strict=True), 1):
        error = record.fields["error"]
        if error is None:
            yield text, record
        elif error != NO_WORDS:
            raise ValueError(f"sentence {number}: {error}")


def _check_output(options):
    sharded, error = options.output is not None, options.parser.error
    check_large(options, sharded, " or ".join(FORMATS))
    if not sharded and options.format is not None:
        error("--format: goes with --output DIR; a table is printed")
    if sharded and Path(options.output).exists() and not Path(options.output).is_dir():
        error(f"--output {options.output}: is a file; name a directory")


def _task(options):
    from keras_onlstm.scale.tasks import Scoring

    load = {
        **{"path": options.model, "number": options.member, "characters": options.characters},
        **{"provider": options.provider, "threads": options.threads},
    }
    return Scoring(options.format or FORMATS[0], load=load)
