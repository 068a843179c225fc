"""What stands in docs/gallery.md: docs/gallery.json, drawn while the site is built."""

import json
from pathlib import Path

from nltk import Tree

from keras_onlstm.drawing.svg import escaped
from keras_onlstm.parsing import draw_pair
from keras_onlstm.parsing.scores import walk

STORED = Path(__file__).parent / "gallery.json"
SORTED = """<p class="gallery-sort" role="group" aria-label="Order of the sentences" hidden>Sort by
<button type="button" data-key="place" data-sign="1" aria-pressed="true">treebank</button>
<button type="button" data-key="words" data-sign="1" aria-pressed="false">length</button>
<button type="button" data-key="f1" data-sign="-1" aria-pressed="false">F1, best first</button>
<button type="button" data-key="f1" data-sign="1" aria-pressed="false">F1, worst first</button>
<span class="gallery-said" role="status"></span></p>
"""


def percent(f1):
    return f"{100 * f1:.1f}"


def ordinal(number):
    """English has others only for numbers that end in 1, 2 or 3, 11 to 13 left out."""
    last = "" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "")
    return f"{number}{last or 'th'}"


def rule(stored):
    """Which sentences these are, and how good the trees are of them and of all others."""
    (shortest, longest), every, all_ = stored["words"], stored["every"], stored["all"]
    chosen = stored["chosen"]
    return (
        f"<p>Of the {all_['sentences']:,} sentences of {shortest} to {longest} words, in the order "
        f"of the files, the 1st, the {ordinal(1 + every)}, the {ordinal(1 + 2 * every)} and so on: "
        f"every {ordinal(every)}, {chosen['sentences']} in all.</p>\n"
        '<div class="gallery-table"><table><thead><tr><th scope="col">mean F1</th>'
        '<th scope="col">predicted</th><th scope="col">right-branching</th></tr></thead><tbody>'
        + "".join(
            f'<tr><th scope="row">{name} {part["sentences"]:,}</th><td>{percent(part["f1"])}</td>'
            f"<td>{percent(part['right_branching'])}</td></tr>"
            for name, part in (("these", chosen), ("all", all_))
        )
        + "</tbody></table></div>\n"
    )


def phrases(predicted, gold):
    """Lists of the phrases in both trees, in the gold one alone, in the predicted one alone.

    Neither words nor whole sentences are phrases here, as in the scores.
    """
    words = gold.leaves()
    predicted_spans, gold_spans = (
        {(start, end) for _, start, end in walk(tree)[0] if 1 < end - start < len(words)}
        for tree in (predicted, gold)
    )
    return [
        [" ".join(words[start:end]) for start, end in sorted(spans)]
        for spans in (
            predicted_spans & gold_spans,
            gold_spans - predicted_spans,
            predicted_spans - gold_spans,
        )
    ]


def phrase_list(predicted, gold):
    names = ("both", "in both trees"), ("missed", "in the gold tree alone"), ("other", "in the "
    "predicted tree alone")  # fmt: skip
    rows = []
    for (kind, name), found in zip(names, phrases(predicted, gold), strict=True):
        text = " · ".join(map(escaped, found)) or "none"
        rows.append(f'<dt class="gallery-{kind}">{len(found)} {name}</dt><dd>{text}</dd>')
    return f'<div class="gallery-phrases"><dl>{"".join(rows)}</dl></div>'


def distance_table(words, distances):
    head = "".join(f'<th scope="col">layer {n}</th>' for n in range(1, len(distances) + 1))
    rows = "".join(
        f'<tr><th scope="row">{escaped(word)}</th>'
        + "".join(f"<td>{row[place]:.3f}</td>" for row in distances)
        + "</tr>"
        for place, word in enumerate(words)
    )
    return (
        "<details><summary>Distances by layer, means over the models</summary>"
        f'<div class="gallery-table"><table><thead><tr><th scope="col">word</th>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def card(entry):
    predicted, gold = Tree.fromstring(entry["predicted"]), Tree.fromstring(entry["gold"])
    words, distances = gold.leaves(), entry["distances"]
    means = [sum(column) / len(column) for column in zip(*distances, strict=True)]
    f1, sentence = percent(entry["f1"]), escaped(entry["sentence"])
    name = escaped(f"Predicted and gold tree, F1 {f1}: {entry['sentence']}")
    return (
        f'<li><details class="gallery-card" data-place="{entry["place"]}" '
        f'data-words="{len(words)}" data-f1="{entry["f1"]}"><summary>'
        f'<b class="gallery-f1">F1 {f1}</b> <span class="gallery-length">{len(words)} words</span> '
        f'<span class="gallery-sentence">{sentence}</span></summary>'
        f'<div class="gallery-picture" role="img" tabindex="0" aria-label="{name}">'
        f"{draw_pair(predicted, gold, means)}</div>"
        f"{phrase_list(predicted, gold)}{distance_table(words, distances)}</details></li>"
    )


def page(stored):
    """The HTML of what a gallery file holds."""
    cards = "\n".join(map(card, stored["sentences"]))
    return f'{rule(stored)}{SORTED}<ul class="gallery">\n{cards}\n</ul>\n'


def setup(app):
    """The directive `gallery`, and what its page needs."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class Gallery(SphinxDirective):
        def run(self):
            self.env.note_dependency(str(STORED))
            self.env.note_dependency(__file__)
            text = page(json.loads(STORED.read_text(encoding="utf-8")))
            return [nodes.raw("", text, format="html")]

    def add_files(app, pagename, templatename, context, doctree):
        if pagename == "gallery":
            app.add_js_file("gallery.js", loading_method="defer")
            app.add_css_file("gallery.css")

    app.add_directive("gallery", Gallery)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
