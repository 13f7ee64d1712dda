// Fills the page of a fitted model.
(() => {
  const { data, element, missing, number, colour, figure, plain, short } = g3nn;
  const { packed } = graph;
  const fill = (id, ...content) => document.getElementById(id)?.append(...content.filter(Boolean));

  // One bar for each model tried, as long as the value in this column.
  function bars({ columns, rows }, label) {
    const index = Object.keys(columns).indexOf(label);
    const known = rows.filter((row) => !missing(row[index]));
    const values = known.map((row) => row[index]);
    const [low, high] = [Math.min(...values, 0), Math.max(...values, 0)];
    const range = [low < 0 ? low - 0.15 * (high - low) : 0, high + 0.05 * (high - low)];
    const build = () => ({
      traces: [{
        type: "bar", orientation: "h", x: values, y: known.map(([rank]) => rank),
        marker: { color: known.map((row) => (row.at(-1) ? colour("accent") : colour("series-0", 0.45))) },
        text: values.map((value) => number(value)), textposition: "outside", cliponaxis: false,
        customdata: known.map(([, ...words]) => plain(words.slice(0, 3).filter(Boolean).join(", "))),
        hovertemplate: "%{customdata}: %{x:.4f}<extra></extra>",
      }],
      height: 54 + 25 * rows.length, x: [`validation ${label}`, { range, nticks: 5, showgrid: false }],
      y: ["", {
        autorange: "reversed", showgrid: false, showline: false, ticklen: 4, tickcolor: "rgba(0, 0, 0, 0)",
        tickvals: known.map(([rank]) => rank), ticktext: known.map(([rank, model]) => `${rank}. ${short(model, 18)}`),
      }],
      layout: { margin: { l: 46, r: 46, t: 6, b: 40 } },
    });
    return figure(`validation ${label} of every model tried`, build);
  }

  function models(panel) {
    const charts = element("div", { class: "pairs" }, bars(panel, "loss"), bars(panel, data.score.title));
    return [panel.rows.length > 1 ? charts : null, tables.simple(panel)];
  }

  function uncertain() {
    const columns = [parts.reference, ...parts.kind, beliefs.answer, ...beliefs.doubts, parts.degree, beliefs.given];
    return tables.paged("Uncertain nodes", columns, packed.uncertain.map((place) => beliefs.node(place)), {
      search: (one) => [one.id, one.name, ...beliefs.words(one)], filters: parts.filters(), also: parts.original,
    });
  }

  const WITHOUT = { one: "oneWithout", other: "otherWithout" };

  // What is believed about an end without suspicious edges, set off where the answer changes.
  const otherwise = (side, label) => {
    const column = parts.about(WITHOUT[side], { ...beliefs.believed, label: "without" }, `${label} without`);
    const changed = (row) => beliefs.changed(row[side], row[WITHOUT[side]]);
    return { ...column, show: (row) => element("span", { class: changed(row) ? "changed" : "same" }, column.show(row)) };
  };

  // edges: {source, target, probability}, the most remarkable first. compared: whether to say what is believed about the
  // ends without suspicious edges.
  function pairs(caption, edges, empty, compared = false) {
    const end = (side, label) =>
      [...[{ ...parts.reference, label }, compared ? beliefs.believed : beliefs.answer].map((column) =>
        parts.about(side, column, label)), ...(compared ? [otherwise(side, label)] : [])];
    const filters = parts.filters().map(({ label, options }) => ({
      label, options: options.map(({ text, test }) => ({ text, test: ({ one, other }) => test(one) || test(other) })),
    }));
    const differs = (row) => Object.entries(WITHOUT).some(([side, after]) => beliefs.changed(row[side], row[after]));
    if (compared) {
      filters.push({
        label: "Without", options: [
          { text: "an answer changes", test: differs }, { text: "no answer changes", test: (row) => !differs(row) },
        ],
      }, ...graph.typeFilters);
    }
    const columns = [
      { label: "rank", value: (row) => row.rank },
      { label: "probability", value: (row) => row.probability, show: (row) => graph.odds(row.probability) },
      ...(compared ? parts.type : []),
      ...end("one", packed.directed ? "from" : "node"), ...end("other", packed.directed ? "to" : "other node"),
    ];
    const rows = edges.map(({ source, target, probability, types }, index) =>
      ({
        rank: index + 1, probability, types, one: beliefs.node(source), other: beliefs.node(target),
        oneWithout: beliefs.node(source, 1), otherWithout: beliefs.node(target, 1),
      }));
    const search = ({ one, other }) => [one, other].flatMap((side) => [side.id, side.name, String(beliefs.answer.value(side))]);
    return tables.paged(caption, columns, rows, { search, empty, filters });
  }

  const judged = beliefs.validation().filter(Boolean);
  fill("names-table", tables.simple(data.table));
  fill("thresholds-table", data.thresholds && tables.simple(data.thresholds));
  fill("types-table", data.types && tables.simple(data.types));
  fill("schema-table", data.schema && tables.simple(data.schema));
  fill("columns-table", data.traps && tables.simple(data.traps));
  fill("simple-table", data.simple && tables.simple(data.simple));
  fill("labels-table", data.labels?.rows.length && tables.simple(data.labels));
  fill("models-body", ...models(data.panel));
  fill("validation-body", judged.length ? element("div", { class: "pairs judged" }, ...judged) : null,
    evidence.curves(data.curves, "replicas of the network with the largest weight"));
  fill("uncertain-table", uncertain());
  fill("suspicious-table", pairs("Suspicious edges", packed.suspicious.map(graph.edge),
    packed.edges ? "No edge is suspicious." : "The graph has no edges.", true));
  fill("missing-table", pairs("Likely missing edges", packed.missing.map(([source, target, probability]) =>
    ({ source, target, probability })), "No pair was found that would be expected to have an edge."));
  g3nn.drawFigures();
  explorer.follow();
  map.show();
})();
