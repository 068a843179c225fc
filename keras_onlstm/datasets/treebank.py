"""Parsed sentences of the Wall Street Journal, without punctuation, for unsupervised parsing.

The source is NLTK's `treebank`, 3,914 sentences that `nltk.download("treebank")` fetches, or the
full Penn Treebank in `nltk_data/corpora/ptb`, which needs a licence of the Linguistic Data
Consortium (LDC99T42).

As in Shen et al. 2019, words are the tokens with a part-of-speech tag of a word, in lower case,
with `N` for every run of digits.
"""

import codecs
import io
import re
import reprlib
from collections.abc import Collection, Container, Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from keras_onlstm.datasets.nltk_corpora import RESTORE, file_content, found
from keras_onlstm.utils import NltkTree, StrPath
from keras_onlstm.utils.files import lines

__all__ = ["ParsedSentence", "known_form", "load", "normalize", "read", "without_punctuation"]

WORD_TAGS = frozenset(
    [
        *("CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS", "LS", "MD", "NN", "NNS", "NNP"),
        *("NNPS", "PDT", "POS", "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO", "UH", "VB"),
        *("VBD", "VBG", "VBN", "VBP", "VBZ", "WDT", "WP", "WP$", "WRB"),
    ]
)


class ParsedSentence(NamedTuple):
    """A sentence and its gold tree.

    Attributes:
        tokens: list of words.
        tree: `nltk.Tree` with these leaves.
    """

    tokens: list[str]
    tree: NltkTree


def normalize(word: str) -> str:
    """Converts a word to lower case with `N` for digits, as in Penn Treebank language models.

    Args:
        word: string.

    Returns:
        String.

    Example:

    >>> from keras_onlstm.datasets import treebank
    >>> treebank.normalize("Sept."), treebank.normalize("75.3")
    ('sept.', 'N.N')
    """
    return re.sub("[0-9]+", "N", word.lower())


def known_form(word: str, vocabulary: Container[str]) -> str:
    """Returns the form in which a language model reads a word.

    Args:
        word: string.
        vocabulary: the words that the model knows.

    Returns:
        The unchanged word if it is in the vocabulary, so that upper case and digits are kept if
        the model knows them. Otherwise the result of `normalize`, with straight apostrophes.

    Example:

    >>> from keras_onlstm.datasets import treebank
    >>> [treebank.known_form(word, {"The", "N", "mr."}) for word in ("The", "Mr.", "75")]
    ['The', 'mr.', 'N']
    """
    return word if word in vocabulary else normalize(word.replace("\u2019", "'"))


def without_punctuation(tree: NltkTree) -> NltkTree | None:
    """Removes tags and punctuation from a tree of a treebank.

    Args:
        tree: `nltk.Tree` with part-of-speech tags above its leaves.

    Returns:
        `nltk.Tree` whose leaves are the words in lower case, digits as `N`, without constituents
        that have lost all words. `None` if no word is left.

    Raises:
        ValueError: if a word has no tag, or a constituent is empty.

    Example:

    >>> from nltk import Tree
    >>> from keras_onlstm.datasets import treebank
    >>> tree = Tree.fromstring("(S (NP (DT The) (CD 75.3)) (, ,) (VP (VBD fell)) (. .))")
    >>> print(treebank.without_punctuation(tree))
    (S (NP the N.N) (VP fell))
    """
    from nltk import Tree

    if not len(tree):
        raise ValueError("it has no words")
    kept = Tree(tree.label(), [])
    pending = [(tree, kept)]
    order = [kept]
    while pending:
        source, target = pending.pop()
        for child in source:
            if not isinstance(child, Tree) or not len(child):
                raise ValueError(f"{reprlib.repr(child)} stands in it without a tag or a word")
            if isinstance(child[0], str):
                if len(child) > 1:
                    raise ValueError(f"{child.label()} stands above more than a word")
                if child.label() in WORD_TAGS:
                    target.append(normalize(child[0]))
            else:
                copy = Tree(child.label(), [])
                target.append(copy)
                order.append(copy)
                pending.append((child, copy))
    for node in reversed(order):  # parents come before their children
        node[:] = [child for child in node if isinstance(child, str) or len(child)]
    return kept if len(kept) else None


