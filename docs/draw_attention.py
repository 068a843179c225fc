"""Draws the attention of a trained PRPN over a sentence, like docs/images/prpn_attention.svg.

    python docs/draw_attention.py RUN ["SENTENCE"]

RUN is an --output directory of `keras-onlstm train --model prpn`. The picture is written to it,
or to the file in --output.
"""

from pathlib import Path

from keras_onlstm.loading import load_model
from keras_onlstm.parsing import save_heat_maps
from keras_onlstm.utils.console import ArgumentParser, report

SENTENCE = "the company said it will sell its stake"
NAME = "prpn_attention.svg"


def parse_arguments():
    parser = ArgumentParser(
        prog="draw_attention.py", description="Draw the attention of a PRPN over a sentence."
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="Directory of a trained PRPN.")
    parser.add_argument(
        "sentence", metavar="SENTENCE", nargs="?", default=SENTENCE, help="Sentence to read."
    )
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help=f"SVG or PNG file. (default: RUN/{NAME})"
    )
    return parser, parser.parse_args()


def main(options):
    model, _ = load_model(options.run)
    if not hasattr(model, "attention"):
        raise ValueError(f"{options.run}: expected a PRPN, got a {type(model).__name__}.")
    attention = model.attention(options.sentence)
    maps = {name: attention.maps[name] for name in ("gates", "reading 2", "predict")}
    path = options.output or options.run / NAME
    save_heat_maps(path, attention.tokens, maps, attention.distances)
    print(path)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
