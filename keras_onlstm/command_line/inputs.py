"""What the commands share: their sentences, and the language model that reads them."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.utils.reading import lines

__all__ = [
    "Reader",
    "add_exported",
    "add_language_model",
    "add_sentences",
    "check_files",
    "load_reader",
    "sentences",
    "stored_argument",
    "tokens",
]

STANDARD_INPUT = "standard input"
STDIN = "-"  # what stands for it on a command line


def add_sentences(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `sentences` takes them from."""
    add = parser.add_argument
    add(
        "sentences",
        nargs="*",
        metavar="SENTENCE",
        help="or -, standard input, which is the default too: one a line",
    )
    add("--file", action="append", default=[], metavar="FILE", help="one sentence a line")


def add_exported(parser: argparse.ArgumentParser, formats: str) -> None:
    """Adds how exported files run, of so many formats."""
    add = parser.add_argument
    add("--provider", choices=("cpu", "cuda"), default="cpu", help="of .onnx files; default: cpu")
    add("--threads", type=int, metavar="N", help=f"of {formats} files")


def add_language_model(parser: argparse.ArgumentParser, files: str) -> None:
    """Adds the options that `load_reader` takes the model from, which may be in such files."""
    add = parser.add_argument
    add("--model", metavar="PATH", help=f"{files}, or a run; default: the package's")
    add("--member", type=int, default=1, metavar="N", help="of several models (default: the first)")
    add(
        "--characters",
        action="store_true",
        help="the model reads characters; of a run it is known whether it does",
    )


def check_files(options: argparse.Namespace) -> None:
    """Refuses files that are not there, before anything that takes time.

    Args:
        options: with `file`.

    Raises:
        FileNotFoundError: if one is missing.
    """
    for path in options.file:
        if not Path(path).is_file():
            raise FileNotFoundError(f"{path}: no such file.")


def sentences(options: argparse.Namespace) -> Iterator[str]:
    """The sentences of the command line, of files, or of standard input, which `-` stands for.

    Args:
        options: with `sentences` and `file`.

    Yields:
        Strings.

    Raises:
        ValueError: if a line is not UTF-8 text; the message names it.
    """
    for sentence in options.sentences:
        if sentence == STDIN:
            yield from lines(STANDARD_INPUT, sys.stdin.buffer)
        else:
            yield sentence
    for path in options.file:
        with open(path, "rb") as file:
            yield from lines(path, file)
    if not options.sentences and not options.file:
        yield from lines(STANDARD_INPUT, sys.stdin.buffer)


class Reader(NamedTuple):
    """A language model, and how it reads text.

    Attributes:
        path: where it is from.
        model: what reads lists of tokens.
        characters: whether a token is a character.
    """

    path: Path
    model: Any
    characters: bool


def load_reader(options: argparse.Namespace, **exported: Any) -> Reader:
    """The language model that a command line names, of several one.

    Args:
        options: with `model`, `member` and `characters`.
        **exported: how an exported file runs, of `stored.load_model`.

    Returns:
        `Reader`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, no language model, or has no such member.
        ImportError: if what the file needs is not installed.
    """
    from keras_onlstm.loading import SHIPPED, load_model, member
    from keras_onlstm.text.vocabulary import check_vocabulary

    path = SHIPPED if options.model is None else Path(options.model)
    model, _ = member(path, *load_model(path, **exported), options.member)
    if not (hasattr(model, "score") and hasattr(model, "encode")):  # one of trees has scores too
        raise ValueError(f"{path}: {type(model).__name__}, not a LanguageModel.")
    check_vocabulary(model.vocabulary, path)
    characters = options.characters or stored_argument(path, "characters", (bool,))
    return Reader(path, model, bool(characters))


def stored_argument(path: str | Path, name: str, kinds: tuple) -> Any:
    """An argument that a run was started with.

    Args:
        path: of a model.
        name: of the argument.
        kinds: of it, as `reading` describes.

    Returns:
        Its value, or `None`: the path is that of a file, for example.

    Raises:
        ValueError: if the run's `config.json` is damaged.
    """
    if not Path(path).is_dir():
        return None
    from keras_onlstm.training.runs import CONFIG, read_config

    if not (Path(path) / CONFIG).is_file():
        return None
    config = read_config(path, {"arguments": ({name: (*kinds, ...)}, ...)})
    return config.get("arguments", {}).get(name)


def tokens(text: str, characters: bool) -> list[str]:
    """The tokens of a text, as the corpora of language models have them.

    Args:
        text: one line.
        characters: whether a token is a character; a blank then is `_`.

    Returns:
        List of strings.

    Example:

    >>> from keras_onlstm.command_line.inputs import tokens
    >>> tokens("the cat", characters=False), tokens("a b", characters=True)
    (['the', 'cat'], ['a', '_', 'b'])
    """
    return list(text.replace(" ", "_")) if characters else text.split()
