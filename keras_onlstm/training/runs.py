"""The directory of a run: what it was started with, and who is at work in it.

A run is a record. Its `config.json` holds the arguments and every value that shaped it, and nothing
else shapes it: a run goes on with what is there, whatever a preset says by then.
"""

import contextlib
import json
import sys
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from keras_onlstm.training.settings import changed, check_settings, current_values, described
from keras_onlstm.utils.console import ArgumentParser, seed
from keras_onlstm.utils.files import LOCK, check_unlocked, is_left_over, locked, write_json
from keras_onlstm.utils.libraries import versions
from keras_onlstm.utils.reading import Choice, Integer, check_kind, read_json

__all__ = [
    "CONFIG",
    "RESULTS",
    "Configuration",
    "Experiment",
    "check_new",
    "has_begun",
    "origin",
    "read_config",
    "running",
]

CONFIG = "config.json"
RESULTS = "results.json"
_SCORES = {  # of what a script writes into RESULTS
    "parameters": Integer(),
    "validation_perplexity": float,
    "test_perplexity": float,
}


class Configuration(NamedTuple):
    """What a run was started with.

    Attributes:
        arguments: dictionary of what the command line said, with all defaults.
        values: dictionary of every value of the preset; `{}`: the run trains nothing.
        command: that starts such a run, or `None`: a run of an earlier version did not keep it.
    """

    arguments: dict
    values: dict[str, Any]
    command: str | None = None

    @property
    def record(self) -> dict:
        """The `record` of a `Trainer`: all that shapes its run."""
        names = [name for name in ("recurrent", "seed") if name in self.arguments]
        return {**self.values, **{name: self.arguments[name] for name in names}}


