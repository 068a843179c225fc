// What is shown, and the fragment of an address that says it.

export const CHOICES = {
  tree: { votes: "votes", greedy: "greedy", binary: "binary", both: "greedy and binary" },
  layer: { all: "all" }, // and the numbers of layers
  gate: { both: "both", forget: "forget", input: "input" },
};

export const DEFAULTS = { tree: "votes", layer: "all", gate: "both" };

// state: { text, tree, layer, gate }. What is as usual is left out.
export function toFragment(state) {
  const written = new URLSearchParams({ text: state.text });
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    if (state[name] !== usual) written.set(name, state[name]);
  }
  return `#${written}`;
}

// A fragment, from wherever, as { text or null, tree, layer, gate }; what makes no sense is as
// usual.
export function fromFragment(fragment, layers, longest = 20_000) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const state = { text: given.get("text")?.slice(0, longest) ?? null };
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = given.get(name);
    const numbered = name === "layer" && /^[1-9][0-9]?$/.test(value) && Number(value) <= layers;
    state[name] = numbered || Object.hasOwn(CHOICES[name], value) ? value : usual;
  }
  return state;
}

// How Parser is to read, once for each tree that is shown.
export function readingsOf({ tree, layer, gate }) {
  const methods = tree === "both" ? ["greedy", "binary"] : [tree];
  return methods.map((method) => ({ method, layer: layer === "all" ? null : Number(layer), gate }));
}
