// What the scripts of several kinds of answer share.
const parts = (() => {
  const { data: { names }, element, number } = g3nn;
  const { packed, sides, unpack } = graph;
  const FULL = 65535; // Stands for 1 in a share.

  const told = packed.ranked && sides.map((side) =>
    [side.ranked, side.beliefs].map((text) => unpack(text, Uint16Array)));

  // The embedded classes or tags of a node, with their probabilities.
  function belief(place, side) {
    const start = place * packed.width;
    const [ranked, shares] = told[side];
    return Array.from({ length: packed.width }, (_, rank) =>
      ({ name: ranked[start + rank], probability: shares[start + rank] / FULL }));
  }

  const { colour } = palette; // Of a class or a tag, by its number.
  const swatch = (shade) => element("i", { class: "swatch", style: `--class: ${shade}`, "aria-hidden": "true" });
  const marked = (shade, text) => element("span", { class: "named", title: text }, swatch(shade),
    element("span", { class: "text" }, text));
  const named = (name) => marked(colour(name), names[name]);

  // Probabilities as bars. mark(row) stands before a name. others: {text, probability} of a last row without a bar.
  function bars(rows, { mark = () => "", others = null } = {}) {
    const row = (attributes, text, bar, probability) => element("li", attributes, element("span", { class: "text",
      title: text }, text), bar, element("span", { class: "value" }, number(probability)));
    const bar = ({ probability }) => element("i", { class: "bar", "aria-hidden": "true" },
      element("i", { style: `width: ${100 * probability}%` }));
    return element("ul", { class: "bars" }, ...rows.map((own) => row({ style: `--class: ${colour(own.name)}` },
      mark(own) + names[own.name], bar(own), own.probability)),
    others && row({ class: "others" }, others.text, element("i"), others.probability));
  }

  // Entries of the legend of a drawing: how many nodes share a key, the keys in their order.
  function counted(keys, show) {
    const counts = new Map();
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    return [...counts].sort(([one], [other]) => one - other).map(([key, many]) =>
      element("span", { class: "entry" }, show(key), element("span", { class: "many" }, `× ${many}`)));
  }

  // Entries for the types of some edges, those without a colour of their own together.
  const typed = (edges) => (packed.types === null ? [] : [element("div", { class: "legend lines" },
    ...counted(edges.flatMap(({ types }) => types.map(graph.shadeNumber)), (shade) => marked(graph.shade([shade]),
      shade === graph.MOST_SHADES ? "other types" : packed.types.names[shade])))]);

  // A label in a table, marked if it differs from the answer.
  const label = (content, title, differs) =>
    element("span", { class: differs ? "label differs" : "label", title }, differs ? "≠ " : "", content);

  // Columns of tables of nodes. A file has the id beside the name.
  const reference = {
    label: "node", value: (one) => one.name, show: (one) => graph.reference(one.place), word: true,
    files: [{ label: "id", value: (one) => one.id },
      ...(packed.title === null ? [] : [{ label: packed.title, value: (one) => one.name }])],
  };
  const kind = packed.kinds === null ? [] : [{ label: "kind", value: (one) => one.kind, word: true }];
  const type = packed.types === null ? [] : [{ label: "type", value: graph.typeText, word: true }];
  const filters = () => [...graph.kindFilters, ...beliefs.filters];
  const degree = { label: "degree", value: (one) => one.degree };

  // A column with the answer and how certain it is, in the words `more` of a node; `files` follow the answer in a file.
  const believed = (answer, more, files) => ({
    ...answer, files: [{ label: answer.label, value: answer.value }, ...files],
    show: (one) => element("span", { class: "believed" }, answer.show(one), element("span", { class: "many" }, more(one))),
  });

  // The columns of the reader's own table.
  const original = Object.entries(packed.columns).filter(([name]) => name !== packed.title)
    .map(([name, texts]) => ({ label: name, value: (one) => texts[one.place] }));

  // A column about one of the nodes that a row is about. In a file its name begins with `which`.
  function about(side, column, which = "") {
    const of = ({ label, value }) => ({ label: `${which} ${label}`.trim(), value: (row) => value(row[side]) });
    return {
      ...column, value: (row) => column.value(row[side]), show: (row) => (column.show ?? column.value)(row[side]),
      files: (column.files ?? [column]).map(of),
    };
  }

  return { reference, kind, type, typed, filters, degree, believed, original, about, FULL, belief, colour, marked, named, bars, counted, label };
})();
