// Trees of sentences from an exported parser, in JavaScript: Node and ONNX Runtime, nothing else.
//
//     npm install                       here; onnxruntime-node, if it is there, is taken instead
//     node parse.mjs parser.onnx "the company said it will sell its stake" "prices fell"
//     node parse.mjs parser.onnx < sentences.txt
//
// parser.onnx comes from export/to_onnx.py --graph parser. Words are apart by blanks; each sentence
// gives one line. What is wrong is said in one line, with exit status 2. All but this command line
// is in web/parsing, which the page in the browser has as well.

import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";

import {
  ModelError,
  measure,
  openModel,
  rowsOf,
  treeOf,
  usualReading,
} from "../../web/parsing/parser.mjs";
import { brackets } from "../../web/parsing/trees.mjs";

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

async function openParser(path) {
  let bytes;
  try {
    bytes = await readFile(path);
  } catch (error) {
    throw new UserError(`${path}: cannot be read (${error.code}).`);
  }
  const ort = await importRuntime();
  ort.env.logLevel = "fatal"; // errors are thrown as well
  try {
    const model = await openModel(ort, bytes);
    const reading = usualReading(model);
    return async (words) => {
      const rows = rowsOf(await measure(model, words), model.members, reading);
      return brackets(words, treeOf(rows, reading.method));
    };
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    throw new UserError(`${path}: ${error.message}`);
  }
}

async function main([path, ...sentences]) {
  if (!path) throw new UserError('usage: node parse.mjs parser.onnx ["a sentence" ...]');
  if (!sentences.length) sentences = (await text(process.stdin)).replace(/\n$/, "").split("\n");
  const split = sentences.map((sentence) => sentence.split(/\s+/).filter(Boolean));
  const empty = split.findIndex((words) => !words.length);
  if (empty >= 0) throw new UserError(`sentence ${empty + 1}: has no words.`);
  const parse = await openParser(path);
  for (const words of split) console.log(await parse(words));
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  console.error(`parse.mjs: error: ${error.message.replace(/\s+/g, " ")}`);
  process.exitCode = 2;
}
