// A sentence into tokens, as the Penn Treebank has them and NLTK's TreebankWordTokenizer finds
// them: don't is do and n't. What belongs together gets blanks around it, one rule after the other.

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
const I = "[i\\u0130\\u0131]"; // what Python takes for an i where case does not matter
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

// Where the tokens of a sentence begin and end: pairs.
export function tokenSpans(sentence) {
  let text = sentence;
  for (const [pattern, written] of [...OPENING, ...PUNCTUATION])
    text = text.replace(pattern, written);
  text = ` ${text} `;
  for (const [pattern, written] of CLOSING) text = text.replace(pattern, written);
  for (const pattern of JOINED) text = text.replace(pattern, " $1 $2 ");
  let place = 0;
  return asWritten(words(text), sentence).map((token) => {
    const start = sentence.indexOf(token, place);
    if (start < 0) throw new Error(`${token} is not in the sentence`);
    place = start + token.length;
    return [start, place];
  });
}

// The tokens with the quotation marks that the sentence has.
function asWritten(tokens, sentence) {
  if (!sentence.includes('"') && !sentence.includes("''")) return tokens;
  const marks = sentence.match(/``|''|"/g);
  let next = 0;
  return tokens.map((token) =>
    ['"', "``", "''"].includes(token) ? (marks[next++] ?? token) : token,
  );
}
