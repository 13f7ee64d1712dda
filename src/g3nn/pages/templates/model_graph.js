// The embedded graph: which edges a node has, and how likely they are. `beliefs` knows the answers. Whatever is about a
// node has two sides: 0, as fitted, and 1, without suspicious edges. Drawings show one of them, which the reader chooses.
const graph = (() => {
  const { data: { graph: packed }, element, missing, number } = g3nn;
  const MOST_SHADES = 8; // Types of edges that have a colour of their own: those with most edges.
  const USES = ["", "training", "validation"];

  function unpack(text, Numbers) {
    return new Numbers(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)).buffer);
  }

  const sides = [packed, { ...packed, ...packed.without }];
  const degree = sides.map((side) => unpack(side.degree, Uint32Array));
  const use = unpack(packed.use, Uint8Array);
  const source = unpack(packed.source, Uint16Array);
  const target = unpack(packed.target, Uint16Array);
  const probability = packed.probability === null ? null : unpack(packed.probability, Float32Array);
  const names = packed.title === null ? packed.ids
    : packed.columns[packed.title].map((text, place) => text ?? packed.ids[place]);

  // Where each text first stands in a list.
  function places(texts) {
    const found = new Map();
    texts.forEach((text, place) => found.has(text) || found.set(text, place));
    return found;
  }

  const byId = places(packed.ids);
  const byName = places(names);

  const { types, kinds } = packed; // null where there is only one
  const setOf = types && unpack(types.at, Uint32Array);
  const kindOf = kinds && unpack(kinds.at, Uint16Array);
  const typeText = (one) => one.types.map((type) => types.names[type]).join(", ") || null;
  const shadeNumber = (type) => Math.min(type, MOST_SHADES);
  const shade = ([type = MOST_SHADES]) => (type < MOST_SHADES ? `var(--type-${type})` : "var(--strong-line)");
  const typeFilters = types === null ? [] : [{
    label: "Edge type", options: types.names.map((text, type) => ({ text, test: (one) => one.types.includes(type) })),
  }];
  const kindFilters = kinds === null ? [] : [{
    label: "Kind", options: kinds.names.map((text) => ({ text, test: (one) => one.kind === text })),
  }];

  let shownSide = 0;
  let shownType = -1;

  // A choice of the type of edges that are shown; all of them on the page agree.
  function typeSwitch(caption) {
    return typeFilters.map((filter) => {
      const { element: made } = tables.chooser(filter, caption);
      made.addEventListener("change", () => {
        shownType = Number(made.value);
        dispatchEvent(new Event("turned"));
      });
      addEventListener("turned", () => { made.value = shownType; });
      return made;
    });
  }

  // A switch between the sides; all of them on the page agree. Nothing where no edge is suspicious.
  function sideSwitch() {
    if (packed.without === null) return [];
    const box = element("input", { type: "checkbox", role: "switch" });
    box.addEventListener("change", () => {
      shownSide = Number(box.checked);
      dispatchEvent(new Event("turned"));
    });
    addEventListener("turned", () => { box.checked = shownSide === 1; });
    return [element("label", { class: "switch" }, box, "without suspicious edges")];
  }

  // A node by its place, without its answer. name: its id, if the table has no column with names.
  const node = (place, side = 0) =>
    ({ place, id: packed.ids[place], name: names[place], kind: kinds && kinds.names[kindOf[place]], degree: degree[side][place], use: USES[use[place]] });

  const incident = packed.ids.map(() => []);
  for (const ends of [source, target]) ends.forEach((place, edge) => incident[place].push(edge));

  const edge = (number) => ({
    source: source[number], target: target[number], probability: probability === null ? null : probability[number],
    suspicious: probability !== null && probability[number] < packed.suspect,
    types: types ? types.sets[setOf[number]] : [],
  });
  const isShown = ({ suspicious, types: own }) => (!suspicious || !shownSide) && (shownType < 0 || own.includes(shownType));

  // The embedded edges of a node that are shown, the least likely first: {neighbour, probability, outgoing, suggested, types}.
  function links(place) {
    const own = incident[place].map(edge).filter(isShown).map((one) => {
      const { source: from, target: to, probability: likely, types: joining } = one;
      return { neighbour: from === place ? to : from, probability: likely, outgoing: from === place, suggested: false, types: joining };
    });
    return own.sort((one, other) =>
      (one.probability ?? 0) - (other.probability ?? 0) || one.neighbour - other.neighbour);
  }

  // The listed pairs that lack an edge at this node.
  function suggestions(place) {
    if (shownType >= 0) return [];
    return packed.missing.filter(([one, other]) => one === place || other === place).map(([one, other, likely]) =>
      ({ neighbour: one === place ? other : one, probability: likely, outgoing: one === place, suggested: true, types: [] }));
  }

  // Probabilities of edges differ most near 0 and 1, where it takes more digits to see a difference.
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

  // A button that goes to the node, or only its name where its surroundings are not on the page.
  function reference(place) {
    const [id, name] = [packed.ids[place], names[place]];
    const attributes = { class: "id text", title: id === name ? id : `${name} (${id})` };
    return place < packed.explorable
      ? element("button", { ...attributes, type: "button", "data-node": place }, name)
      : element("span", attributes, name);
  }

  return {
    packed, sides, side: () => shownSide, sideSwitch, typed: () => shownType >= 0, typeSwitch, typeText, typeFilters, kindFilters,
    shade, shadeNumber, MOST_SHADES, isShown, unpack, names, node, edge, links, suggestions, odds, rarity, reference, size: source.length,
    place: (id) => byId.get(id) ?? null, called: (name) => byName.get(name) ?? null,
    explorable: (place) => place !== null && place < packed.explorable,
  };
})();
