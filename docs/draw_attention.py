"""Draws docs/images/prpn_attention.svg: what a trained PRPN looks at in a sentence.

    python docs/draw_attention.py RUN ["SENTENCE"]

RUN is an --output directory of `examples/language_modeling.py --model prpn`.
"""

import sys
from pathlib import Path

from keras_onlstm.loading import load_model
from keras_onlstm.parsing import save_heat_maps

SENTENCE = "the company said it will sell its stake"

if __name__ == "__main__":
    model, _ = load_model(Path(sys.argv[1]))
    found = model.attention(sys.argv[2] if len(sys.argv) > 2 else SENTENCE)
    maps = {name: found.maps[name] for name in ("gates", "reading 2", "predict")}
    path = Path(__file__).parent / "images" / "prpn_attention.svg"
    save_heat_maps(path, found.tokens, maps, found.distances)
