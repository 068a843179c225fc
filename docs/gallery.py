"""Sphinx directive `gallery`: draws the trees in docs/gallery.json on docs/gallery.md."""

import json
from pathlib import Path

from nltk import Tree

from keras_onlstm.drawing.svg import escaped
from keras_onlstm.parsing import draw_pair
from keras_onlstm.parsing.scores import walk

STORED = Path(__file__).parent / "gallery.json"
SORT_BUTTONS = """<p class="gallery-sort" role="group" aria-label="Order" hidden>Sort by
<button type="button" data-key="place" data-sign="1" aria-pressed="true">treebank</button>
<button type="button" data-key="words" data-sign="1" aria-pressed="false">length</button>
<button type="button" data-key="f1" data-sign="-1" aria-pressed="false">F1, best first</button>
<button type="button" data-key="f1" data-sign="1" aria-pressed="false">F1, worst first</button>
<span class="gallery-said" role="status"></span></p>
"""


def percent(f1):
    return f"{100 * f1:.1f}"


def ordinal(number):
    """An English ordinal number, e.g. 21st."""
    last = "" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "")
    return f"{number}{last or 'th'}"


def summary(stored):
    """HTML that says how the sentences were chosen, and their mean scores."""
    (shortest, longest), every, all_ = stored["words"], stored["every"], stored["all"]
    chosen = stored["chosen"]
    return (
        f"<p>Every {ordinal(every)} of the {all_['sentences']:,} sentences with {shortest} to "
        f"{longest} words, in the order of the files: {chosen['sentences']} sentences.</p>\n"
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
    """Lists of phrases in both trees, only in the gold tree, and only in the predicted tree.

    Single words and whole sentences are not phrases here, like in the scores.
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
    names = (
        ("both", "in both trees"),
        ("missed", "only in the gold tree"),
        ("other", "only in the predicted tree"),
    )
    rows = []
    for (kind, name), texts in zip(names, phrases(predicted, gold), strict=True):
        text = " · ".join(map(escaped, texts)) or "none"
        rows.append(f'<dt class="gallery-{kind}">{len(texts)} {name}</dt><dd>{text}</dd>')
    return f'<div class="gallery-phrases"><dl>{"".join(rows)}</dl></div>'


def distance_table(words, distances):
    head = "".join(f'<th scope="col">layer {n}</th>' for n in range(1, len(distances) + 1))
    rows = "".join(
        f'<tr><th scope="row">{escaped(word)}</th>'
        + "".join(f"<td>{row[index]:.3f}</td>" for row in distances)
        + "</tr>"
        for index, word in enumerate(words)
    )
    return (
        "<details><summary>Distances by layer (means over the models)</summary>"
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
    """The HTML of a gallery file."""
    cards = "\n".join(map(card, stored["sentences"]))
    return f'{summary(stored)}{SORT_BUTTONS}<ul class="gallery">\n{cards}\n</ul>\n'


def setup(app):
    """Adds the directive `gallery` and the files of its page."""
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
