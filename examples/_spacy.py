"""Dependency trees of sentences by spaCy, for sentence_completion.py. No Keras."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from _common import info

from keras_onlstm.datasets import conll
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.utils.libraries import not_installed
from keras_onlstm.utils.progress import progress_bar
from keras_onlstm.utils.reading import reason

UNUSED = ["lemmatizer", "ner"]  # of a pipeline, which take time


def load_parser(name: str) -> Any:
    """A spaCy pipeline that parses; `name` is of an installed model, or a directory."""
    try:
        import spacy
    except ImportError as error:
        raise not_installed("--parse", "spacy", error=error) from error
    try:
        pipeline = spacy.load(name, exclude=UNUSED)
    except Exception as error:  # whatever spaCy, and the code of a model, raises
        raise ValueError(
            f"--parse {name}: spaCy loads no such model ({reason(error)}). Name one that is "
            "installed, or its directory."
        ) from error
    if "parser" not in pipeline.pipe_names:
        raise ValueError(
            f"--parse {name}: has no parser, only {', '.join(pipeline.pipe_names)}. Name a model "
            "that has one."
        )
    return pipeline


class SpacyTrees:
    """Parses sentences whose words are given: none is split or joined.

    Args:
        pipeline: of `load_parser`.

    Attributes:
        rooted: integer, in how many trees so far more than one word depended on ROOT; the others
            were hung on the first of them.
        lifted: integer, how many trees so far were not projective, and were made so.
    """

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self.rooted = self.lifted = 0

    def __call__(self, sentences: Iterable[Sequence[str]]) -> Iterator[DependencyTree]:
        """Yields a projective `DependencyTree` for every sentence, in their order."""
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
        """One tree of what spaCy found, where any number of words depends on ROOT, 0."""
        roots = [place for place, head in enumerate(heads, 1) if not head]
        self.rooted += len(roots) > 1
        hung = [
            head if head or place == roots[0] else roots[0] for place, head in enumerate(heads, 1)
        ]
        tree, lifts = DependencyTree(words, hung, tags, relations).projectivized()
        self.lifted += lifts > 0
        return tree


def write_parsed(pipeline: Any, sentences: Sequence[Sequence[str]], path: str | Path) -> None:
    """Parses sentences into a CoNLL file, and says what had to be changed of the trees."""
    trees = SpacyTrees(pipeline)
    parsed = progress_bar(
        "sentences",
        iterable=trees(sentences),
        total=len(sentences),
        desc=f"Parsing, {Path(path).name}",
    )
    conll.write(parsed, path)
    info(
        f"{path}: {len(sentences):,} trees; {trees.lifted:,} were not projective and are made so, "
        f"{trees.rooted:,} had several words under ROOT, which the first one gets"
    )
