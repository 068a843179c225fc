"""Synthetic data, statistics and tables for sentence_completion.py. Does not import Keras."""

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
# Accuracy in percent for the best size of each model: Zhang, Lu, Lapata 2016, Table 1.
PUBLISHED = {
    "LSA": 49.0, "skip-gram": 48.0, "ivLBL": 55.5, "Kneser-Ney, 5-grams": 40.0,
    "unlabelled dependency n-grams": 48.3, "labelled dependency n-grams": 50.0, "RNN": 45.0,
    "RNNME": 49.3, "depRNN + 3-grams": 53.5, "ldepRNN + 4-grams": 50.7, "LBL": 54.7,
    "LSTM (400)": 57.02, "BiLSTM (300)": 49.90, "TreeLSTM (400)": 56.73,
    "LdTreeLSTM (400)": 60.67, "RNNMEs": 55.4, "skip-gram + RNNMEs": 58.9,
}  # fmt: skip
VERBS = {"dog": "barks", "cat": "meows", "cow": "moos", "hen": "clucks", "pig": "grunts"}
_MODIFIERS = {
    "JJ": ("old", "big", "red", "sad", "shy"),
    "RB": ("here", "now", "there", "again", "so"),
}


def synthetic_data(
    seed: int, count: int = 200, questions: int = 40
) -> tuple[list[DependencyTree], list[Completion]]:
    """Draws trees of a grammar in which the animal determines the verb, and questions about it."""
    generator = np.random.default_rng(seed)

    def tree(animal: str, verb: str, adjective: str, adverb: str) -> DependencyTree:
        words, tags = ["the", adjective, animal, verb, adverb], ["DT", "JJ", "NN", "VBZ", "RB"]
        return DependencyTree(words, [3, 3, 4, 0, 4], tags)

    def draw_words() -> list[str]:
        return [str(generator.choice(words)) for words in (list(VERBS), *_MODIFIERS.values())]

    trees = []
    for animal, *rest in (draw_words() for _ in range(count)):
        trees.append(tree(animal, VERBS[animal], *rest))
    completions = []
    for animal, *rest in (draw_words() for _ in range(questions)):
        wrong = [verb for verb in VERBS.values() if verb != VERBS[animal]]
        verbs = [VERBS[animal], *generator.permutation(wrong).tolist()[:4]]
        verbs = generator.permutation(verbs).tolist()
        candidates = tuple(tree(animal, verb, *rest) for verb in verbs)
        sentences = tuple(candidate.words for candidate in candidates)
        question = Question(sentences, 3, tuple(verbs), verbs.index(VERBS[animal]))
        completions.append(Completion(question, candidates))
    return trees, completions


def accuracies(right: np.ndarray, groups: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Accuracies with 95% intervals of groups of questions; `None` for an empty group."""
    results = {}
    for name, rows in groups.items():
        correct, total = int(right[rows].sum()), int(rows.sum())
        low, high = interval(correct, total) if total else (None, None)
        results[name] = {
            "right": correct, "questions": total, "accuracy": correct / total if total else None,
            "lowest": low, "highest": high,
        }  # fmt: skip
    return results


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def table_row(title: str, groups: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Formats the accuracies of a model as a row of the table with `HEADER`."""
    overall = groups["all"]
    bounds = (
        ""
        if overall["lowest"] is None
        else f"{percent(overall['lowest'])} to {percent(overall['highest'])}"
    )
    cells = [
        percent(groups[name]["accuracy"]) if name in groups else ""
        for name in ("validation", "test", "known")
    ]
    known = f"{groups['known']['questions']:,}"
    return [title, percent(overall["accuracy"]), bounds, *cells, known]


def differences(correct: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Yields lines that compare every model with the first one on the same questions."""
    (baseline, reference), *others = correct.items()
    for name, right in others:
        if len(right):
            difference, low, high = (100 * x for x in difference_interval(right, reference))
            yield (
                f"{name} minus {baseline}: {difference:+.1f} ({low:+.1f} to {high:+.1f}), "
                f"p = {mcnemar(right, reference):.3f}"
            )


def print_results(name: str, results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """Prints accuracies on a set of questions; for MSR, also the published ones."""
    rows = [table_row(title, groups) for title, groups in results.items()]
    rows.append(["chance", "20.0"])
    if name == "MSR":
        rows += [[f"published: {title}", f"{value:.1f}"] for title, value in PUBLISHED.items()]
    info(table(HEADER, [row + [""] * (len(HEADER) - len(row)) for row in rows]))
    if name == "MSR":
        info(
            "\nPublished: Zhang et al. 2016, Table 1. Those models were trained on other text: "
            "522 novels, 49 million words."
        )


def write_files(
    output: Path,
    options: dict[str, Any],
    questions: Mapping[str, tuple[list[Completion], bool]],
    models: Sequence[Any],
    results: dict[str, Any],
) -> None:
    """Writes results.json and choices.csv, which has a row for every question."""
    write_json(output / "results.json", {"arguments": options, **results})
    rows = [["of", "question", "answer", *(model.name for model in models)]]
    for name, (completions, _) in questions.items():
        choices = [choose(model.scores[name]).tolist() for model in models]
        for index, completion in enumerate(completions):
            words = completion.question.candidates
            chosen = (words[choice[index]] for choice in choices)
            rows.append([name, index + 1, words[completion.question.answer], *chosen])
    write_csv(output / "choices.csv", rows)
