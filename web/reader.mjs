// Requests the distances of sentences from the worker and caches them.

import { together } from "./parsing/parser.mjs";

const CACHE_SIZE = 300; // sentences

export class Reader {
  // name: name of the parser; changed: function without arguments that is called when there is
  // something new to show.
  constructor(worker, name, changed) {
    this.worker = worker;
    this.name = name;
    this.changed = changed;
    this.models = 0; // number of loaded models
    this.layers = []; // number of layers of each language model
    this.known = new Map(); // sentence: distances of each model; the most recently used is last
    this.wanted = [];
    this.busy = false;
    worker.addEventListener("message", ({ data }) => data.parser === name && this.answer(data));
  }

  // The distances of all loaded models for each sentence; null for those that are not ready yet.
  distances(sentences) {
    this.wanted = sentences;
    this.ask();
    return sentences.map((words) => {
      const parts = this.parts(words);
      return parts.length && parts.length === this.models ? together(parts) : null;
    });
  }

  parts(words) {
    return this.known.get(words.join(" ")) ?? [];
  }

  // Requests one sentence at a time, always of the latest text.
  ask() {
    if (this.busy) return;
    const next = this.wanted.find((words) => this.parts(words).length < this.models);
    if (!next) return;
    this.busy = true;
    this.worker.postMessage({ parser: this.name, words: next, first: this.parts(next).length });
  }

  answer(data) {
    if (data.parts) {
      const key = data.words.join(" ");
      const parts = [...this.parts(data.words), ...data.parts];
      this.known.delete(key);
      this.known.set(key, parts);
      if (this.known.size > CACHE_SIZE) this.known.delete(this.known.keys().next().value);
      this.busy = false;
    } else [this.models, this.layers] = [data.models.length, data.models.flat()];
    this.changed();
  }
}
