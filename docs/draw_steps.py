"""Draws docs/images/steps*.svg: how a tree follows from distances, step by step and animated.

    python docs/draw_steps.py

The distances are those of one layer of one of the package's models, the tree is the greedy one.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_onlstm.drawing.svg import MARGIN, svg_page, svg_text
from keras_onlstm.parser import Parser
from keras_onlstm.parsing import build_tree
from keras_onlstm.parsing.pictures import BAR, BLUE, GREY, RED, layout_tree
from keras_onlstm.utils.console import ArgumentParser, report
from keras_onlstm.utils.files import replacing

SENTENCE = "shares of the bank fell in early trading"
MODEL, LAYER = 5, 2  # the fifth of the package's models; the layer of the paper
TITLE = "From distances to a tree"
PALE, INK = "#e8eef3", "#333333"
STRETCH = 1.4  # of the widths that trees have elsewhere: room for larger letters
SIZE, HEAD, BARS, LEVEL = 15, 56, 120, 34  # pixels: letters, captions, a distance of 1, a level
SHOWN, REST, FADE = 2.6, 6.0, 0.35  # seconds: a step, the whole tree, between two of them


class Step(NamedTuple):
    """A constituent of the words `start` to `end` parts before and behind the word at `place`."""

    place: int
    start: int
    end: int

    @property
    def parts(self):
        """The words before, the word, the words behind: those that are there."""
        spans = (self.start, self.place), (self.place, self.place + 1), (self.place + 1, self.end)
        return [span for span in spans if span[0] < span[1]]

    @property
    def branches(self):
        """Pairs of spans, above and below; the word and what is behind it are one constituent."""
        whole, second = (self.start, self.end), (self.place, self.end)
        pairs = [] if self.start == self.place else [(whole, (self.start, self.place))]
        pairs += [] if second == whole else [(whole, second)]
        if self.place + 1 < self.end:
            pairs += [(second, part) for part in ((self.place, self.place + 1), self.parts[-1])]
        return pairs


class Shape(NamedTuple):
    """Something that is seen from one step to another; `None`: it stays."""

    svg: str
    first: int = 0
    last: int | None = None
    fades: bool = True

    def is_seen(self, step):
        return self.first <= step and (self.last is None or step <= self.last)


def steps(distances):
    """`Step`s of the greedy tree: of all constituents the one with the largest distance is next."""
    found, waiting = [], [(0, len(distances))]
    while waiting:
        start, end = max(waiting, key=lambda span: (distances[slice(*span)].max(), -span[0]))
        waiting.remove((start, end))
        step = Step(start + int(np.argmax(distances[start:end])), start, end)
        found.append(step)
        waiting += [(a, b) for a, b in step.parts if b - a > 1]
    return found


def captions(words, distances, found):
    """Two lines a step, of the beginning and of the end."""
    yield f"Layer {LAYER}: the distance at each word", "Nothing has parted: one constituent."
    for number, step in enumerate(found, 1):
        of = "largest distance" if number == 1 else "largest one left"
        word = f"“{words[step.place]}” has the {of}, {distances[step.place]:.3f}"
        yield f"{number}. {word}", " | ".join(" ".join(words[a:b]) for a, b in step.parts)
    yield "The whole tree", "Each constituent has parted, down to the words."


class Scene:
    """The shapes of all steps; step 0 has none parted, the last one is the whole tree."""

    def __init__(self, words, distances):
        self.words, self.distances = words, np.asarray(distances)
        self.found = steps(self.distances)
        self.texts = list(captions(words, self.distances, self.found))
        layout = layout_tree(build_tree(self.distances, words, "greedy"))
        self.nodes = {(node.start, node.end): node for node in layout.nodes}
        self.width = layout.width * STRETCH
        self.ground = HEAD + BARS  # where bars stand
        self.top = self.ground + SIZE + 34  # of the tree
        self.base = self.top + layout.nodes[-1].height * LEVEL
        self.height = self.base + SIZE + MARGIN

    @property
    def last(self):
        return len(self.found) + 1

    def x(self, place):
        return self.nodes[place, place + 1].x * STRETCH

    def side(self, place):
        """The x between a word and the one before it, or at the end."""
        outer = MARGIN / 2, self.width - MARGIN / 2
        if place in (0, len(self.words)):
            return outer[place > 0]
        widths = [len(self.words[p]) for p in (place - 1, place)]
        left, right = self.x(place - 1), self.x(place)
        return left + (right - left) * (widths[0] + 2) / (sum(widths) + 4)

    def point(self, span):
        node = self.nodes[span]
        return node.x * STRETCH, self.base - node.height * LEVEL

    def shapes(self):
        for number, (title, said) in enumerate(self.texts):
            until = None if number == self.last else number
            yield Shape(self.caption(title, said), number, until, fades=False)
        for number, step in enumerate(self.found, 1):
            yield Shape(self.band(step), number, number)
        yield Shape(
            f'<path d="M{MARGIN} {self.ground}H{self.width - MARGIN:.1f}" stroke="{GREY}"/>'
        )
        parted = {step.place: number for number, step in enumerate(self.found, 1)}
        for place, word in enumerate(self.words):
            yield from self.bar(place, parted.get(place))
            yield Shape(svg_text(self.x(place), self.ground + SIZE + 3, word, size=SIZE))
            yield Shape(svg_text(self.x(place), self.base + SIZE, word, size=SIZE))
        began = {(0, len(self.words)): 0}
        for number, step in enumerate(self.found, 1):
            yield Shape(self.triangle((step.start, step.end)), began[step[1:]], number - 1)
            began |= dict.fromkeys(step.parts, number)
        for number, step in enumerate(self.found, 1):
            yield Shape(self.cut(step), number, number)
            yield Shape(self.grown(step, RED, 2), number, number)
            yield Shape(self.grown(step, GREY, 1), number + 1)

    def caption(self, title, said):
        first = svg_text(MARGIN, SIZE + 8, title, anchor="start", size=SIZE, weight="bold")
        return first + svg_text(MARGIN, 2 * SIZE + 13, said, anchor="start", size=SIZE)

    def band(self, step):
        """Behind the words that are looked at."""
        left, right = self.side(step.start), self.side(step.end)
        return (
            f'<rect x="{left:.1f}" y="{HEAD}" width="{right - left:.1f}" '
            f'height="{BARS + SIZE + 10}" fill="{PALE}"/>'
        )

    def bar(self, place, parted):
        high = BARS * self.distances[place] * 0.85  # room for the numbers

        def drawn(colour, weight="normal"):
            x, y = self.x(place), self.ground - high
            number = svg_text(x, y - 4, f"{self.distances[place]:.3f}", size=12, weight=weight)
            bar = f'<rect x="{x - 9:.1f}" y="{y:.1f}" width="18" height="{high:.1f}"'
            return f'{bar} fill="{colour}"/>{number}'

        if parted is None:
            yield Shape(drawn(BAR))
            return
        yield Shape(drawn(BAR), 0, parted - 1)
        yield Shape(drawn(RED, "bold"), parted, parted)
        yield Shape(drawn(BLUE), parted + 1)

    def cut(self, step):
        """Dashed lines where the constituent parts."""
        at = [self.side(start) for start, _ in step.parts[1:]]
        lines = "".join(f"M{x:.1f} {HEAD}V{self.ground + SIZE + 10}" for x in at)
        return f'<path d="{lines}" stroke="{RED}" stroke-width="1.5" stroke-dasharray="5 4"/>'

    def triangle(self, span):
        """Words that nothing has parted yet."""
        x, y = self.point(span)
        left, right = self.side(span[0]) + 3, self.side(span[1]) - 3
        corners = f"M{x:.1f} {y:.1f}L{right:.1f} {self.base - 1}H{left:.1f}Z"
        return f'<path d="{corners}" fill="{PALE}" stroke="{GREY}"/>'

    def grown(self, step, colour, width):
        """Branches, and dots where they part."""
        lines, dots = "", ""
        for above, below in step.branches:
            (x, y), (to_x, to_y) = self.point(above), self.point(below)
            lines += f"M{x:.1f} {y:.1f}H{to_x:.1f}V{to_y - (below[1] - below[0] == 1):.1f}"
        for x, y in {self.point(above): None for above, _ in step.branches}:
            dots += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
        return f'<path d="{lines}" fill="none" stroke="{colour}" stroke-width="{width}"/>{dots}'


def pictures(scene):
    """What is there before the first step, and a picture a step."""
    shapes = list(scene.shapes())
    for step, (title, said) in enumerate(scene.texts[:-1]):
        seen = [shape.svg for shape in shapes if shape.is_seen(step)]
        yield svg_page(seen, scene.width, scene.height, title, said)


def animation(scene):
    """All steps in one picture; where nothing moves it shows the last one."""
    total = scene.last * SHOWN + REST
    names: dict[Shape, str] = {}
    groups = []
    for shape in scene.shapes():
        time = shape._replace(svg="")
        if time == Shape(""):
            groups.append(shape.svg)
            continue
        name = names.setdefault(time, f"s{len(names)}")
        groups.append(f'<g class="{name}">{shape.svg}</g>')
    gone = ",".join(f".{name}" for time, name in names.items() if time.last is not None)
    moving = "".join(_moving(name, time, total) for time, name in names.items())
    rules = f"{gone}{{opacity:0}}@media (prefers-reduced-motion:no-preference){{{moving}}}"
    said = " ".join(f"{title}: {line}." for title, line in scene.texts[1:-1])
    return svg_page([f"<style>{rules}</style>", *groups], scene.width, scene.height, TITLE, said)


def _moving(name, shape, total):
    """The rules of what is seen for some steps. It stays until what follows is there."""

    def at(seconds, opacity):
        return f"{100 * seconds / total:.2f}%{{opacity:{opacity}}}"

    fade = FADE if shape.fades else 0
    begins = shape.first * SHOWN
    ends = total - fade if shape.last is None else (shape.last + 1) * SHOWN + fade
    way = "linear" if shape.fades else "step-end"
    frames = at(0, int(not shape.first))
    if shape.fades:
        frames += (at(begins, 0) if shape.first else "") + at(begins + fade, 1) + at(ends, 1)
        frames += at(total, 0) if shape.last is None else at(ends + 0.01, 0)
        if not shape.first:  # it comes back
            frames += at(total - fade, 0) + at(total, 1)
    else:
        frames += at(begins, 1) + at(ends, 0)
    return f".{name}{{animation:{name} {total:g}s {way} infinite}}@keyframes {name}{{{frames}}}"


def scene_of(parser):
    """The sentence as one layer of one model has it."""
    members = parser.model.layers_per_model
    if len(members) < MODEL or members[MODEL - 1] < LAYER:
        raise ValueError(
            f"the package has {len(members)} models of {members} layers, and this draws layer "
            f"{LAYER} of model {MODEL}: set MODEL and LAYER."
        )
    row = sum(members[: MODEL - 1]) + LAYER - 1
    # To three digits, so that no rounding of a machine shows.
    return Scene(SENTENCE.split(), np.round(parser.distances(SENTENCE)[row].astype(float), 3))


def draw_all(directory):
    scene = scene_of(Parser.load())
    files = {f"steps_{step}.svg": text for step, text in enumerate(pictures(scene))}
    for name, text in (files | {"steps.svg": animation(scene)}).items():
        with replacing(directory / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def parse_arguments():
    parser = ArgumentParser(prog="draw_steps.py", description="A tree from distances, by steps.")
    default = Path(__file__).parent / "images"
    parser.add_argument("--output", metavar="DIR", type=Path, default=default, help="for SVG")
    return parser, parser.parse_args()


def main(options):
    draw_all(options.output)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
