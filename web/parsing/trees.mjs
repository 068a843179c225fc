// Distances to binary trees, as keras_onlstm/parsing/trees.py and votes.py make them.
//
// A tree is a function split(start, end): where its constituent [start, end) parts into two.
// Nothing here recurses: sentences may be long.

import { WHITE } from "./characters.mjs";

// Before the word of the largest distance, the left-most of equal ones, and then behind it, so
// ((X_<i) (x_i (X_>i))).
export function greedy(distances) {
  return (start, end) => Math.max(largest(distances, start, end), start + 1);
}

// At the largest of the distances between words, the left-most of equal ones.
export function binary(distances) {
  return (start, end) => largest(distances, start + 1, end);
}

function largest(distances, start, end) {
  let place = start;
  for (let i = start + 1; i < end; i++) if (distances[i] > distances[place]) place = i;
  return place;
}

// The tree with the most votes. The greedy and the binary tree of each row of distances have a vote
// for each of their constituents.
export function elected(rows, count) {
  const wide = count + 1;
  const votes = new Float64Array(wide * wide); // start, end
  for (const row of rows) vote(row, count, (start, end) => (votes[start * wide + end] += 1));
  const best = new Float64Array(wide * wide); // sums of votes of the best trees: start, end
  const splits = new Int32Array(wide * wide);
  for (let width = 2; width <= count; width++) {
    for (let start = 0; start + width <= count; start++) {
      const end = start + width;
      let [most, place] = [-1, start + 1];
      for (let i = start + 1; i < end; i++) {
        const sum = best[start * wide + i] + best[i * wide + end];
        if (sum > most) [most, place] = [sum, i];
      }
      best[start * wide + end] = most + votes[start * wide + end];
      splits[start * wide + end] = place;
    }
  }
  return (start, end) => splits[start * wide + end];
}

function vote(row, count, add) {
  const before = new Int32Array(count); // the last word before with a distance as large, or -1
  const after = new Int32Array(count).fill(count); // the first word behind with a larger one
  const open = []; // words whose next larger one is still to come
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

// The constituents of a tree as nodes, each behind its children, the whole sentence last. Words
// have no children and the height 0.
export function nodesOf(count, split) {
  const nodes = [];
  const pending = [{ start: 0, end: count, parts: null }];
  const finished = [];
  while (pending.length) {
    const next = pending.at(-1);
    if (next.end - next.start > 1 && !next.parts) {
      const place = split(next.start, next.end);
      next.parts = 2;
      pending.push({ start: place, end: next.end, parts: null });
      pending.push({ start: next.start, end: place, parts: null });
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

// A tree in brackets, as keras_onlstm.parsing.brackets writes it.
export function brackets(words, split) {
  const safe = words.map((word) => word.replaceAll("(", "-LRB-").replaceAll(")", "-RRB-"));
  const leaves = safe.map((word) => word.replaceAll(WHITE, "_"));
  if (words.length === 1) return `(X ${leaves[0]})`;
  const written = [];
  const pending = [[0, words.length]]; // text and constituents, the next at the end
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
    const place = split(start, end);
    pending.push(")", [place, end], [start, place], "(X");
  }
  return written.join(" ").replaceAll(" )", ")");
}
