// What is shown, and the fragment of an address that says it.

export const CHOICES = {
  model: { onlstm: "ON-LSTM", prpn: "PRPN" },
  tree: { votes: "votes", greedy: "greedy", binary: "binary", both: "greedy and binary" },
  layer: { all: "all" }, // and the numbers of layers
  gate: { both: "both", forget: "forget", input: "input" },
};

export const DEFAULTS = { model: "onlstm", tree: "votes", layer: "all", gate: "both" };

// How Parser reads a model of that kind unasked.
export function usualTree(model) {
  return model === "prpn" ? "greedy" : DEFAULTS.tree;
}

// state: { text, model, tree, layer, gate }. What is as usual is left out.
export function toFragment(state) {
  const written = new URLSearchParams({ text: state.text });
  const usual = { ...DEFAULTS, tree: usualTree(state.model) };
  for (const [name, value] of Object.entries(usual)) {
    if (state[name] !== value) written.set(name, state[name]);
  }
  return `#${written}`;
}

// A fragment, from wherever, as { text or null, model, tree, layer, gate }; what makes no sense is
// as usual.
export function fromFragment(fragment, layers, longest = 20_000) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = { text: given.get("text")?.slice(0, longest) ?? null };
  for (const name of Object.keys(DEFAULTS)) {
    const value = given.get(name);
    const numbered = name === "layer" && /^[1-9][0-9]?$/.test(value) && Number(value) <= layers;
    const usual = name === "tree" ? usualTree(state.model) : DEFAULTS[name];
    state[name] = numbered || Object.hasOwn(CHOICES[name], value) ? value : usual;
  }
  return state;
}

// How Parser is to read, once for each tree that is shown. A PRPN has one layer of distances.
export function readingsOf({ model, tree, layer, gate }) {
  const methods = tree === "both" ? ["greedy", "binary"] : [tree];
  if (model === "prpn") {
    return methods.map((method) => ({ method, layer: null, gate: "syntactic" }));
  }
  return methods.map((method) => ({ method, layer: layer === "all" ? null : Number(layer), gate }));
}
