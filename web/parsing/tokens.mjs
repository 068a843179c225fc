// Splits raw text into sentences and tokens: keras_onlstm/text/tokens.py in JavaScript.

import { EDGE, LETTER, S, W } from "./characters.mjs";
import { STARTERS } from "./english.mjs";
import { sentenceSpans } from "./punkt.mjs";
import { tokenSpans } from "./treebank.mjs";

const CONTROL = /[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]/u;
const PICTURE = "[\\u2300-\\u23ff\\u2600-\\u27bf\\u2b00-\\u2bff\\u{1f000}-\\u{1faff}]";
const VARIANT = "[\\ufe0f\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]*";
const LATIN = "a-zA-Z\\u0130\\u0131\\u017f\\u212a"; // what Python matches with [a-z], ignoring case
// Characters that the two tokenizers do not know, and their replacements.
const REPLACEMENTS = {
  address: "link",
  emoji: " link ",
  ellipsis: " ... ",
  dash: " -- ",
  double: '"',
  single: "'",
};
const UNKNOWN = new RegExp(
  [
    `(?<address>(?:${EDGE}[${LATIN}][${LATIN}0-9+.\\-]{1,15}://|${EDGE}[wW]{3}\\.)` +
      `[^${S}<>"“”]*[^${S}<>"“”.,:;!?'\\u2019)\\]}…]` +
      `|${EDGE}[${W}.+\\-]{1,64}@[${LATIN}0-9\\-]{1,63}(?:\\.[${LATIN}0-9\\-]{1,63})+)`,
    `(?<emoji>[0-9#*]\\ufe0f?\\u20e3|[\\u{1f1e6}-\\u{1f1ff}]{2}` +
      `|${PICTURE}${VARIANT}(?:\\u200d${PICTURE}${VARIANT})*)`,
    "(?<ellipsis>…)",
    "(?<dash>—)",
    "(?<double>[“”„«»])",
    "(?<single>[\\u2018\\u2019])",
  ].join("|"),
  "gu",
);
const titles = STARTERS.map((word) => word[0].toUpperCase() + word.slice(1)).join("|");
// Where Punkt wrongly ends a sentence: after initials, the number of an item, or a quotation or
// bracket in the middle of a sentence.
const CONTINUES = [
  [
    new RegExp(`${EDGE}(?:[${LETTER}]\\.){2,}[${S}]*$`, "u"),
    new RegExp(`^(?!(?:${titles})${EDGE})`, "u"),
  ],
  [new RegExp(`^[^${W}]*\\p{Nd}+\\.[${S}]*$`, "u"), /^/],
  [new RegExp(`[.?!]['")\\]}]+[${S}]*$`, "u"), new RegExp(`^(?![A-Z])[${LETTER}]`, "u")],
];

// The index of the first character that is not allowed, or -1.
export function forbidden(text) {
  return text.search(CONTROL);
}

// The sentences of a text as lists of tokens: { text, start, end, isWord }. Words contain a letter
// or a digit. A sentence without words is joined to the previous one.
export function split(text) {
  const { replaced, sources, emoji } = replaceUnknown(text);
  const sentences = [];
  for (const [first, last] of spans(replaced)) {
    const tokens = tokenSpans(replaced.slice(first, last)).map(([from, to]) => {
      const [start, end] = [sources[first + from][0], sources[first + to - 1][1]];
      const token = text.slice(start, end);
      return { text: token, start, end, isWord: !emoji.has(start) && /[\p{L}\p{N}]/u.test(token) };
    });
    if (sentences.length && !(hasWords(tokens) && hasWords(sentences.at(-1)))) {
      sentences.at(-1).push(...tokens);
    } else sentences.push(tokens);
  }
  return sentences;
}

// The words of each sentence that contains words.
export function wordsOf(text) {
  const words = split(text).map((tokens) => tokens.filter((token) => token.isWord));
  return words.map((tokens) => tokens.map((token) => token.text)).filter((texts) => texts.length);
}

function hasWords(tokens) {
  return tokens.some((token) => token.isWord);
}

function spans(text) {
  const joined = [];
  for (let [start, end] of sentenceSpans(text)) {
    const previous = joined.at(-1);
    if (previous && continues(text.slice(...previous), text.slice(start, end))) {
      [start] = joined.pop();
    }
    joined.push([start, end]);
  }
  return joined;
}

function continues(before, after) {
  return CONTINUES.some(([end, start]) => end.test(before) && start.test(after));
}

// The text for the tokenizers, the source span of each of its characters, and the starts of emoji.
function replaceUnknown(text) {
  const sources = [];
  const emoji = new Set();
  let [replaced, done] = ["", 0];
  function copy(end) {
    replaced += text.slice(done, end);
    for (; done < end; done++) sources.push([done, done + 1]);
  }
  for (const match of text.matchAll(UNKNOWN)) {
    copy(match.index);
    const kind = Object.keys(REPLACEMENTS).find((name) => match.groups[name] !== undefined);
    done = match.index + match[0].length;
    replaced += REPLACEMENTS[kind];
    for (let i = 0; i < REPLACEMENTS[kind].length; i++) sources.push([match.index, done]);
    if (kind === "emoji") emoji.add(match.index);
  }
  copy(text.length);
  return { replaced, sources, emoji };
}
