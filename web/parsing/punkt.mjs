// Splits text into sentences like NLTK's Punkt with given abbreviations and sentence starters, but
// without training: Kiss and Strunk 2006, "Unsupervised multilingual sentence
// boundary detection", https://doi.org/10.1162/coli.2006.32.4.485.

import { NLTK_LETTER, S, lengthWithoutEnd } from "./characters.mjs";
import { ABBREVIATIONS, STARTERS } from "./english.mjs";

const abbreviations = new Set(ABBREVIATIONS);
const starters = new Set(STARTERS);

const QUOTES = "\\u2018\\u2019\\u201c\\u201d\\xab\\xbb";
const NO_WORD = `[)";}\\]*:@'({\\[${QUOTES}?!]`;
const SEVERAL = `(?:-{2,}|\\.{2,}|(?:\\.[${S}]){2,}\\.)`;
const END = new RegExp(`[.?!](?=(?<after>${NO_WORD}|[${S}]+(?<next>[^${S}]+)))`, "gu");
const TOKEN = new RegExp(
  `${SEVERAL}|(?=[^("\`{[:;&#*@)}\\]\\-,])[^${S}]+?` +
    `(?=[${S}]|$|${NO_WORD}|${SEVERAL}|,(?=$|[${S}]|${NO_WORD}|${SEVERAL}))|[^${S}]`,
  "gu",
);
const CLOSES = new RegExp(`^["')\\]}${QUOTES}]+?(?:[${S}]+|(?=--)|(?=\\n)|$)`, "u");
const NUMBER = /^-?[.,]?\p{Nd}[\p{Nd},.-]*\.?$/u;
const INITIAL = new RegExp(`^[${NLTK_LETTER}]\\.$`, "u");
const NUMBER_TYPE = "##number##"; // the type of all numbers

// The start and end of each sentence.
export function sentenceSpans(text) {
  const spans = [];
  let begin = 0;
  for (const match of ends(text)) {
    if (!isEnd(match.context)) continue;
    spans.push([begin, match.end]);
    begin = match.next;
  }
  spans.push([begin, lengthWithoutEnd(text)]);
  return realigned(text, spans);
}

// The last punctuation mark of each word, with the word and the text that follows.
function* ends(text) {
  let [previous, start, stop] = [null, 0, 0];
  for (const found of text.matchAll(END)) {
    const blank = lastBlank(text.slice(stop, found.index));
    const begin = blank ? blank + stop + 1 : start;
    if (previous && stop <= begin) yield context(text, previous, start, stop);
    [previous, start, stop] = [found, begin, found.index];
  }
  if (previous) yield context(text, previous, start, stop);
}

function context(text, found, start, stop) {
  const { after, next } = found.groups;
  const end = found.index + 1;
  return {
    context: text.slice(start, stop) + found[0] + after,
    end,
    next: next ? end + after.length - next.length : end,
  };
}

// The index of the last ASCII white space; 0 if there is none.
function lastBlank(text) {
  for (let i = text.length - 1; i > 0; i--) if (/[\t-\r ]/.test(text[i])) return i;
  return 0;
}

// Whether a word of the context, except for the last one, ends a sentence.
function isEnd(text) {
  const tokens = text
    .split("\n")
    .flatMap((line) => line.match(TOKEN) ?? [])
    .map(classify);
  return tokens.some((token, i) => i + 1 < tokens.length && closes(token, tokens[i + 1]));
}

function classify(text) {
  const lower = text.toLowerCase();
  const token = {
    text,
    type: NUMBER.test(lower) ? NUMBER_TYPE : lower,
    full: text.endsWith("."),
    initial: INITIAL.test(text),
    upper: /^\p{Uppercase}/u.test(text),
    lower: /^\p{Lowercase}/u.test(text),
    abbreviates: false,
    ends: false,
  };
  if ([".", "?", "!"].includes(text)) token.ends = true;
  else if (/^\.\.+$/.test(text))
    token.abbreviates = true; // an ellipsis is treated like an abbreviation
  else if (token.full && !text.endsWith("..")) {
    const bare = text.slice(0, -1).toLowerCase();
    token.abbreviates = abbreviations.has(bare) || abbreviations.has(bare.split("-").at(-1));
    token.ends = !token.abbreviates;
  }
  return token;
}

// Whether a token ends a sentence, given the next one.
function closes(token, next) {
  if (!token.full) return token.ends;
  const type = withoutStop(token.type);
  const nextType = next.ends ? withoutStop(next.type) : next.type;
  if (["no", "nos"].includes(type) && nextType === NUMBER_TYPE) return false;
  if (token.abbreviates && !token.initial && next.upper && starters.has(nextType)) return true;
  if (token.initial || type === NUMBER_TYPE) {
    if ([...";:,.!?"].includes(next.text) || next.lower) return false;
    if (token.initial && next.upper) return false;
  }
  return token.ends;
}

function withoutStop(type) {
  return type.length > 1 && type.endsWith(".") ? type.slice(0, -1) : type;
}

// Moves closing quotation marks and brackets to the sentence that they end.
function realigned(text, spans) {
  const moved = [];
  let skipped = 0;
  spans.forEach(([start, end], i) => {
    start += skipped;
    skipped = 0;
    const next = spans[i + 1];
    const closing = next && CLOSES.exec(text.slice(...next));
    if (closing) {
      skipped = closing[0].length;
      moved.push([start, next[0] + lengthWithoutEnd(closing[0])]);
    } else if (start < end) moved.push([start, end]);
  });
  return moved;
}
