"""Drawings of dependency trees: each is read back into the tree, and nothing in them overlaps."""

import itertools
import random
import re
import runpy
import unicodedata
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.package import ROOT
from helpers.pictures import HOSTILE, SHOWN, elements, png_size, size, texts
from keras_onlstm.dependencies import DependencyTree, chain, draw, page, random_tree
from keras_onlstm.dependencies import save_picture as save
from keras_onlstm.dependencies.arc_layout import display_width

pytestmark = pytest.mark.keras_free
SVG = "{http://www.w3.org/2000/svg}"
CROSSED = DependencyTree(
    ["who", "did", "you", "talk", "to"],
    [5, 4, 4, 0, 4],
    relations=["pobj", "aux", "nsubj", "root", "prep"],
)
NAMES = ["a", "det", "nsubj:pass", "x" * 30]


def any_tree(count, seed, projective=True, named=False):
    """A random tree; all trees with one word under ROOT are possible."""
    chance = random.Random(seed)
    words = ["w" * chance.randint(1, 9) for _ in range(count)]
    if projective:
        heads = random_tree(words, seed).heads
    else:
        order = chance.sample(range(1, count + 1), count)
        head_of = {position: chance.choice(order[:n] or [0]) for n, position in enumerate(order)}
        heads = [head_of[position] for position in range(1, count + 1)]
    relations = [chance.choice(NAMES) for _ in words] if named else None
    return DependencyTree(words, heads, relations=relations)


TREES = st.builds(any_tree, st.integers(1, 14), st.integers(0, 9999), st.booleans(), st.booleans())


def sources(tree):
    """The edges of generation as (source, label) of every word, from the order of dependents."""
    edges = [("", "")] * len(tree)
    for head, (left, right) in enumerate(tree.dependents()):
        for positions, name in ((left[::-1], "LEFT"), (right, "RIGHT")):
            for before, position in zip((head, *positions), positions, strict=False):
                edges[position - 1] = (before, name if before == head else f"NX-{name}")
    return edges


def arcs_of(tree):
    return [*zip(tree.heads, tree.relations or [""] * len(tree), strict=True)]


def levels(spans):
    """How many arcs are nested in each other below each one, itself included."""
    level_of = {}
    for low, high in sorted(spans, key=lambda span: span[1] - span[0]):
        inside = [level_of[s] for s in level_of if low <= s[0] and s[1] <= high]
        level_of[low, high] = 1 + max(inside, default=0)
    return level_of


def grid(lines):
    """Lines as columns of a terminal: a wide character is followed by an empty one."""
    rows = []
    for line in lines:
        row = []
        for character in line:
            if unicodedata.combining(character):
                row[-1] += character
            else:
                row += [character, *[""] * (unicodedata.east_asian_width(character) in "WF")]
        rows.append(row)
    width = max(map(len, rows), default=0)
    return [row + [" "] * (width - len(row)) for row in rows]


def read_arcs(lines):
    """(source, label) of every word from the lines above the words."""
    rows = grid(lines)
    tips = [at for at, character in enumerate(rows[-1]) if character == "▼"]
    legs = {}
    for at, character in enumerate(rows[-1]):
        if character == "│":
            (legs[at],) = [n for n, tip in enumerate(tips, 1) if abs(tip - at) == 1]
    found = []
    for at in tips:
        level = len(rows) - 2
        while level > 0 and rows[level][at] not in "┌┐":
            assert level == 1 or rows[level][at] not in " ─▼", "an arc is interrupted"
            level -= 1
        if not level:
            assert "".join(rows[0]).strip() == "ROOT" and "".join(rows[0][at : at + 4]).strip()
            label = "".join(rows[1]).strip()
            found.append((0, "" if set(label) & set("│▼┌") else label))
            continue
        go, ends = (1, "┐┤") if rows[level][at] == "┌" else (-1, "┌├")
        end = at + go
        while rows[level][end] not in ends:
            assert rows[level][end] not in " │", "an arc is interrupted"
            end += go
        label = "".join(rows[level][min(at, end) + 1 : max(at, end)]).strip("─┼│")
        found.append((legs[end], re.sub("[─┼]", "", label)))
    return found


