"""Draws docs/images/dependency_*.svg: dependency trees, types of edges, and generation.

    python docs/draw_dependencies.py

After the figures of Zhang, Lu, Lapata 2016, https://aclanthology.org/N16-1035.
"""

from pathlib import Path

from keras_onlstm.dependencies import DependencyTree, save_picture
from keras_onlstm.drawing.svg import svg_page, svg_text

SENTENCE = "The luxury auto manufacturer last year sold 1,214 cars in the U.S."
HEADS = [4, 4, 4, 7, 6, 7, 0, 9, 7, 7, 12, 10]
GREY, BLUE, RED, GREEN = "#444444", "#1b6ca8", "#b23a48", "#2e7d4f"
STEP, HALF, RADIUS = 74, 31, 15  # pixels: column width, half of a box width, radius of a word


def at(column):
    return 48 + STEP * column


def box(x, y, text, colour, half=HALF):
    frame = f'width="{2 * half}" height="26" rx="5" fill="white" stroke="{colour}"'
    return f'<rect x="{x - half}" y="{y - 13}" {frame}/>' + svg_text(x, y + 4, text, size=10)


def word(x, y, text):
    circle = f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="#eef3f7" stroke="{GREY}"/>'
    return circle + svg_text(x, y + 4, text, size=12)


def arrow(start, end, colour):
    """An arrow from one point to another."""
    (x, y), (to_x, to_y) = start, end
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    along, across = (to_x - x) / length, (to_y - y) / length
    base = to_x - 7 * along, to_y - 7 * across
    sides = [(base[0] + s * 3.5 * across, base[1] - s * 3.5 * along) for s in (1, -1)]
    head = "L".join(f"{a:.1f} {b:.1f}" for a, b in [(to_x, to_y), *sides])
    return (
        f'<path d="M{x:.1f} {y:.1f}L{base[0]:.1f} {base[1]:.1f}" stroke="{colour}"/>'
        f'<path d="M{head}Z" fill="{colour}"/>'
    )


def chain(head, columns, y, names, words, colour):
    """A chain of alternating LSTMs and words that starts at the head."""
    elements, previous = [], None
    for index, (column, name) in enumerate(zip(columns, names, strict=True)):
        x, sign = at(column), 1 if columns[-1] > columns[0] else -1
        if previous is None:
            elements.append(arrow((head[0] + sign * 11, head[1] + 11), (x, y - 13), colour))
        else:
            elements.append(arrow((previous + sign * RADIUS, y), (x - sign * HALF, y), colour))
        previous = x + sign * STEP
        elements.append(arrow((x + sign * HALF, y), (previous - sign * RADIUS, y), colour))
        elements += [box(x, y, name, colour), word(previous, y, words[index])]
    return elements


def generation():
    head, y = (at(6), 28), 96
    left = chain(head, [5, 3, 1], y, ["GEN-L", "GEN-NX-L", "GEN-NX-L"], ["w1", "w2", "w3"], BLUE)
    right = chain(head, [7, 9, 11], y, ["GEN-R", "GEN-NX-R", "GEN-NX-R"], ["w4", "w5", "w6"], RED)
    elements = [*left, *right, word(*head, "w0")]
    low = 160
    for column in (0, 2, 4):
        elements.append(arrow((at(column), y + RADIUS), (at(column), low - 13), GREEN))
        elements.append(box(at(column), low, "LD", GREEN))
    for column in (0, 2):
        elements.append(arrow((at(column) + HALF, low), (at(column + 2) - HALF, low), GREEN))
    elements.append(f'<path d="M{at(4) + HALF} {low}H{at(7)}" stroke="{GREEN}"/>')
    elements.append(arrow((at(7), low), (at(7), y + 13), GREEN))
    elements.append(svg_text((at(4) + HALF + at(7)) / 2, low - 6, "q", size=12))
    description = (
        "w0 generates w1 with GEN-L, w1 generates w2 and w2 w3 with GEN-NX-L; w0 generates w4 "
        "with GEN-R, w4 generates w5 and w5 w6 with GEN-NX-R. The LSTM LD reads w3, w2, w1; its "
        "last state q is an input of GEN-R."
    )
    return svg_page(elements, at(12) + 40, 195, "Generation with left dependents", description)


def classifiers():
    x, y, middle, lstm, last = 48, 118, 190, 330, 410
    elements = [word(x, y, "w")]
    edges = {"LEFT": BLUE, "RIGHT": RED, "NX-LEFT": BLUE, "NX-RIGHT": RED}
    for row, (edge, colour) in enumerate(edges.items()):
        row_y = 28 + 60 * row
        name = "GEN-" + edge.replace("LEFT", "L").replace("RIGHT", "R")
        elements += [
            arrow((x + RADIUS, y), (middle - 48, row_y), colour),
            box(middle, row_y, f"ADD-{edge}", colour, half=48),
            arrow((middle + 48, row_y), (lstm - HALF, row_y), colour),
            svg_text(266, row_y - 5, "yes", size=10),
            box(lstm, row_y, name, colour),
            arrow((lstm + HALF, row_y), (last - RADIUS, row_y), colour),
            word(last, row_y, "w"),
        ]
    description = "From the state of a word four classifiers, ADD-LEFT, ADD-RIGHT, ADD-NX-LEFT and "
    description += "ADD-NX-RIGHT, decide whether the LSTM of that edge generates a word."
    return svg_page(elements, 440, 240, "Classifiers of edges", description)


def draw_all(directory):
    tree = DependencyTree(SENTENCE.split(), HEADS)
    save_picture(directory / "dependency_both.svg", tree, arcs="both", numbers=True)
    edges = DependencyTree(["w3", "w2", "w1", "w0", "w4", "w5", "w6"], [4, 4, 4, 0, 4, 4, 4])
    save_picture(directory / "dependency_edges.svg", edges, arcs="edges")
    for name, text in {
        "dependency_left_dependents.svg": generation(),
        "dependency_classifiers.svg": classifiers(),
    }.items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    draw_all(Path(__file__).parent / "images")
