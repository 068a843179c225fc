"""Parsed sentences of the Wall Street Journal, without punctuation, for unsupervised parsing.

The source is NLTK's `treebank`, 3,914 sentences, or the full Penn Treebank in
`nltk_data/corpora/ptb`. As in Shen et al. 2019, words are the tokens with a part-of-speech tag of a
word, in lower case, with `N` for every run of digits.
"""

import codecs
import io
import re
import reprlib
from collections.abc import Collection, Container, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

from keras_onlstm.dependencies.constituents import is_preterminal
from keras_onlstm.utils import NltkTree, StrPath
from keras_onlstm.utils.files import describe, lines
from keras_onlstm.utils.validation import check_choice

__all__ = ["ParsedSentence", "known_form", "load", "normalize", "read", "without_punctuation"]

RESTORE = "Restore it from its source."
_BRACKETED = "Trees have brackets: (S (NP (DT the) (NN cat)) (VP (VBD slept)))."
WORD_TAGS = frozenset(
    [
        *("CC", "CD", "DT", "EX", "FW", "IN", "JJ", "JJR", "JJS", "LS", "MD", "NN", "NNS", "NNP"),
        *("NNPS", "PDT", "POS", "PRP", "PRP$", "RB", "RBR", "RBS", "RP", "SYM", "TO", "UH", "VB"),
        *("VBD", "VBG", "VBN", "VBP", "VBZ", "WDT", "WP", "WP$", "WRB"),
    ]
)


class ParsedSentence(NamedTuple):
    """The words of a sentence and its gold tree, an `nltk.Tree` with these leaves."""

    tokens: list[str]
    tree: NltkTree


def nltk_reader(name: str, remedy: str = "") -> Any:
    """NLTK's reader of a corpus. If it is missing, the error tells how to get it."""
    from nltk import corpus

    reader = getattr(corpus, name)
    try:
        reader.fileids()
    except LookupError as error:
        remedy = remedy or f"Run python -m nltk.downloader {name}."
        raise FileNotFoundError(
            f"NLTK does not find the corpus {name}. {remedy} The environment variable NLTK_DATA "
            "names the directory nltk_data."
        ) from error
    except BadZipFile as error:
        message = f"corpora/{name}.zip of nltk_data: {describe(error)}. {RESTORE}"
        raise ValueError(message) from error
    return reader


def nltk_file(reader: Any, name: str) -> tuple[str, bytes]:
    """The path of a corpus file, for messages, and its content. It may be in an archive."""
    path = f"{reader.root}/{name}"
    try:
        with reader.root.join(name).open() as file:
            return path, file.read()
    except Exception as error:  # NLTK and archives raise many types
        raise ValueError(f"{path}: cannot be read ({describe(error)}). {RESTORE}") from error


def normalize(word: str) -> str:
    """Converts a word to lower case with `N` for digits, as in Penn Treebank language models.

    >>> normalize("Sept."), normalize("75.3")
    ('sept.', 'N.N')
    """
    return re.sub("[0-9]+", "N", word.lower())


def known_form(word: str, vocabulary: Container[str]) -> str:
    """Returns the form in which a language model reads a word: normalized if it is unknown.

    >>> [known_form(word, {"The", "N", "mr."}) for word in ("The", "Mr.", "75")]
    ['The', 'mr.', 'N']
    """
    return word if word in vocabulary else normalize(word.replace("\u2019", "'"))


def without_punctuation(tree: NltkTree) -> NltkTree | None:
    """Removes tags, punctuation, and constituents without words from an `nltk.Tree` with tags.

    The leaves become lower case, with `N` for digits. Returns `None` if no word is left. A word
    without a tag, or an empty constituent, is a `ValueError`.

    >>> from nltk import Tree
    >>> tree = Tree.fromstring("(S (NP (DT The) (CD 75.3)) (, ,) (VP (VBD fell)) (. .))")
    >>> print(without_punctuation(tree))
    (S (NP the N.N) (VP fell))
    """
    from nltk import Tree

    is_preterminal(tree)  # raises an error if the tree is empty
    root = Tree(tree.label(), [])
    pending = [(tree, root)]
    copies = [root]
    while pending:
        source, target = pending.pop()
        for child in source:
            if not is_preterminal(child):
                copy = Tree(child.label(), [])
                target.append(copy)
                copies.append(copy)
                pending.append((child, copy))
            elif child.label() in WORD_TAGS:
                target.append(normalize(child[0]))
    for node in reversed(copies):  # parents come before their children
        node[:] = [child for child in node if isinstance(child, str) or len(child)]
    return root if len(root) else None


