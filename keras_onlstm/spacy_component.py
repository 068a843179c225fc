"""A component for spaCy pipelines that parses sentences: `nlp.add_pipe("onlstm")`.

spaCy imports this module when a pipeline names the component.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets
from keras_onlstm.utils.types import NltkTree, StrPath

__all__ = ["SentenceParser", "make"]

_KEY = "onlstm"  # in the user data of documents: from the bounds of a sentence to what was found
_BLOCK = 64  # documents at once


class SentenceParser:
    """Parses the sentences of documents.

    Their spans get `._.tree`, `nltk.Tree` of the words, or `None` where there is none;
    `._.parse_string`, the tree in brackets; `._.constituents`, list of the spans of all its
    constituents, the sentence's words first; and `._.distances`, array (rows, words) as in
    `Parsed`. Words are tokens with a letter or a digit.

    Args:
        parser: `Parser`.

    Example, which needs spaCy:

    >>> import spacy  # doctest: +SKIP
    >>> nlp = spacy.blank("en")  # doctest: +SKIP
    >>> _ = nlp.add_pipe("sentencizer"), nlp.add_pipe("onlstm")  # doctest: +SKIP
    >>> next(nlp("Prices fell.").sents)._.parse_string  # doctest: +SKIP
    '(X Prices fell)'
    """

    def __init__(self, parser: Parser) -> None:
        self.parser = parser

    def __call__(self, doc: Any) -> Any:
        """Parses the sentences of a `spacy.tokens.Doc`, and returns it.

        Raises:
            ValueError: if nothing has found its sentences.
        """
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Any], batch_size: int = _BLOCK) -> Iterator[Any]:
        """As spaCy's pipelines call it: documents, parsed in blocks.

        Args:
            stream: iterable of `spacy.tokens.Doc`.
            batch_size: positive integer.

        Yields:
            The documents.

        Raises:
            ValueError: as `__call__`.
        """
        from spacy.util import minibatch  # keras-onlstm[parse]

        for docs in minibatch(stream, batch_size):
            self._parse(docs)
            yield from docs

    def _parse(self, docs):
        found = []
        for doc in docs:
            if len(doc) and not doc.has_annotation("SENT_START"):
                raise ValueError(
                    "onlstm: the document has no sentences. Put a component before it that finds "
                    'them: nlp.add_pipe("sentencizer", before="onlstm").'
                )
            doc.user_data[_KEY] = {}
            found += [(doc, sentence) for sentence in (doc.sents if len(doc) else ())]
        places = [[t.i for t in s if any(map(str.isalnum, t.text))] for _, s in found]
        words = [[doc[i].text for i in some] for (doc, _), some in zip(found, places, strict=True)]
        measured = self.parser.measure(words, self.parser.gate)
        for (doc, sentence), some, given, distances in zip(
            found, places, words, measured, strict=True
        ):
            tree = self.parser.tree(distances, given) if given else None
            doc.user_data[_KEY][sentence.start, sentence.end] = tree, distances, some


def _of(span):
    found = span.doc.user_data.get(_KEY, {}).get((span.start, span.end))
    if found is None:
        raise ValueError(
            f"{span.text[:40]!r}: is no sentence that the component onlstm parsed. doc.sents are."
        )
    return found


def _tree(span: Any) -> NltkTree | None:
    return _of(span)[0]


def _parse_string(span):
    return "" if _tree(span) is None else brackets(_tree(span))


def _constituents(span):
    tree, _, places = _of(span)
    if tree is None:
        return []
    found = []
    unread, word = [(tree, 0)], 0
    while unread:  # the place of a word is known once those to its left are
        node, word = unread.pop()
        if isinstance(node, str):
            continue
        count = len(node.leaves())
        found.append(span.doc[places[word] : places[word + count - 1] + 1])
        starts = []
        for child in node:
            starts.append((child, word))
            word += 1 if isinstance(child, str) else len(child.leaves())
        unread += reversed(starts)
    return found


def _distances(span):
    return _of(span)[1]


_EXTENSIONS = {
    "tree": _tree,
    "parse_string": _parse_string,
    "constituents": _constituents,
    "distances": _distances,
}


def make(
    nlp: Any,
    name: str,
    model: StrPath | None,
    layer: int | None,
    method: str | None,
    gate: str | None,
) -> SentenceParser:
    """The component of a pipeline; spaCy calls it.

    Args:
        nlp: the pipeline.
        name: of the component in it.
        model: as the first argument of `Parser.load`.
        layer: as of `Parser.load`.
        method: likewise.
        gate: likewise.

    Returns:
        `SentenceParser`.

    Raises:
        FileNotFoundError: if there is no such model.
        ValueError: as `Parser.load`.
    """
    from spacy.tokens import Span

    for extension, getter in _EXTENSIONS.items():
        if not Span.has_extension(extension):
            Span.set_extension(extension, getter=getter)
    return SentenceParser(Parser.load(model, layer, method, gate=gate))


def _register():
    try:
        from spacy.language import Language
    except ImportError as error:
        raise ImportError(
            f"the component onlstm needs spaCy ({error}): pip install 'keras-onlstm[parse]'."
        ) from error
    config = {"model": None, "layer": None, "method": None, "gate": None}
    Language.factory("onlstm", default_config=config, func=make)


_register()
