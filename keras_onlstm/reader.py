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


class Reader(NamedTuple):
    """A language model and its tokenization."""

    path: Path  # its file or run
    model: Any  # reads lists of tokens
    characters: bool  # whether a token is a character
    vocabulary: frozenset[str]

    def tokens(self, text: str, number: int = 1) -> list[str]:
        """Tokenizes a text, with each token in the form that the vocabulary has.

        If all words between blanks are known, the text is split at blanks. Otherwise it is
        tokenized as by `Parser`, without unknown punctuation. A character model reads `_` for a
        blank. `number` is the number of the text in error messages.
        """
        check_sentence(text, number)
        parts = text.replace(" ", "_") if self.characters else text.split()
        tokens = [known_form(part, self.vocabulary) for part in parts]
        if self.characters or self.vocabulary.issuperset(tokens):
            return tokens
        [sentence] = sentences_of(text, False, number)
        words = (t.text for t in sentence if t.is_word or t.text in self.vocabulary)
        return [known_form(word, self.vocabulary) for word in words]

    def unknown(self, tokens: Iterable[str]) -> list[str]:
        """The tokens that the model reads as `<unk>`."""
        return [token for token in tokens if token == UNKNOWN or token not in self.vocabulary]


def open_reader(
    path: StrPath | None = None, number: int = 1, characters: bool = False, **exported: Any
) -> Reader:
    """Opens language model `number`, from 1, of a file or run, see `loading.load_model`.

    Runs store whether the model reads `characters`. `exported` are `provider` and `threads`.
    """
    path = SHIPPED if path is None else Path(path)
    model, _ = select_model(path, *load_model(path, **exported), number)
    if not (hasattr(model, "score") and hasattr(model, "encode")):  # a TreeLSTM has only `score`
        raise ValueError(f"{path}: must be a language model, got {type(model).__name__}.")
    check_vocabulary(model.vocabulary, path)
    characters = characters or stored_argument(path, "characters", (bool,))
    return Reader(path, model, bool(characters), frozenset(model.vocabulary))


def stored_argument(path: str | Path, name: str, kinds: tuple) -> Any:
    """An argument of allowed kinds (`utils.validation`) of a run, or `None` if it is not stored."""
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
