"""The text that a language model of a run is trained on.

The run keeps the vocabulary, which a run that goes on has to find again, and the ids of large
texts.
"""

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_onlstm.datasets import propositional_logic
from keras_onlstm.text import corpus
from keras_onlstm.text.corpus import Corpus
from keras_onlstm.training.language_model_config import TextConfig
from keras_onlstm.training.processes import ALONE, Processes
from keras_onlstm.utils.files import replacing, write_json
from keras_onlstm.utils.progress import advance, progress_bar
from keras_onlstm.utils.reading import read_json, read_text

__all__ = [
    "IDS",
    "VOCABULARY",
    "check_same_vocabulary",
    "read_corpus",
    "split_lines",
    "word_counts",
    "write_vocabulary",
]

VOCABULARY = "vocabulary.txt"
IDS = "ids"  # where the ids of large texts are
ORIGIN = "origin.json"  # and, beside them, what they were made of
MAPPED = 100_000_000  # bytes of text from which on ids are kept in files instead of memory


def read_corpus(
    config: TextConfig,
    run: str | Path,
    vocabulary: Sequence[str] | None = None,
    processes: Processes = ALONE,
) -> Corpus:
    """The corpus of a run as ids.

    Those of a large one are in files of the run, which are mapped into memory; a run that is
    resumed finds them there, unless the files of the corpus have changed. Of several processes each
    reads a small corpus for itself; a large one only the first one turns into ids.

    Args:
        config: `LanguageModelConfig` or `PRPNConfig`. Its `data` is the folder of `train.txt`,
            `valid.txt` and `test.txt`, or some text files, whose lines are split 18 : 1 : 1. The
            preset `debug` without `data` has formulas of propositional logic.
        run: directory of the run.
        vocabulary: list of tokens, or `None`: that of the training text.
        processes: `Processes` that all read the same.

    Returns:
        `text.corpus.Corpus`.

    Raises:
        FileNotFoundError: if a file of the corpus is missing.
        ValueError: if one is empty or not UTF-8 text.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.training.corpora import read_corpus
    >>> from keras_onlstm.training.language_model_config import LanguageModelConfig
    >>> path = pathlib.Path(tempfile.mkdtemp(), "mine.txt")
    >>> _ = path.write_text("a b\\n" * 20)
    >>> corpus = read_corpus(LanguageModelConfig(data=[path]), "runs/new")
    >>> len(corpus.train), corpus.valid.tolist()
    (54, [2, 3, 0])
    """
    with tempfile.TemporaryDirectory() as temporary:
        directory = _directory(config, temporary)
        return _read(config, directory, Path(run) / IDS, vocabulary, processes)


def _directory(config, temporary):
    """The folder of the three parts of a corpus, which is `temporary` for other texts."""
    if not config.data:
        if config.preset != "debug":
            raise ValueError(
                "--data is needed: a folder of train.txt, valid.txt and test.txt, or of the Penn "
                "Treebank's ptb.train.txt, ptb.valid.txt and ptb.test.txt, or text files."
            )
        lines, parts = _toy_lines(), {"valid": slice(0, None, 10), "test": slice(1, None, 10)}
        _write_parts(temporary, {"train": lines, **{p: lines[s] for p, s in parts.items()}})
        return temporary
    if len(config.data) == 1 and not Path(config.data[0]).is_file():
        return config.data[0]
    lines = [line for path in config.data for line in read_text(path).splitlines() if line.strip()]
    if len(lines) < 20:
        raise ValueError(
            f"--data {config.data[0]}: {len(lines)} lines are too few. Give 20 or more."
        )
    _write_parts(temporary, split_lines(lines))
    return temporary