def _files(corpus, sections):
    """NLTK's reader of a corpus, and the names of the files to read."""
    from nltk.corpus import ptb, treebank

    if corpus == "sample":
        with found("treebank", "python -m nltk.downloader treebank fetches it"):
            return treebank, treebank.fileids()
    remedy = (
        "it needs a licence of the Linguistic Data Consortium (LDC99T42); put its WSJ directory "
        "into nltk_data/corpora/ptb"
    )
    with found("ptb", remedy):
        files = [name for name in ptb.fileids() if name.startswith("WSJ")]
    chosen = [name for name in files if sections is None or int(name.split("/")[1]) in sections]
    if not chosen:
        raise FileNotFoundError(
            f"nltk_data/corpora/ptb: no WSJ files of the sections {sections or 'at all'}. They are "
            "named WSJ/23/WSJ_2300.MRG and so on."
        )
    return ptb, chosen


def _nltk_trees(reader, name):
    """The trees of an NLTK file."""
    path, content = file_content(reader, name)
    encoding = codecs.lookup(reader.encoding(name)).name
    yield from _trees(path, lines(path, io.BytesIO(content), encoding, RESTORE))


def _trees(path, rows):
    """The trees in lines of a file, without punctuation."""
    from nltk import Tree

    number = 0
    for number, text in _blocks(path, rows):
        try:
            tree = Tree.fromstring(text, remove_empty_top_bracketing=True)
            if not tree.label() and len(tree) > 1:
                raise ValueError(f"one bracket holds {len(tree)} trees")
            words = without_punctuation(tree)
        except ValueError as error:
            raise _damaged(path, number, error) from None
        if words is not None:
            yield words
    if not number:
        raise ValueError(f"{path}: contains no tree. {RESTORE}")


def _damaged(path, number, fault):
    return ValueError(f"{path}, line {number}: is not a tree ({fault}). {RESTORE}")


def _blocks(path, rows):
    """The outermost brackets: pairs of the number of the first line, and the text.

    NLTK's file reader would leave out indented ones, and words after the first under a tag.
    """
    block: list[str] = []
    depth = start = 0
    for number, row in enumerate(rows, 1):
        if depth and row[:1] == "(":  # the next tree begins
            break
        # As NLTK does, reads (.) as (. .).
        for token in re.findall(r"[()]|[^\s()]+", re.sub(r"\(([^\s()])\)", r"(\1 \1)", row)):
            if not depth:
                if token != "(":
                    raise _damaged(path, number, f"{reprlib.repr(token)} is not in a tree")
                start = number
            block.append(token)
            depth += (token == "(") - (token == ")")
            if not depth:
                yield start, " ".join(block)
                block = []
    if depth:
        raise _damaged(path, start, "a bracket is not closed")


def load(
    max_length: int | None = None, corpus: str = "sample", sections: Collection[int] | None = None
) -> list[ParsedSentence]:
    """Reads a treebank.

    Args:
        max_length: integer, skips sentences with more words, or `None` for all. 10 with
            `corpus="ptb"` is the WSJ10 of the literature.
        corpus: `"sample"` of NLTK, or `"ptb"`, the full Penn Treebank.
        sections: list of sections of `"ptb"`, or `None` for all. The test set is `[23]`.

    Returns:
        List of `ParsedSentence`.

    Raises:
        FileNotFoundError: if the corpus is missing; the message tells how to get it.
        ValueError: if `corpus` is unknown, or a file contains no tree or anything but trees; the
            message names the file and the line.

    Example, which needs the sample:

    >>> from keras_onlstm.datasets import treebank
    >>> treebank.load(max_length=10)[0].tokens  # doctest: +SKIP
    ['a', 'lorillard', 'spokewoman', 'said', 'this', 'is', 'an', 'old', 'story']
    """
    if corpus not in ("sample", "ptb"):
        raise ValueError(f"corpus is 'sample' or 'ptb', not {corpus!r}.")
    reader, names = _files(corpus, sections)
    trees = chain.from_iterable(_nltk_trees(reader, name) for name in names)
    sentences = (ParsedSentence(tree.leaves(), tree) for tree in trees)
    return [one for one in sentences if max_length is None or len(one.tokens) <= max_length]


def read(paths: Iterable[StrPath]) -> list[ParsedSentence]:
    """Reads files of bracketed trees with part-of-speech tags, such as those of a treebank.

    Args:
        paths: paths of UTF-8 files.

    Returns:
        List of `ParsedSentence`, without sentences that have no words.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file contains no tree or anything but trees.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.datasets import treebank
    >>> path = pathlib.Path(tempfile.mkdtemp(), "trees.mrg")
    >>> _ = path.write_text("( (S (NP (NNS Shares)) (VP (VBD fell)) (. .)) )")
    >>> treebank.read([path])[0].tokens
    ['shares', 'fell']
    """
    sentences = []
    for path in map(Path, paths):
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file. Name files of bracketed trees.")
        with open(path, "rb") as file:
            for tree in _trees(path, lines(path, file)):
                sentences.append(ParsedSentence(tree.leaves(), tree))
    return sentences
