"""The questions of the MSR Sentence Completion Challenge: known counts, and damaged files."""

from collections import Counter

import pytest

from keras_onlstm.datasets import sentence_completion

pytestmark = pytest.mark.keras_free
QUESTIONS, ANSWERS = "Holmes.lm_format.questions.txt", "Holmes.lm_format.answers.txt"


def test_published_questions(shared_data):
    directory = shared_data / "msr_sentence_completion"
    questions = sentence_completion.load(directory)
    assert len(questions) == 1_040
    assert (
        sum(len(sentence) for question in questions for sentence in question.sentences) == 106_410
    )
    answers = Counter(question.answer for question in questions)
    assert [answers[index] for index in range(5)] == [195, 208, 211, 205, 221]
    first = questions[0]
    assert " ".join(first.sentences[first.answer]) == (
        "I have seen it on him , and could swear to it"
    )
    assert (first.position, first.answer) == (9, 3)
    assert first.candidates == ("write", "migrate", "climb", "swear", "contribute")
    text = (directory / ANSWERS).read_text().splitlines()
    for question, line in zip(questions, text, strict=True):
        assert line == f"<s> {' '.join(question.sentences[question.answer])} </s>"
        for word, sentence in zip(question.candidates, question.sentences, strict=True):
            rest = question.sentences[0]
            assert (*rest[: question.position], word, *rest[question.position + 1 :]) == sentence


def write(directory, questions, answers):
    (directory / QUESTIONS).write_bytes(questions.encode("latin-1"))
    (directory / ANSWERS).write_bytes(answers.encode("latin-1"))


FIVE = [f"<s> the {word} sleeps </s> " for word in ("cat", "dog", "man", "bee", "eel")]
RIGHT = "<s> the bee sleeps </s>"


def test_load_finds_gap_and_answer(tmp_path):
    write(tmp_path, "\r\n".join(FIVE), RIGHT)
    sentences = tuple(tuple(line.split()[1:-1]) for line in FIVE)
    candidates = ("cat", "dog", "man", "bee", "eel")
    assert sentence_completion.load(tmp_path) == [(sentences, 1, candidates, 3)]


@pytest.mark.parametrize(
    ("questions", "answers", "message"),
    [
        (
            [*FIVE[:4]],
            [RIGHT],
            "questions.txt: must have 5 sentences for each of the 1 of Holmes.*, got 4",
        ),
        (
            [*FIVE[:3], "x", FIVE[4]],
            [RIGHT],
            "questions.txt, line 4: must have the form <s> words </s>",
        ),
        ([*FIVE[:3], "<s> </s>", FIVE[4]], [RIGHT], "questions.txt, line 4: must have the form"),
        (
            [*FIVE[:4], "<s> the </s>"],
            [RIGHT],
            "questions.txt, lines 1 to 5: .* the same number of",
        ),
        (
            [*FIVE[:4], "<s> an owl sleeps </s>"],
            [RIGHT],
            "questions.txt, lines 1 to 5: .* in exactly one word",
        ),
        ([*FIVE[:4], FIVE[0]], [RIGHT], "questions.txt, lines 1 to 5: .* in exactly one word"),
        (
            FIVE,
            ["<s> the owl sleeps </s>"],
            "answers.txt, line 1: must be one of the sentences in lines 1 to 5",
        ),
        (FIVE * 2, [RIGHT, "<s>"], "answers.txt, line 2: must have the form <s> words </s>"),
        (FIVE, ["<s> the b\xe9e sleeps </s>"], "answers.txt, line 1: is not UTF-8 text"),
        ([], [], "questions.txt: is empty"),
    ],
)
def test_damaged_files_raise_an_error(questions, answers, message, tmp_path):
    write(tmp_path, "\n".join(questions), "\n".join(answers))
    with pytest.raises(ValueError, match=message) as caught:
        sentence_completion.load(tmp_path)
    assert "\n" not in str(caught.value) and str(caught.value).startswith(str(tmp_path))


def test_missing_files_raise_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"questions\.txt: no such file\. Get it from"):
        sentence_completion.load(tmp_path)
    (tmp_path / QUESTIONS).write_text("\n".join(FIVE))
    with pytest.raises(FileNotFoundError, match=r"answers\.txt: no such file\. Get it from"):
        sentence_completion.load(tmp_path)