def split_lines(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    """Splits sentences 18 : 1 : 1 into those for training, validation and test, in their order.

    Args:
        lines: list.

    Returns:
        Dictionary of lists: `train`, `valid` and `test`.
    """
    train = [line for number, line in enumerate(lines) if number % 20 not in (0, 10)]
    return {"train": train, "valid": lines[::20], "test": lines[10::20]}


def _toy_lines():
    """Formulas that are drawn."""
    pairs, _ = propositional_logic.generate(3000, seed=0).split()
    return [pair.left for pair in pairs[:1000]]


def _write_parts(directory, parts):
    for part, lines in parts.items():
        text = "".join(f"{line}\n" for line in lines)
        (Path(directory) / f"{part}.txt").write_text(text, encoding="utf-8")


def _read(config, directory, cache, vocabulary, processes):
    level, max_words = "character" if config.characters else "word", config.max_words

    def load(cache=None, progress=None):
        return corpus.load(directory, vocabulary, max_words, level, cache, progress)

    if not processes.of_first(lambda: _size(directory) > MAPPED):
        found = load()
        processes.agree({"text": _digest(found)}, f"{directory}: the digest of its {{}}")
        return found
    if not processes.is_first:
        processes.wait()
        return corpus.mapped(_words(cache / VOCABULARY, "Start all processes again."), cache)
    cache.mkdir(parents=True, exist_ok=True)
    texts = {part: _file_digest(corpus.find(directory, part)) for part in corpus.PARTS}
    limit = max_words if vocabulary is None else "words that were given"
    # Ids of earlier versions, which have no <eos> for blank lines, lack the last entry.
    made = {"texts": texts, "level": level, "max_words": limit, "blank_lines": True}
    words = _words_of_ids(cache, made, vocabulary)
    if words is not None:
        found = corpus.mapped(words, cache)
    else:
        (cache / ORIGIN).unlink(missing_ok=True)
        with progress_bar("tokens", file=sys.stdout) as bar:
            found = load(cache, lambda tokens: advance(bar, tokens))
        _write_words(cache / VOCABULARY, found.vocabulary)
        write_json(cache / ORIGIN, {**made, **_bytes_of_ids(cache)})
    processes.wait()
    return found


def _words_of_ids(cache, made, vocabulary):
    """The vocabulary of the ids in a directory if they are whole and made of these texts."""
    try:
        found, words = read_json(cache / ORIGIN, dict, ""), _words(cache / VOCABULARY)
    except (FileNotFoundError, ValueError):
        return None
    if vocabulary is not None and words == list(vocabulary):
        made = {**made, "max_words": found.get("max_words")}  # counted or given, they are the same
    return words if found == {**made, **_bytes_of_ids(cache)} else None


def _bytes_of_ids(cache):
    sizes = {path.name: path.stat().st_size for path in sorted(cache.glob("*.ids"))}
    return {"words": _file_digest(cache / VOCABULARY), "bytes": sizes}


def _file_digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(directory):
    return sum(path.stat().st_size for path in Path(directory).glob("*.txt"))


def _digest(corpus):
    """A short text that two corpora hardly share, their vocabularies included."""
    known = hashlib.sha256(_lines(corpus.vocabulary).encode())
    for ids in corpus[1:]:
        known.update(f"{len(ids)}\n".encode() + ids.tobytes())
    return known.hexdigest()[:16]


def word_counts(ids: np.ndarray, words: int, block: int = 10_000_000) -> np.ndarray:
    """How often each word occurs in a text, which may be larger than memory.

    Args:
        ids: integers (tokens,).
        words: V, how many words there are.
        block: how many tokens are counted at once.

    Returns:
        Integers (V,).

    Example:

    >>> import numpy as np
    >>> from keras_onlstm.training.corpora import word_counts
    >>> word_counts(np.array([2, 0, 2]), 4).tolist()
    [1, 0, 2, 0]
    """
    parts = [ids[start : start + block] for start in range(0, len(ids), block)]
    return sum((np.bincount(part, minlength=words) for part in parts), np.zeros(words, "int64"))


def read_vocabulary(run: str | Path) -> list[str]:
    """The vocabulary of a run.

    Args:
        run: its directory.

    Returns:
        List of words.

    Raises:
        FileNotFoundError: if the run has none.
        ValueError: if it is no UTF-8 text.

    Example:

    >>> import tempfile
    >>> from keras_onlstm.training.corpora import read_vocabulary, write_vocabulary
    >>> run = tempfile.mkdtemp()
    >>> write_vocabulary(run, ["<eos>", "<unk>", "the"])
    >>> read_vocabulary(run)
    ['<eos>', '<unk>', 'the']
    """
    return _words(Path(run) / VOCABULARY, "Restore it, or start the run anew.")


def write_vocabulary(run: str | Path, vocabulary: Sequence[str]) -> None:
    """Writes the vocabulary of a run, a word a line.

    Args:
        run: directory of the run.
        vocabulary: list of words.
    """
    _write_words(Path(run) / VOCABULARY, vocabulary)


def check_same_vocabulary(
    run: str | Path, vocabulary: Sequence[str], data: str | Path | None
) -> None:
    """Refuses a corpus of other words than the run began with.

    Args:
        run: directory of the run.
        vocabulary: list of words of the corpus as it is now.
        data: directory of the corpus, for the message.

    Raises:
        FileNotFoundError: if the run has no vocabulary.
        ValueError: if it is another one.

    Example:

    >>> import tempfile
    >>> from keras_onlstm.training.corpora import check_same_vocabulary, write_vocabulary
    >>> run = tempfile.mkdtemp()
    >>> write_vocabulary(run, ["<eos>", "<unk>", "the"])
    >>> check_same_vocabulary(run, ["<eos>", "<unk>", "a"], "ptb")
    Traceback (most recent call last):
    ...
    ValueError: ...vocabulary.txt: is not the vocabulary of ptb: the files changed since the run
    began. Restore them, or start a run with another --output.
    """
    path = Path(run) / VOCABULARY
    text = read_text(path, "Restore it, or start the run anew.")
    if text != _lines(vocabulary):
        raise ValueError(
            f"{path}: is not the vocabulary of {data}: the files changed since the run began. "
            "Restore them, or start a run with another --output."
        )


def _write_words(path, words):
    with replacing(path) as temporary:
        temporary.write_text(_lines(words), encoding="utf-8")


def _words(path, remedy=""):
    """Of a file, a word a line; a character may be another kind of line end."""
    return read_text(path, remedy).split("\n")[:-1]


def _lines(words):
    return "".join(f"{word}\n" for word in words)
