"""A language model and how it reads text: what the commands share that predict words."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.datasets.treebank import known_form
from keras_onlstm.loading import SHIPPED, load_model, member
from keras_onlstm.text.splitting import sentences_of
from keras_onlstm.text.tokens import check_sentence
from keras_onlstm.text.vocabulary import UNKNOWN, check_vocabulary
from keras_onlstm.utils.reading import check_kind
from keras_onlstm.utils.types import StrPath

__all__ = ["Reader", "open_reader", "stored_argument"]


class Reader(NamedTuple):
    """A language model, and how it reads text.

    Attributes:
        path: where it is from.
        model: what reads lists of tokens.
        characters: whether a token is a character.
        vocabulary: the tokens that the model knows.
    """

    path: Path
    model: Any
    characters: bool
    vocabulary: frozenset[str]

    def tokens(self, text: str, number: int = 1) -> list[str]:
        """The tokens of a text, each in the form in which the model knows it.

        Args:
            text: one line.
            number: of the text among several, for the error message.

        Returns:
            List of strings. Words that the model knows may be separated by blanks, as in its
            corpus. Otherwise the text is tokenized as `Parser` does it, and punctuation is left
            out unless the vocabulary has it. Of a model of characters each character, with `_`
            for a blank.

        Raises:
            ValueError: if the text holds control characters, or NLTK takes too long.
        """
        check_sentence(text, number)
        known = self.vocabulary
        parts = text.replace(" ", "_") if self.characters else text.split()
        tokens = [known_form(part, known) for part in parts]
        if self.characters or known.issuperset(tokens):
            return tokens
        [found] = sentences_of(text, False, number)
        kept = (token.text for token in found if token.is_word or token.text in known)
        return [known_form(token, known) for token in kept]

    def unknown(self, tokens: Iterable[str]) -> list[str]:
        """The tokens that the model reads as `<unk>`."""
        return [token for token in tokens if token == UNKNOWN or token not in self.vocabulary]


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
    return Reader(path, model, bool(characters), frozenset(model.vocabulary))


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
    from keras_onlstm.runs.directory import CONFIG, read_config
    from keras_onlstm.runs.earlier import current_config

    if not (Path(path) / CONFIG).is_file():
        return None
    content = read_config(path)
    if not content.keys() & {"model", "arguments"}:  # of another program
        return None
    try:
        config = current_config(content)
        check_kind(config, {name: (*kinds, ...)})
    except ValueError as error:
        raise ValueError(f"{Path(path) / CONFIG}: {error}. Restore it.") from error
    return config.get(name)
