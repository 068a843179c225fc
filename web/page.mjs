// The page: what is typed and chosen, to pictures of trees.

import "./files.js";
import { copy, standalone } from "./clipboard.mjs";
import { html, svg } from "./elements.mjs";
import { EXAMPLES } from "./examples.mjs";
import { FONT, inBoth, picture, runsLeft } from "./figure.mjs";
import { outline, table } from "./outline.mjs";
import { mean, rowsOf, treeOf, GATES } from "./parsing/parser.mjs";
import { forbidden, wordsOf } from "./parsing/tokens.mjs";
import { brackets, nodesOf } from "./parsing/trees.mjs";
import { Reader } from "./reader.mjs";
import {
  CHOICES,
  DEFAULTS,
  fromFragment,
  readingsOf,
  toFragment,
  usualTree,
} from "./state.mjs";

const { documentation, runtime, parsers } = globalThis.SITE;
const MOST_WORDS = 500; // of a sentence: votes take time in its third power
const MOST_SENTENCES = 20;
const LEAST_SCALE = 0.85; // of wide pictures; wider ones scroll
const TITLES = { greedy: "Greedy tree", binary: "Binary tree", votes: "Tree with the most votes" };

const find = (name) => document.getElementById(name);
const [field, results, said, loading] = ["text", "results", "said", "loading"].map(find);

// --- What is typed and chosen --------------------------------------------------------------------

let state = null;
let saving = 0; // the timer
const open = new Set(); // which parts of the figures are open, by name

function choices() {
  const layers = Array.from({ length: parsers.onlstm.layers }, (_, i) => [
    String(i + 1),
    String(i + 1),
  ]);
  for (const name of Object.keys(DEFAULTS)) {
    const texts = { ...CHOICES[name], ...(name === "layer" ? Object.fromEntries(layers) : {}) };
    const order = Object.keys(texts).sort(
      (a, b) => (b === DEFAULTS[name]) - (a === DEFAULTS[name]),
    );
    const radios = order.map((value) =>
      html("label", {}, html("input", { type: "radio", name, value }), texts[value]),
    );
    find(name).append(html("div", { class: "choices" }, ...radios));
    find(name).addEventListener("change", ({ target }) => change({ [name]: target.value }));
  }
  for (const text of EXAMPLES) find("examples").append(html("option", { value: text }, text));
}

function change(changed) {
  performance.mark("changed");
  if (changed.model) {
    changed.tree = usualTree(changed.model);
    results.replaceChildren(); // trees of another model
  }
  state = { ...state, ...changed };
  check();
  show();
  clearTimeout(saving);
  // Not at every letter: browsers allow but so many.
  saving = setTimeout(() => history.replaceState(null, "", toFragment(state)), 300);
}

function fill() {
  state = fromFragment(location.hash, parsers.onlstm.layers);
  state.text ??= EXAMPLES[0];
  field.value = state.text;
  check();
  if (reader()) show();
}

function check() {
  for (const name of Object.keys(DEFAULTS)) {
    find(name).querySelector(`[value="${state[name]}"]`).checked = true;
  }
  const { layers, gates } = parsers[state.model];
  find("layer").hidden = layers === 1;
  find("gate").hidden = gates.length === 1;
}

// --- From text to pictures -----------------------------------------------------------------------

// The sentences to show, or what is wrong with the text.
function sentencesOf(text) {
  const place = forbidden(text);
  if (place >= 0)
    return {
      wrong: `Character ${place + 1} is a control character, which no text has. Take it out.`,
    };
  const sentences = wordsOf(text);
  if (!sentences.length)
    return { wrong: text.trim() ? "There is no word in it." : "Type a sentence." };
  const longest = Math.max(...sentences.map((words) => words.length));
  if (longest > MOST_WORDS) {
    return { wrong: `A sentence has ${longest} words; this page draws up to ${MOST_WORDS}.` };
  }
  return { sentences: sentences.slice(0, MOST_SENTENCES), left: sentences.length - MOST_SENTENCES };
}

function show() {
  const { sentences = [], wrong, left } = sentencesOf(state.text);
  const measured = reader().measured(sentences);
  const whole = reader().models > 0 && measured.every(Boolean);
  results.setAttribute("aria-busy", String(!wrong && !whole));
  if (wrong) {
    results.replaceChildren();
    say(wrong);
    return;
  }
  if (!whole) return; // what was there stays until all is there
  draw(sentences, measured);
  const counts = sentences.map((words) => words.length);
  const figures = counts.length * readingsOf(state).length;
  const size = counts.length === 1 ? ` of ${many(counts[0], "word")}` : "";
  const trees = `${figures === 1 ? "A tree" : `${figures} trees`}${size}`;
  say(left > 0 ? `${trees}; ${many(left, "more sentence")} left out.` : `${trees}, ${from()}.`);
  performance.measure("tree", "changed");
}

