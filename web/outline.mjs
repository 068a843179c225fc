// A tree as nested lists and its distances as a table, e.g. for screen readers.

import { html } from "./elements.mjs";

// Nested lists. Each phrase has its number of words and its two parts.
export function outline(words, nodes) {
  const items = [];
  for (const { start, end, children } of nodes) {
    if (!children.length) {
      items.push(html("li", {}, html("bdi", {}, words[start])));
      continue;
    }
    const parts = html("ul", {}, ...children.map((child) => items[child]));
    const phrase = html(
      "span",
      { class: "phrase" },
      `${end - start} words: `,
      html("bdi", {}, short(words.slice(start, end))),
    );
    items.push(html("li", {}, phrase, parts));
  }
  return html("ul", { class: "outline" }, items.at(-1));
}

function short(words) {
  return words.length > 6
    ? `${words.slice(0, 3).join(" ")} … ${words.slice(-2).join(" ")}`
    : words.join(" ");
}

// The distances of all words.
export function table(words, panels) {
  const columns = panels.flatMap(({ gate, bars }) =>
    bars.map(({ layer, values }) => ({ name: `${gate}, layer ${layer}`, values })),
  );
  const names = ["word", ...columns.map(({ name }) => name)];
  const rows = words.map((word, i) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, html("bdi", {}, word)),
      ...columns.map(({ values }) => html("td", {}, values[i].toFixed(3))),
    ),
  );
  const head = html("tr", {}, ...names.map((name) => html("th", { scope: "col" }, name)));
  return html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows));
}
