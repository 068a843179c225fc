// The models, beside the page, so that typing never waits for them.
//
// The page sends { words, first }; the answer is { words, parts }, what the models from the first
// on measured, one after the other as they were loaded. While they come: { progress }, { models }.

import "./files.js";
import { download } from "./download.mjs";
import { measure, openModel } from "./parsing/parser.mjs";
import * as ort from "./runtime/ort.mjs";

const { runtime, models } = self.SITE;
const opened = [];
const WARM = "the first times are slow".split(" ");

ort.env.logLevel = "fatal"; // errors are thrown as well
ort.env.wasm.numThreads = 1; // more would need headers of the server

self.addEventListener("message", async ({ data: { words, first } }) => {
  try {
    const parts = [];
    for (const model of opened.slice(first)) parts.push(await measure(model, words));
    self.postMessage({ words, parts });
  } catch (error) {
    self.postMessage({ failed: String(error.message ?? error) });
  }
});

async function load() {
  let came = 0;
  const progress = (bytes) => self.postMessage({ progress: (came += bytes) });
  const get = (file) => download(file, progress);
  const [wasm, first] = await Promise.all([get(runtime), get(models[0])]);
  ort.env.wasm.wasmBinary = wasm.buffer;
  await open(first);
  for (const file of models.slice(1)) await open(await get(file));
}

async function open(bytes) {
  const model = await openModel(ort, bytes);
  for (let i = 0; i < 5; i++) await measure(model, WARM); // the first times are slow
  opened.push(model);
  self.postMessage({ models: opened.map(({ members }) => members) });
}

load().catch((error) => self.postMessage({ failed: String(error.message ?? error) }));
