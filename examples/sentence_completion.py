"""Sentence completion with TreeLSTM (Zhang, Lu, Lapata 2016, Sec. 3.2; Zweig and Burges 2011).

Which of five words fills the gap in a sentence? A trained model scores each of the five sentences,
given its dependency tree, and the most likely one is the answer. The questions come from the MSR
challenge or are generated from NLTK's dependency treebank.

    # Train and evaluate tiny models on synthetic data, in seconds.
    python examples/sentence_completion.py --preset debug
    # Generate questions and evaluate runs of dependency_language_model.py on them.
    python examples/sentence_completion.py --models RUN RUN --blanks
    # Parse the questions of the MSR challenge with spaCy, then evaluate runs on them.
    python examples/sentence_completion.py --questions DIR --trees msr.conll --parse en_core_web_sm
    python examples/sentence_completion.py --questions DIR --trees msr.conll --models RUN RUN
    # Parse the Brown corpus, to train on it.
    python examples/sentence_completion.py --prepare-brown DIR --parse en_core_web_sm

An evaluation writes results.json and choices.csv.
"""

import itertools
from functools import partial
from pathlib import Path

import numpy as np
from _common import info
from _completion import accuracies, differences, print_results, synthetic_data, write_files

from keras_onlstm.datasets import brown, conll, dependency_treebank, sentence_completion
from keras_onlstm.datasets.treebank import normalize
from keras_onlstm.evaluation.sentence_completion import (
    all_known,
    arrange,
    blanks,
    choose,
    groups,
    most_frequent,
    score,
)
from keras_onlstm.loading import load_trained
from keras_onlstm.runs.directory import check_new, running
from keras_onlstm.runs.tree_lstm import TreeLSTMConfig
from keras_onlstm.text.vocabulary import frequent
from keras_onlstm.training.corpora import TreeCorpus, normalize_tree, reshape_tree
from keras_onlstm.utils.console import ArgumentParser, advance, at_least, progress_bar, report, seed

DEBUG = {  # models that --preset debug trains: (trees, left dependents)
    "tree_lstm": ("dependencies", False),
    "ld_tree_lstm": ("dependencies", True),
    "lstm": ("chain", False),
}
PARTS = ("train", "valid", "test")


def parse_arguments():
    parser = ArgumentParser(
        prog="sentence_completion.py",
        description="Sentence completion with TreeLSTM language models.",
    )
    add = parser.add_argument
    # fmt: off
    add("--preset", choices=("debug",),
        help="debug: train tiny models and answer synthetic questions, in seconds.")
    add("--models", nargs="+", metavar="RUN",
        help="Runs of dependency_language_model.py to evaluate on the questions.")
    add("--questions", metavar="DIR",
        help="Folder with the two files of the MSR challenge. Needs --trees.")
    add("--trees", metavar="FILE", help="CoNLL file with the trees of the 5,200 sentences in "
        "--questions. With --parse it is written, otherwise read.")
    add("--blanks", action="store_true",
        help="Evaluate on questions that are generated from NLTK's dependency treebank.")
    add("--prepare-brown", metavar="DIR", help="Parse NLTK's Brown corpus with --parse into "
        "train.conll, valid.conll and test.conll in this folder.")
    add("--parse", metavar="MODEL", help="spaCy model that parses --questions or the Brown corpus, "
        "e.g. en_core_web_sm.")
    add("--unknown", type=at_least(1), default=1, metavar="N", help="Number of rare words that "
        "share the probability of <unk>. (default: 1, as published)")
    add("--seed", type=seed, default=0, metavar="N",
        help="Seed of --blanks and of --preset debug. (default: 0)")
    add("--output", metavar="DIR", default="runs/sentence_completion",
        help="New directory for the results. (default: %(default)s)")
    # fmt: on
    options = parser.parse_args()
    check_options(parser, options)
    return parser, options


def check_options(parser, options):
    """Reports combinations of options that do not make sense."""
    has_questions = options.questions or options.blanks
    if options.preset:
        if any(
            (options.models, has_questions, options.trees, options.parse, options.prepare_brown)
        ):
            parser.error("--preset debug has its own models and questions. Leave the others out.")
        return
    if (options.questions is None) != (options.trees is None):
        parser.error("--questions and --trees must be passed together")
    if options.prepare_brown and not options.parse:
        parser.error("--prepare-brown needs --parse MODEL, the spaCy model to parse with")
    if options.parse and not (options.prepare_brown or options.trees):
        parser.error("--parse needs something to parse: --questions and --trees or --prepare-brown")
    if not (has_questions or options.prepare_brown):
        parser.error(
            "nothing to do. Pass --questions and --trees, --blanks, --prepare-brown or "
            "--preset debug."
        )
    if has_questions and not (options.models or options.parse):
        parser.error("--models is missing: the trained runs to evaluate on the questions")
    if options.blanks and not options.models:
        parser.error("--blanks needs --models, the trained runs to evaluate")
    if options.models and not has_questions:
        parser.error("--models needs questions to answer: --questions and --trees or --blanks")


def parse(options):
    """Writes the requested files of trees. Raises an error if a file exists already."""
    from _spacy import load_parser, write_parsed

    tasks = {}
    if options.trees:
        questions = sentence_completion.load(options.questions)
        tasks[Path(options.trees)] = [words for question in questions for words in question[0]]
    if options.prepare_brown:
        directory = Path(options.prepare_brown)
        tasks |= {directory / f"{part}.conll": texts for part, texts in brown_parts().items()}
    for path in tasks:
        if path.exists():
            raise FileExistsError(
                f"{path} exists already. Leave --parse out to use it, or choose another path."
            )
    pipeline = load_parser(options.parse)
    for path, sentences in tasks.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parsed(pipeline, sentences, path)


