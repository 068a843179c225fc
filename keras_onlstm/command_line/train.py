"""`keras-onlstm train`: trains a language model or a PRPN on text."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from keras_onlstm.runs.config import run_parser
from keras_onlstm.runs.language_model import LanguageModelConfig, PRPNConfig, TextConfig
from keras_onlstm.utils.console import ArgumentParser, at_least

HELP = "train a language model on text"
EXAMPLES = (
    "keras-onlstm train --data FOLDER --preset small --output runs/lm",
    "keras-onlstm train --data mine.txt --units 300 --epochs 5 --learning-rate 3e-3",
    "keras-onlstm train --model prpn --data FOLDER",
    "keras-onlstm train --output runs/lm --resume",
)
CONFIGS = (LanguageModelConfig, PRPNConfig)


# fmt: off
def add_arguments(
    parser: ArgumentParser,
    arguments: Sequence[str] | None = None,
    output: str = "runs/language_model",
) -> None:
    """Adds the options of the command.

    `arguments` is the command line, which selects the kind of model; `None`: that of the process.
    `output` is the default of `--output`.
    """
    run_parser(CONFIGS, parser.prog, HELP, output, arguments, parser)
    add = parser.add_argument_group("processes").add_argument
    add("--process-id", type=int, metavar="I",
        help="Index of this process (default: from srun or mpirun).")
    add("--coordinator", metavar="ADDRESS:PORT", help="Address of process 0 (default: from srun).")
    add("--patience", type=at_least(0), default=300, metavar="S",
        help="Seconds to wait until all processes are connected (default: 300).")


# fmt: on
def run(options: argparse.Namespace) -> None:
    """Trains a model and prints the path of its file."""
    config = read_config(options)
    if train(config, options):
        print(f"Model: {Path(options.output) / 'best.keras'}")
    elif options.steps:
        print(f"Stopped after {options.steps} steps. Resume: --output {options.output} --resume")


def read_config(options: argparse.Namespace) -> TextConfig:
    """The configuration of the run that the command line starts or resumes."""
    from keras_onlstm.training.corpora import IDS

    return options.config_class.from_options(options, prepared=[IDS])


def train(config: TextConfig, options: argparse.Namespace) -> bool:
    """Trains a language model. `options` has `output`, `resume`, and the options of this process.

    Returns true if training is complete and this process is the one that writes files.
    """
    from keras_onlstm.distribution.devices import check_processes
    from keras_onlstm.distribution.processes import connect
    from keras_onlstm.runs.directory import has_begun
    from keras_onlstm.training.corpora import IDS, VOCABULARY, choose_sentences, read_corpus
    from keras_onlstm.training.language_models import train_language_model

    check_processes(config.num_processes)
    connection = config.num_processes, options.process_id, options.coordinator, config.devices
    values = {f"--{name.replace('_', '-')}": value for name, value in config.to_json().items()}
    must_agree = {**values, "--resume": options.resume, "--steps": options.steps}
    with connect(*connection, must_agree, options.patience) as processes:
        begun = [IDS, VOCABULARY]
        resumes = processes.on_first(lambda: options.resume and has_begun(options.output, begun))
        initial, vocabulary = _initial(config, options.output, resumes)
        if config.data:
            print(f"Reading {' '.join(config.data)}", flush=True)
        corpus = read_corpus(config, options.output, vocabulary, processes)
        if config.sentences and config.data:
            corpus = choose_sentences(corpus, config.test_sentences)
        if processes.count > 1:  # JAX may abort the process
            message = "if a process ends, the others end too. Then start all again with --resume."
            print(f"{options.output}: {message}", file=sys.stderr, flush=True)
        arguments = config, corpus, options.resume, options.steps, options.log_every
        return train_language_model(options.output, *arguments, processes, initial) and (
            processes.is_first
        )


def _initial(config, output, resumes):
    """The model to start from and the vocabulary of the texts, or `None`."""
    from keras_onlstm.loading import load_trained
    from keras_onlstm.training.corpora import vocabulary_of_run

    if config.init_from is None:
        return None, None
    if resumes:
        return None, vocabulary_of_run(output)
    model = load_trained(config.init_from, "language_model")
    if type(config).load(config.init_from).characters != config.characters:
        level = "words" if config.characters else "characters"
        raise ValueError(
            f"--init-from {config.init_from}: this model reads {level}. Use --characters for both "
            "runs or for neither."
        )
    return model, model.vocabulary
