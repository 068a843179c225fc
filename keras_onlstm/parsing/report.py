"""HTML pages of trees and of evaluation results, each a self-contained file."""

from collections.abc import Sequence
from pathlib import Path

from keras_onlstm.drawing.svg import HEAD, escaped, pictures_page
from keras_onlstm.parsing.pictures import Numbers, draw, draw_pair
from keras_onlstm.parsing.scores import score
from keras_onlstm.utils import NltkTree, StrPath
from keras_onlstm.utils.files import replacing

_REPORT = (
    HEAD
    + """{head}
<p>Constituents that the gold tree has are <span style="color:#1b6ca8">blue</span>, others
<span style="color:#b23a48">red</span>; the bars are distances.</p>
<p>{count} Sort by
<button data-key="f1" data-sign="1">F1, worst first</button>
<button data-key="f1" data-sign="-1">F1, best first</button>
<button data-key="words" data-sign="1">length</button>
<button data-key="number" data-sign="1">order in the corpus</button></p>
<main>
{sentences}
</main>
<script>
for (const button of document.querySelectorAll("button")) {{
  button.onclick = () => {{
    const main = document.querySelector("main");
    const {{ key, sign }} = button.dataset;
    const rows = [...main.children];
    const by = (a, b, name) => a.dataset[name] - b.dataset[name];
    rows.sort((a, b) => sign * by(a, b, key) || by(a, b, "number"));
    main.append(...rows);
  }};
}}
</script>
</html>
"""
)


def _sentence(number, predicted, gold, distances):
    f1 = score([predicted], [gold])["f1"]
    words = [str(word) for word in gold.leaves()]
    return (
        f'<details data-f1="{f1:.6f}" data-words="{len(words)}" data-number="{number}">'
        f"<summary><b>{100 * f1:.1f}</b>{escaped(' '.join(words))}</summary>"
        f'<div class="picture">{draw_pair(predicted, gold, distances)}</div></details>'
    )


def draw_page(
    trees: Sequence[NltkTree], distances: Sequence[Numbers] | None = None, title: str = "Trees"
) -> str:
    """Draws an HTML page of trees, one below the other.

    `distances` has an array for each tree, as in `draw`.

    >>> from keras_onlstm.parsing import draw_page, right_branching
    >>> page = draw_page([right_branching(["the", "cat"]), right_branching(["<b>"])])
    >>> page.count("<svg"), "<b>" in page
    (2, False)
    """
    bars: Sequence[Numbers | None] = [None] * len(trees) if distances is None else distances
    pictures = (draw(tree, numbers) for tree, numbers in zip(trees, bars, strict=True))
    return pictures_page(title, pictures)


def write_report(
    path: StrPath,
    predicted: Sequence[NltkTree],
    gold: Sequence[NltkTree],
    distances: Sequence[Numbers] | None = None,
    title: str = "Unsupervised parsing",
    limit: int = 500,
) -> None:
    """Writes an HTML page of scores and trees, which can be sorted by F1.

    Args:
        path: the file.
        predicted: list of `nltk.Tree`.
        gold: list of as many gold trees.
        distances: list of as many arrays, with a number for each word, or `None`.
        title: title of the page.
        limit: integer, most sentences to show, evenly spaced; the scores are of all sentences.

    Raises:
        ValueError: if trees do not match, or there are none.

    >>> from nltk import Tree
    >>> from keras_onlstm.parsing import right_branching, write_report
    >>> gold = Tree.fromstring("(S (NP the cat) (VP saw (NP a dog)))")
    >>> write_report("report.html", [right_branching(gold.leaves())], [gold])
    """
    if not gold:
        raise ValueError("gold is empty: there is no sentence to report.")
    scores = score(predicted, gold)
    bars: Sequence[Numbers | None] = [None] * len(gold) if distances is None else distances
    keys = [key for key in scores if key not in ("sentences", "label_recall", "depth")]
    rows = [
        f"<tr><td>{key.replace('_', ' ')}</td><td>{100 * scores[key]:.1f}</td></tr>" for key in keys
    ]
    rows.append(f"<tr><td>depth</td><td>{scores['depth']:.2f}</td></tr>")
    for label, (recalled, total) in scores["label_recall"].items():
        share = f"{100 * recalled / total:.1f} ({recalled} of {total})"
        rows.append(f"<tr><td>recall of {escaped(label)}</td><td>{share}</td></tr>")
    shown = range(0, len(gold), -(-len(gold) // limit))
    count = f"{len(gold):,} sentences"
    count += "." if len(shown) == len(gold) else f", of which {len(shown):,} are shown."
    page = _REPORT.format(
        title=escaped(title),
        head=f"<table>{''.join(rows)}</table>",
        count=count,
        sentences="\n".join(
            _sentence(index + 1, predicted[index], gold[index], bars[index]) for index in shown
        ),
    )
    with replacing(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8")
