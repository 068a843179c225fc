// Splits a sentence into tokens of the Penn Treebank like NLTK's TreebankWordTokenizer: "don't" is
// "do" and "n't". The rules insert blanks around tokens, one after the other.

import { EDGE, S, words } from "./characters.mjs";

const OPENING = [
  [/^"/g, "``"],
  [/``/g, " `` "],
  [/([ ([{<])("|'{2})/g, "$1 `` "],
];
const PUNCTUATION = [
  [/([:,])(\P{Nd})/gu, " $1 $2"],
  [/([:,])(?=\n?$)/g, " $1 "],
  [/\.\.\./g, " ... "],
  [/[;@#$%&]/g, " $& "],
  [new RegExp(`([^.])(\\.)([\\])}>"']*)[${S}]*$`, "u"), "$1 $2$3 "], // the full stop at the end
  [/[?!]/g, " $& "],
  [/([^'])' /g, "$1 ' "],
  [/[\][(){}<>]/g, " $& "],
  [/--/g, " -- "],
];
const CLOSING = [
  [/''/g, " '' "],
  [/"/g, " '' "],
  [/([^' ])('[sS]|'[mM]|'[dD]|') /g, "$1 $2 "],
  [/([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) /g, "$1 $2 "],
];
const I = "[i\\u0130\\u0131]"; // what Python matches with i, ignoring case
const JOINED = [
  ["can", "not"],
  ["d", "'ye"],
  [`g${I}m`, "me"],
  ["gon", "na"],
  ["got", "ta"],
  ["lem", "me"],
  ["more", "'n"],
].map(([first, second]) => new RegExp(`${EDGE}(${first})(${second})${EDGE}`, "giu"));
JOINED.push(new RegExp(`${EDGE}(wan)(na)(?=[${S}])`, "giu"));
for (const second of [`${I}s`, "was"]) JOINED.push(new RegExp(` ('t)(${second})${EDGE}`, "giu"));

// The start and end of each token of a sentence.
export function tokenSpans(sentence) {
  let text = sentence;
  for (const [pattern, replacement] of [...OPENING, ...PUNCTUATION])
    text = text.replace(pattern, replacement);
  text = ` ${text} `;
  for (const [pattern, replacement] of CLOSING) text = text.replace(pattern, replacement);
  for (const pattern of JOINED) text = text.replace(pattern, " $1 $2 ");
  let position = 0;
  return restoreQuotes(words(text), sentence).map((token) => {
    const start = sentence.indexOf(token, position);
    if (start < 0) throw new Error(`${token} is not in the sentence`);
    position = start + token.length;
    return [start, position];
  });
}

// Replaces quotation marks in tokens by those of the sentence.
function restoreQuotes(tokens, sentence) {
  if (!sentence.includes('"') && !sentence.includes("''")) return tokens;
  const marks = sentence.match(/``|''|"/g);
  let next = 0;
  return tokens.map((token) =>
    ['"', "``", "''"].includes(token) ? (marks[next++] ?? token) : token,
  );
}