def height(tree, named):
    """The lines above the words: ROOT, its name, a line a level, the tips."""
    spans = [(min(p, h), max(p, h)) for p, h in enumerate(tree.heads, 1) if h]
    return 1 + named + max(levels(spans).values(), default=0) + 1


@settings(max_examples=300, deadline=None)
@given(TREES)
def test_text_can_be_read_back(tree):
    lines = draw(tree).split("\n")
    assert lines[-1].split() == list(tree.words)
    assert read_arcs(lines[:-1]) == arcs_of(tree)
    if tree.is_projective:
        assert len(lines) == height(tree, tree.relations is not None) + 1
        assert "┼" not in "".join(lines)


@settings(max_examples=200, deadline=None)
@given(TREES.filter(lambda tree: tree.is_projective))
def test_edges_and_numbers_can_be_read_back_from_text(tree):
    edges = draw(tree, arcs="edges").split("\n")
    assert read_arcs(edges[:-1]) == sources(tree)
    lines = draw(tree, arcs="both", numbers=True, title="a title").split("\n")
    assert lines[0] == "a title"
    words = [line.split() for line in lines].index(list(tree.words))
    assert read_arcs(lines[1:words]) == arcs_of(tree)
    order = {step.position: number for number, step in enumerate(tree.steps(), 1)}
    assert [*map(int, lines[words + 1].split())] == [order[p + 1] for p in range(len(tree))]
    upside_down = str.maketrans("└┘┌┐▲", "┌┐└┘▼")
    below = [line.translate(upside_down) for line in reversed(lines[words + 2 :])]
    assert read_arcs(below) == sources(tree)


def test_text_exactly():
    assert draw(CROSSED).split("\n") == [
        "                 ROOT",
        "                 root",
        " ┌──────pobj──────┼──────┐",
        " │   ┌────aux────┐│      │",
        " │   │   ┌─nsubj─┤│┌prep─┼┐",
        " ▼   ▼   ▼       │▼│     │▼",
        "who did you      talk     to",
    ]
    assert draw(DependencyTree(["a"], [0])) == "ROOT\n▼\na"


@pytest.mark.parametrize("seed", range(20))
def test_wide_characters_do_not_change_the_layout(seed):
    plain = any_tree(9, seed, named=True)
    chance = random.Random(seed)
    kinds = ["\u732b", "\uff21", "\U0001f600", "e\u0301", "\u200dab", "\uac00"]
    words = ["".join(chance.choices(kinds, k=chance.randint(1, 3))) for _ in plain.words]
    tree = DependencyTree(words, plain.heads, relations=words)
    same = ["w" * display_width(word) for word in words]
    twin = DependencyTree(same, plain.heads, relations=same)
    found, expected = (draw(t, arcs="both", numbers=True).split("\n") for t in (tree, twin))
    for line, other in zip(found, expected, strict=True):
        for word in sorted(words, key=len, reverse=True):
            line = line.replace(word, "w" * display_width(word))
        assert line == other


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 40), st.integers(0, 9999), st.sampled_from([1, 12, 30, 79]), st.booleans())
def test_pieces_are_cut_from_the_whole_drawing(count, seed, width, named):
    tree = any_tree(count, seed, named=named)
    words = [word + "\u732b\u0301" * (len(word) % 2) for word in tree.words]
    tree = DependencyTree(words, tree.heads, relations=tree.relations)
    options = {"arcs": "both", "numbers": True}
    whole = grid(draw(tree, **options).split("\n"))
    pieces = draw(tree, **options, title="t", width=width).split("\n")
    assert pieces.pop(0) == "t"
    pieces = "\n".join(pieces).split("\n\n")
    line = next(n for n, row in enumerate(whole) if "".join(row).split() == words)
    starts = [
        at
        for at, c in enumerate(whole[line])
        if c.strip() and "".join(whole[line][:at][-1:]) in " "
    ]
    word = 0
    for piece in pieces:
        rows = piece.split("\n")
        (shown,) = [row.split() for row in rows if row.split() == words[word:][: len(row.split())]]
        first, word = word, word + len(shown)
        assert shown and (len(shown) == 1 or max(map(display_width, rows)) <= width)
        # A piece begins at the next word, or one column before, with an arc that goes out there.
        begins = [(starts[first] - n) for n in (0, 1)] if first else [0]
        ends = [(starts[word] - n) for n in (0, 1)] if word < count else [len(whole[0])]
        cuts = [
            [cut for row in whole if (cut := "".join(row[begin:end]).rstrip())]
            for begin, end in itertools.product(begins, ends)
        ]
        assert rows in cuts
    assert word == count


