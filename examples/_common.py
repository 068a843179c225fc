"""What the examples share: run directories, plots, tables."""

import argparse
import functools
from pathlib import Path

import keras

from keras_onlstm import console, stored
from keras_onlstm.files import read_json, replacing, write_json
from keras_onlstm.provenance import versions

CONFIG = "config.json"
_PART = ".config.part.json"  # what is left if a run is killed while it writes the first file


# One line for the user's mistakes; and a run that Ctrl-C stopped is not lost.
report = functools.partial(
    console.report, stopped="stopped. The same command with --resume goes on."
)


def seed(text):
    """The type of --seed."""
    number = int(text)
    if not 0 <= number < 2**32:
        raise argparse.ArgumentTypeError(f"{number} is not between 0 and {2**32 - 1}")
    return number


def load_model(run):
    """The best model of a run."""
    path = Path(run) / "best.keras"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no trained model. Train with --output {run} first.")
    return stored.load_model(path)[0]


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
        FileExistsError: if so.
    """
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise FileExistsError(f"{directory}: is no directory. Give another --output.")
    allowed = {_PART, *prepared}
    if directory.exists() and any(path.name not in allowed for path in directory.iterdir()):
        raise FileExistsError(
            f"{directory}: exists already. Add --resume to go on with it, or give another --output."
        )


def start_run(directory, arguments, prepared=()):
    """Makes the directory of a new run and writes what it was started with.

    Args:
        directory: of the run.
        arguments: dictionary, which `stored_arguments` returns.
        prepared: names of what may be there before.

    Raises:
        FileExistsError: if a run, or anything else, is there already.
        OSError: if it cannot be written.
    """
    check_new(directory, prepared)
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        used = {"backend": keras.backend.backend(), **versions()}
        write_json(directory / CONFIG, {"arguments": arguments, "versions": used})
    except OSError as error:
        raise OSError(
            f"{directory}: cannot be written ({error.strerror}). Give another --output."
        ) from error


def has_begun(directory, prepared=()):
    """Whether a run that was started came as far as its first checkpoint.

    Args:
        directory: of the run.
        prepared: names of what is written before that, beside the arguments.
    """
    names = {path.name for path in Path(directory).iterdir() if not path.name.startswith(".")}
    return not names <= {CONFIG, *prepared}


def stored_arguments(directory):
    """The arguments a run was started with."""
    path = Path(directory) / CONFIG
    remedy = "Name the --output directory of a run that this script started."
    arguments = read_json(path, remedy).get("arguments")
    if not isinstance(arguments, dict):
        raise ValueError(f"{path}: holds no arguments of a run. {remedy}")
    return arguments


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
