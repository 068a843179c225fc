"""Draws docs/images/perplexity.svg: validation perplexity of the presets after each epoch.

    python docs/draw_perplexity.py

The numbers are read from docs/measured/. Run it again when they change.
"""

import json
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "images" / "perplexity.svg"
FILES = {  # files of docs/measured/: number of the table, preset
    "language_medium": (2, "medium"),
    "language_reproduction": (1, "reproduction"),
    "language_large": (1, "large"),
}


def read_curves():
    """Perplexities of each run, in the order of the tables."""
    curves = {}
    for name, (number, preset) in FILES.items():
        path = DOCS / "measured" / f"{name}.json"
        rows = json.loads(path.read_text(encoding="utf-8"))["tables"][number - 1]["rows"]
        for run, *perplexities in rows:
            curves[f"{preset}: {run}"] = [value for value in perplexities if value != ""]
    return curves


def draw(curves, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    for run, perplexities in curves.items():
        style = "s:" if ": LSTM" in run else "o-"
        epochs = range(1, 1 + len(perplexities))
        label = f"{run} ({perplexities[-1]:.1f})"
        axes.plot(epochs, perplexities, style, markersize=3, label=label)
    axes.set(xlabel="epoch", ylabel="validation perplexity", yscale="log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter("{x:.0f}")
    axes.yaxis.set_minor_formatter("{x:.0f}")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="small")
    # The picture contains its data, so that a test can check whether it is up to date.
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(curves)})


if __name__ == "__main__":
    draw(read_curves(), PICTURE)