def test_pieces_exactly():
    wide = DependencyTree(["a", "b"], [0, 1], relations=["r", "\u732b" * 3])
    assert draw(wide).split("\n")[2:] == ["│┌─猫猫猫─┐", "▼│        ▼", "a         b"]
    assert draw(wide, width=5).split("\n")[2:] == ["│┌─猫猫猫─", "▼│", "a", "", "┐", "▼", "b"]
    with pytest.raises(ValueError, match="width must be an integer, 1 or above, not 0"):
        draw(wide, width=0)
    with pytest.raises(ValueError, match=r"width is for format='text', got format='svg'\."):
        draw(wide, "svg", width=80)


def test_display_width():
    texts = {"cat": 3, "\u732b\u732b": 4, "e\u0301": 1, "\U0001f600": 2, "a\u200db": 2, "": 0}
    texts |= {"\u1112\u1161\u11ab": 2, "\xad": 1, "\u20dd": 0, "\uff76": 1, "\ufffd": 1}
    assert {text: display_width(text) for text in texts} == texts


def test_control_characters_are_replaced():
    tree = DependencyTree(HOSTILE, range(len(HOSTILE)), relations=HOSTILE)
    shown = [word.replace(" ", "_") for word in SHOWN]
    lines = draw(tree, title="\x00t").split("\n")
    assert lines[-1].split() == shown and lines[0] == "\ufffdt"
    assert [label for _, label in read_arcs(lines[1:-1])] == shown
    found = texts(draw(tree, "svg", title="<script>\x07"))
    assert found[: 1 + len(SHOWN)] == ["<script>\ufffd", *SHOWN]
    assert sorted(found[1 + len(SHOWN) :]) == sorted(["ROOT", *SHOWN])


def numbers_in(path):
    return [float(number) for number in re.findall(r"[\d.]+", path)]


def pictured(text):
    """(start, end, level's y, title) of the arcs, and the texts, of an SVG."""
    page = ElementTree.fromstring(text)
    arcs = []
    for group in page.findall(f"{SVG}g"):
        line, tip = (numbers_in(path.get("d")) for path in group.findall(f"{SVG}path"))
        assert tip[0] == line[-2]  # x
        arcs.append((line[0], tip[0], line[7] if len(line) > 4 else None, group[0].text))
    texts = page.findall(f"{SVG}text")
    assert len(arcs) and len(texts) > len(arcs)
    return arcs, [(float(e.get("x")), float(e.get("y")), e.text, e) for e in texts]


def read_svg(text):
    """(source, label) of every word: arcs end over its middle and begin five pixels beside it."""
    arcs, texts = pictured(text)
    middles = [x for x, _, _, e in texts if e.get("font-size") == "13"]
    found = [None] * len(middles)
    for start, end, y, title in arcs:
        target = int(np.argmin(np.abs(np.subtract(middles, end))))
        assert abs(middles[target] - end) < 0.15 and found[target] is None
        source, label = 0, re.search(r"(?: \((.*)\))?$", title)[1] or ""
        if y is not None:
            middle = start - 5 * np.sign(end - start)
            source = int(np.argmin(np.abs(np.subtract(middles, middle)))) + 1
            assert abs(middles[source - 1] - middle) < 0.25
        found[target] = source, label
    return found


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_svg_can_be_read_back(tree):
    text = draw(tree, "svg")
    assert read_svg(text) == arcs_of(tree)
    _, texts = pictured(text)
    assert [shown for *_, shown, e in texts if e.get("font-size") == "13"] == list(tree.words)
    if tree.is_projective:
        assert read_svg(draw(tree, "svg", arcs="edges")) == sources(tree)


