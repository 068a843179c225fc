// Text as people write it, as sentences and tokens: keras_onlstm/text/tokens.py in JavaScript.

import { EDGE, LETTER, S, W } from "./characters.mjs";
import { STARTERS } from "./english.mjs";
import { sentenceSpans } from "./punkt.mjs";
import { tokenSpans } from "./treebank.mjs";

const CONTROL = /[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]/u;
const PICTURE = "[\\u2300-\\u23ff\\u2600-\\u27bf\\u2b00-\\u2bff\\u{1f000}-\\u{1faff}]";
const VARIANT = "[\\ufe0f\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]*";
const LATIN = "a-zA-Z\\u0130\\u0131\\u017f\\u212a"; // what Python takes for [a-z] of any case
// What the two tokenizers do not know, and what they see in its place.
const SEEN = {
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
// Where Punkt ends a sentence and none ends: behind initials, the number of an item, and a
// quotation or bracket after which the sentence goes on.
const GOES_ON = [
  [
    new RegExp(`${EDGE}(?:[${LETTER}]\\.){2,}[${S}]*$`, "u"),
    new RegExp(`^(?!(?:${titles})${EDGE})`, "u"),
  ],
  [new RegExp(`^[^${W}]*\\p{Nd}+\\.[${S}]*$`, "u"), /^/],
  [new RegExp(`[.?!]['")\\]}]+[${S}]*$`, "u"), new RegExp(`^(?![A-Z])[${LETTER}]`, "u")],
];

// The place of the first character that no text has, or -1.
export function forbidden(text) {
  return text.search(CONTROL);
}

// The sentences of a text, each as tokens: { text, start, end, isWord }. Words are what has a
// letter or a digit. A sentence without words belongs to the one before it.
export function split(text) {
  const { seen, places, emoji } = asSeen(text);
  const sentences = [];
  for (const [first, last] of spans(seen)) {
    const tokens = tokenSpans(seen.slice(first, last)).map(([from, to]) => {
      const [start, end] = [places[first + from][0], places[first + to - 1][1]];
      const token = text.slice(start, end);
      return { text: token, start, end, isWord: !emoji.has(start) && /[\p{L}\p{N}]/u.test(token) };
    });
    if (sentences.length && !(hasWords(tokens) && hasWords(sentences.at(-1)))) {
      sentences.at(-1).push(...tokens);
    } else sentences.push(tokens);
  }
  return sentences;
}

// The words of each sentence that has any.
export function wordsOf(text) {
  const words = split(text).map((tokens) => tokens.filter((token) => token.isWord));
  return words.map((tokens) => tokens.map((token) => token.text)).filter((found) => found.length);
}

function hasWords(tokens) {
  return tokens.some((token) => token.isWord);
}

function spans(seen) {
  const found = [];
  for (let [start, end] of sentenceSpans(seen)) {
    const before = found.at(-1);
    if (before && goesOn(seen.slice(...before), seen.slice(start, end))) [start] = found.pop();
    found.push([start, end]);
  }
  return found;
}

function goesOn(before, behind) {
  return GOES_ON.some(([end, start]) => end.test(before) && start.test(behind));
}

// The text that the tokenizers get to see, where its characters are from, and where emoji begin.
function asSeen(text) {
  const places = [];
  const emoji = new Set();
  let [seen, done] = ["", 0];
  function copy(end) {
    seen += text.slice(done, end);
    for (; done < end; done++) places.push([done, done + 1]);
  }
  for (const found of text.matchAll(UNKNOWN)) {
    copy(found.index);
    const kind = Object.keys(SEEN).find((name) => found.groups[name] !== undefined);
    done = found.index + found[0].length;
    seen += SEEN[kind];
    for (let i = 0; i < SEEN[kind].length; i++) places.push([found.index, done]);
    if (kind === "emoji") emoji.add(found.index);
  }
  copy(text.length);
  return { seen, places, emoji };
}
