"""What the examples share: run directories, plots, tables."""

import argparse
import contextlib
from pathlib import Path

import keras

from keras_onlstm import stored
from keras_onlstm.files import is_left_over, replacing, write_json
from keras_onlstm.locks import LOCK, check_unlocked, locked
from keras_onlstm.provenance import versions
from keras_onlstm.reading import Choice, Integer, check_kind, read_json
from keras_onlstm.training import changed, check_settings

CONFIG = "config.json"
SEEDS = Integer(0, 2**32 - 1)


def seed(text):
    """The type of --seed."""
    number = int(text)
    if not SEEDS.least <= number <= SEEDS.most:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and {SEEDS.most}")
    return number


def load_model(run, kind):
    """The best model of a run, which has to be of a class."""
    path = Path(run) / "best.keras"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no trained model. Train with --output {run} first.")
    model = stored.load_model(path)[0]
    if not isinstance(model, kind):
        raise ValueError(
            f"{path}: is a {type(model).__name__}, and this script needs a {kind.__name__}. Name "
            "another run."
        )
    return model


def new_plot():
    """A Matplotlib figure and its axes, or `None` where Matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        info("\nFor a plot: pip install 'keras-onlstm[viz]'")
        return None
    matplotlib.use("Agg")
    matplotlib.rcParams["text.parse_math"] = False  # a dollar in a run's name is no formula
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(7, 4.2), layout="constrained")


def save_plot(figure, runs, name):
    """Writes a figure into the directories of runs, as PNG and SVG."""
    from matplotlib import pyplot

    for run in runs:
        for ending in ("png", "svg"):
            with replacing(Path(run) / f"{name}.{ending}") as temporary:
                figure.savefig(temporary, dpi=150)
    pyplot.close(figure)
    info(f"\nPlot: {Path(next(iter(runs))) / name}.png and .svg")


def check_new(directory, prepared=()):
    """Refuses a directory in which a run, or anything else, is already.

    Args:
        directory: of a new run.
        prepared: names of what may be there before a run starts.

    Raises:
        BlockingIOError: if a process is at work there.
        FileExistsError: if there is anything else.
    """
    check_unlocked(directory)
    _check_empty(directory, prepared)


def _check_empty(directory, prepared):
    directory, allowed = Path(directory), {LOCK, *prepared}
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"{directory}: is no directory. Give another --output.")
    found = directory.iterdir() if directory.exists() else ()
    if any(path.name not in allowed and not is_left_over(path) for path in found):
        raise FileExistsError(
            f"{directory}: exists already. Add --resume to go on with it, or give another --output."
        )


@contextlib.contextmanager
def running(directory, arguments, resume=None, prepared=(), values=None):
    """A context in which no other process runs in the directory of a run.

    That of a new run is made, and says what it was started with.

    Args:
        directory: of the run.
        arguments: dictionary, which `stored_arguments` returns.
        resume: whether the run goes on; `None` if it is of a kind that cannot.
        prepared: names of what may be there before it starts.
        values: dictionary, which `stored_values` returns.

    Raises:
        BlockingIOError: if another process is at work there.
        FileExistsError: if a run, or anything else, is there before a new one.
        OSError: if it cannot be written.
    """
    directory = Path(directory)
    if not resume:
        _check_empty(directory, prepared)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"{directory}: cannot be written ({error.strerror}). Give another --output."
            ) from error
    with locked(directory):
        if not resume:
            _check_empty(directory, prepared)  # another may have been faster
            used = {"backend": keras.backend.backend(), **versions()}
            found = {"arguments": arguments, "values": values, "versions": used}
            write_json(directory / CONFIG, found)
        try:
            yield
        except KeyboardInterrupt:
            if resume is None:
                raise
            raise KeyboardInterrupt("The same command with --resume goes on.") from None


def has_begun(directory, prepared=()):
    """Whether a run that was started came as far as its first checkpoint.

    Args:
        directory: of the run.
        prepared: names of what is written before that, beside the arguments.
    """
    names = {path.name for path in Path(directory).iterdir() if not path.name.startswith(".")}
    return not names <= {CONFIG, *prepared}


def stored_arguments(directory, kinds, defaults=()):
    """The arguments a run was started with.

    Args:
        directory: of the run.
        kinds: dictionary of all arguments of the script and their kinds, see `reading`.
        defaults: dictionary of those that runs of earlier versions do not have.

    Returns:
        Dictionary.

    Raises:
        FileNotFoundError: if there are none.
        ValueError: if they are not of these kinds.
    """
    path = Path(directory) / CONFIG
    remedy = "Name the --output directory of a run that this script started."
    arguments = dict(defaults) | read_json(path, {"arguments": dict}, remedy)["arguments"]
    try:
        check_kind(arguments, kinds)
        check_kind(sorted(arguments), [Choice(tuple(kinds))], "a name")
    except ValueError as error:
        raise ValueError(f"{path}: no arguments of this script: {error}. {remedy}") from error
    return arguments


def stored_values(directory, settings, presets, arguments):
    """The values a run was started with, whatever its preset says by now.

    Args:
        directory: of the run.
        settings: dictionary of `training.Setting`.
        presets: dictionary of dictionaries of values; runs of earlier versions kept the name alone.
        arguments: as `stored_arguments` returned them.

    Returns:
        Dictionary.

    Raises:
        ValueError: if one is missing, of another kind or unknown.
    """
    path = Path(directory) / CONFIG
    values = read_json(path, {"values": (dict, None, ...)}, "Restore it.").get("values")
    values = presets[arguments["preset"]] if values is None else values
    try:
        check_settings(values, settings)
    except ValueError as error:
        raise ValueError(f"{path}: {error}. Restore it, or start another run.") from error
    return values


def chosen_values(options, settings, presets, arguments):
    """The values of a preset, changed by --set; of a run that goes on, those it was started with.

    Args:
        options: of the command line, with `set`, `resume` and `output`.
        settings: as in `stored_values`.
        presets: likewise.
        arguments: dictionary with `preset`.

    Returns:
        Dictionary.

    Raises:
        ValueError: if --set names none of them, or another value than the run was started with.
    """
    texts = options.set or []
    if not options.resume:
        return changed(presets[arguments["preset"]], texts, settings)
    values = stored_values(options.output, settings, presets, arguments)
    for name, value in changed(values, texts, settings).items():
        if value != values[name]:
            raise ValueError(
                f"{options.output}: was started with {name} {values[name]}, not {value}. Leave "
                f"--set {name} out to resume, or give another --output."
            )
    return values


def check_unchanged(given, stored, directory):
    """Refuses arguments that differ from those a run was started with."""
    for name, value in given.items():
        if stored.get(name) != value:
            option = "--" + name.replace("_", "-")
            raise ValueError(
                f"{directory}: was started with {option} {stored.get(name)}, not {value}. Leave "
                f"{option} out to resume, or give another --output."
            )


def table(header, rows):
    """Text columns: first left, others right."""
    cells = [list(map(str, row)) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def info(message):
    """Prints a line of progress at once, logs included."""
    print(message, flush=True)
