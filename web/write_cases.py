"""Writes what the page's tests compare with, and the English words that its tokenizer knows.

    python web/write_cases.py                     beside this file
    python web/write_cases.py --output DIR

`tests/cases.json` has texts, the words of their sentences and their trees, as `Parser` gives them,
of the package's models and of the page's PRPN.
"""

import itertools
import json
import textwrap
from pathlib import Path

import numpy as np

from keras_onlstm.parser import Parser
from keras_onlstm.parsing import brackets, build_tree, vote
from keras_onlstm.text import tokens
from keras_onlstm.utils.console import ArgumentParser, report
from keras_onlstm.utils.files import replacing

HERE = Path(__file__).resolve().parent
PRPN = HERE / "models" / "prpn.onnx"
ENGLISH, CASES = Path("parsing/english.mjs"), Path("tests/cases.json")

TEXTS = [
    "The company said it will sell its stake.",
    "prices fell",
    "Prices",
    "He didn't go home. She left…",
    "They don't, can\u2019t and cannot; I'd've said they'll.",
    "'Tis the season, gimme more, I'm gonna wanna lemme d'ye got to.",
    "The dog's tail, the dogs' tails and it's.",
    "It cost $3.50, or 1,000% at 10:30 on 1990-95, 75.3 in all.",
    '"Go!" he said. “Stay,” I said. \'No\', she said, ``yes\'\'.',
    "Mr. Smith met J.P. Day of the U.S. at 5 p.m. They left.",
    "He left the U.S. It rained. No. 5 won 3 games.",
    "1. First item. 2. Second item",
    "THE SHARES OF IBM FELL IN NEW YORK",
    "the zyxgrblt flombed a quorpy snark",
    "nice😀 work 👩‍👩‍👧 1️⃣ 🇩🇪 👍🏽 done",
    "See http://a.b/c?d=1, or www.x.org. Ask me@x.com. Now!",
    "home—he said--or 1990\u201395 well-known",
    "left… and wait... what",
    "the cat (a tabby) slept [here] {now} <there>",
    "<script>alert('x')</script> & <b>bold</b> &amp; \"quoted\"",
    "ذهب الولد إلى المدرسة أمس",
    "הילד הלך לבית הספר.",
    "猫は 犬を 見た。",
    "Größe naïve CAFÉ \u017ftrange İstanbul \u0131ss\u0131z Ὀδυσσεύς",
    "x² + ½ ≥ Ⅳ and ٣ or 3",
    "a\tb\nc\u00a0d\u2028e\u3000f",
    "(He left.) She stayed. \"It's over!\" they cried. (why?)",
    "What?! No!! Yes... But why... The end",
    "He lives in Wash. D.C. and works at Smith & Co. The firm grew.",
    "a.b.c. d. E. F. g",
    "",
    "   ",
    "... !!! ?",
    "😀",
    "one,two;three:four/five @home #tag 50% $5 R&D",
    "Investors who bought the shares last year lost a lot of money",
    "But in the end, I think, the bank 's chairman did not want to sell the bonds",
    "What the president of the board wants is more time",
    "The old man the boats",
    "Colorless green ideas sleep furiously",
]  # fmt: skip
# In random order: repeated clauses have distances that differ by rounding only.
CLAUSE = "the man who said that the price of a stock on this market will fall in 1989 left and"
TEXTS.append(" ".join(np.random.default_rng(0).choice(CLAUSE.split(" "), 300)))

# How trees are read: what Parser is asked for. The first is what it does unasked.
READINGS = [
    {"method": "votes", "layer": None, "gate": "both"},
    {"method": "greedy", "layer": 2, "gate": "forget"},
    {"method": "binary", "layer": 2, "gate": "forget"},
    {"method": "votes", "layer": 1, "gate": "input"},
    {"method": "greedy", "layer": None, "gate": "both"},
    {"method": "binary", "layer": 3, "gate": "input"},
]
PRPN_METHODS = ["greedy", "binary", "votes"]


def english():
    """The module with the words of the tokenizer."""
    lines = [f"// Written by {Path(__file__).name} from keras_onlstm/text/tokens.py.\n"]
    for name in ("ABBREVIATIONS", "STARTERS"):
        words = textwrap.fill(" ".join(getattr(tokens, name).split()), 96)
        lines.append(f"export const {name} = `\n{words}\n`\n  .trim()\n  .split(/\\s+/);")
    return "\n".join(lines) + "\n"


def texts():
    """Texts with the words and the trees of each of their sentences, one for each reading."""
    parsers = [Parser.load(**reading) for reading in READINGS]
    parsers += [Parser.load(PRPN, method=method) for method in PRPN_METHODS]
    found = []
    for text in TEXTS:
        parsed = [[p for p in parser.parse_detailed([text]) if p.words] for parser in parsers]
        words = [one.words for one in parsed[0]]
        trees = [[brackets(one.tree) for one in of_reading] for of_reading in parsed]
        assert list(itertools.chain.from_iterable(words)) == parsers[0].tokenize(text)
        ours, of_prpn = trees[: len(READINGS)], trees[len(READINGS) :]
        found.append({"text": text, "words": words, "trees": ours, "prpn": of_prpn})
    return found


def rows():
    """Drawn distances, many of them equal, with their trees."""
    random = np.random.default_rng(0)
    found = []
    for count in [1, 2, 3, 4, 5, 8, 13, 30]:
        distances = random.integers(0, 6, (3, count)) / 8
        words = [f"w{place}" for place in range(count)]
        trees = {
            method: brackets(build_tree(distances.mean(axis=0), words, method))
            for method in ("greedy", "binary")
        }
        trees["votes"] = brackets(vote(distances, words))
        found.append({"words": words, "distances": distances.tolist(), "trees": trees})
    return found


def cases():
    """All of it as JSON, a case a line."""
    parts = {
        "readings": READINGS,
        "methods": PRPN_METHODS,
        "texts": texts(),
        "rows": rows(),
    }
    return (
        "{\n"
        + ",\n".join(
            f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in found) + "\n]"
            for name, found in parts.items()
        )
        + "\n}\n"
    )


def main(options):
    for path, content in ((ENGLISH, english()), (CASES, cases())):
        path = Path(options.output) / path
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(content, encoding="utf-8")
        print(path)


def parse_arguments():
    parser = ArgumentParser(prog=Path(__file__).name, description=__doc__.splitlines()[0])
    parser.add_argument("--output", metavar="DIR", default=HERE, help="default: beside this file")
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