function from() {
  const models = many(reader().members.length, "model");
  return reader().models < parsers[state.model].models.length
    ? `of ${models} while the others are loading`
    : `of ${models}`;
}

function many(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

let speaking = 0;
function say(text) {
  clearTimeout(speaking);
  // While somebody types, a screen reader is not to be told of every letter.
  speaking = setTimeout(() => said.textContent !== text && (said.textContent = text), 250);
}

function draw(sentences, measured) {
  const scrolled = [...results.querySelectorAll(".picture")].map((box) => box.scrollLeft);
  const focused = [...results.querySelectorAll("button, summary, .picture")].indexOf(
    document.activeElement,
  );
  const number = (i) => (sentences.length > 1 ? `${i + 1}. ` : "");
  results.replaceChildren(...sentences.map((words, i) => article(number(i), words, measured[i])));
  results.querySelectorAll(".picture").forEach((box, i) => {
    fit(box);
    box.scrollLeft = scrolled[i] ?? (runsLeft(box.words) ? box.scrollWidth : 0);
  });
  if (focused >= 0) results.querySelectorAll("button, summary, .picture")[focused]?.focus();
}

// A picture that is a little too wide shrinks, one that is wider scrolls, by keys as well.
function fit(box) {
  const width = box.firstElementChild.viewBox.baseVal.width;
  const scrolls = LEAST_SCALE * width > box.clientWidth;
  box.firstElementChild.style.minWidth = scrolls ? `${width}px` : "";
  if (scrolls) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

function article(number, words, measured) {
  const readings = readingsOf(state);
  const splits = readings.map((reading) =>
    treeOf(rowsOf(measured, reader().members, reading), reading.method),
  );
  const nodes = splits.map((split) => nodesOf(words.length, split));
  const common = nodes.length > 1 ? nodes.map((own, i) => inBoth(own, nodes[1 - i])) : [];
  const figures = readings.map((reading, i) =>
    figure({
      number,
      words,
      measured,
      reading,
      split: splits[i],
      nodes: nodes[i],
      common: common[i] ?? null,
    }),
  );
  const parts = [html("div", { class: "figures" }, ...figures)];
  if (common.length && words.length > 1) {
    const phrases = words.length - 1;
    const same = [...common[0]].filter((i) => nodes[0][i].children.length).length;
    parts.push(
      html("p", {}, `${same} of ${phrases} phrases are in both trees; the others have red dots.`),
    );
  }
  return html("article", {}, ...parts);
}

function figure({ number, words, measured, reading, split, nodes, common }) {
  const title = number + TITLES[reading.method];
  const panels = panelsOf(measured, reading);
  const text = brackets(words, split);
  const image = drawn({ words, nodes, panels, common, title });
  const box = html(
    "div",
    { class: "picture", role: "group", "aria-label": "Picture, which can be scrolled" },
    image,
  );
  box.words = words;
  const buttons = [
    button("Copy brackets", () => text),
    button("Copy SVG", () => standalone(image)),
  ];
  return html(
    "figure",
    {},
    html("figcaption", {}, html("h2", {}, title), html("div", { class: "buttons" }, ...buttons)),
    box,
    part("list", "The tree as a list", () => outline(words, nodes)),
    part("brackets", "The tree in brackets", () => html("code", { dir: "ltr" }, text)),
    part("numbers", "The distances as a table", () => table(words, panels)),
  );
}

// The bars: of each gate that counts, and of each layer that does, the mean over the models.
function panelsOf(measured, { layer, gate }) {
  const gates = gate === "both" ? GATES : [gate];
  const count = parsers[state.model].layers;
  const layers = layer === null ? Array.from({ length: count }, (_, i) => i + 1) : [layer];
  return gates.map((name) => ({
    gate: name,
    bars: layers.map((one) => ({
      layer: one,
      values: mean(rowsOf(measured, reader().members, { layer: one, gate: name })),
    })),
  }));
}

const pencil = document.createElement("canvas").getContext("2d");
function widthOf(word) {
  pencil.font = FONT;
  return pencil.measureText(word).width;
}

function drawn({ title, ...parts }) {
  const { width, height, elements } = picture({ ...parts, widthOf });
  const children = elements.map(([name, attributes, text]) => {
    if (text === undefined) return svg(name, attributes);
    return name === "text"
      ? svg(name, attributes, text)
      : svg(name, attributes, svg("title", {}, text));
  });
  const known = {
    role: "img",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "aria-label": `${title}: ${parts.words.join(" ")}`,
  };
  const description = `${many(parts.words.length, "word")} in a line, branches above, bars below.`;
  return svg("svg", known, svg("desc", {}, description), ...children);
}

// What opens below a picture, made when it is opened, and open again in the next picture.
function part(name, title, make) {
  const inside = html("div", { role: "group", "aria-label": title });
  const details = html("details", { "data-part": name }, html("summary", {}, title), inside);
  details.open = open.has(name);
  if (details.open) inside.append(make());
  const reach = () =>
    inside.scrollWidth > inside.clientWidth || inside.scrollHeight > inside.clientHeight;
  details.addEventListener("toggle", () => {
    if (details.open) open.add(name);
    else open.delete(name);
    if (details.open && !inside.firstChild) inside.append(make());
    if (reach()) inside.tabIndex = 0; // so that keys scroll it
  });
  return details;
}

function button(title, make) {
  const made = html("button", { type: "button" }, title);
  made.addEventListener("click", () => take(made, make));
  return made;
}

async function take(pressed, make) {
  const title = pressed.dataset.title ?? (pressed.dataset.title = pressed.textContent);
  try {
    await copy(make());
    pressed.textContent = "Copied";
    say(`${title}: done.`);
  } catch (error) {
    say(`Not copied: ${error.message}.`);
  }
  setTimeout(() => (pressed.textContent = title), 1500);
}

// --- The models ----------------------------------------------------------------------------------

const files = [runtime, ...Object.values(parsers).flatMap(({ models }) => models)];
const total = files.reduce((sum, file) => sum + file.packed, 0);
let worker = null;
let readers = {}; // of each parser
const reader = () => readers[state.model];

function start() {
  find("failed").hidden = true;
  loading.hidden = false;
  find("progress").value = 0;
  const options = { type: "module", name: state.model }; // which is loaded first
  worker = new Worker(new URL("worker.mjs", import.meta.url), options);
  worker.addEventListener("error", (event) =>
    told({ failed: event.message || "worker.mjs could not be loaded" }),
  );
  readers = Object.fromEntries(
    Object.keys(parsers).map((name) => [
      name,
      new Reader(worker, name, () => name === state.model && show()),
    ]),
  );
  worker.addEventListener("message", ({ data }) => told(data));
}

function told({ progress, models, failed }) {
  if (failed) {
    find("failed").firstElementChild.textContent = `The parser could not be loaded: ${failed}`;
    find("failed").hidden = false;
    loading.hidden = true;
    return;
  }
  if (progress) {
    const share = Math.min(progress / total, 1);
    find("progress").value = share;
    const here = Object.values(readers).reduce((sum, { models }) => sum + models, 0);
    const count = here
      ? `${here} of ${files.length - 1} models parse already`
      : "Loading the parser";
    find("loaded").textContent =
      `${count}: ${((share * total) / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
  }
  const all = Object.entries(parsers).every(
    ([name, { models }]) => readers[name].models === models.length,
  );
  if (models && all) {
    loading.hidden = true;
    sayOffline();
  }
}

async function sayOffline() {
  if (!("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.ready;
  find("offline").hidden = false;
}

// --- Begin ---------------------------------------------------------------------------------------

find("theme").value = document.documentElement.dataset.theme ?? "";
find("theme").addEventListener("change", ({ target }) => {
  if (target.value) document.documentElement.dataset.theme = target.value;
  else delete document.documentElement.dataset.theme;
  try {
    localStorage.setItem("theme", target.value);
  } catch {
    // then it is for this time alone
  }
});
field.addEventListener("input", () => change({ text: field.value }));
find("form").addEventListener("submit", (event) => event.preventDefault());
find("examples").addEventListener("change", ({ target }) => {
  if (target.value) change({ text: (field.value = target.value) });
  target.value = "";
});
find("link").addEventListener("click", ({ currentTarget }) => {
  take(currentTarget, () => new URL(toFragment(state), location.href).href);
});
find("again").addEventListener("click", () => {
  worker.terminate();
  start();
  show();
});
addEventListener("hashchange", fill);
addEventListener("resize", () => results.querySelectorAll(".picture").forEach(fit));
if ("serviceWorker" in navigator)
  navigator.serviceWorker.register("service-worker.js").catch(() => {});
if (documentation) {
  find("documentation").href = documentation;
  find("documentation").hidden = false;
}
performance.mark("changed");
choices();
fill();
start();
show();
