// Pictures of trees: words in one line, branches above, distances as bars below.
//
// Branches are drawn as a horizontal and a vertical line, so that they never cross.

export const FONT = '15px system-ui, "Helvetica Neue", Arial, sans-serif';

const [GAP, LEVEL, MARGIN, AXIS] = [18, 26, 14, 66]; // pixels; AXIS: space left of the bars
const MAX_HEIGHT = 430; // of the branches; deep trees have lower levels
const [BAR_WIDTH, BAR_GAP, BAR_HEIGHT] = [7, 2, 56];
const ENTRY = 72; // width of an entry of the legend
const SQUARE = 10;

const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/gu;
const LETTERS = /\p{L}/gu;

// Whether most letters of a sentence belong to a script that is written from right to left.
export function isRightToLeft(words) {
  const text = words.join("");
  return 2 * (text.match(RIGHT_TO_LEFT)?.length ?? 0) > (text.match(LETTERS)?.length ?? 0);
}

// Lays out a picture: { width, height, elements }, where each element is [name, attributes, text].
//
// words: list; nodes: of nodesOf; panels: list of { gate, bars }; bars: list of { layer, values };
// widthOf: function from a word to pixels; common: indices of nodes that another tree has too.
export function picture({ words, nodes, panels, widthOf, common = null }) {
  const layers = panels[0].bars.length;
  const group = layers * BAR_WIDTH + (layers - 1) * BAR_GAP; // width of the bars of a word
  const line = layOutWords(words, widthOf, group);
  const width = Math.max(line.width, AXIS + layers * ENTRY);
  const left = (width - line.width) / 2;
  const centres = line.centres.map((centre) => left + centre);
  const level = Math.min(LEVEL, MAX_HEIGHT / nodes.at(-1).height || LEVEL);
  const base = MARGIN + nodes.at(-1).height * level + 20; // baseline of the words
  const elements = [...branches(nodes, centres, level, base - 18, common)];
  words.forEach((word, i) =>
    elements.push(["text", { class: "word", x: round(centres[i]), y: base }, word]),
  );
  let top = base + 18;
  for (const panel of panels) {
    elements.push(...drawBars(panel, words, centres, group, top, [left, left + line.width]));
    top += BAR_HEIGHT + 22;
  }
  elements.push(...legend(panels[0].bars, top));
  return { width, height: top + SQUARE + MARGIN, elements };
}

// The centre of each word and the total width.
function layOutWords(words, widthOf, minimum) {
  const centres = [];
  let x = AXIS;
  for (const word of words) {
    const wordWidth = Math.max(widthOf(word), minimum);
    centres.push(x + wordWidth / 2);
    x += wordWidth + GAP;
  }
  const width = x - GAP + MARGIN;
  if (!isRightToLeft(words)) return { centres, width };
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
    const name = common && !common.has(i) ? "different" : "node";
    yield ["circle", { class: name, cx: round(xs[i]), cy: round(y(node)), r: 3 }];
  }
}

function* drawBars({ gate, bars }, words, centres, group, top, [left, right]) {
  const bottom = top + BAR_HEIGHT;
  const axis = left + AXIS - 8;
  yield ["text", { class: "small", x: round(left + 4), y: top + BAR_HEIGHT / 2 + 4 }, gate];
  for (const [value, y] of [
    [1, top],
    [0, bottom],
  ]) {
    yield ["line", { class: "axis", x1: round(axis), x2: round(right - 6), y1: y, y2: y }];
    yield ["text", { class: "small", x: round(axis - 11), y: y + 4 }, String(value)];
  }
  for (const [i, word] of words.entries()) {
    for (const [k, { layer, values }] of bars.entries()) {
      const height = Math.max(values[i] * BAR_HEIGHT, 0.5);
      const x = centres[i] - group / 2 + k * (BAR_WIDTH + BAR_GAP);
      const title = `${word}: ${gate}, layer ${layer}, ${values[i].toFixed(3)}`;
      yield [
        "rect",
        {
          class: `layer-${layer}`,
          x: round(x),
          y: round(bottom - height),
          width: BAR_WIDTH,
          height: round(height),
        },
        title,
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

// The indices of the nodes of a tree that are constituents of the other tree too.
export function commonNodes(nodes, others) {
  const key = ({ start, end }) => `${start} ${end}`;
  const known = new Set(others.map(key));
  return new Set(nodes.flatMap((node, i) => (known.has(key(node)) ? [i] : [])));
}
