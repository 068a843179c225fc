"""Made-up data, statistics and tables of sentence_completion.py. Without Keras."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _common import info, write_csv

from keras_onlstm.datasets.sentence_completion import Question
from keras_onlstm.dependencies import DependencyTree
from keras_onlstm.evaluation.minimal_pairs import difference_interval, interval, mcnemar
from keras_onlstm.evaluation.sentence_completion import Completion, choose
from keras_onlstm.utils.console import table
from keras_onlstm.utils.files import write_json

HEADER = ("", "all", "95%", "validation half", "test half", "known candidates", "of")
# Accuracy in percent: Zhang, Lu, Lapata 2016, Table 1; the best size of each model.
PUBLISHED = {
    "LSA": 49.0, "skip-gram": 48.0, "ivLBL": 55.5, "Kneser-Ney, 5-grams": 40.0,
    "unlabelled dependency n-grams": 48.3, "labelled dependency n-grams": 50.0, "RNN": 45.0,
    "RNNME": 49.3, "depRNN + 3-grams": 53.5, "ldepRNN + 4-grams": 50.7, "LBL": 54.7,
    "LSTM (400)": 57.02, "BiLSTM (300)": 49.90, "TreeLSTM (400)": 56.73,
    "LdTreeLSTM (400)": 60.67, "RNNMEs": 55.4, "skip-gram + RNNMEs": 58.9,
}  # fmt: skip
VERBS = {"dog": "barks", "cat": "meows", "cow": "moos", "hen": "clucks", "pig": "grunts"}
_OTHERS = {"JJ": ("old", "big", "red", "sad", "shy"), "RB": ("here", "now", "there", "again", "so")}


def made_up(
    seed: int, count: int = 200, questions: int = 40
) -> tuple[list[DependencyTree], list[Completion]]:
    """Trees of a grammar in which the animal determines the verb, and questions about it."""
    generator = np.random.default_rng(seed)

    def tree(animal: str, verb: str, adjective: str, adverb: str) -> DependencyTree:
        words, tags = ["the", adjective, animal, verb, adverb], ["DT", "JJ", "NN", "VBZ", "RB"]
        return DependencyTree(words, [3, 3, 4, 0, 4], tags)

    def drawn() -> list[str]:
        return [str(generator.choice(some)) for some in (list(VERBS), *_OTHERS.values())]

    trees = [
        tree(animal, VERBS[animal], *rest) for animal, *rest in (drawn() for _ in range(count))
    ]
    completions = []
    for animal, *rest in (drawn() for _ in range(questions)):
        wrong = [verb for verb in VERBS.values() if verb != VERBS[animal]]
        verbs = [VERBS[animal], *generator.permutation(wrong).tolist()[:4]]
        verbs = generator.permutation(verbs).tolist()
        candidates = tuple(tree(animal, verb, *rest) for verb in verbs)
        sentences = tuple(one.words for one in candidates)
        question = Question(sentences, 3, tuple(verbs), verbs.index(VERBS[animal]))
        completions.append(Completion(question, candidates))
    return trees, completions


def shares(right: np.ndarray, groups: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Accuracies of groups of questions with 95% intervals, `None` for an empty group."""
    found = {}
    for name, rows in groups.items():
        count, number = int(right[rows].sum()), int(rows.sum())
        low, high = interval(count, number) if number else (None, None)
        share = count / number if number else None
        found[name] = {
            "right": count, "questions": number, "accuracy": share, "lowest": low, "highest": high,
        }  # fmt: skip
    return found


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def row_of(title: str, found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A row of the table with `HEADER`."""
    whole = found["all"]
    span = (
        ""
        if whole["lowest"] is None
        else " to ".join(percent(whole[end]) for end in ("lowest", "highest"))
    )
    cells = [
        percent(found[name]["accuracy"]) if name in found else ""
        for name in ("validation", "test", "known")
    ]
    return [title, percent(whole["accuracy"]), span, *cells, f"{found['known']['questions']:,}"]


def differences(rights: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Lines that compare every model with the first on the same questions."""
    (first, own), *others = rights.items()
    for name, right in others:
        if len(right):
            difference, low, high = (100 * number for number in difference_interval(right, own))
            yield (
                f"{name} minus {first}: {difference:+.1f} ({low:+.1f} to {high:+.1f}), "
                f"p = {mcnemar(right, own):.3f}"
            )


def show(name: str, results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Prints accuracies on a set of questions, for MSR with the published ones."""
    rows = [row_of(title, found) for title, found in results.items()]
    rows.append(["chance", "20.0"])
    if name == "MSR":
        rows += [[f"published: {title}", f"{value:.1f}"] for title, value in PUBLISHED.items()]
    info(table(HEADER, [row + [""] * (len(HEADER) - len(row)) for row in rows]))
    if name == "MSR":
        info(
            "\nPublished: Zhang et al. 2016, Table 1. They trained on 522 novels, 49 million words,"
            " which are not the training text of these models."
        )


def write_files(
    output: Path,
    options: dict[str, Any],
    found: Mapping[str, tuple[list[Completion], bool]],
    models: Sequence[Any],
    results: dict[str, Any],
) -> None:
    """Writes results.json, and choices.csv with a row for every question."""
    write_json(output / "results.json", {"arguments": options, **results})
    rows = [["of", "question", "answer", *(model.name for model in models)]]
    for name, (completions, _) in found.items():
        chosen = [choose(model.scores[name]).tolist() for model in models]
        for number, one in enumerate(completions):
            words = one.question.candidates
            own = (words[row[number]] for row in chosen)
            rows.append([name, number + 1, words[one.question.answer], *own])
    write_csv(output / "choices.csv", rows)
