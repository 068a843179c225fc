"""Writes docs/gallery.json: fifty sentences of NLTK's treebank with gold and predicted trees.

    python docs/draw_gallery.py

Run it again when the model of the package changes. docs/gallery.md is built from that file.
"""

import json
from pathlib import Path

import numpy as np

from keras_onlstm.datasets import treebank
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets, right_branching, score
from keras_onlstm.utils.console import ArgumentParser, report
from keras_onlstm.utils.files import replacing

SHORTEST, LONGEST, COUNT = 5, 20, 50  # words, words, sentences


def parse_arguments():
    parser = ArgumentParser(
        prog="draw_gallery.py", description="Write the sentences and trees of the gallery."
    )
    default = Path(__file__).parent / "gallery.json"
    parser.add_argument("--output", metavar="FILE", type=Path, default=default, help="JSON file.")
    return parser, parser.parse_args()


def layer_means(distances, layers_per_model):
    """Means of each layer over the models that have it: array (layers, words)."""
    firsts = np.cumsum([0, *layers_per_model])
    return [
        np.mean(
            [
                distances[first + layer]
                for first, layers in zip(firsts, layers_per_model, strict=False)
                if layer < layers
            ],
            axis=0,
        )
        for layer in range(max(layers_per_model))
    ]


def f1(predicted, gold):
    return round(score(predicted, gold)["f1"], 4)


def means(sentences, trees):
    golds = [sentence.tree for sentence in sentences]
    baseline = [right_branching(sentence.tokens) for sentence in sentences]
    return {
        "sentences": len(sentences),
        "f1": f1(trees, golds),
        "right_branching": f1(baseline, golds),
    }


def entry(parser, number, sentence, tree):
    distances = layer_means(parser.distances(sentence.tokens), parser.model.layers_per_model)
    return {
        "place": number,
        "sentence": " ".join(sentence.tokens),
        "f1": f1([tree], [sentence.tree]),
        "gold": brackets(sentence.tree),
        "predicted": brackets(tree),
        "distances": [[round(float(d), 3) for d in row] for row in distances],
    }


def gallery(parser, sentences):
    """The content of the file. `place` is the number of a sentence among those of these lengths."""
    sentences = [s for s in sentences if SHORTEST <= len(s.tokens) <= LONGEST]
    if len(sentences) < COUNT:
        raise ValueError(
            f"NLTK's treebank has only {len(sentences)} sentences of {SHORTEST} to {LONGEST} "
            f"words, but {COUNT} are needed. Run: python -m nltk.downloader treebank"
        )
    trees = list(parser.parse_many([sentence.tokens for sentence in sentences]))
    every = len(sentences) // COUNT
    chosen = range(0, every * COUNT, every)
    return {
        "words": [SHORTEST, LONGEST],
        "every": every,
        "all": means(sentences, trees),
        "chosen": means([sentences[i] for i in chosen], [trees[i] for i in chosen]),
        "sentences": [entry(parser, i + 1, sentences[i], trees[i]) for i in chosen],
    }


def to_json(content):
    """JSON with one sentence per line."""
    head = json.dumps({key: value for key, value in content.items() if key != "sentences"})
    rows = ",\n".join(json.dumps(row) for row in content["sentences"])
    return f'{head[:-1]}, "sentences": [\n{rows}\n]}}\n'


def main(options):
    text = to_json(gallery(Parser.load(), treebank.load()))
    with replacing(options.output) as temporary:
        temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
