// Pictures of trees: the words in one line, the branches above, the distances as bars below.
//
// Branches run across and then straight down: so drawn, no two ever cross.

export const FONT = '15px system-ui, "Helvetica Neue", Arial, sans-serif';

const [GAP, LEVEL, MARGIN, AXIS] = [18, 26, 14, 66]; // pixels; AXIS: left of the bars
const TALLEST = 430; // of the branches; deep trees get flatter levels
const [BAR, BETWEEN, HIGH] = [7, 2, 56]; // of bars: wide, apart, the highest
const ENTRY = 72; // of the legend
const SQUARE = 10;

const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/gu;
const LETTERS = /\p{L}/gu;

// Whether most letters of a sentence belong to a script that runs from the right to the left.
export function runsLeft(words) {
  const text = words.join("");
  return 2 * (text.match(RIGHT_TO_LEFT)?.length ?? 0) > (text.match(LETTERS)?.length ?? 0);
}

// What a picture consists of: { width, height, elements }, each element [name, attributes, text].
//
// words: list; nodes: of nodesOf; panels: list of { gate, bars }, bars a list of { layer, values };
// widthOf: function of a word, in pixels; common: places in nodes that another tree has as well.
export function picture({ words, nodes, panels, widthOf, common = null }) {
  const layers = panels[0].bars.length;
  const group = layers * BAR + (layers - 1) * BETWEEN;
  const least = AXIS + layers * ENTRY;
  const line = lineOf(words, widthOf, group);
  const width = Math.max(line.width, least);
  const left = (width - line.width) / 2;
  const centres = line.centres.map((centre) => left + centre);
  const level = Math.min(LEVEL, TALLEST / nodes.at(-1).height || LEVEL);
  const base = MARGIN + nodes.at(-1).height * level + 20; // of the words
  const elements = [...branches(nodes, centres, level, base - 18, common)];
  words.forEach((word, i) =>
    elements.push(["text", { class: "word", x: round(centres[i]), y: base }, word]),
  );
  let top = base + 18;
  for (const panel of panels) {
    elements.push(...barsOf(panel, words, centres, group, top, [left, left + line.width]));
    top += HIGH + 22;
  }
  elements.push(...legend(panels[0].bars, top));
  return { width, height: top + SQUARE + MARGIN, elements };
}

// The middle of each word, and how wide all is.
function lineOf(words, widthOf, least) {
  const centres = [];
  let x = AXIS;
  for (const word of words) {
    const wide = Math.max(widthOf(word), least);
    centres.push(x + wide / 2);
    x += wide + GAP;
  }
  const width = x - GAP + MARGIN;
  if (!runsLeft(words)) return { centres, width };
  return { centres: centres.map((centre) => AXIS + width - MARGIN - centre), width };
}

function* branches(nodes, centres, level, base, common) {
  const xs = [];
  const y = (node) => base - node.height * level;
  for (const { start, children } of nodes) {
    xs.push(children.length ? (xs[children[0]] + xs[children[1]]) / 2 : centres[start]);
  }
  for (const [i, node] of nodes.entries()) {
    for (const child of node.children) {
      yield [
        "path",
        {
          class: "branch",
          d: `M${round(xs[i])} ${round(y(node))}H${round(xs[child])}V${round(y(nodes[child]))}`,
        },
      ];
    }
  }
  for (const [i, node] of nodes.entries()) {
    if (!node.children.length) continue;
    const kind = common && !common.has(i) ? "alone" : "node";
    yield ["circle", { class: kind, cx: round(xs[i]), cy: round(y(node)), r: 3 }];
  }
}

function* barsOf({ gate, bars }, words, centres, group, top, [left, right]) {
  const bottom = top + HIGH;
  const axis = left + AXIS - 8;
  yield ["text", { class: "small", x: round(left + 4), y: top + HIGH / 2 + 4 }, gate];
  for (const [value, y] of [
    [1, top],
    [0, bottom],
  ]) {
    yield ["line", { class: "axis", x1: round(axis), x2: round(right - 6), y1: y, y2: y }];
    yield ["text", { class: "small", x: round(axis - 11), y: y + 4 }, String(value)];
  }
  for (const [i, word] of words.entries()) {
    for (const [k, { layer, values }] of bars.entries()) {
      const high = Math.max(values[i] * HIGH, 0.5);
      const x = centres[i] - group / 2 + k * (BAR + BETWEEN);
      const said = `${word}: ${gate}, layer ${layer}, ${values[i].toFixed(3)}`;
      yield [
        "rect",
        {
          class: `layer-${layer}`,
          x: round(x),
          y: round(bottom - high),
          width: BAR,
          height: round(high),
        },
        said,
      ];
    }
  }
}

function* legend(bars, top) {
  let x = AXIS;
  for (const { layer } of bars) {
    yield ["rect", { class: `layer-${layer}`, x, y: top, width: SQUARE, height: SQUARE }];
    yield ["text", { class: "small", x: x + SQUARE + 5, y: top + SQUARE - 0.5 }, `layer ${layer}`];
    x += ENTRY;
  }
}

function round(number) {
  return Math.round(10 * number) / 10;
}

// The places of the nodes of a tree whose words are a constituent of the other tree too.
export function inBoth(nodes, others) {
  const key = ({ start, end }) => `${start} ${end}`;
  const there = new Set(others.map(key));
  return new Set(nodes.flatMap((node, i) => (there.has(key(node)) ? [i] : [])));
}
