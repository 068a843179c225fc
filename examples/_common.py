"""What the examples share: plots, and printing."""

from pathlib import Path

from keras_onlstm.utils.files import replacing


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


def info(message):
    """Prints a line of progress at once, logs included."""
    print(message, flush=True)
