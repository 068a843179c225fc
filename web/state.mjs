// The state of the page and its representation as the fragment of an address.

export const CHOICES = {
  model: { onlstm: "ON-LSTM", prpn: "PRPN" },
  tree: { votes: "votes", greedy: "greedy", binary: "binary", both: "greedy and binary" },
  layer: { all: "all" }, // and numbers of layers
  gate: { both: "both", forget: "forget", input: "input" },
};

export const DEFAULTS = { model: "onlstm", tree: "votes", layer: "all", gate: "both" };

// The default of Parser for a kind of model.
export function defaultTree(model) {
  return model === "prpn" ? "greedy" : DEFAULTS.tree;
}

// state: { text, model, tree, layer, gate }. Defaults are left out.
export function toFragment(state) {
  const parameters = new URLSearchParams({ text: state.text });
  const defaults = { ...DEFAULTS, tree: defaultTree(state.model) };
  for (const [name, value] of Object.entries(defaults)) {
    if (state[name] !== value) parameters.set(name, state[name]);
  }
  return `#${parameters}`;
}

// Parses a fragment: { text or null, model, tree, layer, gate }. Invalid values become defaults.
export function fromFragment(fragment, layers, longest = 20_000) {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = { text: parameters.get("text")?.slice(0, longest) ?? null };
  for (const name of Object.keys(DEFAULTS)) {
    const value = parameters.get(name);
    const isLayer = name === "layer" && /^[1-9][0-9]?$/.test(value) && Number(value) <= layers;
    const fallback = name === "tree" ? defaultTree(state.model) : DEFAULTS[name];
    state[name] = isLayer || Object.hasOwn(CHOICES[name], value) ? value : fallback;
  }
  return state;
}

// The settings of Parser for each tree that is shown. A PRPN has a single layer of distances.
export function settingsOf({ model, tree, layer, gate }) {
  const methods = tree === "both" ? ["greedy", "binary"] : [tree];
  if (model === "prpn") {
    return methods.map((method) => ({ method, layer: null, gate: "syntactic" }));
  }
  return methods.map((method) => ({ method, layer: layer === "all" ? null : Number(layer), gate }));
}
