"""Writes expected results for the tests of the page, and the word lists of its tokenizer.

    python web/write_cases.py                     # updates web/
    python web/write_cases.py --output DIR

`tests/cases.json` contains texts with the words and trees of their sentences from `Parser`, for the
models of the package and the PRPN of the page.
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
# In random order, because the distances of repeated clauses differ by rounding only.
CLAUSE = "the man who said that the price of a stock on this market will fall in 1989 left and"
TEXTS.append(" ".join(np.random.default_rng(0).choice(CLAUSE.split(" "), 300)))

# Settings of Parser. The first ones are the defaults.
READINGS = [
    {"method": "votes", "layer": None, "gate": "both"},
    {"method": "greedy", "layer": 2, "gate": "forget"},
    {"method": "binary", "layer": 2, "gate": "forget"},
    {"method": "votes", "layer": 1, "gate": "input"},
    {"method": "greedy", "layer": None, "gate": "both"},
    {"method": "binary", "layer": 3, "gate": "input"},
]
PRPN_METHODS = ["greedy", "binary", "votes"]


def english_module():
    """JavaScript module with the word lists of the tokenizer."""
    lines = [f"// Written by {Path(__file__).name} from keras_onlstm/text/tokens.py.\n"]
    for name in ("ABBREVIATIONS", "STARTERS"):
        words = textwrap.fill(" ".join(getattr(tokens, name).split()), 96)
        lines.append(f"export const {name} = `\n{words}\n`\n  .trim()\n  .split(/\\s+/);")
    return "\n".join(lines) + "\n"


def text_cases():
    """Texts with the words of their sentences, and the trees for all settings of the parser."""
    parsers = [Parser.load(**reading) for reading in READINGS]
    parsers += [Parser.load(PRPN, method=method) for method in PRPN_METHODS]
    cases = []
    for text in TEXTS:
        parsed = [[p for p in parser.parse_detailed([text]) if p.words] for parser in parsers]
        words = [sentence.words for sentence in parsed[0]]
        trees = [[brackets(sentence.tree) for sentence in sentences] for sentences in parsed]
        assert list(itertools.chain.from_iterable(words)) == parsers[0].tokenize(text)
        onlstm, prpn = trees[: len(READINGS)], trees[len(READINGS) :]
        cases.append({"text": text, "words": words, "trees": onlstm, "prpn": prpn})
    return cases


def distance_cases():
    """Random distances with many ties, and their trees."""
    random = np.random.default_rng(0)
    cases = []
    for count in [1, 2, 3, 4, 5, 8, 13, 30]:
        distances = random.integers(0, 6, (3, count)) / 8
        words = [f"w{index}" for index in range(count)]
        trees = {
            method: brackets(build_tree(distances.mean(axis=0), words, method))
            for method in ("greedy", "binary")
        }
        trees["votes"] = brackets(vote(distances, words))
        cases.append({"words": words, "distances": distances.tolist(), "trees": trees})
    return cases


def cases_json():
    """All cases as JSON, each on its own line."""
    parts = {
        "readings": READINGS,
        "methods": PRPN_METHODS,
        "texts": text_cases(),
        "rows": distance_cases(),
    }
    return (
        "{\n"
        + ",\n".join(
            f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]"
            for name, cases in parts.items()
        )
        + "\n}\n"
    )


def main(options):
    for path, content in ((ENGLISH, english_module()), (CASES, cases_json())):
        path = Path(options.output) / path
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(content, encoding="utf-8")
        print(path)


def parse_arguments():
    parser = ArgumentParser(prog=Path(__file__).name, description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", metavar="DIR", default=HERE, help="Output folder. (default: the folder web)"
    )
    return parser, parser.parse_args()


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
