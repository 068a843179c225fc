// Distances and trees of sentences from exported models, like keras_onlstm.Parser.

import { readMetadata } from "./metadata.mjs";
import { binary, elected, greedy } from "./trees.mjs";

export const GATES = ["forget", "input"]; // of an ON-LSTM; a PRPN has only "syntactic"
export const METHODS = ["votes", "greedy", "binary"];

const DISTANCES = "_distances"; // suffix of the output names in files
const gateOf = (name) => name.slice(0, -DISTANCES.length);

// Raised for files that cannot be used.
export class ModelError extends Error {}

// Opens a model: an ONNX Runtime session, the vocabulary, the gates, and the number of layers of
// each language model in the file.
export async function openModel(ort, bytes, options = {}) {
  let metadata, session;
  try {
    metadata = readMetadata(bytes);
    session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 4, ...options });
  } catch (error) {
    throw new ModelError(`this is not a complete ONNX file of keras_onlstm (${error.message}).`, {
      cause: error,
    });
  }
  const vocabulary = new Map((metadata.vocabulary ?? []).map((word, id) => [word, id]));
  const isParser = session.inputNames.includes("lengths");
  if (!isParser || !vocabulary.has("<eos>") || !vocabulary.has("<unk>")) {
    throw new ModelError("this is not a parser with a vocabulary. Export one with --graph parser.");
  }
  return {
    ort,
    session,
    vocabulary,
    gates: session.outputNames.filter((name) => name.endsWith(DISTANCES)).sort().map(gateOf),
    members: metadata.members ?? [metadata.num_layers],
  };
}

// The id of a word. Words outside the vocabulary are converted to lower case with N for digits.
export function encode(word, vocabulary) {
  const known = vocabulary.has(word)
    ? word
    : word
        .replaceAll("\u2019", "'")
        .toLowerCase()
        .replace(/[0-9]+/g, "N");
  return vocabulary.get(known) ?? vocabulary.get("<unk>");
}

// The distances of a sentence: for each gate a list with one row for each layer of each model.
export async function measure({ ort, session, vocabulary, gates }, words) {
  const ids = [vocabulary.get("<eos>"), ...words.map((word) => encode(word, vocabulary))];
  const time = ids.length;
  const outputs = await session.run({
    ids: new ort.Tensor("int32", Int32Array.from(ids), [1, time]),
    lengths: new ort.Tensor("int32", Int32Array.from([time]), [1]),
  });
  const distances = {};
  for (const gate of gates) {
    const { data } = outputs[gate + DISTANCES];
    distances[gate] = [];
    for (let start = 0; start < data.length; start += time) {
      distances[gate].push(data.slice(start + 1, start + time)); // without <eos>
    }
  }
  return distances;
}

// Joins the distances of several models, as if they were in one file.
export function together(parts) {
  const gates = Object.keys(parts[0]);
  return Object.fromEntries(gates.map((gate) => [gate, parts.flatMap((part) => part[gate])]));
}

// The defaults of Parser: for one model the greedy tree of layer 2 and the first gate, for several
// models the votes of all layers and both gates.
export function usualReading({ members, gates }) {
  if (members.length > 1) return { method: "votes", layer: null, gate: "both" };
  return { method: "greedy", layer: Math.min(2, members[0]), gate: gates[0] };
}

// Selects rows of distances. layer: number of the layer in every model, or null for all layers.
export function rowsOf(distances, members, { layer, gate }) {
  const rows = [];
  for (const name of gate === "both" ? GATES : [gate]) {
    let first = 0;
    for (const layers of members) {
      if (layer === null) rows.push(...distances[name].slice(first, first + layers));
      else rows.push(distances[name][first + layer - 1]);
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

// Builds a tree from rows of distances: a function split(start, end), see trees.mjs.
export function treeOf(rows, method) {
  if (method === "votes") return elected(rows, rows[0].length);
  return (method === "greedy" ? greedy : binary)(mean(rows));
}
