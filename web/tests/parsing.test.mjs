// Tokens and trees are those of the package.

import assert from "node:assert/strict";
import { test } from "node:test";

import { encode, GATES, mean, rowsOf, together, treeOf, usualReading } from "../parsing/parser.mjs";
import { forbidden, split, wordsOf } from "../parsing/tokens.mjs";
import { brackets, nodesOf } from "../parsing/trees.mjs";
import { cases } from "./cases.mjs";

test("texts have the words that Parser finds", () => {
  for (const { text, words } of cases.texts) assert.deepEqual(wordsOf(text), words, text);
});

test("tokens stand where they say", () => {
  for (const { text } of cases.texts) {
    let end = 0;
    for (const token of split(text).flat()) {
      assert.ok(token.start >= end && token.text === text.slice(token.start, token.end), text);
      end = token.end;
    }
  }
  const [sentence] = split("Hi 😀!");
  const places = sentence.map(({ start, end, isWord }) => [start, end, isWord]);
  assert.deepEqual(places, [
    [0, 2, true],
    [3, 5, false],
    [5, 6, false],
  ]);
});

test("characters that no text has are found", () => {
  assert.equal(forbidden("a\tb\nc\x85"), -1);
  assert.equal(forbidden("ab\x07c"), 2);
  assert.equal(forbidden("\ud800"), 0);
  assert.equal(forbidden("😀"), -1);
});

test("distances give the trees of the package", () => {
  for (const { words, distances, trees } of cases.rows) {
    for (const [method, wanted] of Object.entries(trees)) {
      assert.equal(brackets(words, treeOf(distances, method)), wanted, method);
    }
  }
});

test("nodes are the constituents of the brackets", () => {
  for (const { words, distances } of cases.rows) {
    const split = treeOf(distances, "votes");
    const nodes = nodesOf(words.length, split);
    assert.equal(nodes.length, 2 * words.length - 1);
    const texts = nodes
      .map(({ start, children }) => [start, children])
      .reduce((found, [start, below]) => {
        found.push(
          below.length ? `(X ${below.map((child) => found[child]).join(" ")})` : words[start],
        );
        return found;
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
  const chosen = (layer, gate) => rowsOf(all, [2, 2], { layer, gate }).flat();
  assert.deepEqual(chosen(null, "both"), [1.1, 1.2, 2.1, 2.2, 1.3, 1.4, 2.3, 2.4]);
  assert.deepEqual(chosen(2, "forget"), [1.2, 2.2]);
  assert.deepEqual(chosen(1, "both"), [1.1, 2.1, 1.3, 2.3]);
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

test("one model is read by the published rule, several vote", () => {
  const usual = (members, gates = GATES) => usualReading({ members, gates });
  assert.deepEqual(usual([3]), { method: "greedy", layer: 2, gate: "forget" });
  assert.deepEqual(usual([1]), { method: "greedy", layer: 1, gate: "forget" });
  assert.deepEqual(usual([1], ["syntactic"]), { method: "greedy", layer: 1, gate: "syntactic" });
  assert.deepEqual(usual([3, 3]), { method: "votes", layer: null, gate: "both" });
});

test("words are looked up as they are, then in lower case with N for digits", () => {
  const places = new Map(["<unk>", "The", "n't", "N.N", "n"].map((word, place) => [word, place]));
  const ids = ["The", "THE", "n’t", "75.3", "N", "٣"].map((word) => encode(word, places));
  assert.deepEqual(ids, [1, 0, 2, 3, 4, 0]);
});
