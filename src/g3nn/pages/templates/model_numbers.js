// What is believed about a node whose label is numbers. Tables and colours show the first column.
const beliefs = (() => {
  const { data, element, missing, fact, whole, plain, colour, figure, section } = g3nn;
  const { packed, sides, unpack } = graph;
  const [lowest, highest, spread] = packed.scale;
  const numbers = sides.map((side) => Object.fromEntries(["mean", "deviation", "low", "high", "label"].map((name) =>
    [name, unpack(side[name], Float32Array)])));

  // Four digits, whatever the unit.
  function short(value) {
    if (missing(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    return value.toLocaleString("en", { maximumSignificantDigits: 4 }).replace("-", "−");
  }

  function column(place, rank, side) {
    const at = place * packed.width + rank;
    const own = Object.fromEntries(Object.entries(numbers[side]).map(([name, values]) => [name, values[at]]));
    const label = Number.isNaN(own.label) ? null : own.label;
    return { ...own, name: data.names[rank], label, residual: label === null ? null : label - own.mean };
  }

  // A node by its place: its first column, and all of them as `columns`.
  function node(place, side = 0) {
    const columns = Array.from({ length: packed.width }, (_, rank) => column(place, rank, side));
    return {
      ...columns[0], ...graph.node(place, side), columns, known: columns.some(({ label }) => label !== null),
      sure: spread ? Math.max(0, 1 - columns[0].deviation / spread) : 0,
    };
  }

  const outside = ({ label, low, high }) => label !== null && (label < low || label > high);

  function shade({ mean }) {
    const share = highest > lowest ? Math.min(1, Math.max(0, (mean - lowest) / (highest - lowest))) : 0.5;
    return `color-mix(in oklab, var(--number-high) ${(100 * share).toFixed(1)}%, var(--number-low))`;
  }

  const given = (one, use) => `given for ${use}${outside(one) ? ", outside its interval" : ""}`;
  const labelCell = (one) => (one.label === null ? "–"
    : parts.label(short(one.label), `${short(one.label)}, ${given(one, one.use)}`, outside(one)));

  // A value with its interval on a line that reaches as far as most intervals do.
  function scale({ mean, low, high, label }) {
    const [from, to] = packed.reach;
    const at = (value) => (to > from ? Math.min(100, Math.max(0, 100 * (value - from) / (to - from))) : 50);
    const mark = (name, value) => element("i", { class: name, style: `left: ${at(value)}%` });
    const known = label === null ? "" : `, label ${short(label)}`;
    const text = `${short(low)} to ${short(high)}, answer ${short(mean)}${known}`;
    return element("span", { class: "interval", role: "img", "aria-label": text, title: text },
      element("i", { class: "reach-of", style: `left: ${at(low)}%; width: ${at(high) - at(low)}%` }),
      mark("at-mean", mean), label === null ? null : mark("at-label", label));
  }

  const details = (one) => one.columns.flatMap((own, rank) => [
    one.columns.length > 1 ? element("h4", {}, own.name) : null, rank ? null : scale(own),
    g3nn.facts(
      fact("Answer", short(own.mean), `deviation ${short(own.deviation)}`),
      own.label === null ? fact("Label", "not given") : fact("Label", short(own.label), given(own, one.use)),
      fact("90 % interval", `${short(own.low)} to ${short(own.high)}`),
      fact("Residual", short(own.residual)), rank ? null : fact("Neighbours", whole(one.degree))),
  ]).filter(Boolean);

  const shown = (name) => ({ label: name, value: (one) => one[name], show: (one) => short(one[name]) });
  const answer = {
    label: "answer", value: (one) => one.mean, show: (one) => parts.marked(shade(one), short(one.mean)), word: true,
  };
  const line = { label: "interval", value: (one) => one.high - one.low, show: scale, word: true, files: [] };

  function legend(nodes) {
    const means = nodes.map(({ mean }) => mean);
    const ends = [...new Set([Math.min(...means), Math.max(...means)])];
    return ends.map((mean) => element("span", { class: "entry" }, parts.marked(shade({ mean }), short(mean))));
  }

  // A quarter of the nodes each, from the lowest answers to the highest.
  function quarters() {
    const means = packed.ids.map((_, place) => numbers[0].mean[place * packed.width]).sort((one, other) => one - other);
    const [first, second, third] = [0.25, 0.5, 0.75].map((share) => means[Math.floor(share * (means.length - 1))]);
    return [
      { text: `up to ${short(first)}`, test: ({ mean }) => mean <= first },
      { text: `${short(first)} to ${short(second)}`, test: ({ mean }) => mean > first && mean <= second },
      { text: `${short(second)} to ${short(third)}`, test: ({ mean }) => mean > second && mean <= third },
      { text: `above ${short(third)}`, test: ({ mean }) => mean > third },
    ];
  }

  // rows: [id, answer, value less answer, low, high, whether the value is inside]. Nodes in the order of their answers.
  function intervals(rows) {
    if (!rows || rows.every((row) => row[4] === null)) return null;
    const sorted = [...rows].sort((one, other) => one[1] - other[1]);
    const values = sorted.map((row) => row[1] + row[2]);
    const places = sorted.map((_, place) => place + 1);
    const line = (at, dash = "solid") => ({
      x: places, y: sorted.map((row) => row[at]), mode: "lines", line: { color: colour("accent"), width: 1, dash },
      hoverinfo: "skip",
    });
    const build = () => ({
      traces: [line(3), { ...line(4), fill: "tonexty", fillcolor: colour("accent", 0.12) },
        line(1, "dot"), {
          x: places, y: values, customdata: sorted.map(([id]) => plain(id)), mode: "markers",
          marker: { size: 5, color: sorted.map((row) => (row[5] ? colour("accent", 0.55) : colour("below"))) },
          hovertemplate: "%{customdata}: value %{y:.4g}<extra></extra>",
        }],
      height: 480, x: "validation nodes, by their answers",
      y: ["value", data.logarithmic ? { type: "log" } : {}],
    });
    const held = rows.filter((row) => row[5]).length;
    return section("Intervals", `The 90 % interval of each validation node, its answer (dotted) and its value: `
      + `${whole(held)} of ${whole(rows.length)} values are inside.`, figure("Intervals of the validation nodes", build));
  }

  // rows: as above.
  function residuals(rows) {
    if (!rows) return null;
    const answers = rows.map((row) => row[1]);
    const build = () => ({
      traces: [evidence.guide([Math.min(...answers), Math.max(...answers)], [0, 0]), {
        x: answers, y: rows.map((row) => row[2]), customdata: rows.map(([id]) => plain(id)), mode: "markers",
        marker: { size: 6, color: colour("accent", 0.55) },
        hovertemplate: "%{customdata}: answer %{x:.4g}, value %{y:+.4g} off<extra></extra>",
      }],
      height: 300, x: "answer", y: "value less answer",
    });
    return section("Residuals", "How far the value of each validation node is from its answer.",
      figure("Residuals of the validation nodes", build));
  }

  return {
    node, details, legend, answer, beside: [shown("deviation"), line],
    believed: parts.believed(answer, (one) => `± ${short(one.deviation)}`, [shown("deviation")]),
    changed: (one, other) => Math.abs(one.mean - other.mean) > one.deviation,
    given: { label: "label", value: (one) => one.label, show: labelCell, word: true },
    doubts: [shown("deviation"), shown("low"), shown("high"), line, shown("residual")],
    pulled: "the answer",
    filters: [
      { label: "Answer", options: quarters() },
      {
        label: "Label", options: [
          { text: "given", test: (one) => one.known }, { text: "not given", test: (one) => !one.known },
          { text: "outside its interval", test: outside },
        ],
      },
    ],
    words: (one) => [one.use],
    colour: shade,
    order: (one, other) => one.mean - other.mean,
    describe: (one) => `${short(one.mean)}, deviation ${short(one.deviation)}`,
    validation: () => [intervals(data.residuals), residuals(data.residuals), evidence.coverage(data.coverage)],
  };
})();