@pytest.mark.parametrize("words", [2, 7, 40, 120])
@pytest.mark.parametrize("named", [False, True])
def test_arcs_and_labels_do_not_overlap(words, named):
    for seed in range(5):
        text = draw(any_tree(words, seed, named=named), "svg", arcs="both", numbers=True)
        across, down, boxes = [], [], []
        for group in elements(text, "g"):
            line = numbers_in(group[1].get("d"))
            if len(line) == 4:
                down.append((line[0], *sorted((line[1], line[3]))))
                continue
            x, start, end, y = line[0], line[1], line[-2], line[7]
            across.append((y, *sorted((x, end))))
            down += [(x, *sorted((start, y))), (end, *sorted((start, y)))]
        for x, top, bottom in down:
            for y, left, right in across:
                assert not (left < x - 0.2 and x + 0.2 < right and top + 0.2 < y < bottom - 0.2)
        for element in elements(text, "text"):
            size, x = int(element.get("font-size")), float(element.get("x"))
            half = len(element.text) * size * 0.55 / 2
            boxes.append((float(element.get("y")), x - half, x + half))
        boxes.sort()
        for a, b in itertools.pairwise(boxes):
            assert a[0] != b[0] or a[2] < b[1]
        picture = ElementTree.fromstring(text)
        assert min(left for _, left, _ in boxes) >= 0
        assert max(right for *_, right in boxes) <= float(picture.get("width"))
        assert max(y for y, *_ in boxes) < float(picture.get("height"))


UNESCAPED = {
    r"\textbackslash{}": "\\",
    r"\textasciicircum{}": "^",
    r"\textasciitilde{}": "~",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textbar{}": "|",
    r"\symbol{38}": "&",
    r"\symbol{34}": '"',
    r"\rule{1ex}{1ex}": "\ufffd",
    r"\ ": " ",
    "{}": "",
    **{f"\\{c}": c for c in "#$%_{}"},
}
COMMAND = re.compile("|".join(map(re.escape, UNESCAPED)))
EDGE = re.compile(r"\\depedge\[edge height=(\d+)ex(.*)\]\{(\d+)\}\{(\d+)\}\{(.*)\}")


def unescape(text):
    return COMMAND.sub(lambda found: UNESCAPED[found[0]], text)


def read_latex(text, below=False):
    """Words, and (source, label) of each."""
    lines = [line.strip() for line in text.split("\n")]
    assert lines[0].startswith(r"\begin{dependency}") and lines[-1] == r"\end{dependency}"
    assert lines[1].startswith(r"\begin{deptext}")
    words = [unescape(word) for word in lines[2].removesuffix(r" \\").split(r" \& ")]
    found = [None] * len(words)
    for line in lines[lines.index(r"\end{deptext}") + 1 : -1]:
        if ("edge below" in line) != below:
            continue
        root = re.fullmatch(r"\\deproot\[.*\]\{(\d+)\}\{ROOT(.*)\}", line)
        if root:
            place, source, label = int(root[1]), 0, unescape(root[2]).removeprefix(" ")
        else:
            _, options, source, place, label = EDGE.fullmatch(line).groups()
            assert ("show label" in options) == bool(label)
            source, place, label = int(source), int(place), unescape(label)
        assert found[place - 1] is None
        found[place - 1] = source, label
    return words, found


@settings(max_examples=200, deadline=None)
@given(TREES)
def test_latex_can_be_read_back(tree):
    text = draw(tree, "latex")
    assert read_latex(text) == (list(tree.words), arcs_of(tree))
    if tree.is_projective:
        spans = {(min(p, h), max(p, h)): p for p, h in enumerate(tree.heads, 1) if h}
        highest = max(levels(spans).values(), default=0)
        for span, level in levels(spans).items():
            assert rf"[edge height={4 * level}ex" in next(
                line
                for line in text.split("\n")
                if f"{{{spans[span]}}}{{" in line.partition("}")[2]
            )
        # The arrow from ROOT is four times its unit distance, and ends above all arcs.
        assert rf"\deproot[show label, edge unit distance={highest + 2}ex]" in text
        both = draw(tree, "latex", arcs="both", numbers=True)
        for _, options, *_, label in EDGE.findall(both):
            assert ("dashed" in options) == label.startswith("NX-")
        assert read_latex(both)[1] == arcs_of(tree)
        assert read_latex(both, below=True)[1] == sources(tree)
        order = {step.position: n for n, step in enumerate(tree.steps(), 1)}
        row = both.split("\n")[3].strip().removesuffix(r" \\").split(r" \& ")
        assert [*map(int, row)] == [order[position] for position in range(1, len(tree) + 1)]


