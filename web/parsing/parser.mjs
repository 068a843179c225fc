// Sentences to distances and trees with exported models, as keras_onlstm.Parser does it.

import { readMetadata } from "./metadata.mjs";
import { binary, elected, greedy } from "./trees.mjs";

export const GATES = ["forget", "input"]; // of an ON-LSTM; a PRPN has "syntactic" alone
export const METHODS = ["votes", "greedy", "binary"];

const DISTANCES = "_distances"; // behind their names in files
const gateOf = (name) => name.slice(0, -DISTANCES.length);

// What is wrong with a file that was given.
export class ModelError extends Error {}

// A model of a file: what it needs of ONNX Runtime, its vocabulary, and how many layers each of the
// language models has that are in it.
export async function openModel(ort, bytes, options = {}) {
  let metadata, session;
  try {
    metadata = readMetadata(bytes);
    session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 4, ...options });
  } catch (error) {
    throw new ModelError(`no complete ONNX file of keras_onlstm (${error.message}).`, {
      cause: error,
    });
  }
  const places = new Map((metadata.vocabulary ?? []).map((word, place) => [word, place]));
  if (!session.inputNames.includes("lengths") || !places.has("<eos>") || !places.has("<unk>")) {
    throw new ModelError("no parser with a vocabulary. Export one with --graph parser.");
  }
  return {
    ort,
    session,
    places,
    gates: session.outputNames.filter((name) => name.endsWith(DISTANCES)).sort().map(gateOf),
    members: metadata.members ?? [metadata.num_layers],
  };
}

// A word as the model knows it: in lower case, every run of digits as N, unless the vocabulary has
// it.
export function encode(word, places) {
  const known = places.has(word)
    ? word
    : word
        .replaceAll("\u2019", "'")
        .toLowerCase()
        .replace(/[0-9]+/g, "N");
  return places.get(known) ?? places.get("<unk>");
}

// How much of the order every word makes each layer forget, and write: by gate a list of rows, one
// a layer of a model.
export async function measure({ ort, session, places, gates }, words) {
  const ids = [places.get("<eos>"), ...words.map((word) => encode(word, places))];
  const time = ids.length;
  const found = await session.run({
    ids: new ort.Tensor("int32", Int32Array.from(ids), [1, time]),
    lengths: new ort.Tensor("int32", Int32Array.from([time]), [1]),
  });
  const measured = {};
  for (const gate of gates) {
    const { data } = found[gate + DISTANCES];
    measured[gate] = [];
    for (let start = 0; start < data.length; start += time) {
      measured[gate].push(data.slice(start + 1, start + time)); // without <eos>
    }
  }
  return measured;
}

// What several models measured, as if one file had them all.
export function together(parts) {
  const gates = Object.keys(parts[0]);
  return Object.fromEntries(gates.map((gate) => [gate, parts.flatMap((part) => part[gate])]));
}

// How Parser reads trees unless it is asked for another way: of one model the greedy tree of layer
// 2 and its first gate, of several what all layers and both gates vote for.
export function usualReading({ members, gates }) {
  if (members.length > 1) return { method: "votes", layer: null, gate: "both" };
  return { method: "greedy", layer: Math.min(2, members[0]), gate: gates[0] };
}

// The rows that count. layer: from 1 on, that of every model; null: all.
export function rowsOf(measured, members, { layer, gate }) {
  const rows = [];
  for (const name of gate === "both" ? GATES : [gate]) {
    let first = 0;
    for (const layers of members) {
      if (layer === null) rows.push(...measured[name].slice(first, first + layers));
      else rows.push(measured[name][first + layer - 1]);
      first += layers;
    }
  }
  return rows;
}

// The means of rows, in double precision.
export function mean(rows) {
  const sums = new Float64Array(rows[0].length);
  for (const row of rows) row.forEach((value, i) => (sums[i] += value));
  return sums.map((sum) => sum / rows.length);
}

// The tree that rows of distances give: a function split(start, end), see trees.mjs.
export function treeOf(rows, method) {
  if (method === "votes") return elected(rows, rows[0].length);
  return (method === "greedy" ? greedy : binary)(mean(rows));
}
