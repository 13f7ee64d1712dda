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
    const columns = [parts.reference, beliefs.answer, ...beliefs.doubts, parts.degree, beliefs.given];
    return tables.paged("Uncertain nodes", columns, packed.uncertain.map(beliefs.node), {
      search: (one) => [one.id, one.name, ...beliefs.words(one)], filters: beliefs.filters, also: parts.original,
    });
  }

  // edges: {source, target, probability}, the most remarkable first.
  function pairs(caption, edges, empty) {
    const end = (side, label) =>
      [{ ...parts.reference, label }, beliefs.answer].map((column) => parts.about(side, column, label));
    const filters = beliefs.filters.map(({ label, options }) => ({
      label, options: options.map(({ text, test }) => ({ text, test: ({ one, other }) => test(one) || test(other) })),
    }));
    const columns = [
      { label: "rank", value: (row) => row.rank },
      ...end("one", packed.directed ? "from" : "node"), ...end("other", packed.directed ? "to" : "other node"),
      { label: "probability", value: (row) => row.probability, show: (row) => graph.odds(row.probability) },
    ];
    const rows = edges.map(({ source, target, probability }, index) =>
      ({ rank: index + 1, one: beliefs.node(source), other: beliefs.node(target), probability }));
    const search = ({ one, other }) => [one, other].flatMap((side) => [side.id, side.name, String(beliefs.answer.value(side))]);
    return tables.paged(caption, columns, rows, { search, empty, filters });
  }

  const judged = beliefs.validation().filter(Boolean);
  fill("names-table", tables.simple(data.table));
  fill("schema-table", data.schema && tables.simple(data.schema));
  fill("models-body", ...models(data.panel));
  fill("validation-body", judged.length ? element("div", { class: "pairs judged" }, ...judged) : null,
    evidence.curves(data.curves, "replicas of the network with the largest weight"));
  fill("uncertain-table", uncertain());
  fill("suspicious-table", pairs("Suspicious edges", packed.suspicious.map(graph.edge), "The graph has no edges."));
  fill("missing-table", pairs("Likely missing edges", packed.missing.map(([source, target, probability]) =>
    ({ source, target, probability })), "No pair was found that would be expected to have an edge."));
  g3nn.drawFigures();
  explorer.follow();
  map.show();
})();
