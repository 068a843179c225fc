// A text into sentences, as NLTK's Punkt does it that knows abbreviations and words that begin
// sentences, and has seen no text: Kiss and Strunk 2006, "Unsupervised multilingual sentence
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
const NUMBERS = "##number##"; // the type of all of them

// Where sentences begin and end: pairs.
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

// The last of the marks behind a word, each with that word, what follows, and where that is.
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

// The place of the last white space of ASCII; 0 where there is none.
function lastBlank(text) {
  for (let i = text.length - 1; i > 0; i--) if (/[\t-\r ]/.test(text[i])) return i;
  return 0;
}

// Whether a word, but the last of the context, ends a sentence.
function isEnd(text) {
  const tokens = text
    .split("\n")
    .flatMap((line) => line.match(TOKEN) ?? [])
    .map(described);
  return tokens.some((token, i) => i + 1 < tokens.length && closes(token, tokens[i + 1]));
}

function described(text) {
  const lower = text.toLowerCase();
  const token = {
    text,
    type: NUMBER.test(lower) ? NUMBERS : lower,
    full: text.endsWith("."),
    initial: INITIAL.test(text),
    upper: /^\p{Uppercase}/u.test(text),
    lower: /^\p{Lowercase}/u.test(text),
    abbreviates: false,
    ends: false,
  };
  if ([".", "?", "!"].includes(text)) token.ends = true;
  else if (/^\.\.+$/.test(text))
    token.abbreviates = true; // an ellipsis, which is alike
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
  if (["no", "nos"].includes(type) && nextType === NUMBERS) return false;
  if (token.abbreviates && !token.initial && next.upper && starters.has(nextType)) return true;
  if (token.initial || type === NUMBERS) {
    if ([...";:,.!?"].includes(next.text) || next.lower) return false;
    if (token.initial && next.upper) return false;
  }
  return token.ends;
}

function withoutStop(type) {
  return type.length > 1 && type.endsWith(".") ? type.slice(0, -1) : type;
}

// Quotation marks and brackets that close behind the end of a sentence belong to it.
function realigned(text, spans) {
  const found = [];
  let taken = 0;
  spans.forEach(([start, end], i) => {
    start += taken;
    taken = 0;
    const next = spans[i + 1];
    const closing = next && CLOSES.exec(text.slice(...next));
    if (closing) {
      taken = closing[0].length;
      found.push([start, next[0] + lengthWithoutEnd(closing[0])]);
    } else if (start < end) found.push([start, end]);
  });
  return found;
}