def load(
    max_length: int | None = None, corpus: str = "sample", sections: Collection[int] | None = None
) -> list[ParsedSentence]:
    """Reads a treebank.

    Args:
        max_length: integer, skips sentences with more words, or `None` for all. 10 with
            `corpus="ptb"` is the WSJ10 of the literature.
        corpus: `"sample"` of NLTK, or `"ptb"`, the full Penn Treebank (LDC99T42).
        sections: list of sections of `"ptb"`, or `None` for all. The test set is `[23]`.

    Raises:
        FileNotFoundError: if the corpus is missing; the message tells how to get it.
        ValueError: if `corpus` is unknown, or a file contains no tree or anything but trees.

    >>> load(max_length=10)[0].tokens  # doctest: +SKIP
    ['a', 'lorillard', 'spokewoman', 'said', 'this', 'is', 'an', 'old', 'story']
    """
    check_choice("corpus", corpus, ("sample", "ptb"))
    if corpus == "sample":
        reader = nltk_reader("treebank")
        names = reader.fileids()
    else:
        reader, names = _penn_treebank(sections)
    sentences: list[ParsedSentence] = []
    for name in names:
        path, content = nltk_file(reader, name)
        encoding = codecs.lookup(reader.encoding(name)).name
        sentences += _sentences(path, lines(path, io.BytesIO(content), encoding, RESTORE))
    return [s for s in sentences if max_length is None or len(s.tokens) <= max_length]


def _penn_treebank(sections):
    """NLTK's reader and the names of the files of some sections."""
    remedy = "It needs a licence (LDC99T42). Put its WSJ directory into nltk_data/corpora/ptb."
    reader = nltk_reader("ptb", remedy)
    names = [name for name in reader.fileids() if name.startswith("WSJ")]
    names = [name for name in names if sections is None or int(name.split("/")[1]) in sections]
    if not names:
        which = "WSJ files" if sections is None else f"WSJ files of the sections {sections}"
        raise FileNotFoundError(
            f"nltk_data/corpora/ptb: has no {which}, with names such as WSJ/23/WSJ_2300.MRG."
        )
    return reader, names


def read(paths: Iterable[StrPath]) -> list[ParsedSentence]:
    """Reads UTF-8 files of bracketed trees with part-of-speech tags, such as those of a treebank.

    Sentences without words are left out. A file that contains no tree or anything but trees is a
    `ValueError`.

    >>> _ = Path("trees.mrg").write_text("( (S (NP (NNS Shares)) (VP (VBD fell)) (. .)) )")
    >>> read(["trees.mrg"])[0].tokens
    ['shares', 'fell']
    """
    sentences: list[ParsedSentence] = []
    for path in map(Path, paths):
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file. Name files of bracketed trees.")
        with open(path, "rb") as file:
            sentences += _sentences(path, lines(path, file))
    return sentences


def _sentences(path, rows):
    """The sentences of the lines of a file that have words."""
    from nltk import Tree

    number = 0
    for number, text in _brackets(path, rows):
        try:
            tree = Tree.fromstring(text, remove_empty_top_bracketing=True)
            if not tree.label() and len(tree) > 1:
                raise ValueError(f"one bracket holds {len(tree)} trees")
            tree = without_punctuation(tree)
        except ValueError as error:
            raise _not_a_tree(path, number, error) from None
        if tree is not None:
            yield ParsedSentence(tree.leaves(), tree)
    if not number:
        raise ValueError(f"{path}: contains no tree. {_BRACKETED}")


def _brackets(path, rows):
    """The outermost brackets: pairs of the number of the first line, and the text.

    NLTK's file reader would leave out indented ones, and words after the first under a tag.
    """
    tokens: list[str] = []
    depth = start = 0
    for number, row in enumerate(rows, 1):
        if depth and row[:1] == "(":  # the next tree begins
            break
        # As NLTK does, reads (.) as (. .).
        for token in re.findall(r"[()]|[^\s()]+", re.sub(r"\(([^\s()])\)", r"(\1 \1)", row)):
            if not depth:
                if token != "(":
                    raise _not_a_tree(path, number, f"{reprlib.repr(token)} is outside of a tree")
                start = number
            tokens.append(token)
            depth += (token == "(") - (token == ")")
            if not depth:
                yield start, " ".join(tokens)
                tokens = []
    if depth:
        raise _not_a_tree(path, start, "a bracket is not closed")


def _not_a_tree(path, number, fault):
    fault = str(fault).rstrip(".")
    return ValueError(f"{path}, line {number}: is not a tree ({fault}). {_BRACKETED}")
