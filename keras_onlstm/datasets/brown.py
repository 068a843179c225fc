"""The Brown corpus, a million words of American English of 1961, as text for a language model.

`nltk.download("brown")` fetches it. Sentences are brought into the form of the Penn Treebank as
Mikolov prepared it: lower case, every number `N`, no punctuation, `don't` as `do n't`.
"""

import re
from functools import cache
from itertools import chain

from keras_onlstm.datasets.nltk_corpora import not_found
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.utils.reading import reason

__all__ = ["load"]


@cache
def _split(token):
    """The words of a token; none, if it is punctuation."""
    from nltk.tokenize import TreebankWordTokenizer

    abbreviated = token.endswith(".")  # the tokenizer would take it for the end of a sentence
    tokens = [token] if abbreviated else TreebankWordTokenizer().tokenize(token)
    words = (normalize(word) for word in tokens if any(map(str.isalnum, word)))
    return tuple(re.sub(r"^N([.,:/-]N)+$", "N", word) for word in words)


def load() -> list[list[str]]:
    """Reads the corpus.

    Returns:
        List of sentences, each a list of words, in the order of the corpus.

    Raises:
        FileNotFoundError: if it is not there; the message says how to get it.
        ValueError: if a file of it is damaged.

    Example, which needs the corpus:

    >>> from keras_onlstm.datasets import brown
    >>> brown.load()[0][:5]  # doctest: +SKIP
    ['the', 'fulton', 'county', 'grand', 'jury']
    """
    from nltk.corpus import brown

    try:
        names = brown.fileids()
    except LookupError as error:
        raise not_found("brown", "python -m nltk.downloader brown fetches it") from error
    sentences = chain.from_iterable(_sentences(brown, name) for name in names)
    return [sentence for sentence in sentences if sentence]


def _sentences(reader, name):
    try:
        return [
            [word for token in sentence for word in _split(token)]
            for sentence in reader.sents(name)
        ]
    except Exception as error:  # whatever NLTK's reader raises
        raise ValueError(
            f"{reader.abspath(name)}: not a file of the corpus ({reason(error)}). Restore it from "
            "its source."
        ) from error