class Experiment(NamedTuple):
    """What the runs of a script are started with, and what each of it may be.

    Attributes:
        script: its path, as it is called.
        kinds: dictionary of the arguments that a run keeps and their kinds, see `reading`.
        defaults: dictionary of the same names, what they are unless they are given. `preset` and
            `seed` are among them.
        settings: dictionary of `Setting`.
        presets: dictionary from names to dictionaries of values.
        later: names of arguments that runs of earlier versions do not have.
        free: names of arguments that do not shape a run: it may go on with others.
        variants: dictionary from values of an argument `model`, which they keep, to `Experiment`s
            of the same script with presets of the same kind.

    Example:

    >>> from keras_onlstm.utils.reading import SEEDS, Choice, Integer
    >>> from keras_onlstm.training import Setting
    >>> from keras_onlstm.training.runs import Experiment
    >>> experiment = Experiment(
    ...     "train.py",
    ...     kinds={"preset": Choice(("small",)), "seed": SEEDS},
    ...     defaults={"preset": "small", "seed": 0},
    ...     settings={"units": Setting(Integer(1), "size of a layer")},
    ...     presets={"small": {"units": 20}},
    ... )
    >>> parser = experiment.parser("Trains.", "runs/new")
    >>> options = parser.parse_args(["--seed", "3", "--set", "units=30"])
    >>> experiment.configuration(options)
    Configuration(arguments={'preset': 'small', 'seed': 3}, values={'units': 30},
        command='python train.py --preset small --seed 3 --set units=30')
    """

    script: str
    kinds: dict
    defaults: dict
    settings: dict
    presets: dict
    later: tuple = ()
    free: tuple = ()
    variants: Mapping[str, "Experiment"] = MappingProxyType({})

    def parser(self, description: str, output: str) -> ArgumentParser:
        """A parser with the options from which `configuration` starts a run.

        Args:
            description: of the script, a sentence.
            output: where a run is written unless `--output` says otherwise.

        Returns:
            `ArgumentParser`, to which the script adds its own options.
        """
        parser = ArgumentParser(
            prog=Path(self.script).name,
            description=description,
            epilog=self._described(),
            formatter_class=RawDescriptionHelpFormatter,
        )
        add, preset = parser.add_argument, self.defaults["preset"]
        size = f"size and length of the training (default: {preset})"
        names = dict.fromkeys(name for one in self._all() for name in one.presets)
        add("--preset", choices=names, help=size)
        add("--set", metavar="NAME=VALUE", nargs="+", help="change values of the preset; see below")
        add("--seed", type=seed, help="of all that is drawn (default: 0)")
        add("--output", metavar="DIR", default=output, help="the run's directory")
        add("--resume", action="store_true", help="go on with the run in --output")
        return parser

    def configuration(self, options: Namespace, prepared: Sequence[str] = ()) -> Configuration:
        """What the command line starts a run with, or what the run was started with that goes on.

        Args:
            options: of the command line, as `parser` and the script gave them.
            prepared: names of what may be in the directory before a run starts.

        Returns:
            `Configuration`.

        Raises:
            FileExistsError: if there is anything else in the directory of a new run.
            FileNotFoundError: if the run that shall go on is not there.
            BlockingIOError: if a process is at work there.
            ValueError: if an argument or a value of `--set` is not what it may be, or not the one
                the run was started with.
        """
        given = {name: value for name, value in vars(options).items() if value is not None}
        texts = options.set or []
        if options.resume:
            check_unlocked(options.output)
            stored = self.stored(options.output)
            one = self._variant(stored.arguments.get("model"))
            if one.variants and given.get("model") in one.variants:
                raise ValueError(
                    f"{options.output}: was not started with --model {given['model']}. Leave "
                    "--model out to resume, or give another --output."
                )
            chosen = self._chosen(one, given)
            free = {name: chosen.pop(name) for name in one.free if name in chosen}
            _check_unchanged(chosen, stored.arguments, options.output)
            one._check_values(texts, stored.values, options.output)
            return stored._replace(arguments=stored.arguments | free)
        check_new(options.output, prepared, resumes=True)
        one = self._variant(given.get("model"))
        arguments = {**one.defaults, **self._chosen(one, given)}
        preset = arguments["preset"]
        if preset not in one.presets:
            known = ", ".join(one.presets)
            raise ValueError(
                f"--preset {preset}: --model {given.get('model')} has none. Choose of {known}."
            )
        values = changed(one.presets[preset], texts, one.settings)
        return Configuration(arguments, values, one._command(arguments, values))

    def _all(self):
        return [self, *self.variants.values()]

    def _variant(self, name):
        """The experiment of a value of the argument `model`, whatever that is."""
        return self.variants.get(name, self) if isinstance(name, str) else self

    def _described(self):
        models = [None, *self.variants]
        return "\n\n".join(
            (f"--model {model}, " if model else "") + described(one.settings, one.presets)
            for model, one in zip(models, self._all(), strict=True)
        )

    def _chosen(self, one, given):
        """What the command line gives of the arguments of one experiment."""
        for name in (name for other in self._all() for name in other.defaults):
            if name != "model" and name in given and name not in one.defaults:
                raise ValueError(
                    f"--{name.replace('_', '-')} is for another --model: leave it out."
                )
        return {name: given[name] for name in one.defaults if name in given}

    def stored(self, directory: str | Path) -> Configuration:
        """What a run was started with, whatever its preset says by now.

        Args:
            directory: of the run.

        Returns:
            `Configuration`.

        Raises:
            FileNotFoundError: if there is no run.
            ValueError: if an argument or a value is missing, of another kind or unknown.
        """
        path = Path(directory) / CONFIG
        remedy = "Name the --output directory of a run that this script started."
        config = read_config(directory, {"arguments": dict}, remedy)
        one = self._variant(config["arguments"].get("model"))
        arguments = {name: one.defaults[name] for name in one.later} | config["arguments"]
        try:
            check_kind(arguments, one.kinds)
            check_kind(sorted(arguments), [Choice(tuple(one.kinds))], "a name")
        except ValueError as error:
            raise ValueError(f"{path}: no arguments of this script: {error}. {remedy}") from error
        kinds = {"values": (dict, None, ...), "command": (str, None, ...)}
        try:
            check_kind(config, kinds)
            values = config.get("values")
            # Runs of earlier versions kept the name of the preset alone.
            values = one.presets[arguments["preset"]] if values is None else values
            values = current_values(values)
            check_settings(values, one.settings)
        except ValueError as error:
            raise ValueError(f"{path}: {error}. Restore it, or start another run.") from error
        return Configuration(arguments, values, config.get("command"))

    def _check_values(self, texts, values, directory):
        for name, value in changed(values, texts, self.settings).items():
            if value != values[name]:
                raise ValueError(
                    f"{directory}: was started with {name} {values[name]}, not {value}. Leave "
                    f"--set {name} out to resume, or give another --output."
                )

    def _command(self, arguments, values):
        """The command that starts a run: of paths the last part, values that no preset has."""
        names = ("model", "preset", "recurrent", "seed")
        first = [name for name in names if name in arguments]
        words = ["python", self.script]
        words += [word for name in first for word in (f"--{name}", str(arguments[name]))]
        for name, value in arguments.items():
            if name not in first and value != self.defaults[name]:
                words.append(f"--{name.replace('_', '-')}")
                values_of = value if isinstance(value, list) else [value]
                words += [] if value is True else [Path(str(one)).name for one in values_of]
        preset = self.presets[arguments["preset"]]
        others = [f"{n}={json.dumps(value)}" for n, value in values.items() if value != preset[n]]
        return " ".join([*words, *(["--set", *others] if others else [])])


