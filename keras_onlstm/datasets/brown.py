"""The Brown corpus, a million words of American English of 1961, as text for a language model.

`load` converts sentences to the form of the Penn Treebank as Mikolov prepared it: lower case, every
number `N`, no punctuation, `don't` as `do n't`. `load_files` keeps them unchanged for a parser.
"""

import re
from functools import cache
from itertools import chain

from keras_onlstm.datasets.treebank import RESTORE, nltk_reader, normalize
from keras_onlstm.utils.files import describe

__all__ = ["load", "load_files"]


@cache
def _words(token):
    """The words of a token; none if it is punctuation."""
    from nltk.tokenize import TreebankWordTokenizer

    # The tokenizer would take the period of an abbreviation for the end of a sentence.
    tokens = [token] if token.endswith(".") else TreebankWordTokenizer().tokenize(token)
    words = (normalize(word) for word in tokens if any(map(str.isalnum, word)))
    return tuple(re.sub(r"^N([.,:/-]N)+$", "N", word) for word in words)


def load() -> list[list[str]]:
    """Reads the sentences, lists of words, in the form of the Penn Treebank.

    Raises:
        FileNotFoundError: if NLTK does not have the corpus; the message tells how to get it.
        ValueError: if a file is damaged.

    >>> load()[0][:5]  # doctest: +SKIP
    ['the', 'fulton', 'county', 'grand', 'jury']
    """
    reader = nltk_reader("brown")
    sentences = chain.from_iterable(_sentences(reader, name) for name in reader.fileids())
    words = ([word for token in sentence for word in _words(token)] for sentence in sentences)
    return [sentence for sentence in words if sentence]


def load_files() -> dict[str, list[list[str]]]:
    """Reads the corpus file by file, with unchanged words. Raises the errors of `load`.

    Returns:
        Dictionary from the names of the 500 files, in order, to lists of sentences, each a list of
        words and punctuation. Marks that the corpus doubles, as in `; ;`, appear once.

    >>> load_files()["ca01"][0][:5]  # doctest: +SKIP
    ['The', 'Fulton', 'County', 'Grand', 'Jury']
    """
    reader = nltk_reader("brown")
    return {
        name: [_without_double_marks(sentence) for sentence in _sentences(reader, name)]
        for name in reader.fileids()
    }


def _without_double_marks(tokens):
    pairs = zip([None, *tokens], tokens, strict=False)
    return [token for before, token in pairs if token != before or any(map(str.isalnum, token))]


def _sentences(reader, name):
    try:
        return [list(sentence) for sentence in reader.sents(name)]
    except Exception as error:  # NLTK's reader raises many types
        raise ValueError(
            f"{reader.abspath(name)}: is not a file of the corpus ({describe(error)}). {RESTORE}"
        ) from error
