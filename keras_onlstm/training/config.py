"""The values of a run: a frozen dataclass that builds its command line and its `config.json`.

Keras is not imported, so that `--help` answers at once.
"""

import argparse
import dataclasses
import json
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Self, get_args, get_origin

from keras_onlstm.training.earlier import current_config
from keras_onlstm.training.runs import CONFIG, check_new, read_config
from keras_onlstm.utils.console import ArgumentParser, at_least
from keras_onlstm.utils.files import check_unlocked
from keras_onlstm.utils.reading import SEEDS, Choice, Integer, Number, check_kind

__all__ = ["Config", "option", "rate", "run_parser"]

_BESIDE = ("model", "command", "versions")  # in config.json, beside the values
_PREFERRED = ("preset", "seed")  # the flags with which the command of a run begins


def option(
    default: Any,
    help: str,
    group: str,
    least: float | None = None,
    most: float | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """A field of a `Config`.

    Args:
        default: its default.
        help: one line for `--help`.
        group: title of the group of flags that it belongs to.
        least: smallest value of a number, or `None`.
        most: largest value of a number, or `None`.
        choices: the values of a text, if only some are allowed.

    Returns:
        `dataclasses.field`.
    """
    metadata = {"help": help, "group": group, "least": least, "most": most, "choices": choices}
    return field(default=default, metadata=metadata)


def rate(default: float, help: str, group: str = "model") -> Any:
    """An `option` between 0 and 1."""
    return option(default, help, group, 0.0, 1.0)


def _types(one):
    """The type of a field's values, and whether they may be `None` too."""
    types = get_args(one.type) if get_origin(one.type) is not tuple else (tuple,)
    types = types or (one.type,)
    return next(kind for kind in types if kind is not NoneType), NoneType in types


def _kind(one):
    """What a field may be, as `keras_onlstm.utils.reading` describes."""
    kind, optional = _types(one)
    least, most, choices = (one.metadata[name] for name in ("least", "most", "choices"))
    if choices:
        kind = Choice(tuple(choices))
    elif kind in (int, float):
        narrow = Integer if kind is int else Number
        limits = {"least": least, "most": most}
        kind = narrow(**{name: limit for name, limit in limits.items() if limit is not None})
    elif kind is tuple:
        kind = [str]
    return (kind, None) if optional else kind


def _flag(name):
    return f"--{name.replace('_', '-')}"


def _parsed(one, text):
    """The value of a text of the command line. What is not a value is refused later."""
    kind, optional = _types(one)
    if optional and text == "none":
        return None
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class Config:
    """What shapes a run. Each kind of model has a subclass, whose fields are `option`s.

    Attributes:
        model: name of the kind of model.
        program: the command that trains such a model.
        presets: dictionary from names to the values that differ from the defaults.
        free: names of fields that a resumed run may change.

    Raises:
        ValueError: if a value is not what it may be.

    Example:

    >>> from dataclasses import dataclass
    >>> from keras_onlstm.training.config import Config, option
    >>> @dataclass(frozen=True, kw_only=True)
    ... class TinyConfig(Config):
    ...     model, program = "tiny", "train.py"
    ...     presets = {"debug": {"units": 8}}
    ...     preset: str = option("debug", "Starting values.", "run", choices=("debug",))
    ...     units: int = option(20, "Size of the layer.", "model", least=1)
    >>> TinyConfig.from_preset("debug", seed=3)
    TinyConfig(preset='debug', seed=3, units=8)
    >>> TinyConfig(units=0)
    Traceback (most recent call last):
    ...
    ValueError: --units is an integer, 1 or above, not 0
    """

    model: ClassVar[str]
    program: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]
    free: ClassVar[tuple[str, ...]] = ()

    preset: str = option("medium", "Starting values; flags change single ones.", "run")
    seed: int = option(0, "Seed of all random numbers.", "run", SEEDS.least, SEEDS.most)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, tuple):
                value = list(value)
            check_kind(value, _kind(one), _flag(one.name))
            if _types(one)[0] is float and value is not None:
                value = float(value)  # Keras takes a learning rate of 1 for a mistake
            value = tuple(value) if isinstance(value, list) else value
            object.__setattr__(self, one.name, value)
        self.check()

    def check(self) -> None:
        """Refuses values that do not go together, with a `ValueError`."""

    @classmethod
    def from_preset(cls, preset: str, **values: Any) -> Self:
        """The values of a preset, some of them changed.

        Args:
            preset: its name.
            **values: other fields.

        Returns:
            Instance of the class.
        """
        check_kind(preset, Choice(tuple(cls.presets)), "--preset")
        return cls(preset=preset, **{**cls.presets[preset], **values})

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Adds a flag for each field.

        Args:
            parser: `ArgumentParser`. The value of a flag that is not given is `None`.
        """
        groups: dict[str, Any] = {group.title: group for group in parser._action_groups}
        for one in fields(cls):
            title = one.metadata["group"]
            groups[title] = groups.get(title) or parser.add_argument_group(title)
            kind, optional = _types(one)
            default = "" if one.default in (None, ()) else f" (default: {one.default})"
            about = f"{one.metadata['help']}{default}".replace("%", "%%")
            options: dict[str, Any] = {"help": about, "default": None}
            if kind is bool:
                options["action"] = argparse.BooleanOptionalAction
            elif one.metadata["choices"]:
                options["metavar"] = "{" + ",".join(one.metadata["choices"]) + "}"
            else:
                options["metavar"] = {int: "N", float: "X"}.get(kind, "PATH")
            if kind is tuple:
                options["nargs"] = "+"
            groups[title].add_argument(_flag(one.name), **options)

    @classmethod
    def _given(cls, options):
        """The values of the command line: those of the file of `--config`, then the flags."""
        given = _read_values(options.config, cls) if options.config else {}
        for one in fields(cls):
            value = getattr(options, one.name)
            if value is not None:
                given[one.name] = _parsed(one, value) if isinstance(value, str) else value
        return given

    @classmethod
    def from_options(cls, options: argparse.Namespace, prepared: Sequence[str] = ()) -> Self:
        """The values of a new run, or of the run that is resumed.

        Args:
            options: of `run_parser`.
            prepared: names of what may be in the directory before a run starts.

        Returns:
            Instance of the class.

        Raises:
            FileExistsError: if there is anything else in the directory of a new run.
            FileNotFoundError: if the run to resume does not exist.
            BlockingIOError: if another process is at work there.
            ValueError: if a value is not what it may be, or contradicts the run to resume.
        """
        given = cls._given(options)
        if not options.resume:
            check_new(options.output, prepared, resumes=True)
            return cls.from_preset(**{"preset": cls.preset, **given})
        check_unlocked(options.output)
        stored = cls.load(options.output)
        given = vars(dataclasses.replace(stored, **given)) if given else {}
        for name, value in given.items():
            if name not in cls.free and value != getattr(stored, name):
                raise ValueError(
                    f"{options.output}: was started with {_flag(name)} {getattr(stored, name)}, "
                    f"not {value}. Leave {_flag(name)} out to resume, or give another --output."
                )
        return dataclasses.replace(stored, **{name: given[name] for name in cls.free if given})

    @classmethod
    def load(cls, run: str | Path) -> Self:
        """The values of a run, also of one that an earlier version started.

        Args:
            run: its directory.

        Returns:
            Instance of the class.

        Raises:
            FileNotFoundError: if there is no run.
            ValueError: if its `config.json` is damaged or of another kind of model.
        """
        path = Path(run) / CONFIG
        remedy = "Name the --output directory of a run that this command started."
        content = read_config(run, dict, remedy)
        try:
            stored = current_config(content, cls.model, cls._of_preset)
            if stored.get("model") != cls.model:
                raise ValueError(f"it is a run of {stored.get('model')}, not of {cls.model}")
            values = {name: stored[name] for name in stored if name not in _BESIDE}
            _check_names(values, cls)
            check_kind(values, {one.name: object for one in fields(cls)})
            return cls(**values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}. {remedy}") from error

    @classmethod
    def _of_preset(cls, preset):
        return dataclasses.asdict(cls.from_preset(preset))

    def group(self, title: str) -> dict[str, Any]:
        """The values of the fields of one group, such as `"model"`."""
        names = [one.name for one in fields(self) if one.metadata["group"] == title]
        return {name: getattr(self, name) for name in names}

    def to_json(self) -> dict[str, Any]:
        """What `config.json` holds of it: the model, every value, and the command."""
        return {"model": self.model, **dataclasses.asdict(self), "command": self.command()}

    def record(self) -> dict[str, Any]:
        """The values that a checkpoint has to agree with: those that cannot change, no paths."""
        paths = {one.name for one in fields(self) if _types(one)[0] in (str, tuple)
                 and not one.metadata["choices"]}  # fmt: skip
        left_out = {"preset", *self.free, *paths}
        return {n: value for n, value in dataclasses.asdict(self).items() if n not in left_out}

    def command(self) -> str:
        """The command that starts such a run; of paths it has the last part only."""
        preset = {one.name: one.default for one in fields(self)} | self.presets[self.preset]
        words = [self.program, "--preset", self.preset, "--seed", str(self.seed)]
        for one in fields(self):
            value, flag = getattr(self, one.name), _flag(one.name)
            if one.name in _PREFERRED or value == preset[one.name]:
                continue
            if isinstance(value, bool):
                words.append(flag if value else flag.replace("--", "--no-", 1))
                continue
            texts = value if isinstance(value, tuple) else ["none" if value is None else value]
            if not one.metadata["choices"]:
                texts = [Path(text).name if isinstance(text, str) else text for text in texts]
            words += [flag, *(shlex.quote(str(text)) for text in texts)]
        return " ".join(words)


def _check_names(values, config):
    known = [one.name for one in fields(config)]
    for name in values:
        if name not in known:
            raise ValueError(f"{name!r} is not one of its values, which are {', '.join(known)}")


def _read_values(path, config):
    """The values of a JSON or TOML file, such as the `config.json` of a run."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        check_kind(values, dict)
        if values.get("model", config.model) != config.model:
            raise ValueError(f"it is for --model {values['model']}")
        values = {name: values[name] for name in values if name not in _BESIDE}
        _check_names(values, config)
    except OSError as error:
        raise type(error)(f"--config {path}: cannot be read ({error.strerror}).") from error
    except ValueError as error:
        raise ValueError(f"--config {path}: {error}. Give a JSON or TOML file.") from error
    return values


