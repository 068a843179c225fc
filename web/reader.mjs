// Reads the sentences of the page: asks the worker for what it does not know yet.

import { together } from "./parsing/parser.mjs";

const REMEMBERED = 300; // sentences

export class Reader {
  // name: of the parser whose models the worker is asked for; changed: function without arguments,
  // called when there is something new to show.
  constructor(worker, name, changed) {
    this.worker = worker;
    this.name = name;
    this.changed = changed;
    this.models = 0; // that are there
    this.members = []; // how many layers each language model in them has
    this.known = new Map(); // sentences, the last used last, and what each model measured
    this.wanted = [];
    this.busy = false;
    worker.addEventListener("message", ({ data }) => data.parser === name && this.answer(data));
  }

  // What all models that are there measured of each sentence; null where it is still to come.
  measured(sentences) {
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

  // One sentence at a time, always of the latest text.
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
      if (this.known.size > REMEMBERED) this.known.delete(this.known.keys().next().value);
      this.busy = false;
    } else [this.models, this.members] = [data.models.length, data.models.flat()];
    this.changed();
  }
}
