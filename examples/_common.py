"""What the examples share: plots, tables as files, and printing."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from keras_onlstm.utils.files import replacing
from keras_onlstm.utils.reading import Integer, read_json


def new_plot():
    """A Matplotlib figure and its axes, or `None` where Matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        info("\nFor a plot: pip install matplotlib")
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


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Writes rows, the header first."""
    with (
        replacing(path) as temporary,
        open(temporary, "w", newline="", encoding="utf-8") as file,
    ):
        csv.writer(file).writerows(rows)


def read_epochs(run: str | Path, *names: str) -> list[dict[str, Any]]:
    """The epochs of a run, each with its number and these metrics."""
    kind = {"epochs": [{"epoch": Integer(1), **dict.fromkeys(names, float)}]}
    return read_json(Path(run) / "metrics.json", kind, "Train the run first.")["epochs"]


def save_plot_of_epochs(figure, axes, runs, ylabel):
    """Writes a plot of perplexities by epoch into the directories of runs."""
    axes.set(xlabel="epoch", ylabel=ylabel, yscale="log")
    axes.yaxis.set_major_formatter("{x:.0f}")
    axes.yaxis.set_minor_formatter("{x:.0f}")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")
    save_plot(figure, runs, "perplexity")


def info(message):
    """Prints a line of progress at once, logs included."""
    print(message, flush=True)