def run_parser(
    configs: Sequence[type[Config]],
    prog: str,
    description: str,
    output: str,
    arguments: Sequence[str] | None = None,
    parser: ArgumentParser | None = None,
) -> ArgumentParser:
    """A parser with a flag for each value of a run, from which `Config.from_options` starts one.

    Args:
        configs: the kinds of models that the command trains. Among several, `--model` chooses, by
            default the first; a run that is resumed keeps its own.
        prog: name of the command.
        description: of the command, a sentence.
        output: default of `--output`.
        arguments: the command line that will be parsed; `None`: that of the process.
        parser: `ArgumentParser` to add to. Default: a new one.

    Returns:
        `ArgumentParser`. The chosen class is `config_class` of what it parses.

    Example:

    >>> from keras_onlstm.training.config import run_parser
    >>> from keras_onlstm.training.pair_config import PairClassifierConfig
    >>> parser = run_parser([PairClassifierConfig], "train.py", "Trains.", "runs/new", [])
    >>> options = parser.parse_args(["--preset", "debug", "--units", "30"])
    >>> config = options.config_class.from_options(options)
    >>> config.units, config.embedding_dim, config.command()
    (30, 16, 'python examples/logic_inference.py --preset debug --seed 0 --units 30')
    """
    parser = parser or ArgumentParser(prog=prog, description=description)
    by_name = {config.model: config for config in configs}
    run = parser.add_argument_group("run").add_argument
    if len(configs) > 1:
        names = f"{{{','.join(by_name)}}}"
        run("--model", metavar=names, help=f"Kind of model (default: {[*by_name][0]})")
    run("--output", metavar="DIR", default=output, help=f"The run's directory (default: {output})")
    run("--resume", action="store_true", help="Resume the run in --output.")
    run("--config", metavar="FILE", help="JSON or TOML file of values. Flags override it.")
    run("--steps", type=at_least(1), metavar="N", help="Stop after N batches; --resume continues.")
    run(
        "--log-every",
        type=at_least(0),
        default=0,
        metavar="N",
        help="Print a line after every N batches where there is no terminal (default: 0, never).",
    )
    config = _chosen(by_name, prog, output, arguments)
    parser.usage = f"{parser.prog} [options]"
    parser.set_defaults(config_class=config)
    config.add_arguments(parser)
    for other in configs:
        for one in fields(other):
            parser.elsewhere.setdefault(_flag(one.name), f"belongs to --model {other.model}")
    return parser


def _chosen(by_name, prog, output, arguments):
    """The class whose flags the parser gets: that of `--model`, or of the run that is resumed."""
    first = ArgumentParser(prog=prog, add_help=False, allow_abbrev=False)
    first.add_argument("--model")
    first.add_argument("--output", default=output)
    first.add_argument("--resume", action="store_true")
    options, _ = first.parse_known_args(arguments)
    model = options.model
    if len(by_name) == 1:
        return next(iter(by_name.values()))
    if options.resume and (Path(options.output) / CONFIG).is_file():
        try:
            stored = current_config(read_config(options.output)).get("model")
        except ValueError:
            stored = None  # reported when it is loaded
        if model not in (None, stored) and stored in by_name:
            first.error(
                f"{options.output}: was started with --model {stored}, not {model}. Leave --model "
                "out to resume, or give another --output."
            )
        model = stored if stored in by_name else model
    if model not in (None, *by_name):
        first.error(f"--model {model}: choose one of {', '.join(by_name)}")
    return by_name[model or [*by_name][0]]
