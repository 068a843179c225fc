"""Draws docs/images/perplexity.svg: validation perplexity after each epoch, of the trained presets.

    python docs/draw_perplexity.py

The figures are those of docs/measured/, after a file of which has changed it draws them anew.
"""

import json
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "images" / "perplexity.svg"
FILES = {  # which table of a file of docs/measured/ has them, and which preset is it
    "language_medium": (2, "medium"),
    "language_reproduction": (1, "reproduction"),
    "language_large": (1, "large"),
}


def curves():
    """{a run: its perplexities}, in the order of the tables."""
    found = {}
    for name, (number, preset) in FILES.items():
        path = DOCS / "measured" / f"{name}.json"
        rows = json.loads(path.read_text(encoding="utf-8"))["tables"][number - 1]["rows"]
        for run, *perplexities in rows:
            found[f"{preset}: {run}"] = [each for each in perplexities if each != ""]
    return found


def draw(found, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    for run, perplexities in found.items():
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
    # What is drawn stands in the picture too, so that a test can say whether it is up to date.
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(found)})


if __name__ == "__main__":
    draw(curves(), PICTURE)
