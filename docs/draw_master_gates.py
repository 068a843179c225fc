"""Draws the master forget gate of a trained classifier over a formula, like master_gates.png.

    python docs/draw_master_gates.py RUN ["FORMULA"]

RUN is an --output directory of examples/logic_inference.py. The picture is written to it, or to the
file in --output.
"""

from pathlib import Path

import keras
import matplotlib
import numpy as np

from keras_onlstm.datasets import propositional_logic as logic
from keras_onlstm.loading import load_model
from keras_onlstm.onlstm.step import project, step
from keras_onlstm.utils.console import ArgumentParser, report

FORMULA = "( ( not ( a ( and b ) ) ) ( or ( ( not c ) ( and ( d ( or a ) ) ) ) ) )"
NAME = "master_gates.png"


def master_forget_gates(model, formula):
    """Master forget gates after each token, (T, N), computed with the cell of the layer."""
    cell = model.recurrent.cell
    ids = np.array([logic.encode(formula)], "int32")
    projected = project(model.embedding(ids), cell.kernel, cell.bias)[0]  # (T, K)
    h, c = cell.get_initial_state(1)
    gates = []
    for row in projected:
        output = step(
            row[None] + h @ keras.ops.convert_to_tensor(cell.recurrent_kernel),
            c,
            chunk_size=cell.chunk_size,
            activation=cell.activation,
            recurrent_activation=cell.recurrent_activation,
        )
        h, c = output.h, output.c
        gates.append(keras.ops.convert_to_numpy(output.master_forget)[0])
    return np.stack(gates)


def draw(gates, tokens, path):
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (line, image) = pyplot.subplots(
        2, 1, figsize=(9, 4.2), sharex=True, height_ratios=(1, 2.2), layout="constrained"
    )
    line.plot(1 - gates.mean(axis=1), "o-", color="C3", markersize=4)
    line.set(ylabel="forget\ndistance", ylim=(0, None))
    line.grid(alpha=0.3)
    colours = image.imshow(
        gates.T, aspect="auto", origin="lower", cmap="Blues_r", vmin=0, vmax=1, interpolation="none"
    )
    image.set(ylabel="chunk of units")
    image.yaxis.get_major_locator().set_params(integer=True)
    image.set_xticks(range(len(tokens)), tokens, fontfamily="monospace")
    figure.colorbar(colours, ax=image, label="master forget gate", shrink=0.9)
    figure.savefig(path, dpi=130)


def parse_arguments():
    parser = ArgumentParser(prog="draw_master_gates.py", description="Draw gates over a formula.")
    parser.add_argument("run", metavar="RUN", type=Path, help="Directory of a trained classifier.")
    parser.add_argument(
        "formula", metavar="FORMULA", nargs="?", default=FORMULA, help="Formula to read."
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help=f"PNG file. (default: RUN/{NAME})"
    )
    return parser, parser.parse_args()


def main(options):
    model, _ = load_model(options.run)
    if not hasattr(getattr(getattr(model, "recurrent", None), "cell", None), "chunk_size"):
        raise ValueError(
            f"{options.run}: expected an ON-LSTM classifier, got a {type(model).__name__}."
        )
    path = options.output or options.run / NAME
    draw(master_forget_gates(model, options.formula), options.formula.split(), path)
    print(path)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
