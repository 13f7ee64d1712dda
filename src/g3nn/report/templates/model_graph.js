"use strict";

// The embedded graph: what is believed of a node, which edges it has, and how likely these are.
const graph = (() => {
  const { data, element, missing, number } = g3nn;
  const { classes, graph: packed } = data;
  const FULL = 65535; // Stands for 1 in a share, and for nothing in a label.
  const PALETTE = 10;
  const GOLDEN_ANGLE = 137.5;
  const USES = ["", "training", "validation"];

  function unpack(text, Numbers) {
    return new Numbers(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer);
  }

  const ranked = unpack(packed.classes, Uint16Array);
  const beliefs = unpack(packed.beliefs, Uint16Array);
  const entropy = unpack(packed.entropy, Uint16Array);
  const sets = unpack(packed.sets, Uint16Array);
  const degree = unpack(packed.degree, Uint32Array);
  const label = unpack(packed.label, Uint16Array);
  const use = unpack(packed.use, Uint8Array);
  const source = unpack(packed.source, Uint16Array);
  const target = unpack(packed.target, Uint16Array);
  const probability = packed.probability === null ? null : unpack(packed.probability, Float32Array);
  const size = packed.ids.length;
  const places = new Map();
  packed.ids.forEach((id, place) => places.has(id) || places.set(id, place));

  // A node by its place. Its classes are those of its set first, then by how likely they are.
  function node(place) {
    const start = place * packed.width;
    const belief = Array.from({ length: packed.width }, (_, rank) =>
      ({ class: ranked[start + rank], probability: beliefs[start + rank] / FULL }));
    const likeliest = belief.reduce((best, one) => (one.probability > best.probability ? one : best));
    return {
      place, id: packed.ids[place], belief, answer: likeliest.class, probability: likeliest.probability,
      entropy: Math.log(classes.length) * entropy[place] / FULL, setSize: sets[place], degree: degree[place],
      label: label[place] === FULL ? null : label[place], use: USES[use[place]],
    };
  }

  // Edges by node: those of a node are order[first[node]] to order[first[node + 1] - 1].
  const first = new Uint32Array(size + 1);
  for (const ends of [source, target]) ends.forEach((place) => { first[place + 1] += 1; });
  for (let place = 0; place < size; place += 1) first[place + 1] += first[place];
  const order = new Uint32Array(2 * source.length);
  const filled = first.slice();
  for (const ends of [source, target]) ends.forEach((place, edge) => { order[filled[place]++] = edge; });

  const edge = (number) => ({
    source: source[number], target: target[number], probability: probability === null ? null : probability[number],
  });

  // The embedded edges of a node, the least likely first: {neighbour, probability, outgoing, suggested}.
  function links(place) {
    const own = [...order.subarray(first[place], first[place + 1])].map((number) => {
      const { source: from, target: to, probability: likely } = edge(number);
      return { neighbour: from === place ? to : from, probability: likely, outgoing: from === place, suggested: false };
    });
    return own.sort((one, other) =>
      (one.probability ?? 0) - (other.probability ?? 0) || one.neighbour - other.neighbour);
  }

  // The listed pairs that lack an edge at this node.
  function suggestions(place) {
    return packed.missing.filter(([one, other]) => one === place || other === place).map(([one, other, likely]) =>
      ({ neighbour: one === place ? other : one, probability: likely, outgoing: one === place, suggested: true }));
  }

  // Probabilities of edges differ most near 0 and 1, where they need more digits to be told apart.
  function odds(likely) {
    if (missing(likely) || (likely >= 0.01 && likely <= 0.999)) return number(likely);
    return likely < 0.01 ? likely.toPrecision(2) : number(likely, 4);
  }

  // How many in a hundred edges of the whole graph are likelier.
  function rarity(likely) {
    if (missing(likely) || !packed.quantiles.length) return null;
    const below = packed.quantiles.filter((value) => value < likely).length;
    return Math.max(0, 100 - below);
  }

  function colour(name) {
    if (name < PALETTE) return `var(--class-${name})`;
    const hue = (name * GOLDEN_ANGLE) % 360;
    return `light-dark(oklch(0.52 0.13 ${hue}), oklch(0.76 0.12 ${hue}))`;
  }

  const swatch = (name) => element("i", { class: "swatch", style: `--class: ${colour(name)}`, "aria-hidden": "true" });
  const named = (name) => element("span", { class: "named", title: classes[name] }, swatch(name),
    element("span", { class: "text" }, classes[name]));

  // A button that goes to the node, or its name alone where nothing is known of its surroundings.
  function reference(place) {
    const id = packed.ids[place];
    const attributes = { class: "id text", title: id };
    return place < packed.explorable
      ? element("button", { ...attributes, type: "button", "data-node": place }, id) : element("span", attributes, id);
  }

  // What is believed of a node as one bar, cut into classes.
  function beliefBar({ belief }) {
    const told = belief.filter((one) => one.probability >= 0.0005);
    const text = told.map((one) => `${classes[one.class]} ${number(one.probability)}`).join(", ");
    return element("span", { class: "belief", role: "img", "aria-label": text, title: text },
      ...[...told].sort((one, other) => other.probability - one.probability).map((one) => element("i", {
        style: `--class: ${colour(one.class)}; width: ${(100 * one.probability).toFixed(2)}%`,
      })));
  }

  function labelCell({ label: given, use: part, answer }) {
    if (given === null) return "–";
    const differs = given !== answer;
    const title = `${classes[given]}, given for ${part}${differs ? ", differs from the answer" : ""}`;
    return element("span", { class: differs ? "label differs" : "label", title }, differs ? "≠ " : "", named(given));
  }

  // What else is in the set of classes of a node: one name, and how many more there are.
  function setCell({ belief, setSize, answer }) {
    const others = belief.slice(0, setSize).map((one) => one.class).filter((name) => name !== answer);
    if (!others.length) return "–";
    const title = others.map((name) => classes[name]).join(", ");
    return element("span", { class: "set", title }, named(others[0]), setSize > 2 ? ` + ${setSize - 2}` : "");
  }

  return {
    packed, classes, node, edge, links, suggestions, odds, rarity, colour, named, reference, beliefBar, labelCell,
    setCell, place: (id) => places.get(id) ?? null,
    explorable: (place) => place !== null && place < packed.explorable,
  };
})();
