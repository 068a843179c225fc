// Modules of the page that do not need a browser.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { EXAMPLES } from "../examples.mjs";
import { commonNodes, isRightToLeft, picture } from "../figure.mjs";
import { wordsOf } from "../parsing/tokens.mjs";
import { nodesOf } from "../parsing/trees.mjs";
import { Reader } from "../reader.mjs";
import { DEFAULTS, fromFragment, settingsOf, toFragment } from "../state.mjs";

const here = new URL("..", import.meta.url);

// --- Fragments -----------------------------------------------------------------------------------

test("fragments restore the state", () => {
  const texts = ["prices fell", "a & b = #c + 100%?\n", "<script>", "😀 ذهب", ""];
  for (const text of texts) {
    for (const choice of [
      {},
      { tree: "both" },
      { layer: "3", gate: "input" },
      { model: "prpn", tree: "greedy" },
      { model: "prpn", tree: "votes", layer: "2" },
    ]) {
      const state = { text, ...DEFAULTS, ...choice };
      assert.deepEqual(fromFragment(toFragment(state), 3), state);
    }
  }
  assert.equal(toFragment({ text: "prices fell", ...DEFAULTS }), "#text=prices+fell");
  const prpn = fromFragment("#text=prices+fell&model=prpn", 3);
  assert.equal(prpn.tree, "greedy");
  assert.equal(toFragment(prpn), "#text=prices+fell&model=prpn");
});

test("invalid values in a fragment become defaults", () => {
  const defaults = { text: null, ...DEFAULTS };
  const invalid = ["", "#", "#layer=4", "#layer=0", "#layer=1e0", "#tree=toString", "#gate=output&x=1"];
  for (const fragment of [...invalid, "#model=lstm"])
    assert.deepEqual(fromFragment(fragment, 3), defaults, fragment);
  assert.equal(fromFragment("#layer=4", 4).layer, "4");
  assert.equal(fromFragment("#text=%ZZ", 3).text, "%ZZ");
  assert.equal(fromFragment(`#text=${"a".repeat(30)}`, 3, 20).text.length, 20);
});

test("choices become settings of the parser", () => {
  assert.deepEqual(settingsOf(DEFAULTS), [{ method: "votes", layer: null, gate: "both" }]);
  assert.deepEqual(settingsOf({ tree: "both", layer: "2", gate: "forget" }), [
    { method: "greedy", layer: 2, gate: "forget" },
    { method: "binary", layer: 2, gate: "forget" },
  ]);
  assert.deepEqual(settingsOf({ ...DEFAULTS, model: "prpn", tree: "both", layer: "2" }), [
    { method: "greedy", layer: null, gate: "syntactic" },
    { method: "binary", layer: null, gate: "syntactic" },
  ]);
});

// --- Pictures ------------------------------------------------------------------------------------

const widthOf = (word) => 8 * word.length;

function draw(words, split, layers = [1, 2, 3]) {
  const bars = layers.map((layer) => ({ layer, values: words.map((_, i) => i / words.length) }));
  const nodes = nodesOf(words.length, split);
  const panels = [
    { gate: "forget", bars },
    { gate: "input", bars },
  ];
  return { ...picture({ words, nodes, panels, widthOf }), nodes };
}

// Left and right edge of each element of a kind.
function edges({ elements }, kind) {
  return elements
    .filter(([, attributes]) => attributes.class?.startsWith(kind))
    .map(([name, { x, width }, text]) => {
      return name === "rect" ? [x, x + width] : [x - widthOf(text) / 2, x + widthOf(text) / 2];
    });
}

test("nothing in a picture overlaps or leaves it", () => {
  for (const count of [1, 2, 5, 40]) {
    const words = Array.from({ length: count }, (_, i) => "abcdefgh".repeat((i * 7) % 4) + "i");
    const made = draw(words, (start) => start + 1);
    const boxes = edges(made, "word");
    assert.equal(boxes.length, count);
    boxes.forEach(([left], i) => assert.ok(!i || left >= boxes[i - 1][1] + 10));
    const bars = edges({ elements: made.elements.slice(0, -6) }, "layer-"); // without the legend
    assert.equal(bars.length, count * 6);
    for (const [left, right] of [...boxes, ...bars]) assert.ok(left > 0 && right < made.width);
    for (const [name, { y = 0, height = 0, cy = 9, r = 0 }] of made.elements) {
      assert.ok(y >= 0 && y + height <= made.height && cy - r >= 0, name);
    }
  }
});

test("bars are as high as distances", () => {
  const { elements } = draw(["a", "b"], () => 1, [2]);
  const bars = elements.filter(([name, , text]) => name === "rect" && text);
  assert.deepEqual(
    bars.map(([, { height }, text]) => [height, text]),
    [
      [0.5, "a: forget, layer 2, 0.000"],
      [28, "b: forget, layer 2, 0.500"],
      [0.5, "a: input, layer 2, 0.000"],
      [28, "b: input, layer 2, 0.500"],
    ],
  );
});

