"""Configurations of runs: dataclasses that define command lines and `config.json`.

Keras is not imported, so that `--help` is fast.
"""

import argparse
import dataclasses
import difflib
import reprlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Self, get_args

from keras_onlstm.runs.directory import CONFIG, check_new, read_config, read_values
from keras_onlstm.runs.earlier import current_config, current_names
from keras_onlstm.utils.console import ArgumentParser, at_least
from keras_onlstm.utils.files import check_unlocked
from keras_onlstm.utils.validation import (
    SEEDS,
    Choice,
    Integer,
    Number,
    check_kind,
    renamed_arguments,
)

_NOT_SETTINGS = ("model", "command", "versions")  # further entries of config.json


@renamed_arguments(least="minimum", most="maximum")
def option(
    default: Any,
    help: str,
    group: str,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """A field of a `Config`, with its help text and the limits of its values.

    It may be `None` if that is the default or part of the annotation.
    """
    sample = type(minimum if default is None else default)
    kind: Any = {bool: bool, int: Integer, float: Number, tuple: [str]}.get(sample, str)
    if choices:
        kind = Choice(tuple(choices))
    elif kind in (Integer, Number):
        limits = {"minimum": minimum, "maximum": maximum}
        kind = kind(**{name: limit for name, limit in limits.items() if limit is not None})
    return field(default=default, metadata={"help": help, "group": group, "kind": kind})


def rate(default: float, help: str, group: str = "model") -> Any:
    """An `option` with a value in [0, 1)."""
    return option(default, help, group, 0.0, 0.9999)


def preset_option(default: str, presets: Sequence[str]) -> Any:
    """The `option` for the preset."""
    text = f"Starting values. The defaults of the other flags are those of {default}."
    return option(default, text, "run", choices=presets)


def _flag(name):
    return f"--{name.replace('_', '-')}"


def _allows_none(setting):
    return NoneType in get_args(setting.type)


def _checked(setting, value):
    """Checks the value of a field and converts it to its type."""
    kind = setting.metadata["kind"]
    if value is None and _allows_none(setting):
        return None
    value = [value] if kind == [str] and isinstance(value, str | Path) else value
    if isinstance(value, tuple | list):
        value = [str(path) if isinstance(path, Path) else path for path in value]
    check_kind(value, kind, _flag(setting.name))
    # Keras does not accept an integer as learning rate.
    return {Number: float, list: tuple}.get(type(kind), lambda value: value)(value)


def _parsed(setting, text):
    """Parses a value of the command line. Invalid text is returned for `_checked` to report."""
    if text == "none" and _allows_none(setting):
        return None
    try:
        return {Integer: int, Number: float}.get(type(setting.metadata["kind"]), str)(text)
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class Config:
    """Configuration of a run. Each kind of model has a subclass whose fields are `option`s."""

    model: ClassVar[str]
    program: ClassVar[str]  # the command that trains such a model
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]  # values that differ from the defaults
    free: ClassVar[tuple[str, ...]] = ()  # fields that a resumed run may change

    preset: str = preset_option("medium", ("medium",))
    seed: int = option(0, "Seed of all random numbers.", "run", SEEDS.minimum, SEEDS.maximum)

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = _checked(setting, getattr(self, setting.name))
            object.__setattr__(self, setting.name, value)
        self.check()

    def check(self) -> None:
        """Raises a `ValueError` if values contradict each other."""

    @classmethod
    def from_preset(cls, preset: str, **values: Any) -> Self:
        """A configuration with the values of a preset, some of them changed."""
        check_kind(preset, Choice(tuple(cls.presets)), "--preset")
        return cls(preset=preset, **{**cls.presets[preset], **values})

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Adds a flag for each field. Its value is `None` if it is not given."""
        groups: dict[str | None, Any] = {group.title: group for group in parser._action_groups}
        for setting in fields(cls):
            title, kind = setting.metadata["group"], setting.metadata["kind"]
            default = cls.presets[cls.preset].get(setting.name, setting.default)
            suffix = "" if default in (None, ()) else f" (default: {default})"
            options: dict[str, Any] = {"help": setting.metadata["help"] + suffix}
            if kind is bool:
                options["action"] = argparse.BooleanOptionalAction
            elif isinstance(kind, Choice):
                options["metavar"] = f"{{{','.join(kind.values)}}}"
            else:
                options["metavar"] = {Integer: "N", Number: "X"}.get(type(kind), "PATH")
            if isinstance(kind, list):
                options["nargs"] = "+"
            groups[title] = groups.get(title) or parser.add_argument_group(title)
            groups[title].add_argument(_flag(setting.name), default=None, **options)

    @classmethod
    def from_options(cls, options: argparse.Namespace, prepared: Sequence[str] = ()) -> Self:
        """The configuration of a new run or of the run to resume, from the results of `run_parser`.

        `prepared` are the names of files that may be in the directory before a run starts.
        """
        values = _read_values(options.config, cls) if options.config else {}
        settings = {setting.name: setting for setting in fields(cls)}
        for name, setting in settings.items():
            value = getattr(options, name)
            if value is not None:
                values[name] = _parsed(setting, value) if isinstance(value, str) else value
        if not options.resume:
            check_new(options.output, prepared, resumes=True)
            return cls.from_preset(**{"preset": cls.preset, **values})
        check_unlocked(options.output)
        stored = cls.load(options.output)
        for name, value in values.items():
            before, flag = getattr(stored, name), _flag(name)
            if name not in cls.free and before != _checked(settings[name], value):
                raise ValueError(
                    f"{options.output}: was started with {flag} {before}, not {value}. Leave "
                    f"{flag} out to resume, or give another --output."
                )
        return dataclasses.replace(stored, **values)

    @classmethod
    def load(cls, run: str | Path) -> Self:
        """The configuration of a run, also of one that an earlier version started."""
        remedy = f"Name the --output directory of a run of {cls.program}."
        content = read_config(run, dict, remedy)
        try:
            values = current_config(content, cls.model, lambda name: asdict(cls.from_preset(name)))
            values = _known_values(values, cls, "it")
            check_kind(values, {setting.name: object for setting in fields(cls)})
            return cls(**values)
        except ValueError as error:
            raise ValueError(f"{Path(run) / CONFIG}: {error}. {remedy}") from error

    def group(self, title: str) -> dict[str, Any]:
        """The values of the fields of one group, such as `"model"`."""
        names = [setting.name for setting in fields(self) if setting.metadata["group"] == title]
        return {name: getattr(self, name) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Its content of `config.json`: the model, every value, and the command."""
        return {"model": self.model, **asdict(self), "command": self.command()}

    def record(self) -> dict[str, Any]:
        """The values that a checkpoint must agree with: all that cannot change, except paths."""
        paths = {f.name for f in fields(self) if f.metadata["kind"] in (str, [str])}
        excluded = {"preset", *self.free, *paths}
        return {name: value for name, value in asdict(self).items() if name not in excluded}

    def command(self) -> str:
        """The command that starts such a run, with only the last part of paths."""
        words = [self.program, "--preset", self.preset, "--seed", str(self.seed)]
        preset = {f.name: f.default for f in fields(self)} | dict(self.presets[self.preset])
        for setting in fields(self):
            name, kind = setting.name, setting.metadata["kind"]
            value, flag = getattr(self, name), _flag(name)
            if value == preset[name] or name in ("preset", "seed"):
                continue
            if isinstance(value, bool):
                words.append(flag if value else flag.replace("--", "--no-", 1))
                continue
            texts = value if isinstance(value, tuple) else ["none" if value is None else str(value)]
            if kind in (str, [str]):
                texts = [Path(text).name for text in texts]
            words += [flag, *map(shlex.quote, texts)]
        return " ".join(words)


