// Trees of sentences from an exported parser, in JavaScript: Node and ONNX Runtime, nothing else.
//
//     npm install                       here; onnxruntime-node, if it is there, is taken instead
//     node parse.mjs parser.onnx "the company said it will sell its stake" "prices fell"
//     node parse.mjs parser.onnx < sentences.txt
//
// parser.onnx comes from export/to_onnx.py --graph parser. Words are apart by blanks; each sentence
// gives one line. What is wrong is said in one line, with exit status 2.

import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";

const KEY = "keras_onlstm"; // of the file's metadata
const LAYER = 2; // whose distances count, of one model

class UserError extends Error {}

async function importRuntime() {
  for (const name of ["onnxruntime-node", "onnxruntime-web"]) {
    try {
      return await import(name);
    } catch (error) {
      if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    }
  }
  throw new UserError("ONNX Runtime is not installed: npm install onnxruntime-web");
}

// The fields of a Protocol Buffers message whose values are bytes: pairs of number and Uint8Array.
function* fields(bytes) {
  let place = 0;
  function varint() {
    for (let value = 0, factor = 1; place < bytes.length; factor *= 128) {
      const byte = bytes[place++];
      value += (byte & 127) * factor; // exact below 2^53, and no shift beyond 32 bits
      if (byte < 128) return value;
    }
    throw new RangeError("it ends inside a number");
  }
  while (place < bytes.length) {
    const tag = varint();
    const [number, type] = [Math.floor(tag / 8), tag % 8];
    if (type === 0) varint();
    else if (type === 1) place += 8;
    else if (type === 5) place += 4;
    else if (type === 2) {
      const length = varint();
      yield [number, bytes.subarray(place, place + length)];
      place += length;
    } else throw new RangeError(`a field of type ${type}`);
    if (place > bytes.length) throw new RangeError("it ends inside a field");
  }
}

// ONNX Runtime's JavaScript does not hand on the metadata. They are in field 14 of the model,
// entries with a key, field 1, and a value, field 2.
function readMetadata(bytes) {
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  for (const [number, entry] of fields(bytes)) {
    if (number !== 14) continue;
    const { 1: key, 2: value } = Object.fromEntries(fields(entry));
    if (key && value && utf8.decode(key) === KEY) return JSON.parse(utf8.decode(value));
  }
  throw new Error(`no metadata ${KEY}`);
}

async function openParser(path) {
  let bytes;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw new UserError(`${path}: cannot be read (${error.code}).`);
  }
  const ort = await importRuntime();
  let metadata, session;
  try {
    metadata = readMetadata(bytes);
    ort.env.logLevel = "fatal"; // errors are thrown as well
    session = await ort.InferenceSession.create(bytes, { logSeverityLevel: 4 });
  } catch (error) {
    throw new UserError(`${path}: no complete ONNX file of keras_onlstm (${error.message}).`);
  }
  const places = new Map((metadata.vocabulary ?? []).map((word, place) => [word, place]));
  if (!session.inputNames.includes("lengths") || !places.has("<eos>") || !places.has("<unk>")) {
    throw new UserError(`${path}: no parser with a vocabulary. Export one with --graph parser.`);
  }
  const several = metadata.members?.length > 1;
  if (!several && !(metadata.num_layers >= LAYER)) {
    throw new UserError(`${path}: has ${metadata.num_layers} layer, and layer ${LAYER} counts.`);
  }
  return { ort, session, places, several };
}

function encode(word, places) {
  const known = places.has(word) ? word : word.toLowerCase().replace(/[0-9]+/g, "N");
  return places.get(known) ?? places.get("<unk>");
}

// How much of the order every word makes each layer forget and, of several models, write: one array
// a layer, of all models.
async function measure({ ort, session, places, several }, words) {
  const ids = [places.get("<eos>"), ...words.map((word) => encode(word, places))];
  const time = ids.length;
  const found = await session.run({
    ids: new ort.Tensor("int32", Int32Array.from(ids), [1, time]),
    lengths: new ort.Tensor("int32", Int32Array.from([time]), [1]),
  });
  const rows = [];
  for (const gate of several ? ["forget", "input"] : ["forget"]) {
    const { data } = found[`${gate}_distances`];
    for (let start = 0; start < data.length; start += time) {
      rows.push(data.slice(start + 1, start + time)); // without <eos>
    }
  }
  return rows;
}

// Where a constituent [start, end) parts into two: before its word of the largest distance, the
// left-most of equal ones, and then behind it, so ((X_<i) (x_i (X_>i))).
function greedy(distances) {
  return (start, end) => {
    let largest = start;
    for (let i = start + 1; i < end; i++) if (distances[i] > distances[largest]) largest = i;
    return Math.max(largest, start + 1);
  };
}

// The same of the binary tree with the most votes. The greedy tree of each row of distances and
// its binary one, which parts between words alone, have a vote for each of their constituents.
function elected(rows, count) {
  const votes = new Float64Array((count + 1) * (count + 1)); // start, end
  const add = (start, end) => (votes[start * (count + 1) + end] += 1);
  for (const row of rows) {
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
  const best = new Float64Array(votes.length); // sums of votes of the best trees: start, end
  const splits = new Int32Array(votes.length);
  for (let width = 2; width <= count; width++) {
    for (let start = 0; start + width <= count; start++) {
      const end = start + width;
      let [most, place] = [-1, start + 1];
      for (let i = start + 1; i < end; i++) {
        const sum = best[start * (count + 1) + i] + best[i * (count + 1) + end];
        if (sum > most) [most, place] = [sum, i];
      }
      best[start * (count + 1) + end] = most + votes[start * (count + 1) + end];
      splits[start * (count + 1) + end] = place;
    }
  }
  return (start, end) => splits[start * (count + 1) + end];
}

// A binary tree in brackets. No recursion: sentences may be long.
function brackets(words, split) {
  const safe = words.map((word) => word.replaceAll("(", "-LRB-").replaceAll(")", "-RRB-"));
  if (words.length === 1) return `(X ${safe[0]})`;
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
      written.push(safe[start]);
      continue;
    }
    const place = split(start, end);
    pending.push(")", [place, end], [start, place], "(X");
  }
  return written.join(" ").replaceAll(" )", ")");
}

// As Parser has it: of one model the greedy tree of layer 2, of several what all layers vote for.
function parse({ several }, words, rows) {
  return brackets(words, several ? elected(rows, words.length) : greedy(rows[LAYER - 1]));
}

async function main([path, ...sentences]) {
  if (!path) throw new UserError('usage: node parse.mjs parser.onnx ["a sentence" ...]');
  if (!sentences.length) sentences = (await text(process.stdin)).replace(/\n$/, "").split("\n");
  const split = sentences.map((sentence) => sentence.split(/\s+/).filter(Boolean));
  const empty = split.findIndex((words) => !words.length);
  if (empty >= 0) throw new UserError(`sentence ${empty + 1}: has no words.`);
  const parser = await openParser(path);
  for (const words of split) console.log(parse(parser, words, await measure(parser, words)));
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  console.error(`parse.mjs: error: ${error.message.replace(/\s+/g, " ")}`);
  process.exitCode = 2;
}