def test_special_characters_are_escaped_in_latex():
    words = [*"#$%&_{}~^\\|<>\"'`", "--", "``", "''", "a b", "\x07", r"\input{x}", "a&b\\\\c", "%x"]
    tree = DependencyTree(words, range(len(words)), relations=words)
    text = draw(tree, "latex", title="one\n\\two")
    assert text.split("\n")[0] == "% one \\two"
    found, arcs = read_latex(text.partition("\n")[2])
    shown = ["\ufffd" if word == "\x07" else word for word in words]
    assert found == shown and arcs == [*enumerate(shown)]
    assert "--" not in text and "``" not in text and "''" not in text and r"\input" not in text


def test_save_picture(tmp_path):
    tree, options = any_tree(7, 0, named=True), {"arcs": "both", "numbers": True, "title": "t"}
    svg = draw(tree, "svg", **options)
    save(tmp_path / "a.svg", tree, **options)
    assert (tmp_path / "a.svg").read_text() == svg
    pytest.importorskip("resvg_py")
    save(tmp_path / "a.png", tree, **options)
    assert png_size(tmp_path / "a.png") == [2 * side for side in size(svg)]


def test_page():
    trees, captions = [random_tree(["<b>", "c", "d"], seed) for seed in range(2)], ["<i>", "2"]
    text = page(trees, arcs="edges", numbers=True, title="A & B", captions=captions)
    for tree, caption in zip(trees, captions, strict=True):
        assert draw(tree, "svg", "edges", True, caption) in text
    assert text.count("<svg") == 2
    assert text.count("A &amp; B") == 2 and "<b>c" not in text and "<i>" not in text
    outside = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"http|src=|href=|@import|<script|<link", outside)
    assert page(trees).count("Dependency trees") == 2 and draw(trees[1], "svg") in page(trees)


def test_long_sentences_are_drawn():
    words = [f"w{place}" for place in range(5000)]
    assert len(draw(chain(words)).split("\n")) == 4
    # A line of text for every level: 1,500 of them are 10 million characters.
    assert len(draw(DependencyTree(words[:1500], [0] + [1] * 1499)).split("\n")) == 1 + 1499 + 2
    fan = DependencyTree(words, [5000] * 4999 + [0])
    text = draw(fan, "svg")
    assert read_svg(text) == arcs_of(fan)
    assert float(ElementTree.fromstring(text).get("height")) < 500
    assert read_latex(draw(fan, "latex")) == (words, arcs_of(fan))


def test_pictures_of_the_documentation_are_up_to_date(tmp_path):
    runpy.run_path(str(ROOT / "docs/draw_dependencies.py"))["draw_all"](tmp_path)
    drawn = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    kept = (ROOT / "docs/images").glob("dependency_*.svg")
    assert drawn == {path.name: path.read_text("utf-8") for path in kept} and len(drawn) == 4


def test_wrong_arguments_raise_an_error():
    with pytest.raises(ValueError, match=r"format must be 'text', 'svg' or 'latex', not 'gif'\."):
        draw(CROSSED, "gif")
    with pytest.raises(ValueError, match=r"arcs must be 'heads', 'edges' or 'both', not None\."):
        draw(CROSSED, arcs=None)
    with pytest.raises(ValueError, match=r"tree must be a DependencyTree, got the type list\."):
        draw([0, 1])
    for options in ({"arcs": "edges"}, {"numbers": True}):
        for style in ("text", "svg", "latex"):
            with pytest.raises(ValueError, match=r"word 1, 'who': .* is not projective"):
                draw(CROSSED, style, **options)
    with pytest.raises(ValueError, match=r"captions must have 1 items, one for each tree, got 2\."):
        page([CROSSED], captions=["a", "b"])
