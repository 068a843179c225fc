"""The MSR Sentence Completion Challenge (Zweig and Burges 2011): which of five words fills a gap.

1,040 sentences of the Sherlock Holmes novels, each with a gap and five candidates. The files are
`Holmes.lm_format.questions.txt`, five sentences for each question, and
`Holmes.lm_format.answers.txt`, the right sentences. Each line is `<s> word word ... </s>`.
"""

from pathlib import Path
from typing import NamedTuple

from keras_onlstm.utils import StrPath
from keras_onlstm.utils.files import lines
from keras_onlstm.utils.validation import warn_renamed

__all__ = ["Question", "load"]

CANDIDATES = 5
_QUESTIONS = "Holmes.lm_format.questions.txt"
_ANSWERS = "Holmes.lm_format.answers.txt"
_REMEDY = "Get it from msr_scripts/ of github.com/XingxingZhang/td-treelstm."


class Question(NamedTuple):
    """A sentence with a gap."""

    sentences: tuple[tuple[str, ...], ...]  # five, which differ in one word
    position: int  # index of this word, the gap
    candidates: tuple[str, ...]  # the five words at this index
    answer: int  # index of the right sentence

    @property
    def place(self) -> int:
        """Deprecated. Use `position`."""
        warn_renamed("Question.place", "position")
        return self.position


def load(directory: StrPath) -> list[Question]:
    """Reads the questions and their answers from the directory of both files.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged; the message names the line.

    >>> question = load("msr_sentence_completion")[0]  # doctest: +SKIP
    >>> question.candidates, question.answer  # doctest: +SKIP
    (('write', 'migrate', 'climb', 'swear', 'contribute'), 3)
    """
    path, answers_path = (Path(directory) / name for name in (_QUESTIONS, _ANSWERS))
    sentences, answers = _sentences(path), _sentences(answers_path)
    if len(sentences) != CANDIDATES * len(answers):
        raise ValueError(
            f"{path}: must have {CANDIDATES} sentences for each of the {len(answers)} of "
            f"{_ANSWERS}, got {len(sentences)}. {_REMEDY}"
        )
    questions = []
    for number, answer in enumerate(answers):
        first = CANDIDATES * number
        options = tuple(sentences[first : first + CANDIDATES])
        where = f"lines {first + 1} to {first + CANDIDATES}"
        if len(set(map(len, options))) > 1:
            message = f"{path}, {where}: the sentences must have the same number of words."
            raise ValueError(f"{message} {_REMEDY}")
        columns = list(zip(*options, strict=True))
        positions = [index for index, words in enumerate(columns) if len(set(words)) > 1]
        if len(positions) != 1 or len(set(columns[positions[0]])) != CANDIDATES:
            message = f"{path}, {where}: the sentences must differ in exactly one word."
            raise ValueError(f"{message} {_REMEDY}")
        if answer not in options:
            raise ValueError(
                f"{answers_path}, line {number + 1}: must be one of the sentences in {where} of "
                f"{_QUESTIONS}. {_REMEDY}"
            )
        (position,) = positions
        questions.append(Question(options, position, columns[position], options.index(answer)))
    return questions


def _sentences(path):
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file. {_REMEDY}")
    sentences = []
    with open(path, "rb") as file:
        for number, line in enumerate(lines(path, file), 1):
            first, *words = line.split() or [""]
            if first != "<s>" or len(words) < 2 or words.pop() != "</s>":
                raise ValueError(
                    f"{path}, line {number}: must have the form <s> words </s>. {_REMEDY}"
                )
            sentences.append(tuple(words))
    if not sentences:
        raise ValueError(f"{path}: is empty. {_REMEDY}")
    return sentences
