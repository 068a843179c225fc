// Builds binary trees from distances, like keras_onlstm/parsing/trees.py and votes.py.
//
// A tree is a function split(start, end) that returns where its constituent [start, end) is split.
// There is no recursion, because sentences may be long.

import { WHITE } from "./characters.mjs";

// Splits before the word with the largest distance (the leftmost one) and then after it:
// ((X_<i) (x_i (X_>i))).
export function greedy(distances) {
  return (start, end) => Math.max(largest(distances, start, end), start + 1);
}

// Splits at the largest distance between words (the leftmost one).
export function binary(distances) {
  return (start, end) => largest(distances, start + 1, end);
}

function largest(distances, start, end) {
  let index = start;
  for (let i = start + 1; i < end; i++) if (distances[i] > distances[index]) index = i;
  return index;
}

// The tree with the most votes. The greedy and the binary tree of each row of distances vote for
// each of their constituents.
export function elected(rows, count) {
  const size = count + 1;
  const votes = new Float64Array(size * size); // start, end
  for (const row of rows) vote(row, count, (start, end) => (votes[start * size + end] += 1));
  const best = new Float64Array(size * size); // sums of votes of the best trees: start, end
  const splits = new Int32Array(size * size);
  for (let width = 2; width <= count; width++) {
    for (let start = 0; start + width <= count; start++) {
      const end = start + width;
      let [maximum, index] = [-1, start + 1];
      for (let i = start + 1; i < end; i++) {
        const sum = best[start * size + i] + best[i * size + end];
        if (sum > maximum) [maximum, index] = [sum, i];
      }
      best[start * size + end] = maximum + votes[start * size + end];
      splits[start * size + end] = index;
    }
  }
  return (start, end) => splits[start * size + end];
}

function vote(row, count, add) {
  const before = new Int32Array(count); // previous word with at least this distance, or -1
  const after = new Int32Array(count).fill(count); // the next word with a larger distance
  const open = []; // words without a next larger one so far
  for (let i = 0; i < count; i++) {
    while (open.length && row[open.at(-1)] < row[i]) after[open.pop()] = i;
    before[i] = open.at(-1) ?? -1;
    open.push(i);
  }
  for (let i = 0; i < count; i++) {
    add(before[i] + 1, after[i]);
    if (before[i] + 1 < i) add(i, after[i]);
    if (i > 0) add(Math.max(before[i], 0), after[i]);
  }
}

// The constituents of a tree as nodes, each after its children. Words have the height 0.
export function nodesOf(count, split) {
  const nodes = [];
  const pending = [{ start: 0, end: count, parts: null }];
  const finished = [];
  while (pending.length) {
    const next = pending.at(-1);
    if (next.end - next.start > 1 && !next.parts) {
      const index = split(next.start, next.end);
      next.parts = 2;
      pending.push({ start: index, end: next.end, parts: null });
      pending.push({ start: next.start, end: index, parts: null });
      continue;
    }
    pending.pop();
    const children = next.parts ? finished.splice(-2) : [];
    const height = Math.max(-1, ...children.map((child) => nodes[child].height)) + 1;
    nodes.push({ start: next.start, end: next.end, children, height });
    finished.push(nodes.length - 1);
  }
  return nodes;
}

// A tree in brackets, like keras_onlstm.parsing.brackets.
export function brackets(words, split) {
  const safe = words.map((word) => word.replaceAll("(", "-LRB-").replaceAll(")", "-RRB-"));
  const leaves = safe.map((word) => word.replaceAll(WHITE, "_"));
  if (words.length === 1) return `(X ${leaves[0]})`;
  const written = [];
  const pending = [[0, words.length]]; // texts and constituents; the next one is last
  while (pending.length) {
    const next = pending.pop();
    if (typeof next === "string") {
      written.push(next);
      continue;
    }
    const [start, end] = next;
    if (end === start + 1) {
      written.push(leaves[start]);
      continue;
    }
    const index = split(start, end);
    pending.push(")", [index, end], [start, index], "(X");
  }
  return written.join(" ").replaceAll(" )", ")");
}
