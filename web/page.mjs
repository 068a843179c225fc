// The page: from the text and the options to pictures of trees.

import "./files.js";
import { copy, standalone } from "./clipboard.mjs";
import { html, svg } from "./elements.mjs";
import { EXAMPLES } from "./examples.mjs";
import { FONT, commonNodes, isRightToLeft, picture } from "./figure.mjs";
import { outline, table } from "./outline.mjs";
import { mean, rowsOf, treeOf, GATES } from "./parsing/parser.mjs";
import { forbidden, wordsOf } from "./parsing/tokens.mjs";
import { brackets, nodesOf } from "./parsing/trees.mjs";
import { Reader } from "./reader.mjs";
import {
  CHOICES,
  DEFAULTS,
  defaultTree,
  fromFragment,
  settingsOf,
  toFragment,
} from "./state.mjs";

const { documentation, runtime, parsers } = globalThis.SITE;
const MAX_WORDS = 500; // of a sentence: the time for votes grows with the third power
const MAX_SENTENCES = 20;
const MIN_SCALE = 0.85; // wide pictures shrink to this scale; wider ones scroll
const TITLES = { greedy: "Greedy tree", binary: "Binary tree", votes: "Tree with the most votes" };

const find = (name) => document.getElementById(name);
const [field, results, message, loading] = ["text", "results", "message", "loading"].map(find);

// --- Text and options ----------------------------------------------------------------------------

let state = null;
let saving = 0; // timer
const open = new Set(); // names of the details that are open

function addChoices() {
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
    changed.tree = defaultTree(changed.model);
    results.replaceChildren(); // the trees of the previous model
  }
  state = { ...state, ...changed };
  updateOptions();
  show();
  clearTimeout(saving);
  // Not for every letter: browsers limit the rate.
  saving = setTimeout(() => history.replaceState(null, "", toFragment(state)), 300);
}

function fill() {
  state = fromFragment(location.hash, parsers.onlstm.layers);
  state.text ??= EXAMPLES[0];
  field.value = state.text;
  updateOptions();
  if (reader()) show();
}

function updateOptions() {
  for (const name of Object.keys(DEFAULTS)) {
    find(name).querySelector(`[value="${state[name]}"]`).checked = true;
  }
  const { layers, gates } = parsers[state.model];
  find("layer").hidden = layers === 1;
  find("gate").hidden = gates.length === 1;
}

// --- From text to pictures -----------------------------------------------------------------------

// The sentences to show, or an error message.
function sentencesOf(text) {
  const index = forbidden(text);
  if (index >= 0)
    return { error: `Character ${index + 1} is a control character. Please remove it.` };
  const sentences = wordsOf(text);
  if (!sentences.length)
    return { error: text.trim() ? "The text contains no words." : "Type a sentence." };
  const longest = Math.max(...sentences.map((words) => words.length));
  if (longest > MAX_WORDS) {
    return { error: `A sentence has ${longest} words. The maximum is ${MAX_WORDS}.` };
  }
  const skipped = sentences.length - MAX_SENTENCES;
  return { sentences: sentences.slice(0, MAX_SENTENCES), skipped };
}

function show() {
  const { sentences = [], error, skipped } = sentencesOf(state.text);
  const distances = reader().distances(sentences);
  const isComplete = reader().models > 0 && distances.every(Boolean);
  results.setAttribute("aria-busy", String(!error && !isComplete));
  if (error) {
    results.replaceChildren();
    say(error);
    return;
  }
  if (!isComplete) return; // the previous trees stay until the new ones are complete
  draw(sentences, distances);
  const counts = sentences.map((words) => words.length);
  const figures = counts.length * settingsOf(state).length;
  const size = counts.length === 1 ? ` of ${many(counts[0], "word")}` : "";
  const trees = `${figures === 1 ? "A tree" : `${figures} trees`}${size}`;
  say(
    skipped > 0
      ? `${trees}. ${many(skipped, "more sentence")} not shown.`
      : `${trees}, built by ${modelCount()}.`,
  );
  performance.measure("tree", "changed");
}

