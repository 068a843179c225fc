"""A component for spaCy pipelines that parses sentences: `nlp.add_pipe("onlstm")`.

spaCy imports this module when a pipeline names the component. Import it yourself to read trees from
stored documents without a pipeline.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets
from keras_onlstm.parsing.scores import walk
from keras_onlstm.parsing.trees import LABEL
from keras_onlstm.utils import NltkTree, StrPath
from keras_onlstm.utils.libraries import not_installed

__all__ = ["SentenceParser", "make"]

_KEY = "onlstm: "  # prefix of the names in the user data of documents
_BLOCK = 64  # documents per batch


class SentenceParser:
    """Parses the sentences of documents.

    Their spans get `._.tree`, `nltk.Tree`, or `None` without words; `._.parse_string`, the
    bracketed tree; `._.constituents`, list of the spans of all constituents, the whole sentence
    first; and `._.distances`, array (rows, words) as in `Parsed`. Words are tokens with a letter or
    a digit.

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
        """Parses the sentences of a `spacy.tokens.Doc`, and returns it."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Any], batch_size: int = _BLOCK) -> Iterator[Any]:
        """Yields documents, parsed in batches. Without sentence boundaries: `ValueError`."""
        from spacy.util import minibatch

        for docs in minibatch(stream, batch_size):
            self._parse(docs)
            yield from docs

    def _parse(self, docs):
        sentences: list[Any] = []
        for doc in docs:
            if len(doc) and not doc.has_annotation("SENT_START"):
                raise ValueError(
                    "onlstm: the document has no sentence boundaries. Add a component that sets "
                    'them: nlp.add_pipe("sentencizer", before="onlstm").'
                )
            for key in list(filter(_is_ours, doc.user_data)):
                del doc.user_data[key]  # from an earlier parse
            sentences += doc.sents if len(doc) else ()
        tokens = [[t for t in sentence if any(map(str.isalnum, t.text))] for sentence in sentences]
        words = [[token.text for token in sentence] for sentence in tokens]
        distances = self.parser.distances_many(words, self.parser.gate)
        for sentence, own_tokens, texts, rows in zip(
            sentences, tokens, words, distances, strict=True
        ):
            constituents = walk(self.parser.tree(rows, texts))[0] if texts else []
            bounds = [(token.idx, token.idx + len(token)) for token in own_tokens]
            sentence.doc.user_data[_key(sentence)] = {
                "words": np.array(bounds, "int64").reshape(-1, 2) - sentence.start_char,
                "constituents": np.array([c[1:] for c in constituents], "int64").reshape(-1, 2),
                "distances": rows,
            }


def _key(sentence):
    """The key of a sentence in the user data of its document.

    spaCy stores entries with keys of this form, and shifts their two numbers when it slices or
    concatenates documents. A slice also keeps entries of sentences outside of it, which may collide
    with those of another document; the text in the key tells them apart.
    """
    return "._.", _KEY + sentence.text, sentence.start_char, sentence.end_char


def _is_ours(key):
    return isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[1].startswith(_KEY)


def _stored(span):
    """The three arrays that `_parse` stored for a sentence.

    `words` (words, 2) has the bounds of each word in characters of the sentence; `constituents`
    (constituents, 2) has those of each constituent in words, children before parents.
    """
    stored = span.doc.user_data.get(_key(span))
    if stored is None:
        raise ValueError(
            f"{span.text[:40]!r} is not a sentence that the component onlstm parsed. Use the spans "
            "of doc.sents, and copy or store documents with their user data: "
            "span.as_doc(copy_user_data=True), DocBin(store_user_data=True)."
        )
    return stored


def _tree(span: Any) -> NltkTree | None:
    from nltk import Tree

    stored, text = _stored(span), span.text
    words = [text[start:end] for start, end in stored["words"].tolist()]
    stack: list[tuple[int, Any]] = []  # (first word, a word or constituent without a parent yet)
    shifted = 0  # number of words that were pushed
    for start, end in stored["constituents"].tolist():
        stack += enumerate(words[shifted:end], shifted)
        shifted = max(shifted, end)
        children = []
        while stack and stack[-1][0] >= start:
            children.append(stack.pop()[1])
        stack.append((start, Tree(LABEL, children[::-1])))
    return stack[0][1] if stack else None


def _parse_string(span):
    tree = _tree(span)
    return "" if tree is None else brackets(tree)


def _constituents(span):
    stored = _stored(span)
    bounds = sorted(stored["constituents"].tolist(), key=lambda bound: (bound[0], -bound[1]))
    first = span.start_char
    return [
        span.doc.char_span(
            first + int(stored["words"][start, 0]),
            first + int(stored["words"][end - 1, 1]),
            alignment_mode="expand",  # tokens may have been merged since
        )
        for start, end in bounds
    ]


def _distances(span):
    return _stored(span)["distances"]


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
    """Creates the component with `Parser.load`, whose arguments are described there."""
    return SentenceParser(Parser.load(model, layer, method, gate=gate))


def _register():
    try:
        from spacy.language import Language
        from spacy.tokens import Span
    except ImportError as error:
        raise not_installed("The component onlstm", "spacy", error=error) from error
    config = {"model": None, "layer": None, "method": None, "gate": None}
    Language.factory("onlstm", default_config=config, func=make)
    for extension, getter in _EXTENSIONS.items():
        if not Span.has_extension(extension):
            Span.set_extension(extension, getter=getter)


_register()
