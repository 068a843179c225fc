"""NLTK's corpora in tests: read from where a test says, and forgotten afterwards."""

import contextlib


@contextlib.contextmanager
def corpora_in(*directories):
    """A context in which NLTK finds its corpora in some directories and nowhere else.

    NLTK keeps a corpus that was loaded, wherever its path points by then; so those that any test
    may have loaded are unloaded, before and after.

    Args:
        directories: of the layout of `nltk_data`; none: NLTK finds nothing.
    """
    import nltk
    from nltk import corpus as corpora

    def unload():
        for corpus in (corpora.brown, corpora.dependency_treebank, corpora.ptb, corpora.treebank):
            if hasattr(corpus, "_unload"):  # it was loaded
                corpus._unload()

    before = list(nltk.data.path)
    unload()
    nltk.data.path[:] = map(str, directories)
    try:
        yield
    finally:
        nltk.data.path[:] = before
        unload()
