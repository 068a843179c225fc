"""A language model and how it reads text: what the commands share that predict words."""

from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.loading import SHIPPED, load_model, member
from keras_onlstm.text.vocabulary import check_vocabulary
from keras_onlstm.utils.types import StrPath

__all__ = ["Reader", "open_reader", "stored_argument", "tokens"]


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


def open_reader(
    path: StrPath | None = None, number: int = 1, characters: bool = False, **exported: Any
) -> Reader:
    """A language model, of several in a file one.

    Args:
        path: as of `loading.load_model`.
        number: integer from 1 on, which of several models.
        characters: whether it reads characters; of a run that is known.
        **exported: how an exported file runs, of `loading.load_model`.

    Returns:
        `Reader`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is damaged, no language model, or has no such member.
        ImportError: if what the file needs is not installed.
    """
    path = SHIPPED if path is None else Path(path)
    model, _ = member(path, *load_model(path, **exported), number)
    if not (hasattr(model, "score") and hasattr(model, "encode")):  # one of trees has scores too
        raise ValueError(f"{path}: {type(model).__name__}, not a LanguageModel.")
    check_vocabulary(model.vocabulary, path)
    characters = characters or stored_argument(path, "characters", (bool,))
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

    >>> from keras_onlstm.reader import tokens
    >>> tokens("the cat", characters=False), tokens("a b", characters=True)
    (['the', 'cat'], ['a', '_', 'b'])
    """
    return list(text.replace(" ", "_")) if characters else text.split()
