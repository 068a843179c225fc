"""A language model and its tokenization, for the commands that predict words."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from keras_onlstm.datasets.treebank import known_form
from keras_onlstm.loading import SHIPPED, load_model, select_model
from keras_onlstm.text.tokens import check_sentence, sentences_of
from keras_onlstm.text.vocabulary import UNKNOWN, check_vocabulary
from keras_onlstm.utils import StrPath
from keras_onlstm.utils.validation import check_kind

__all__ = ["Reader", "open_reader", "stored_argument"]


class Reader(NamedTuple):
    """A language model and its tokenization.

    Attributes:
        path: its file or run.
        model: the model, which reads lists of tokens.
        characters: whether a token is a character.
        vocabulary: the tokens that the model knows.
    """

    path: Path
    model: Any
    characters: bool
    vocabulary: frozenset[str]

    def tokens(self, text: str, number: int = 1) -> list[str]:
        """Tokenizes a text, with each token in the form that the vocabulary has.

        Args:
            text: one line.
            number: number of the text, for the error message.

        Returns:
            List of strings. If all words between blanks are known, the text is split at blanks.
            Otherwise it is tokenized as by `Parser`, without unknown punctuation. For a character
            model, the characters, with `_` for a blank.

        Raises:
            ValueError: if the text contains control characters, or NLTK takes too long.
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
    """Opens a language model, or one of several in a file.

    Args:
        path: file or run, see `loading.load_model`.
        number: 1-based number of the model in the file.
        characters: whether it reads characters; runs store this.
        **exported: `provider` and `threads` of `loading.load_model`.

    Returns:
        `Reader`.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is damaged, is not a language model, or `number` is out of range.
        ImportError: if a library for the file is missing.
    """
    path = SHIPPED if path is None else Path(path)
    model, _ = select_model(path, *load_model(path, **exported), number)
    if not (hasattr(model, "score") and hasattr(model, "encode")):  # a TreeLSTM has only `score`
        raise ValueError(f"{path}: {type(model).__name__}, not a LanguageModel.")
    check_vocabulary(model.vocabulary, path)
    characters = characters or stored_argument(path, "characters", (bool,))
    return Reader(path, model, bool(characters), frozenset(model.vocabulary))


def stored_argument(path: str | Path, name: str, kinds: tuple) -> Any:
    """Returns an argument that a run was started with.

    Args:
        path: a run, or a model file.
        name: name of the argument.
        kinds: allowed kinds, see `utils.validation`.

    Returns:
        Its value, or `None` if it is not stored, for example if the path is a file.

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
    if not content.keys() & {"model", "arguments"}:  # written by another program
        return None
    try:
        config = current_config(content)
        check_kind(config, {name: (*kinds, ...)})
    except ValueError as error:
        raise ValueError(f"{Path(path) / CONFIG}: {error}. Restore it.") from error
    return config.get(name)
