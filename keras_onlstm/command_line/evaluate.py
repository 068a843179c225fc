"""`keras-onlstm evaluate`: perplexity of language models, and F1 of their trees."""

import argparse
import contextlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from keras_onlstm.runs.directory import RESULTS, read_config
from keras_onlstm.runs.earlier import current_config
from keras_onlstm.runs.language_model import LanguageModelConfig, PRPNConfig, TextConfig
from keras_onlstm.utils.console import table
from keras_onlstm.utils.files import write_json

HELP = "measure the perplexity of a text, or the F1 of trees on a treebank"
EXAMPLES = (
    "keras-onlstm evaluate --model runs/lm",
    "keras-onlstm evaluate --model runs/lm runs/prpn --data FOLDER",
    "keras-onlstm evaluate --model runs/lm --treebank trees.mrg",
)


# fmt: off
def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add = parser.add_argument
    add("--model", nargs="+", metavar="PATH",
        help="Folders of runs. With --treebank, files of models too (default with --treebank: the "
        "package's parser).")
    add("--data", nargs="+", metavar="PATH",
        help="Folder of a corpus, or text files (default: the text of each run). Of every 20 lines "
        "of text files, one is for validation and one for testing.")
    add("--treebank", nargs="+", metavar="FILE",
        help="Files of bracketed trees. Measures F1 of the model's trees instead of perplexity.")


# fmt: on
def run(options: argparse.Namespace) -> None:
    """Prints a table of perplexities, or of F1."""
    if options.treebank:
        print(_treebank_table(options.model or [None], options.treebank))
        return
    if not options.model:
        raise ValueError("--model is missing. Pass the folder of a trained run: --model runs/lm.")
    results = perplexities(options.model, options.data)
    rows = [
        [run, result["model"], f"{result['parameters']:,}",
         *(f"{result[f'{part}_perplexity']:.2f}" for part in ("validation", "test"))]
        for run, result in results.items()
    ]  # fmt: skip
    print(table(["run", "model", "parameters", "validation perplexity", "test perplexity"], rows))


def load_config(run: str | Path) -> TextConfig:
    """Loads the configuration of a run of a language model or a PRPN.

    Raises `ValueError` if its `config.json` is damaged or of another kind of model.
    """
    if Path(run).is_file():
        raise ValueError(f"--model {run}: is a file. Pass the folder of a run.")
    kind: type[TextConfig] = LanguageModelConfig
    with contextlib.suppress(FileNotFoundError, ValueError):  # `load` raises them again
        if current_config(read_config(run))["model"] == PRPNConfig.model:
            kind = PRPNConfig
    return kind.load(run)


def perplexities(runs: list[str], data: list[str] | None = None) -> dict[str, dict[str, Any]]:
    """Measures validation and test perplexity of runs, and writes them to their `results.json`.

    `data` is the text, as in `TextConfig`; `None`: that of each run. Returns the results by run.
    """
    from keras_onlstm.loading import load_trained
    from keras_onlstm.training.corpora import read_corpus
    from keras_onlstm.training.language_models import evaluation

    results = {}
    # Load all runs first, so that errors are raised before the first evaluation.
    loaded = {run: (load_config(run), load_trained(run, "language_model")) for run in runs}
    for run, (config, model) in loaded.items():
        config = replace(config, data=tuple(data)) if data else config
        if config.data:
            print(f"Reading {' '.join(config.data)}", flush=True)
        corpus = read_corpus(config, run, model.vocabulary)
        sentences = config.sentences
        losses = {
            "validation": evaluation(model, "validation", corpus.valid, 10, sentences)(),
            "test": evaluation(model, "test", corpus.test, 10 if sentences else 1, sentences)(),
        }
        results[run] = {"model": model.title, "parameters": model.count_params()}
        results[run] |= {f"{part}_loss": loss for part, loss in losses.items()}
        results[run] |= {f"{part}_perplexity": math.exp(loss) for part, loss in losses.items()}
        write_json(Path(run) / RESULTS, {**results[run], "data": list(config.data)})
    return results


def _treebank_table(models, paths):
    from keras_onlstm.datasets import treebank
    from keras_onlstm.evaluation.unsupervised_parsing import baseline_scores, tree_scores
    from keras_onlstm.parser import Parser

    sentences = treebank.read(paths)
    if not sentences:
        raise ValueError(f"--treebank {' '.join(paths)}: contains no words.")
    scores = {}
    for model in models:
        parser = Parser.load(model)
        distances = parser.distances_many([sentence.tokens for sentence in sentences], parser.gate)
        pairs = zip(distances, sentences, strict=True)
        trees = [parser.tree(numbers, sentence.tokens) for numbers, sentence in pairs]
        scores[str(model or "the package's parser")] = tree_scores(trees, sentences)
    scores |= baseline_scores(sentences)
    rows = []
    for name, score in scores.items():
        values = [score[key] for key in ("f1", "corpus_f1", "f1_short")]
        rows.append([name, *("" if value is None else f"{100 * value:.1f}" for value in values)])
    print(f"{len(sentences):,} sentences")
    return table(["F1 in percent", "by sentence", "corpus", "to 10 words"], rows)
