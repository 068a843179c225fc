// Parses sentences with an exported parser, in JavaScript. Needs only Node and ONNX Runtime.
//
//     npm install                       in this folder; onnxruntime-node is preferred if installed
//     node parse.mjs parser.onnx "the company said it will sell its stake" "prices fell"
//     node parse.mjs parser.onnx < sentences.txt
//
// export/to_onnx.py --graph parser writes parser.onnx. Each line of sentences.txt, and each argument,
// is split into sentences and words like in keras_onlstm.Parser. Each sentence becomes one tree on one
// line, and a text without words an empty line. Errors are one line on standard error, with exit
// status 2. The web page uses the same code, web/parsing.

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
import { forbidden, wordsOf } from "../../web/parsing/tokens.mjs";
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

// The words of each sentence of a text. `number`, the text's index from 1, is for the message.
// A text without words is one empty sentence.
function sentencesOf(line, number) {
  const index = forbidden(line);
  if (index >= 0)
    throw new UserError(
      `line ${number}: character ${index + 1} is a control character. Remove it.`,
    );
  const sentences = wordsOf(line);
  return sentences.length ? sentences : [[]];
}

async function main([path, ...texts]) {
  if (!path) throw new UserError('usage: node parse.mjs parser.onnx ["a sentence" ...]');
  if (!texts.length) texts = (await text(process.stdin)).replace(/\n$/, "").split("\n");
  const sentences = texts.flatMap((line, i) => sentencesOf(line, i + 1));
  if (!sentences.flat().length)
    throw new UserError("Nothing to parse: the text contains no words.");
  const parse = await openParser(path);
  for (const words of sentences) console.log(words.length ? await parse(words) : "");
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  console.error(`parse.mjs: error: ${error.message.replace(/\s+/g, " ")}`);
  process.exitCode = 2;
}
