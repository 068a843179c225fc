// Python's character classes, which differ from JavaScript's \s, \w and \b.

const PYTHON_SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

// For use inside of brackets, in patterns with the flag u.
export const S = PYTHON_SPACE; // \s
export const W = "\\p{L}\\p{N}_"; // \w of the module re
export const LETTER = "\\p{L}\\p{Nl}\\p{No}"; // [^\W\d_] of the module re
// [^\W\d] of the module regex, which NLTK uses.
export const NLTK_LETTER = "\\p{Alphabetic}\\p{M}\\p{Pc}\\p{Join_Control}";

// \b of the module re.
export const EDGE = `(?:(?<=[${W}])(?![${W}])|(?<![${W}])(?=[${W}]))`;

export const WHITE = new RegExp(`[${S}]`, "gu");
const ONE_WHITE = new RegExp(`[${S}]`, "u");

// str.split() of Python.
export function words(text) {
  return text.split(new RegExp(`[${S}]+`, "u")).filter(Boolean);
}

// The length of a text without trailing white space.
export function lengthWithoutEnd(text) {
  let length = text.length;
  while (length && ONE_WHITE.test(text[length - 1])) length--;
  return length;
}
