"""Dependency parsing with spaCy for sentence_completion.py. Does not import Keras."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from _common import info

from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.utils.console import progress_bar
from keras_onlstm.utils.files import describe
from keras_onlstm.utils.libraries import not_installed

UNUSED = ["lemmatizer", "ner"]  # slow pipeline components


def load_parser(name: str) -> Any:
    """Loads a spaCy pipeline with a parser; `name` is an installed model or a directory."""
    try:
        import spacy
    except ImportError as error:
        raise not_installed("--parse", "spacy", error=error) from error
    try:
        pipeline = spacy.load(name, exclude=UNUSED)
    except Exception as error:  # spaCy and the code of a model may raise any exception
        raise ValueError(
            f"--parse {name}: spaCy cannot load this model ({describe(error)}). Pass the name "
            "of an installed model or its directory."
        ) from error
    if "parser" not in pipeline.pipe_names:
        raise ValueError(
            f"--parse {name}: this model has no parser, only {', '.join(pipeline.pipe_names)}. "
            "Pass a model that has one, e.g. en_core_web_sm."
        )
    return pipeline


class SpacyTrees:
    """Parses sentences that are split into words.

    Args:
        pipeline: result of `load_parser`.

    Attributes:
        rooted: integer, number of trees so far in which several words depended on ROOT. The first
            of them became the head of the others.
        lifted: integer, number of trees so far that were not projective and were projectivized.
    """

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self.rooted = self.lifted = 0

    def __call__(self, sentences: Iterable[Sequence[str]]) -> Iterator[DependencyTree]:
        """Yields a projective `DependencyTree` for every sentence, in order."""
        from spacy.tokens import Doc

        documents = (Doc(self.pipeline.vocab, words=list(words)) for words in sentences)
        for document in self.pipeline.pipe(documents):
            yield self.tree(
                [token.text for token in document],
                [0 if token.head.i == token.i else token.head.i + 1 for token in document],
                [token.tag_ for token in document],
                [token.dep_ for token in document],
            )

    def tree(
        self,
        words: Sequence[str],
        heads: Sequence[int],
        tags: Sequence[str],
        relations: Sequence[str],
    ) -> DependencyTree:
        """Converts a tree of spaCy, in which several words may depend on ROOT (0)."""
        first, *others = (index for index, head in enumerate(heads, 1) if not head)
        self.rooted += bool(others)
        heads = [first if index in others else head for index, head in enumerate(heads, 1)]
        tree, lifts = DependencyTree(words, heads, tags, relations).projectivized()
        self.lifted += lifts > 0
        return tree


def write_parsed(pipeline: Any, sentences: Sequence[Sequence[str]], path: str | Path) -> None:
    """Parses sentences into a CoNLL file and prints how many trees were changed."""
    trees = SpacyTrees(pipeline)
    parsed = progress_bar(
        "sentences",
        iterable=trees(sentences),
        total=len(sentences),
        desc=f"Parsing, {Path(path).name}",
    )
    conll.write(parsed, path)
    info(
        f"{path}: {len(sentences):,} trees. {trees.lifted:,} were projectivized. In "
        f"{trees.rooted:,} several words depended on ROOT; the first became the head of the others."
    )
