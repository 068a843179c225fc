"""Dependency trees as code for LaTeX's package tikz-dependency.

Source: Pezzelle 2012, "TikZ-dependency", https://ctan.org/pkg/tikz-dependency.
"""

import re

from keras_onlstm.dependencies.arcs import Drawing
from keras_onlstm.utils.svg import drawable

__all__ = ["latex_of"]

LEVEL = 4  # ex
_WRITTEN = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "&": r"\symbol{38}",  # \& separates words
    '"': r"\symbol{34}",
    " ": r"\ ",
    "\N{REPLACEMENT CHARACTER}": r"\rule{1ex}{1ex}",  # not in fonts of LaTeX
    **{character: f"\\{character}" for character in "#$%_{}"},
}
_SPECIAL = re.compile("[" + re.escape("".join(_WRITTEN)) + "]")
_LIGATURE = re.compile(r"(?<=[-`',!?<>])(?=[-`',<>])")  # TeX makes -- a dash


def latex_of(drawn: Drawing) -> str:
    """Formats a drawing for a document that loads `tikz-dependency`."""
    lines = [f"% {drawable(drawn.title)}"] if drawn.title else []
    lines += [
        r"\begin{dependency}[hide label, label style={font=\scriptsize, draw=none, inner sep=1pt}]",
        r"  \begin{deptext}[column sep=1em]",
    ]
    rows = [drawn.words, drawn.numbers] if drawn.numbers else [drawn.words]
    lines += [f"    {row} \\\\" for row in (r" \& ".join(map(_written, row)) for row in rows)]
    lines.append(r"  \end{deptext}")
    for side in drawn.sides:
        below = ", edge below" if side is drawn.below else ""
        # The arrow from ROOT is four times as high, above and below the words.
        height = f"edge unit distance={(side.root.level + 1) * LEVEL / 4:g}ex"
        label = _written(f"ROOT {side.root.label}".rstrip())
        lines.append(f"  \\deproot[show label, {height}{below}]{{{side.root.target}}}{{{label}}}")
        for arc in sorted(side.arcs, key=lambda arc: arc.target):
            options = f"edge height={arc.level * LEVEL}ex{below}"
            options += ", show label" if arc.label else ""
            options += (
                ", edge style={densely dashed}" if arc.edge is not None and arc.edge > 1 else ""
            )
            ends = f"{{{arc.source}}}{{{arc.target}}}"
            lines.append(f"  \\depedge[{options}]{ends}{{{_written(arc.label)}}}")
    lines.append(r"\end{dependency}")
    return "\n".join(lines)


def _written(text):
    text = _LIGATURE.sub("\0", drawable(text))
    return _SPECIAL.sub(lambda found: _WRITTEN[found[0]], text).replace("\0", "{}")