def read_config(directory: str | Path, kind: Any = dict, remedy: str = "Restore it.") -> dict:
    """What the `config.json` of a run holds.

    Args:
        directory: of the run.
        kind: what it has to be, as `reading` describes.
        remedy: what the user can do if it is not, as a sentence.

    Returns:
        Dictionary.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is damaged or of another kind.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.training.runs import read_config
    >>> directory = tempfile.mkdtemp()
    >>> _ = pathlib.Path(directory, "config.json").write_text('{"arguments": {"seed": 7}}')
    >>> read_config(directory)["arguments"]
    {'seed': 7}
    """
    return read_json(Path(directory) / CONFIG, kind, remedy)


def origin(directory: str | Path) -> dict:
    """Where the model of a run comes from, and how good it is.

    Args:
        directory: of the run.

    Returns:
        Dictionary of what is known: `command`, `parameters`, `validation_perplexity` and
        `test_perplexity`.

    Raises:
        ValueError: if a file of the run is damaged.
    """
    row, results = {}, Path(directory) / RESULTS
    if (Path(directory) / CONFIG).is_file():
        config = read_config(directory, {"command": (str, None, ...)})
        row = {"command": config["command"]} if config.get("command") else {}
    if results.is_file():
        scores = read_json(results, _SCORES, "Evaluate the run again, which writes it.")
        row |= {name: scores[name] for name in _SCORES}
    return row


def check_new(directory: str | Path, prepared: Sequence[str] = (), resumes: bool = False) -> None:
    """Refuses a directory in which a run, or anything else, is already.

    Args:
        directory: of a new run.
        prepared: names of what may be there before a run starts.
        resumes: whether runs of its kind can go on, which the message says then.

    Raises:
        BlockingIOError: if a process is at work there.
        FileExistsError: if there is anything else.
    """
    check_unlocked(directory)
    _check_empty(directory, prepared, resumes)


def _check_empty(directory, prepared, resumes):
    directory, allowed = Path(directory), {LOCK, *prepared}
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"{directory}: is no directory. Give another --output.")
    paths = directory.iterdir() if directory.exists() else ()
    if any(path.name not in allowed and not is_left_over(path) for path in paths):
        remedy = "Add --resume to go on with it, or give" if resumes else "Move it away, or give"
        raise FileExistsError(f"{directory}: exists already. {remedy} another --output.")


def _check_unchanged(chosen, stored, directory):
    """Refuses arguments that differ from those a run was started with."""
    for name, value in chosen.items():
        if stored.get(name) != value:
            option = "--" + name.replace("_", "-")
            raise ValueError(
                f"{directory}: was started with {option} {stored.get(name)}, not {value}. Leave "
                f"{option} out to resume, or give another --output."
            )


@contextlib.contextmanager
def running(
    directory: str | Path,
    configuration: Configuration,
    resume: bool | None = None,
    prepared: Sequence[str] = (),
) -> Iterator[None]:
    """A context in which no other process runs in the directory of a run.

    That of a new run is made, and says what it was started with.

    Args:
        directory: of the run.
        configuration: `Configuration`, which `Experiment.stored` returns from then on.
        resume: whether the run goes on; `None` if it is of a kind that cannot.
        prepared: names of what may be there before it starts.

    Yields:
        `None`.

    Raises:
        BlockingIOError: if another process is at work there.
        FileExistsError: if a run, or anything else, is there before a new one.
        OSError: if it cannot be written.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_onlstm.training.runs import Configuration, read_config, running
    >>> directory = pathlib.Path(tempfile.mkdtemp(), "run")
    >>> with running(directory, Configuration({"seed": 7}, {})):
    ...     print(read_config(directory)["arguments"])
    {'seed': 7}
    """
    directory = Path(directory)
    if not resume:
        _check_empty(directory, prepared, resume is not None)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"{directory}: cannot be written ({error.strerror}). Give another --output."
            ) from error
    with locked(directory):
        if not resume:
            _check_empty(directory, prepared, resume is not None)  # another may have been faster
            used = {**_backend(), **versions()}
            write_json(directory / CONFIG, {**configuration._asdict(), "versions": used})
        try:
            yield
        except KeyboardInterrupt:
            if resume is None:
                raise
            raise KeyboardInterrupt("The same command with --resume goes on.") from None


def _backend():
    """What Keras runs on, where a run needs Keras: it has imported it by then."""
    keras = sys.modules.get("keras")
    return {} if keras is None else {"backend": keras.backend.backend()}


def has_begun(directory: str | Path, prepared: Sequence[str] = ()) -> bool:
    """Whether a run that was started came as far as its first checkpoint.

    Args:
        directory: of the run.
        prepared: names of what is written before that, beside the arguments.

    Returns:
        Boolean.
    """
    names = {path.name for path in Path(directory).iterdir() if not path.name.startswith(".")}
    return not names <= {CONFIG, *prepared}
