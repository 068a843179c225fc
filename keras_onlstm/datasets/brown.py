"""The Brown corpus, a million words of American English of 1961, as text for a language model.

`nltk.download("brown")` fetches it. Sentences are brought into the form of the Penn Treebank as
Mikolov prepared it: lower case, every number `N`, no punctuation, `don't` as `do n't`.
"""

import re
from functools import cache

from keras_onlstm.datasets.nltk_corpora import not_found
from keras_onlstm.datasets.treebank import normalize

__all__ = ["load"]


@cache
def _split(token):
    """The words of a token; none, if it is punctuation."""
    from nltk.tokenize import TreebankWordTokenizer

    abbreviated = token.endswith(".")  # the tokenizer would take it for the end of a sentence
    found = [token] if abbreviated else TreebankWordTokenizer().tokenize(token)
    words = (normalize(word) for word in found if any(map(str.isalnum, word)))
    return tuple(re.sub(r"^N([.,:/-]N)+$", "N", word) for word in words)


def load():
    """Reads the corpus.

    Returns:
        List of sentences, each a list of words, in the order of the corpus.

    Raises:
        FileNotFoundError: if it is not there; the message says how to get it.

    Example, which needs the corpus:

    >>> from keras_onlstm.datasets import brown
    >>> brown.load()[0][:5]  # doctest: +SKIP
    ['the', 'fulton', 'county', 'grand', 'jury']
    """
    from nltk.corpus import brown

    try:
        sentences = [
            [word for token in sentence for word in _split(token)] for sentence in brown.sents()
        ]
    except LookupError as error:
        raise not_found("brown", "python -m nltk.downloader brown fetches it") from error
    return [sentence for sentence in sentences if sentence]
