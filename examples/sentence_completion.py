"""Sentence completion with TreeLSTM (Zhang, Lu, Lapata 2016, Sec. 3.2; Zweig and Burges 2011).

Which of five words fills the gap in a sentence? The answer is the one with the most likely
sentence, given its dependency tree, according to a trained model. The questions are those of the
MSR challenge, or made from NLTK's dependency treebank.

    python examples/sentence_completion.py --preset debug          # made-up data, seconds
    python examples/sentence_completion.py --models RUN RUN --blanks
    python examples/sentence_completion.py --questions DIR --trees msr.conll --parse en_core_web_sm
    python examples/sentence_completion.py --questions DIR --trees msr.conll --models RUN RUN
    python examples/sentence_completion.py --prepare-brown DIR --parse en_core_web_sm

The second and fourth evaluate runs of dependency_language_model.py. The third makes the trees with
spaCy, the last those of the Brown corpus, to train on. Writes results.json and choices.csv.
"""

from functools import partial
from pathlib import Path

import numpy as np
from _common import info
from _completion import differences, made_up, shares, show, write_files

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
        prog="sentence_completion.py", description="Sentence completion with TreeLSTM."
    )
    add = parser.add_argument
    add("--preset", choices=("debug",), help="debug: made-up sentences, seconds")
    add("--models", nargs="+", metavar="RUN", help="trained runs of dependency_language_model.py")
    add("--questions", metavar="DIR", help="directory of the two files of the MSR challenge")
    add("--trees", metavar="FILE", help="CoNLL file of the trees of its 5,200 sentences")
    add("--parse", metavar="MODEL", help="make --trees, or --prepare-brown, with this spaCy model")
    add("--blanks", action="store_true", help="and questions made of NLTK's dependency treebank")
    add("--prepare-brown", metavar="DIR", help="parse NLTK's Brown corpus to train on: three files")
    add("--unknown", type=at_least(1), default=1, metavar="N", help="N rare words share the "
        "probability of <unk> (default: 1, as published)")  # fmt: skip
    add("--seed", type=seed, default=0, help="of --blanks, and of debug (default: 0)")
    add("--output", metavar="DIR", default="runs/sentence_completion", help="where to write")
    options = parser.parse_args()
    check_together(parser, options)
    return parser, options


def check_together(parser, options):
    asked = options.questions or options.blanks
    if options.preset:
        given = options.models or asked or options.trees or options.parse or options.prepare_brown
        if given:
            parser.error("--preset debug: has all of its own; leave the other options out")
        return
    if (options.questions is None) != (options.trees is None):
        parser.error("--questions and --trees go together")
    if options.prepare_brown and not options.parse:
        parser.error("--prepare-brown: needs --parse MODEL, a model of spaCy")
    if options.parse and not (options.prepare_brown or options.trees):
        parser.error("--parse: needs --questions and --trees to make, or --prepare-brown")
    if not (asked or options.prepare_brown):
        parser.error(
            "--questions and --trees, --blanks, --prepare-brown or --preset debug is to do"
        )
    if asked and not (options.models or options.parse):
        parser.error("--models: name the trained runs to evaluate")
    if (options.blanks or options.models) and not (asked and options.models):
        parser.error("--models, and --questions or --blanks, go together")


def parse(options):
    """Writes the requested files of trees. Existing files are an error."""
    from _spacy import load_parser, write_parsed

    tasks = {}
    if options.trees:
        tasks[Path(options.trees)] = sentences_of(options.questions)
    if options.prepare_brown:
        directory = Path(options.prepare_brown)
        tasks |= {directory / f"{part}.conll": some for part, some in brown_parts().items()}
    for path in tasks:
        if path.exists():
            raise FileExistsError(
                f"{path}: exists already. Leave --parse out to use it, or name another."
            )
    pipeline = load_parser(options.parse)
    for path, sentences in tasks.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_parsed(pipeline, sentences, path)


def sentences_of(directory):
    return [words for question in sentence_completion.load(directory) for words in question[0]]


def brown_parts():
    """The sentences of Brown: 18 of 20 files to train, one each to validate and test."""
    files = list(brown.load_files().values())
    kept = {
        "train": [some for place, some in enumerate(files) if place % 20 not in (0, 10)],
        "valid": files[::20],
        "test": files[10::20],
    }
    return {part: [sentence for file in some for sentence in file] for part, some in kept.items()}


