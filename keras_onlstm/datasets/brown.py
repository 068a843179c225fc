"""The Brown corpus, a million words of American English of 1961, as text for a language model.

`nltk.download("brown")` fetches it. `load` converts sentences to the form of the Penn Treebank as
Mikolov prepared it: lower case, every number `N`, no punctuation, `don't` as `do n't`. `load_files`
leaves them unchanged, for a parser.
"""

import re
from functools import cache
from itertools import chain, groupby

from keras_onlstm.datasets.nltk_corpora import found
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.utils.files import describe

__all__ = ["load", "load_files"]


@cache
def _split(token):
    """The words of a token; none if it is punctuation."""
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
        FileNotFoundError: if it is missing; the message tells how to get it.
        ValueError: if one of its files is damaged.

    Example, which needs the corpus:

    >>> from keras_onlstm.datasets import brown
    >>> brown.load()[0][:5]  # doctest: +SKIP
    ['the', 'fulton', 'county', 'grand', 'jury']
    """
    reader = _reader()
    sentences = chain.from_iterable(_sentences(reader, name) for name in reader.fileids())
    split = ([word for token in sentence for word in _split(token)] for sentence in sentences)
    return [sentence for sentence in split if sentence]


def load_files() -> dict[str, list[list[str]]]:
    """Reads the corpus file by file, with unchanged words.

    Punctuation marks that the corpus doubles, as in `; ;`, appear once.

    Returns:
        Dictionary from the names of the 500 files, in order, to lists of sentences, each a list of
        words and punctuation.

    Raises:
        FileNotFoundError: if it is missing.
        ValueError: if a file is damaged.

    Example, which needs the corpus:

    >>> from keras_onlstm.datasets import brown
    >>> brown.load_files()["ca01"][0][:5]  # doctest: +SKIP
    ['The', 'Fulton', 'County', 'Grand', 'Jury']
    """
    reader = _reader()
    return {
        name: [_undoubled(sentence) for sentence in _sentences(reader, name)]
        for name in reader.fileids()
    }


def _undoubled(tokens):
    runs = ((token, len(list(run))) for token, run in groupby(tokens))
    return [
        token for token, count in runs for _ in range(count if any(map(str.isalnum, token)) else 1)
    ]


def _reader():
    from nltk.corpus import brown

    with found("brown", "python -m nltk.downloader brown fetches it"):
        brown.fileids()
    return brown


def _sentences(reader, name):
    try:
        return [list(sentence) for sentence in reader.sents(name)]
    except Exception as error:  # NLTK's reader raises many types
        raise ValueError(
            f"{reader.abspath(name)}: not a file of the corpus ({describe(error)}). Restore it "
            "from its source."
        ) from error
