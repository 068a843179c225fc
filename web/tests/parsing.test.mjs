// Tokens and trees match those of the package.

import assert from "node:assert/strict";
import { test } from "node:test";

import { encode, GATES, mean, rowsOf, together, treeOf, usualReading } from "../parsing/parser.mjs";
import { forbidden, split, wordsOf } from "../parsing/tokens.mjs";
import { brackets, nodesOf } from "../parsing/trees.mjs";
import { cases } from "./cases.mjs";

test("words match those of Parser", () => {
  for (const { text, words } of cases.texts) assert.deepEqual(wordsOf(text), words, text);
});

test("positions of tokens match the text", () => {
  for (const { text } of cases.texts) {
    let end = 0;
    for (const token of split(text).flat()) {
      assert.ok(token.start >= end && token.text === text.slice(token.start, token.end), text);
      end = token.end;
    }
  }
  const [sentence] = split("Hi 😀!");
  const positions = sentence.map(({ start, end, isWord }) => [start, end, isWord]);
  assert.deepEqual(positions, [
    [0, 2, true],
    [3, 5, false],
    [5, 6, false],
  ]);
});

test("forbidden characters are found", () => {
  assert.equal(forbidden("a\tb\nc\x85"), -1);
  assert.equal(forbidden("ab\x07c"), 2);
  assert.equal(forbidden("\ud800"), 0);
  assert.equal(forbidden("😀"), -1);
});

test("trees from distances match the package", () => {
  for (const { words, distances, trees } of cases.rows) {
    for (const [method, expected] of Object.entries(trees)) {
      assert.equal(brackets(words, treeOf(distances, method)), expected, method);
    }
  }
});

test("nodes match the constituents in brackets", () => {
  for (const { words, distances } of cases.rows) {
    const split = treeOf(distances, "votes");
    const nodes = nodesOf(words.length, split);
    assert.equal(nodes.length, 2 * words.length - 1);
    const texts = nodes
      .map(({ start, children }) => [start, children])
      .reduce((parts, [start, children]) => {
        parts.push(
          children.length ? `(X ${children.map((child) => parts[child]).join(" ")})` : words[start],
        );
        return parts;
      }, []);
    const whole = words.length === 1 ? `(X ${texts[0]})` : texts.at(-1);
    assert.equal(whole, brackets(words, split));
    for (const { children, height } of nodes) {
      assert.equal(height, Math.max(-1, ...children.map((child) => nodes[child].height)) + 1);
    }
  }
});

test("brackets in words are written as in treebanks", () => {
  assert.equal(
    brackets(["(", "b c"], () => 1),
    "(X -LRB- b_c)",
  );
});

test("rows are chosen by layer and gate", () => {
  const part = (n) => ({ forget: [[n + 0.1], [n + 0.2]], input: [[n + 0.3], [n + 0.4]] });
  const all = together([part(1), part(2)]);
  const select = (layer, gate) => rowsOf(all, [2, 2], { layer, gate }).flat();
  assert.deepEqual(select(null, "both"), [1.1, 1.2, 2.1, 2.2, 1.3, 1.4, 2.3, 2.4]);
  assert.deepEqual(select(2, "forget"), [1.2, 2.2]);
  assert.deepEqual(select(1, "both"), [1.1, 2.1, 1.3, 2.3]);
  assert.deepEqual(
    [
      ...mean([
        [1, 2],
        [2, 4],
      ]),
    ],
    [1.5, 3],
  );
});

test("the default is the published rule for one model, votes for several", () => {
  const reading = (members, gates = GATES) => usualReading({ members, gates });
  assert.deepEqual(reading([3]), { method: "greedy", layer: 2, gate: "forget" });
  assert.deepEqual(reading([1]), { method: "greedy", layer: 1, gate: "forget" });
  assert.deepEqual(reading([1], ["syntactic"]), { method: "greedy", layer: 1, gate: "syntactic" });
  assert.deepEqual(reading([3, 3]), { method: "votes", layer: null, gate: "both" });
});

test("unknown words are looked up in lower case with N for digits", () => {
  const vocabulary = new Map(["<unk>", "The", "n't", "N.N", "n"].map((word, id) => [word, id]));
  const ids = ["The", "THE", "n’t", "75.3", "N", "٣"].map((word) => encode(word, vocabulary));
  assert.deepEqual(ids, [1, 0, 2, 3, 4, 0]);
});