def load_questions(options):
    """Questions with their trees by name, and whether they have a validation half."""
    found = {}
    if options.questions:
        info(f"Reading {options.trees}")
        lifted = [tree.projectivized() for tree in conll.read(options.trees)]
        if count := sum(lifts > 0 for _, lifts in lifted):
            info(f"{count:,} trees were not projective, and are made so")
        trees = [tree for tree, _ in lifted]
        questions = sentence_completion.load(options.questions)
        found["MSR"] = arrange(questions, trees, options.trees), True
    if options.blanks:
        info("Reading NLTK's dependency treebank")
        train, test = (dependency_treebank.load(part) for part in ("train", "test"))
        found["blanks"] = blanks(train, test, options.seed), False
        info(f"{len(found['blanks'][0]):,} of {len(test):,} sentences have a gap")
    return found


def train_debug(options, trees):
    """Trains small models on made-up trees, and returns the directories of their runs."""
    from keras_onlstm.training.tree_models import train_tree_model

    runs = []
    for name, (shape, left_dependents) in DEBUG.items():
        shaped = [reshape_tree(tree, shape) for tree in trees]
        vocabulary = frequent(tree.words for tree in shaped)
        corpus = TreeCorpus(vocabulary, shaped, shaped[:20], shaped[:20], {})
        config = TreeLSTMConfig.from_preset(
            "debug", trees=shape, left_dependents=left_dependents, seed=options.seed,
            input_dropout=0.0, output_dropout=0.0, epochs=10, batch_size=20, learning_rate=3e-2,
        )  # fmt: skip
        run = Path(options.output) / name
        train_tree_model(run, config, corpus)
        runs.append(str(run))
    return runs


class Evaluated:
    """A trained run and its scores."""

    def __init__(self, run):
        config = TreeLSTMConfig.load(run)
        self.shape, self.normalizes = config.trees, config.normalize
        self.model = load_trained(run, "tree_language_model")
        kind = "LSTM" if self.shape == "chain" else self.model.title
        self.name = f"{kind}{', random trees' if self.shape == 'random' else ''}, {run}"
        self.vocabulary = list(self.model.vocabulary or ())
        self.word = normalize if self.normalizes else str
        self.known, self.scores = {}, {}

    def as_read(self, tree, number):
        """A tree in the form that the model was trained on; `number` is that of the question."""
        return reshape_tree(normalize_tree(tree) if self.normalizes else tree, self.shape, number)

    def score(self, name, completions, unknown):
        self.known[name] = all_known(completions, self.vocabulary, self.word)
        with progress_bar("trees", desc=f"Scoring, {name}, {self.name}") as bar:
            self.scores[name] = score(
                self.model.log_probability,
                completions,
                self.vocabulary,
                self.as_read,
                unknown,
                progress=partial(advance, bar),
            )


def evaluate(found, models, unknown):
    """Prints the scores of all models, and returns them for results.json."""
    results = {}
    for name, (completions, halves) in found.items():
        answers = np.array([one.question.answer for one in completions])
        for model in models:
            model.score(name, completions, unknown)
        rights = {model.name: choose(model.scores[name]) == answers for model in models}
        results[name] = {
            model.name: shares(rights[model.name], groups(len(answers), model.known[name], halves))
            for model in models
        }
        for title, model in of_vocabularies(models).items():
            first = most_frequent(completions, model.vocabulary, model.word)
            within = groups(len(answers), model.known[name], halves)
            results[name][title] = shares(first == answers, within)
        info(f"\n{name}, {len(answers):,} questions: accuracy in percent\n")
        show(name, results[name])
        for line in differences(rights):
            info(line)
    return results


def of_vocabularies(models):
    """One model for each vocabulary, by title. Vocabularies are sorted by frequency."""
    distinct = {(tuple(model.vocabulary), model.normalizes): model for model in reversed(models)}
    title = "most frequent in the training text"
    if len(distinct) == 1:
        return {title: models[0]}
    return {f"{title} of {model.name}": model for model in reversed(distinct.values())}


def debug(options):
    """Made-up questions, and small models trained to answer them."""
    trees, completions = made_up(options.seed)
    found = {
        "made-up questions": (completions, True),
        "blanks": (blanks(trees, trees[:40], options.seed), False),
    }
    return found, list(map(Evaluated, train_debug(options, trees)))


def main(options):
    evaluates = options.models or options.preset
    if evaluates:
        check_new(options.output)
    if options.parse:
        parse(options)
    if not evaluates:
        return
    found, models = {}, []
    if not options.preset:
        found, models = load_questions(options), list(map(Evaluated, options.models))
    output = Path(options.output)
    with running(output, vars(options)):
        if options.preset:
            found, models = debug(options)
        results = evaluate(found, models, options.unknown)
        write_files(output, vars(options), found, models, results)
    info(f"\nResults: {output / 'results.json'}")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
