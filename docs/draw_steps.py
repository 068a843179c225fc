"""Draws docs/images/steps*.svg: how a tree is built from distances, as steps and as animation.

    python docs/draw_steps.py

The distances are those of one layer of a model of the package. The tree is the greedy one.
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
MODEL, LAYER = 5, 2  # the fifth model of the package; the layer of the paper
TITLE = "From distances to a tree"
PALE, INK = "#e8eef3", "#333333"
STRETCH = 1.4  # wider than other trees, because the letters are larger
SIZE, HEAD, BARS, LEVEL = 15, 56, 120, 34  # pixels: letters, captions, a distance of 1, a level
STEP_TIME, END_TIME, FADE = 2.6, 6.0, 0.35  # seconds: a step, the complete tree, transitions


class Step(NamedTuple):
    """The constituent [start, end) is split before and after the word at `index`."""

    index: int
    start: int
    end: int

    @property
    def parts(self):
        """The spans before the word, of the word, and after it, unless they are empty."""
        spans = (self.start, self.index), (self.index, self.index + 1), (self.index + 1, self.end)
        return [span for span in spans if span[0] < span[1]]

    @property
    def branches(self):
        """Pairs of parent and child spans. The word and the span after it are one constituent."""
        whole, second = (self.start, self.end), (self.index, self.end)
        pairs = [] if self.start == self.index else [(whole, (self.start, self.index))]
        pairs += [] if second == whole else [(whole, second)]
        if self.index + 1 < self.end:
            pairs += [(second, part) for part in ((self.index, self.index + 1), self.parts[-1])]
        return pairs


class Shape(NamedTuple):
    """An SVG element that is visible from step `first` to `last`; `None`: until the end."""

    svg: str
    first: int = 0
    last: int | None = None
    fades: bool = True

    def is_visible(self, step):
        return self.first <= step and (self.last is None or step <= self.last)


def steps(distances):
    """Steps of the greedy tree. The constituent with the largest distance is split next."""
    result, waiting = [], [(0, len(distances))]
    while waiting:
        start, end = max(waiting, key=lambda span: (distances[slice(*span)].max(), -span[0]))
        waiting.remove((start, end))
        step = Step(start + int(np.argmax(distances[start:end])), start, end)
        result.append(step)
        waiting += [(a, b) for a, b in step.parts if b - a > 1]
    return result


def captions(words, distances, splits):
    """Two lines for the start, each step, and the end."""
    yield f"Layer {LAYER}: the distance at each word", "The sentence is one constituent."
    for number, step in enumerate(splits, 1):
        kind = "largest distance" if number == 1 else "largest remaining distance"
        word = f"“{words[step.index]}” has the {kind}, {distances[step.index]:.3f}"
        yield f"{number}. {word}", " | ".join(" ".join(words[a:b]) for a, b in step.parts)
    yield "The complete tree", "All constituents are split into words."


class Scene:
    """The shapes of all steps. Step 0 is the whole sentence, the last one the complete tree."""

    def __init__(self, words, distances):
        self.words, self.distances = words, np.asarray(distances)
        self.splits = steps(self.distances)
        self.texts = list(captions(words, self.distances, self.splits))
        layout = layout_tree(build_tree(self.distances, words, "greedy"))
        self.nodes = {(node.start, node.end): node for node in layout.nodes}
        self.width = layout.width * STRETCH
        self.ground = HEAD + BARS  # bottom of the bars
        self.top = self.ground + SIZE + 34  # top of the tree
        self.base = self.top + layout.nodes[-1].height * LEVEL
        self.height = self.base + SIZE + MARGIN

    @property
    def last(self):
        return len(self.splits) + 1

    def x(self, index):
        return self.nodes[index, index + 1].x * STRETCH

    def side(self, index):
        """The x coordinate between a word and the previous one, or at the end."""
        outer = MARGIN / 2, self.width - MARGIN / 2
        if index in (0, len(self.words)):
            return outer[index > 0]
        widths = [len(self.words[p]) for p in (index - 1, index)]
        left, right = self.x(index - 1), self.x(index)
        return left + (right - left) * (widths[0] + 2) / (sum(widths) + 4)

    def point(self, span):
        node = self.nodes[span]
        return node.x * STRETCH, self.base - node.height * LEVEL

    def shapes(self):
        for number, (title, text) in enumerate(self.texts):
            until = None if number == self.last else number
            yield Shape(self.caption(title, text), number, until, fades=False)
        for number, step in enumerate(self.splits, 1):
            yield Shape(self.band(step), number, number)
        yield Shape(
            f'<path d="M{MARGIN} {self.ground}H{self.width - MARGIN:.1f}" stroke="{GREY}"/>'
        )
        split_at = {step.index: number for number, step in enumerate(self.splits, 1)}
        for index, word in enumerate(self.words):
            yield from self.bar(index, split_at.get(index))
            yield Shape(svg_text(self.x(index), self.ground + SIZE + 3, word, size=SIZE))
            yield Shape(svg_text(self.x(index), self.base + SIZE, word, size=SIZE))
        starts = {(0, len(self.words)): 0}
        for number, step in enumerate(self.splits, 1):
            yield Shape(self.triangle((step.start, step.end)), starts[step[1:]], number - 1)
            starts |= dict.fromkeys(step.parts, number)
        for number, step in enumerate(self.splits, 1):
            yield Shape(self.split_lines(step), number, number)
            yield Shape(self.branches(step, RED, 2), number, number)
            yield Shape(self.branches(step, GREY, 1), number + 1)

    def caption(self, title, text):
        first = svg_text(MARGIN, SIZE + 8, title, anchor="start", size=SIZE, weight="bold")
        return first + svg_text(MARGIN, 2 * SIZE + 13, text, anchor="start", size=SIZE)

    def band(self, step):
        """The background of the constituent that is split."""
        left, right = self.side(step.start), self.side(step.end)
        return (
            f'<rect x="{left:.1f}" y="{HEAD}" width="{right - left:.1f}" '
            f'height="{BARS + SIZE + 10}" fill="{PALE}"/>'
        )

    def bar(self, index, split_step):
        height = BARS * self.distances[index] * 0.85  # leaves room for the numbers

        def draw(colour, weight="normal"):
            x, y = self.x(index), self.ground - height
            number = svg_text(x, y - 4, f"{self.distances[index]:.3f}", size=12, weight=weight)
            bar = f'<rect x="{x - 9:.1f}" y="{y:.1f}" width="18" height="{height:.1f}"'
            return f'{bar} fill="{colour}"/>{number}'

        if split_step is None:
            yield Shape(draw(BAR))
            return
        yield Shape(draw(BAR), 0, split_step - 1)
        yield Shape(draw(RED, "bold"), split_step, split_step)
        yield Shape(draw(BLUE), split_step + 1)

    def split_lines(self, step):
        """Dashed lines where the constituent is split."""
        xs = [self.side(start) for start, _ in step.parts[1:]]
        lines = "".join(f"M{x:.1f} {HEAD}V{self.ground + SIZE + 10}" for x in xs)
        return f'<path d="{lines}" stroke="{RED}" stroke-width="1.5" stroke-dasharray="5 4"/>'

    def triangle(self, span):
        """A constituent that is not split yet."""
        x, y = self.point(span)
        left, right = self.side(span[0]) + 3, self.side(span[1]) - 3
        corners = f"M{x:.1f} {y:.1f}L{right:.1f} {self.base - 1}H{left:.1f}Z"
        return f'<path d="{corners}" fill="{PALE}" stroke="{GREY}"/>'

    def branches(self, step, colour, width):
        """Branches, with dots where they split."""
        lines, dots = "", ""
        for above, below in step.branches:
            (x, y), (to_x, to_y) = self.point(above), self.point(below)
            lines += f"M{x:.1f} {y:.1f}H{to_x:.1f}V{to_y - (below[1] - below[0] == 1):.1f}"
        for x, y in {self.point(above): None for above, _ in step.branches}:
            dots += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
        return f'<path d="{lines}" fill="none" stroke="{colour}" stroke-width="{width}"/>{dots}'


def pictures(scene):
    """A picture of the start and of each step."""
    shapes = list(scene.shapes())
    for step, (title, text) in enumerate(scene.texts[:-1]):
        visible = [shape.svg for shape in shapes if shape.is_visible(step)]
        yield svg_page(visible, scene.width, scene.height, title, text)


def animation(scene):
    """An animation of all steps. Without animation it shows the complete tree."""
    total = scene.last * STEP_TIME + END_TIME
    names: dict[Shape, str] = {}
    groups = []
    for shape in scene.shapes():
        time = shape._replace(svg="")
        if time == Shape(""):
            groups.append(shape.svg)
            continue
        name = names.setdefault(time, f"s{len(names)}")
        groups.append(f'<g class="{name}">{shape.svg}</g>')
    hidden = ",".join(f".{name}" for time, name in names.items() if time.last is not None)
    animations = "".join(_animate(name, time, total) for time, name in names.items())
    rules = f"{hidden}{{opacity:0}}@media (prefers-reduced-motion:no-preference){{{animations}}}"
    text = " ".join(f"{title}: {line}." for title, line in scene.texts[1:-1])
    return svg_page([f"<style>{rules}</style>", *groups], scene.width, scene.height, TITLE, text)


def _animate(name, shape, total):
    """CSS of a shape that is visible for some steps. It disappears after the next one appeared."""

    def at(seconds, opacity):
        return f"{100 * seconds / total:.2f}%{{opacity:{opacity}}}"

    fade = FADE if shape.fades else 0
    start = shape.first * STEP_TIME
    end = total - fade if shape.last is None else (shape.last + 1) * STEP_TIME + fade
    timing = "linear" if shape.fades else "step-end"
    frames = at(0, int(not shape.first))
    if shape.fades:
        frames += (at(start, 0) if shape.first else "") + at(start + fade, 1) + at(end, 1)
        frames += at(total, 0) if shape.last is None else at(end + 0.01, 0)
        if not shape.first:  # it appears again
            frames += at(total - fade, 0) + at(total, 1)
    else:
        frames += at(start, 1) + at(end, 0)
    return f".{name}{{animation:{name} {total:g}s {timing} infinite}}@keyframes {name}{{{frames}}}"


def make_scene(parser):
    """The scene of the sentence with the distances of one layer of one model."""
    layers_per_model = parser.model.layers_per_model
    if len(layers_per_model) < MODEL or layers_per_model[MODEL - 1] < LAYER:
        raise ValueError(
            f"draw_steps.py draws layer {LAYER} of model {MODEL}, but the models of the package "
            f"have {layers_per_model} layers. Change MODEL and LAYER."
        )
    row = sum(layers_per_model[: MODEL - 1]) + LAYER - 1
    # Rounded to three digits, so that the pictures are the same on every machine.
    return Scene(SENTENCE.split(), np.round(parser.distances(SENTENCE)[row].astype(float), 3))


def draw_all(directory):
    scene = make_scene(Parser.load())
    files = {f"steps_{step}.svg": text for step, text in enumerate(pictures(scene))}
    for name, text in (files | {"steps.svg": animation(scene)}).items():
        with replacing(directory / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def parse_arguments():
    parser = ArgumentParser(
        prog="draw_steps.py", description="Draw how a tree is built from distances."
    )
    default = Path(__file__).parent / "images"
    parser.add_argument(
        "--output", metavar="DIR", type=Path, default=default, help="Folder for the SVG files."
    )
    return parser, parser.parse_args()


def main(options):
    draw_all(options.output)


if __name__ == "__main__":
    parser, options = parse_arguments()
    report(parser, lambda: main(options))
