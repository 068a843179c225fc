"""Draw docs/images/perplexity.svg: validation perplexity of language models after each epoch.

    python docs/draw_perplexity.py

The figures are in docs/measured/language_curves.json. Run this again after they have changed.
"""

import json
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "images" / "perplexity.svg"
CURVES = DOCS / "measured" / "language_curves.json"


def load_curves():
    """Return {run: perplexity after each epoch}, in the order of the file."""
    rows = json.loads(CURVES.read_text(encoding="utf-8"))["tables"][0]["rows"]
    return {run: [value for value in values if value != ""] for run, *values in rows}


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
    # The picture also stores the figures, so that a test can check whether it is up to date.
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(curves)})


if __name__ == "__main__":
    draw(load_curves(), PICTURE)
