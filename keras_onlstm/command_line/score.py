"""`keras-onlstm score`: how likely a language model finds sentences."""

import argparse
import math
from pathlib import Path

from keras_onlstm.command_line.inputs import (
    STANDARD_INPUT,
    add_exported,
    add_language_model,
    add_sentences,
    check_files,
    load_reader,
    sentences,
)
from keras_onlstm.command_line.large import add_large, check_large, process
from keras_onlstm.utils.console import table
from keras_onlstm.utils.progress import Progress

__all__ = ["EXAMPLES", "HELP", "add_arguments", "run"]

HELP = "log-probabilities and perplexities of sentences"
EXAMPLES = (
    'keras-onlstm score "the authors laugh" "the authors laughs"',
    "keras-onlstm score --model runs/lm --file sentences.txt",
    "keras-onlstm score - < sentences.txt",
    "keras-onlstm score --file corpus.txt --output scores --workers 2",
)
FORMATS = ("json", "parquet")
BLOCK = 2048  # sentences at once: seconds of work


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
    import numpy as np

    from keras_onlstm.reader import tokens

    _check_output(options)
    check_files(options)
    if options.output is not None:
        return _score_files(options)
    reader = load_reader(options, provider=options.provider, threads=options.threads)
    split = [(text, tokens(text, reader.characters)) for text in sentences(options)]
    split = [(text, words) for text, words in split if words]
    if not split:
        places = options.file or [STANDARD_INPUT]
        raise ValueError(f"{', '.join(places)}: holds no words to score.")
    scores: list[np.ndarray] = []
    with Progress("tokens") as progress:
        for start in range(0, len(split), BLOCK):
            scores += reader.model.score([words for _, words in split[start : start + BLOCK]])
            progress.add(sum(len(numbers) for numbers in scores[start:]))
    rows = [
        [text.strip(), len(numbers), f"{numbers.sum():.3f}", f"{_perplexity(numbers):.2f}"]
        for (text, _), numbers in zip(split, scores, strict=True)
    ]
    print("Each line from zero states, <eos> counted; natural logarithms\n")
    print(table(["sentence", "tokens", "log-probability", "perplexity"], rows))
    total = np.concatenate(scores)
    print(f"\n{len(total):,} tokens, perplexity {_perplexity(total):.2f}")
    return None


def _check_output(options):
    sharded, error = options.output is not None, options.parser.error
    check_large(options, sharded, " or ".join(FORMATS))
    if not sharded and options.format is not None:
        error("--format: goes with --output DIR; a table is printed")
    if sharded and Path(options.output).exists() and not Path(options.output).is_dir():
        error(f"--output {options.output}: is a file; name a directory")


def _score_files(options):
    """Scores large files into a directory."""
    from keras_onlstm.scale.tasks import Scoring

    load = {
        **{"path": options.model, "number": options.member, "characters": options.characters},
        **{"provider": options.provider, "threads": options.threads},
    }
    process(options, Scoring(options.format or FORMATS[0], load=load))


def _perplexity(scores):
    return math.exp(-scores.mean())
