"""`keras-onlstm generate`: generates text with a language model."""

import argparse
import math

from keras_onlstm.command_line.inputs import add_language_model, report_unknown
from keras_onlstm.utils.console import at_least, progress_bar, seed

__all__ = ["EXAMPLES", "HELP", "add_arguments", "run"]

HELP = "words that a language model goes on with"
EXAMPLES = (
    "keras-onlstm generate the company said",
    "keras-onlstm generate --model runs/lm --length 20 --temperature 0.7 the",
    "keras-onlstm generate --model-index 2 --top-k 10 --seed 3",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add = parser.add_argument
    add("words", nargs="*", metavar="WORD", help="to go on after; default: none")
    add_language_model(parser, "a .keras or an .npz file")
    add("--length", type=at_least(1), default=50, metavar="N", help="most tokens (default: 50)")
    add("--temperature", type=float, default=1.0, help="lower is bolder (default: 1)")
    add("--top-k", type=at_least(1), metavar="K", help="sample from the K most likely tokens")
    add("--seed", type=seed, default=0, help="of the draws (default: 0)")


def run(options: argparse.Namespace) -> None:
    """Prints the prompt and its continuation by a model.

    Args:
        options: parsed arguments.

    Raises:
        FileNotFoundError: if the model does not exist.
        ValueError: if the model cannot generate words.
        ImportError: if a library for the model is missing.
    """
    if not 0 < options.temperature < math.inf:
        options.parser.error(f"--temperature {options.temperature:g}: above 0")
    from keras_onlstm.reader import open_reader

    reader = open_reader(options.model, options.model_index, options.characters)
    if not hasattr(reader.model, "generate"):
        raise ValueError(
            f"{reader.path}: is exported, and generates nothing. Name the model it was exported "
            "from."
        )
    prompt = " ".join(options.words)
    tokens = reader.tokens(prompt)
    report_unknown(reader.unknown(tokens))
    with progress_bar("words", total=options.length) as bar:
        drawn = reader.model.generate(
            tokens, options.length, options.temperature, options.top_k, options.seed, bar.update
        )
    if reader.characters:
        print("".join(tokens + drawn))
    else:
        print(*prompt.split(), *drawn)
