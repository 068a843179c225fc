"""Sets where NLTK finds its corpora during a test."""

import contextlib


@contextlib.contextmanager
def corpora_in(*directories):
    """A context in which NLTK finds its corpora only in some directories.

    NLTK keeps a corpus that was loaded, wherever its path points by then; so those that any test
    may have loaded are unloaded, before and after.

    Args:
        directories: of the layout of `nltk_data`; none: NLTK finds nothing.
    """
    import nltk
    from nltk import corpus as corpora

    def unload():
        for corpus in (corpora.brown, corpora.dependency_treebank, corpora.ptb, corpora.treebank):
            if hasattr(corpus, "_unload"):  # the corpus is loaded
                corpus._unload()

    before = list(nltk.data.path)
    unload()
    nltk.data.path[:] = map(str, directories)
    try:
        yield
    finally:
        nltk.data.path[:] = before
        unload()