function modelCount() {
  const models = many(reader().layers.length, "model");
  return reader().models < parsers[state.model].models.length
    ? `${models} while the others are loading`
    : models;
}

function many(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

let speaking = 0;
function say(text) {
  clearTimeout(speaking);
  // The delay keeps screen readers from announcing every letter that is typed.
  speaking = setTimeout(() => message.textContent !== text && (message.textContent = text), 250);
}

function draw(sentences, distances) {
  const scrolled = [...results.querySelectorAll(".picture")].map((box) => box.scrollLeft);
  const focused = [...results.querySelectorAll("button, summary, .picture")].indexOf(
    document.activeElement,
  );
  const number = (i) => (sentences.length > 1 ? `${i + 1}. ` : "");
  results.replaceChildren(...sentences.map((words, i) => article(number(i), words, distances[i])));
  results.querySelectorAll(".picture").forEach((box, i) => {
    fit(box);
    box.scrollLeft = scrolled[i] ?? (isRightToLeft(box.words) ? box.scrollWidth : 0);
  });
  if (focused >= 0) results.querySelectorAll("button, summary, .picture")[focused]?.focus();
}

// A picture that is slightly too wide shrinks; a wider one scrolls, also with the keyboard.
function fit(box) {
  const width = box.firstElementChild.viewBox.baseVal.width;
  const scrolls = MIN_SCALE * width > box.clientWidth;
  box.firstElementChild.style.minWidth = scrolls ? `${width}px` : "";
  if (scrolls) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
}

function article(number, words, distances) {
  const allSettings = settingsOf(state);
  const splits = allSettings.map((settings) =>
    treeOf(rowsOf(distances, reader().layers, settings), settings.method),
  );
  const nodes = splits.map((split) => nodesOf(words.length, split));
  const common = nodes.length > 1 ? nodes.map((tree, i) => commonNodes(tree, nodes[1 - i])) : [];
  const figures = allSettings.map((settings, i) =>
    figure({
      number,
      words,
      distances,
      settings,
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
      html("p", {}, `${same} of ${phrases} phrases are in both trees. The others have red dots.`),
    );
  }
  return html("article", {}, ...parts);
}

function figure({ number, words, distances, settings, split, nodes, common }) {
  const title = number + TITLES[settings.method];
  const panels = panelsOf(distances, settings);
  const text = brackets(words, split);
  const image = drawPicture({ words, nodes, panels, common, title });
  const box = html(
    "div",
    { class: "picture", role: "group", "aria-label": "Picture (scrollable)" },
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
    details("list", "Tree as a list", () => outline(words, nodes)),
    details("brackets", "Tree in brackets", () => html("code", { dir: "ltr" }, text)),
    details("numbers", "Distances as a table", () => table(words, panels)),
  );
}

// The bars: the mean over the models, for each gate and layer that determines the tree.
function panelsOf(distances, { layer, gate }) {
  const gates = gate === "both" ? GATES : [gate];
  const count = parsers[state.model].layers;
  const layers = layer === null ? Array.from({ length: count }, (_, i) => i + 1) : [layer];
  return gates.map((name) => ({
    gate: name,
    bars: layers.map((number) => ({
      layer: number,
      values: mean(rowsOf(distances, reader().layers, { layer: number, gate: name })),
    })),
  }));
}

const measuring = document.createElement("canvas").getContext("2d");
function widthOf(word) {
  measuring.font = FONT;
  return measuring.measureText(word).width;
}

function drawPicture({ title, ...parts }) {
  const { width, height, elements } = picture({ ...parts, widthOf });
  const children = elements.map(([name, attributes, text]) => {
    if (text === undefined) return svg(name, attributes);
    return name === "text"
      ? svg(name, attributes, text)
      : svg(name, attributes, svg("title", {}, text));
  });
  const attributes = {
    role: "img",
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "aria-label": `${title}: ${parts.words.join(" ")}`,
  };
  const description = `${many(parts.words.length, "word")} in a line, branches above, bars below.`;
  return svg("svg", attributes, svg("desc", {}, description), ...children);
}

// A part below a picture that is created when it is opened, and stays open in the next picture.
function details(name, title, make) {
  const inside = html("div", { role: "group", "aria-label": title });
  const element = html("details", { "data-part": name }, html("summary", {}, title), inside);
  element.open = open.has(name);
  if (element.open) inside.append(make());
  const isScrollable = () =>
    inside.scrollWidth > inside.clientWidth || inside.scrollHeight > inside.clientHeight;
  element.addEventListener("toggle", () => {
    if (element.open) open.add(name);
    else open.delete(name);
    if (element.open && !inside.firstChild) inside.append(make());
    if (isScrollable()) inside.tabIndex = 0; // so that keys scroll it
  });
  return element;
}

function button(title, make) {
  const element = html("button", { type: "button" }, title);
  element.addEventListener("click", () => copyFrom(element, make));
  return element;
}

async function copyFrom(button, make) {
  const title = button.dataset.title ?? (button.dataset.title = button.textContent);
  try {
    await copy(make());
    button.textContent = "Copied";
    say(`${title}: done.`);
  } catch (error) {
    say(`Copying failed: ${error.message}.`);
  }
  setTimeout(() => (button.textContent = title), 1500);
}

// --- The models ----------------------------------------------------------------------------------

const files = [runtime, ...Object.values(parsers).flatMap(({ models }) => models)];
const total = files.reduce((sum, file) => sum + file.packed, 0);
let worker = null;
let readers = {}; // by name of the parser
const reader = () => readers[state.model];

function start() {
  find("failed").hidden = true;
  loading.hidden = false;
  find("progress").value = 0;
  const options = { type: "module", name: state.model }; // the parser that is loaded first
  worker = new Worker(new URL("worker.mjs", import.meta.url), options);
  worker.addEventListener("error", (event) =>
    receive({ failed: event.message || "worker.mjs could not be loaded" }),
  );
  readers = Object.fromEntries(
    Object.keys(parsers).map((name) => [
      name,
      new Reader(worker, name, () => name === state.model && show()),
    ]),
  );
  worker.addEventListener("message", ({ data }) => receive(data));
}

function receive({ progress, models, failed }) {
  if (failed) {
    find("failed").firstElementChild.textContent = `The parser could not be loaded: ${failed}`;
    find("failed").hidden = false;
    loading.hidden = true;
    return;
  }
  if (progress) {
    const share = Math.min(progress / total, 1);
    find("progress").value = share;
    const ready = Object.values(readers).reduce((sum, { models }) => sum + models, 0);
    const count = ready
      ? `${ready} of ${files.length - 1} models are ready`
      : "Loading the parser";
    find("progress-text").textContent =
      `${count}: ${((share * total) / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
  }
  const isComplete = Object.entries(parsers).every(
    ([name, { models }]) => readers[name].models === models.length,
  );
  if (models && isComplete) {
    loading.hidden = true;
    showOffline();
  }
}

async function showOffline() {
  if (!("serviceWorker" in navigator)) return;
  await navigator.serviceWorker.ready;
  find("offline").hidden = false;
}

// --- Start ---------------------------------------------------------------------------------------

find("theme").value = document.documentElement.dataset.theme ?? "";
find("theme").addEventListener("change", ({ target }) => {
  if (target.value) document.documentElement.dataset.theme = target.value;
  else delete document.documentElement.dataset.theme;
  try {
    localStorage.setItem("theme", target.value);
  } catch {
    // without storage it applies to this visit only
  }
});
field.addEventListener("input", () => change({ text: field.value }));
find("form").addEventListener("submit", (event) => event.preventDefault());
find("examples").addEventListener("change", ({ target }) => {
  if (target.value) change({ text: (field.value = target.value) });
  target.value = "";
});
find("link").addEventListener("click", ({ currentTarget }) => {
  copyFrom(currentTarget, () => new URL(toFragment(state), location.href).href);
});
find("retry").addEventListener("click", () => {
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
addChoices();
fill();
start();
show();
