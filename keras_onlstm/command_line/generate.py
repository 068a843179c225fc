"""`keras-onlstm generate`: generates text with a language model."""

import argparse
import math

from keras_onlstm.command_line.inputs import add_language_model, report_unknown
from keras_onlstm.utils.console import at_least, progress_bar, seed

HELP = "generate text with a language model"
EXAMPLES = (
    "keras-onlstm generate the company said",
    "keras-onlstm generate --model runs/lm --length 20 --temperature 0.7 the",
    "keras-onlstm generate --model-index 2 --top-k 10 --seed 3",
)


# fmt: off
def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add = parser.add_argument
    add("words", nargs="*", metavar="WORD", help="Beginning of the text (default: none).")
    add_language_model(parser, "a .keras or .npz file")
    add("--length", type=at_least(1), default=50, metavar="N",
        help="Maximum number of tokens to generate (default: 50).")
    add("--temperature", type=float, default=1.0, metavar="T",
        help="Sampling temperature (default: 1). Lower is safer and more repetitive, higher more "
        "varied.")
    add("--top-k", type=at_least(1), metavar="K",
        help="Sample only from the K most likely tokens (default: all).")
    add("--seed", type=seed, default=0, help="Seed of the random generator (default: 0).")


# fmt: on
def run(options: argparse.Namespace) -> None:
    """Prints the prompt and its continuation."""
    if not 0 < options.temperature < math.inf:
        options.parser.error(f"--temperature {options.temperature:g}: must be above 0")
    from keras_onlstm.reader import open_reader

    reader = open_reader(options.model, options.model_index, options.characters)
    if not hasattr(reader.model, "generate"):
        raise ValueError(
            f"{reader.path}: an exported file cannot generate text. Pass the model that it was "
            "exported from."
        )
    prompt = " ".join(options.words)
    tokens = reader.tokens(prompt)
    report_unknown(reader.unknown(tokens))
    with progress_bar("words", total=options.length) as bar:
        generated = reader.model.generate(
            tokens, options.length, options.temperature, options.top_k, options.seed, bar.update
        )
    if reader.characters:
        print("".join(tokens + generated))
    else:
        print(*prompt.split(), *generated)