test("each phrase has a dot and two branches above its words", () => {
  const { elements, nodes } = draw(["a", "b", "c"], (start, end) => end - 1);
  const dots = elements.filter(([name]) => name === "circle").map(([, { cx, cy }]) => [cx, cy]);
  const words = edges({ elements }, "word").map(([left, right]) => (left + right) / 2);
  assert.equal(elements.filter(([name]) => name === "path").length, nodes.length - 1);
  const near = (actual, expected) =>
    assert.ok(Math.abs(actual - expected) <= 0.11, `${actual}, ${expected}`);
  near(dots[0][0], (words[0] + words[1]) / 2);
  near(dots[1][0], (dots[0][0] + words[2]) / 2);
  assert.ok(dots[1][1] < dots[0][1]);
});

test("deep trees have lower levels", () => {
  const words = Array.from({ length: 300 }, () => "a");
  assert.ok(draw(words, (start) => start + 1).height < 700);
});

test("right-to-left sentences are drawn from right to left", () => {
  assert.deepEqual(
    ["ذهب الولد", "הילד", "a cat", "ab ג", "12", ""].map((text) => isRightToLeft(text.split(" "))),
    [true, true, false, false, false, false],
  );
  const starts = edges(
    draw(["ذهب", "الولد", "أمس"], (start) => start + 1),
    "word",
  ).map(([left]) => left);
  assert.deepEqual(
    starts.toSorted((a, b) => b - a),
    starts,
  );
});

test("common nodes are constituents of both trees", () => {
  const [left, right] = [(start, end) => end - 1, (start) => start + 1].map((split) =>
    nodesOf(3, split),
  );
  const common = [...commonNodes(left, right)].map((i) => [left[i].start, left[i].end]);
  assert.deepEqual(common.toSorted(), [
    [0, 1],
    [0, 3],
    [1, 2],
    [2, 3],
  ]);
});

// --- The reader ----------------------------------------------------------------------------------

class Worker extends EventTarget {
  requests = [];
  postMessage(message) {
    this.requests.push(message);
  }
  send(data) {
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
}

const part = (n) => ({ forget: [[n]], input: [[-n]] });

test("the reader requests one sentence at a time, the latest first", () => {
  const worker = new Worker();
  let changes = 0;
  const reader = new Reader(worker, "a", () => changes++);
  assert.deepEqual(reader.distances([["a"], ["b"]]), [null, null]);
  assert.equal(worker.requests.length, 0); // no model is loaded yet
  worker.send({ progress: 5 });
  worker.send({ parser: "b", models: [[1], [1]] });
  assert.deepEqual([reader.models, changes], [0, 0]); // models of another parser
  worker.send({ parser: "a", models: [[1]] });
  reader.distances([["a"], ["b"]]);
  reader.distances([["c"]]);
  assert.deepEqual(worker.requests, [{ parser: "a", words: ["a"], first: 0 }]);
  worker.send({ parser: "a", words: ["a"], parts: [part(1)] });
  assert.deepEqual(reader.distances([["c"], ["a"]]), [null, part(1)]);
  assert.deepEqual(worker.requests[1], { parser: "a", words: ["c"], first: 0 });
  assert.equal(changes, 2);
});

test("sentences are not requested again from models that answered", () => {
  const worker = new Worker();
  const reader = new Reader(worker, "x", () => {});
  worker.send({ parser: "x", models: [[1]] });
  reader.distances([["a"]]);
  worker.send({ parser: "x", words: ["a"], parts: [part(1)] });
  worker.send({ parser: "x", models: [[1], [1], [1]] });
  assert.deepEqual(reader.distances([["a"]]), [null]);
  assert.deepEqual(worker.requests[1], { parser: "x", words: ["a"], first: 1 });
  worker.send({ parser: "x", words: ["a"], parts: [part(2), part(3)] });
  const all = { forget: [[1], [2], [3]], input: [[-1], [-2], [-3]] };
  assert.deepEqual(reader.distances([["a"]]), [all]);
  assert.deepEqual(reader.layers, [1, 1, 1]);
});

// --- Files ---------------------------------------------------------------------------------------

test("every example contains a word", () => {
  for (const text of EXAMPLES) assert.ok(wordsOf(text).length >= 1, text);
});

test("imported names are exported", async () => {
  const files = readdirSync(here, { recursive: true }).filter((file) => file.endsWith(".mjs"));
  assert.ok(files.length > 12);
  for (const file of files) {
    const text = readFileSync(new URL(file, here), "utf-8");
    for (const [, names, from] of text.matchAll(/^import (?:\{([^}]*)\} from )?"(\.[^"]*)";/gm)) {
      if (/files\.js$|runtime\//.test(from)) continue; // written by the build
      const target = new URL(from, new URL(file, here));
      if (/\b(?:document|self|addEventListener)\./.test(readFileSync(target, "utf-8"))) continue;
      const exported = Object.keys(await import(target));
      for (const imported of (names ?? "")
        .split(",")
        .map((part) => part.trim())
        .filter(Boolean)) {
        assert.ok(exported.includes(imported), `${file}: ${imported} of ${from}`);
      }
    }
  }
});
