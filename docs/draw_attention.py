"""Draws what a trained PRPN looks at in a sentence, as docs/images/prpn_attention.svg shows it.

    python docs/draw_attention.py RUN ["SENTENCE"]

RUN is an --output directory of `keras-onlstm train --model prpn`. The picture goes into
it, unless --output names another file.
"""

from pathlib import Path

from keras_onlstm.loading import load_model
from keras_onlstm.parsing import save_heat_maps
from keras_onlstm.utils.console import ArgumentParser, report

SENTENCE = "the company said it will sell its stake"
NAME = "prpn_attention.svg"


def parse_arguments():
    parser = ArgumentParser(prog="draw_attention.py", description="What a PRPN looks at.")
    parser.add_argument("run", metavar="RUN", type=Path, help="directory of a trained PRPN")
    parser.add_argument("sentence", metavar="SENTENCE", nargs="?", default=SENTENCE)
    parser.add_argument(
        "--output", metavar="FILE", type=Path, help=f"SVG or PNG (default: RUN/{NAME})"
    )
    return parser, parser.parse_args()


def main(options):
    model, _ = load_model(options.run)
    if not hasattr(model, "attention"):
        raise ValueError(f"{options.run}: {type(model).__name__}, not a PRPN.")
    found = model.attention(options.sentence)
    maps = {name: found.maps[name] for name in ("gates", "reading 2", "predict")}
    path = options.output or options.run / NAME
    save_heat_maps(path, found.tokens, maps, found.distances)
    print(path)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