def _known_values(content, config, name):
    """The values of a file, without other entries. They must be for the same kind of model."""
    if content.get("model", config.model) != config.model:
        model = reprlib.repr(content["model"])
        raise ValueError(f"{name} is for a {model}, not for a {config.model!r}")
    known = [setting.name for setting in fields(config)]
    for unknown in (entry for entry in content if entry not in (*known, *_NOT_SETTINGS)):
        near = difflib.get_close_matches(unknown, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "--help lists the settings"
        raise ValueError(f"{name} has an unknown setting {reprlib.repr(unknown)} ({hint})")
    return {name: value for name, value in content.items() if name in known}


def _read_values(path, config):
    """Reads the values of a `--config` file."""
    values = _known_values(current_names(read_values(path)), config, f"--config {path}")
    try:
        return {f.name: _checked(f, values[f.name]) for f in fields(config) if f.name in values}
    except ValueError as error:
        raise ValueError(f"--config {path}: {error}") from error


def run_parser(
    configs: Sequence[type[Config]],
    prog: str,
    description: str,
    output: str,
    arguments: Sequence[str] | None = None,
    parser: ArgumentParser | None = None,
) -> ArgumentParser:
    """An argument parser with a flag for each value of a run, for `Config.from_options`.

    If there are several `configs`, `--model` chooses one, by default the first; a resumed run keeps
    its own. The class is the default of `config_class`. `output` is the default of `--output`,
    `arguments` the command line (`None`: that of the process), `parser` the one to add to.
    """
    parser = parser or ArgumentParser(prog=prog, description=description)
    parser.usage = f"{parser.prog} [options]"
    models = {config.model: config for config in configs}
    default = next(iter(models))
    add = parser.add_argument_group("run").add_argument
    if len(models) > 1:
        names = f"{{{','.join(models)}}}"
        add("--model", metavar=names, help=f"Kind of model (default: {default})")
    add("--output", metavar="DIR", default=output, help=f"The run's directory (default: {output})")
    add("--resume", action="store_true", help="Resume the run in --output.")
    add("--config", metavar="FILE", help="JSON or TOML file of values. Flags override it.")
    stop = "Stop after N batches; --resume continues."
    add("--steps", type=at_least(1), metavar="N", help=stop)
    log = "Without a terminal, print a line after every N batches (default: 0, never)."
    add("--log-every", type=at_least(0), default=0, metavar="N", help=log)
    config = models[_chosen_model(models, parser.prog, output, arguments) or default]
    parser.set_defaults(config_class=config)
    config.add_arguments(parser)
    for other in configs:
        for setting in fields(other):
            parser.elsewhere.setdefault(_flag(setting.name), f"belongs to --model {other.model}")
    return parser


def _chosen_model(models, prog, output, arguments):
    """The model of `--model`, or of the run to resume, or `None`."""
    if len(models) == 1:
        return None
    parser = ArgumentParser(prog=prog, add_help=False)
    parser.add_argument("--model")
    parser.add_argument("--output", default=output)
    parser.add_argument("--resume", action="store_true")
    options, _ = parser.parse_known_args(arguments)
    model = options.model
    if model is not None and model not in models:
        parser.error(f"--model {model}: choose one of {', '.join(models)}")
    if not options.resume or not (Path(options.output) / CONFIG).is_file():
        return model
    try:
        stored = current_config(read_config(options.output))["model"]
    except ValueError:
        stored = None
    if stored not in list(models):  # reported when it is loaded
        return model
    if model not in (None, stored):
        parser.error(
            f"{options.output}: was started with --model {stored}, not {model}. Leave --model out "
            "to resume, or give another --output."
        )
    return stored
