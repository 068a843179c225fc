"""`keras-onlstm score`: log-probabilities of sentences under a language model."""

import argparse
import itertools
import math

from keras_onlstm.command_line import inputs
from keras_onlstm.command_line.output import open_output, read_output, write_rows
from keras_onlstm.utils.console import progress_bar, table

HELP = "compute log-probabilities and perplexities of sentences"
EXAMPLES = (
    'keras-onlstm score "the company says it will sell" "the company say it will sell"',
    "keras-onlstm score --model runs/lm --file sentences.txt",
    "keras-onlstm score - < sentences.txt",
    "keras-onlstm score --file corpus.txt --output scores --workers 2",
)
FORMATS = ("table", "json", "parquet")


# fmt: off
def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    inputs.add_sentences(parser, "score", "Each line is scored as one sentence.")
    inputs.add_language_model(parser, "a .keras, .npz or .onnx file")
    inputs.add_exported(parser, ".onnx")
    add = parser.add_argument
    add("--output", metavar="PATH",
        help="Where to write. A name with a suffix is a file of all scores. A name without a "
        "suffix is a directory for the scores of large files, and the same command resumes a "
        "stopped run (default: standard output).")
    add("--format", choices=FORMATS,
        help="Format of the scores (default: table; for a directory, json).")
    inputs.add_large(parser)


# fmt: on
def run(options: argparse.Namespace) -> None:
    """Prints a table of sentences with the total perplexity, or writes their scores."""
    output = read_output(options, options.format or "table")
    directory = output is not None and output.is_directory
    form = options.format or ("json" if directory else "table")
    inputs.check_large(options, directory, " or ".join(FORMATS[1:]))
    if directory and form == "table":
        options.parser.error(
            "--format table: writes one file. Add a suffix to the name in --output"
        )
    if output is None and form == "parquet":
        options.parser.error("--format parquet: requires --output, a .parquet file or a directory")
    inputs.check_files(options)
    if directory:
        return inputs.process(options, _task(options, form))
    if form != "table":
        return write_rows("score", options, output, _task(options, form))
    rows: list[list] = []
    unknown: list[str] = []
    total, count = 0.0, 0
    with progress_bar("tokens") as bar:
        for text, record in _score_sentences(options):
            bar.update(record.words)
            fields = record.fields
            numbers = f"{fields['log_probability']:.3f}", f"{fields['perplexity']:.2f}"
            rows.append([text.strip(), fields["tokens"], fields["unknown_words"], *numbers])
            unknown += record.unknown
            count += record.words
            total += fields["log_probability"]
    if not rows:
        raise inputs.no_words("score", options)
    columns = ["sentence", "tokens", "unknown", "log-probability", "perplexity"]
    with open_output(output and output.path) as stream:
        print(
            "Each sentence is scored on its own, end of sentence included. Log base e.\n",
            table(columns, rows),
            f"\n{count:,} tokens, perplexity {math.exp(-total / count):.2f}",
            sep="\n",
            file=stream,
        )
    if output is not None:
        print(output.path)
    inputs.report_unknown(unknown)
    return None


def _score_sentences(options):
    """Yields the sentences that have words, each with its `Record`.

    Raises `ValueError` if a sentence cannot be read.
    """
    from keras_onlstm.text.tokens import NO_WORDS

    texts, copy = itertools.tee(inputs.sentences(options))
    records = _task(options).begin()(copy)
    for number, (text, record) in enumerate(zip(texts, records, strict=True), 1):
        error = record.fields["error"]
        if record.words:
            yield text, record
        elif error not in (None, NO_WORDS):
            raise ValueError(f"sentence {number}: {error}")


def _task(options, form=FORMATS[1]):
    from keras_onlstm.scale.tasks import Scoring

    names = ("characters", "provider", "threads")
    load = {"path": options.model, "number": options.model_index}
    return Scoring(form, load={**load, **{name: getattr(options, name) for name in names}})
