"""Writes docs/gallery.json: fifty sentences of NLTK's treebank, gold and predicted trees.

    python docs/draw_gallery.py

Run it again when the package's model changes. The site makes docs/gallery.md of that file alone.
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
    parser = ArgumentParser(prog="draw_gallery.py", description="Fifty sentences and their trees.")
    default = Path(__file__).parent / "gallery.json"
    parser.add_argument("--output", metavar="FILE", type=Path, default=default, help="JSON")
    return parser, parser.parse_args()


def by_layer(distances, members):
    """(layers, words): the means over the models that have the layer."""
    firsts = np.cumsum([0, *members])
    return [
        np.mean(
            [
                distances[first + layer]
                for first, layers in zip(firsts, members, strict=False)
                if layer < layers
            ],
            axis=0,
        )
        for layer in range(max(members))
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


def entry(parser, place, sentence, tree):
    distances = by_layer(parser.distances(sentence.tokens), parser.model.layers_per_model)
    return {
        "place": place,
        "sentence": " ".join(sentence.tokens),
        "f1": f1([tree], [sentence.tree]),
        "gold": brackets(sentence.tree),
        "predicted": brackets(tree),
        "distances": [[round(float(d), 3) for d in row] for row in distances],
    }


def gallery(parser, sentences):
    """What the file holds. `place` counts the sentences of these lengths from 1 on."""
    sentences = [s for s in sentences if SHORTEST <= len(s.tokens) <= LONGEST]
    if len(sentences) < COUNT:
        raise ValueError(
            f"NLTK's treebank has {len(sentences)} sentences of {SHORTEST} to {LONGEST} words, "
            f"fewer than {COUNT}: python -m nltk.downloader treebank fetches all of it."
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


def written(content):
    """As JSON, a sentence a line."""
    head = json.dumps({key: value for key, value in content.items() if key != "sentences"})
    rows = ",\n".join(json.dumps(row) for row in content["sentences"])
    return f'{head[:-1]}, "sentences": [\n{rows}\n]}}\n'


def main(options):
    text = written(gallery(Parser.load(), treebank.load()))
    with replacing(options.output) as temporary:
        temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