def brown_parts():
    """Splits the Brown corpus: of every 20 files, 18 are for training and 1 for each other part."""
    files = list(brown.load_files().values())
    parts = {
        "train": [file for index, file in enumerate(files) if index % 20 not in (0, 10)],
        "valid": files[::20],
        "test": files[10::20],
    }
    return {part: list(itertools.chain(*files)) for part, files in parts.items()}


def load_questions(options):
    """Loads sets of questions: {name: (questions with trees, whether half are for validation)}."""
    loaded = {}
    if options.questions:
        info(f"Reading {options.trees}")
        lifted = [tree.projectivized() for tree in conll.read(options.trees)]
        if count := sum(lifts > 0 for _, lifts in lifted):
            info(f"{count:,} trees were not projective and have been projectivized")
        trees = [tree for tree, _ in lifted]
        questions = sentence_completion.load(options.questions)
        loaded["MSR"] = arrange(questions, trees, options.trees), True
    if options.blanks:
        info("Reading NLTK's dependency treebank")
        train, test = (dependency_treebank.load(part) for part in ("train", "test"))
        loaded["blanks"] = blanks(train, test, options.seed), False
        info(f"{len(loaded['blanks'][0]):,} questions from {len(test):,} sentences")
    return loaded


def train_debug(options, trees):
    """Trains small models on synthetic trees and returns the directories of their runs."""
    from keras_onlstm.training.tree_models import train_tree_model

    runs = []
    for name, (shape, left_dependents) in DEBUG.items():
        texts = [reshape_tree(tree, shape) for tree in trees]
        vocabulary = frequent(tree.words for tree in texts)
        corpus = TreeCorpus(vocabulary, texts, texts[:20], texts[:20], {})
        config = TreeLSTMConfig.from_preset(
            "debug", trees=shape, left_dependents=left_dependents, seed=options.seed,
            input_dropout=0.0, output_dropout=0.0, epochs=10, batch_size=20, learning_rate=3e-2,
        )  # fmt: skip
        run = Path(options.output) / name
        train_tree_model(run, config, corpus)
        runs.append(str(run))
    return runs


class EvaluatedRun:
    """A trained run and its scores."""

    def __init__(self, run):
        config = TreeLSTMConfig.load(run)
        self.shape, self.normalizes = config.trees, config.normalize
        self.model = load_trained(run, "tree_language_model")
        kind = "LSTM" if self.shape == "chain" else self.model.title
        self.name = f"{kind}{', random trees' if self.shape == 'random' else ''}, {run}"
        self.vocabulary = list(self.model.vocabulary or ())
        self.normalize_word = normalize if self.normalizes else str
        self.known, self.scores = {}, {}

    def prepare(self, tree, question):
        """Converts a tree to the form that the model was trained on; `question` is an index."""
        return reshape_tree(normalize_tree(tree) if self.normalizes else tree, self.shape, question)

    def score(self, name, completions, unknown):
        self.known[name] = all_known(completions, self.vocabulary, self.normalize_word)
        with progress_bar("trees", desc=f"Scoring, {name}, {self.name}") as bar:
            self.scores[name] = score(
                self.model.log_probability,
                completions,
                self.vocabulary,
                self.prepare,
                unknown,
                progress=partial(advance, bar),
            )


def evaluate(questions, models, unknown):
    """Prints the accuracies of all models and returns them for results.json."""
    results = {}
    for name, (completions, has_validation) in questions.items():
        answers = np.array([completion.question.answer for completion in completions])
        correct, results[name] = {}, {}
        for model in models:
            model.score(name, completions, unknown)
            correct[model.name] = choose(model.scores[name]) == answers
            subsets = groups(len(answers), model.known[name], has_validation)
            results[name][model.name] = accuracies(correct[model.name], subsets)
        for title, model in frequency_baselines(models).items():
            choices = most_frequent(completions, model.vocabulary, model.normalize_word)
            subsets = groups(len(answers), model.known[name], has_validation)
            results[name][title] = accuracies(choices == answers, subsets)
        info(f"\n{name}, {len(answers):,} questions: accuracy in percent\n")
        print_results(name, results[name])
        for line in differences(correct):
            info(line)
    return results


def frequency_baselines(models):
    """Baselines that choose the most frequent word: a title and a model for each vocabulary."""
    distinct = {(tuple(model.vocabulary), model.normalizes): model for model in reversed(models)}
    title = "most frequent in the training text"
    if len(distinct) == 1:
        return {title: models[0]}
    return {f"{title} of {model.name}": model for model in reversed(distinct.values())}


def debug(options):
    """Draws synthetic questions and trains small models to answer them."""
    trees, completions = synthetic_data(options.seed)
    questions = {
        "synthetic questions": (completions, True),
        "blanks": (blanks(trees, trees[:40], options.seed), False),
    }
    return questions, list(map(EvaluatedRun, train_debug(options, trees)))


def main(options):
    is_evaluation = options.models or options.preset
    if is_evaluation:
        check_new(options.output)
    if options.parse:
        parse(options)
    if not is_evaluation:
        return
    if not options.preset:  # load everything first, so that errors are reported early
        questions, models = load_questions(options), list(map(EvaluatedRun, options.models))
    output = Path(options.output)
    with running(output, vars(options)):
        if options.preset:
            questions, models = debug(options)
        results = evaluate(questions, models, options.unknown)
        write_files(output, vars(options), questions, models, results)
    info(f"\nResults: {output / 'results.json'}")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
