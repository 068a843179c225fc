// Runs the models in a worker, so that they do not block typing.
//
// The page sends { parser, words, first }. The answer is { parser, words, parts }, the distances of
// the models of that parser, starting with index first, in the order in which they were loaded.
// While models are loading, the worker sends { progress } and { parser, models }. The name of the
// worker is that of the parser that is loaded first.

import "./files.js";
import { download } from "./download.mjs";
import { measure, openModel } from "./parsing/parser.mjs";
import * as ort from "./runtime/ort.mjs";

const { runtime, parsers } = self.SITE;
const names = Object.keys(parsers).sort((a, b) => (b === self.name) - (a === self.name));
const opened = Object.fromEntries(names.map((name) => [name, []]));
const WARM = "the first times are slow".split(" ");

ort.env.logLevel = "fatal"; // errors are thrown anyway
ort.env.wasm.numThreads = 1; // more threads need special server headers

self.addEventListener("message", async ({ data: { parser, words, first } }) => {
  try {
    const parts = [];
    for (const model of opened[parser].slice(first)) parts.push(await measure(model, words));
    self.postMessage({ parser, words, parts });
  } catch (error) {
    self.postMessage({ failed: String(error.message ?? error) });
  }
});

async function load() {
  let received = 0;
  const progress = (bytes) => self.postMessage({ progress: (received += bytes) });
  const get = (file) => download(file, progress);
  const files = names.flatMap((name) => parsers[name].models.map((file) => [name, file]));
  const [wasm, first] = await Promise.all([get(runtime), get(files[0][1])]);
  ort.env.wasm.wasmBinary = wasm.buffer;
  await open(files[0][0], first);
  for (const [name, file] of files.slice(1)) await open(name, await get(file));
}

async function open(parser, bytes) {
  const model = await openModel(ort, bytes);
  for (let i = 0; i < 5; i++) await measure(model, WARM); // the first times are slow
  opened[parser].push(model);
  self.postMessage({ parser, models: opened[parser].map(({ members }) => members) });
}

load().catch((error) => self.postMessage({ failed: String(error.message ?? error) }));
