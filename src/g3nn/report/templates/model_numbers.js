"use strict";

// What is believed of a node whose label is numbers. Tables and colours are those of the first column.
const beliefs = (() => {
  const { element, missing } = g3nn;
  const { packed, unpack } = graph;
  const { fact } = parts;
  const [lowest, highest, spread] = packed.scale;
  const numbers = Object.fromEntries(["mean", "deviation", "low", "high", "label"].map((name) =>
    [name, unpack(packed[name], Float32Array)]));

  // Four digits, whatever the unit.
  function short(value) {
    if (missing(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    return value.toLocaleString("en", { maximumSignificantDigits: 4 }).replace("-", "−");
  }

  function column(place, rank) {
    const at = place * packed.width + rank;
    const found = Object.fromEntries(Object.entries(numbers).map(([name, values]) => [name, values[at]]));
    const label = Number.isNaN(found.label) ? null : found.label;
    return { ...found, name: packed.columns[rank], label, residual: label === null ? null : label - found.mean };
  }

  // A node by its place: its first column, and all of them as `columns`.
  function node(place) {
    const columns = packed.columns.map((_, rank) => column(place, rank));
    return {
      ...columns[0], ...graph.node(place), columns, known: columns.some(({ label }) => label !== null),
      sure: spread ? Math.max(0, 1 - columns[0].deviation / spread) : 0,
    };
  }

  const outside = ({ label, low, high }) => label !== null && (label < low || label > high);

  function shade({ mean }) {
    const share = highest > lowest ? Math.min(1, Math.max(0, (mean - lowest) / (highest - lowest))) : 0.5;
    return `color-mix(in oklab, var(--number-high) ${(100 * share).toFixed(1)}%, var(--number-low))`;
  }

  function labelCell(one) {
    if (one.label === null) return "–";
    const title = `${short(one.label)}, given for ${one.use}${outside(one) ? ", outside its interval" : ""}`;
    return parts.label(short(one.label), title, outside(one));
  }

  // A value with its interval on a line that reaches as far as most intervals do.
  function scale({ mean, low, high, label }) {
    const [from, to] = packed.reach;
    const at = (value) => (to > from ? Math.min(100, Math.max(0, 100 * (value - from) / (to - from))) : 50);
    const mark = (name, value) => element("i", { class: name, style: `left: ${at(value)}%` });
    const given = label === null ? "" : `, label ${short(label)}`;
    const text = `${short(low)} to ${short(high)}, answer ${short(mean)}${given}`;
    return element("span", { class: "interval", role: "img", "aria-label": text, title: text },
      element("i", { class: "reach-of", style: `left: ${at(low)}%; width: ${at(high) - at(low)}%` }),
      mark("at-mean", mean), label === null ? null : mark("at-label", label));
  }

  function facts(one, use) {
    const given = `given for ${use}${outside(one) ? ", outside the interval" : ""}`;
    return [
      fact("Answer", short(one.mean), `deviation ${short(one.deviation)}`),
      one.label === null ? fact("Label", "not given") : fact("Label", short(one.label), given),
      fact("90 % interval", `${short(one.low)} to ${short(one.high)}`),
      fact("Residual", short(one.residual)),
    ];
  }

  function details(one) {
    const degree = fact("Neighbours", one.degree.toLocaleString("en"));
    const several = one.columns.length > 1;
    return one.columns.flatMap((own, rank) => [
      several ? element("h4", {}, own.name) : null, rank ? null : scale(own),
      parts.facts(...facts(own, one.use), rank ? null : degree),
    ]).filter(Boolean);
  }

  const told = (name) => ({ label: name, value: (one) => one[name], show: (one) => short(one[name]) });
  const swatch = { label: "answer", value: (one) => one.mean, show: (one) => parts.marked(shade(one), short(one.mean)),
    word: true };
  const line = { label: "interval", value: (one) => one.high - one.low, show: scale, word: true };

  function legend(shown) {
    const means = shown.map(({ mean }) => mean);
    const ends = [...new Set([Math.min(...means), Math.max(...means)])];
    return ends.map((mean) => element("span", { class: "entry" }, parts.marked(shade({ mean }), short(mean))));
  }

  return {
    node, details, legend, answer: swatch, beside: [told("deviation"), line],
    given: { label: "label", value: (one) => one.label, show: labelCell, word: true },
    doubts: [told("deviation"), told("low"), told("high"), line, told("residual")],
    words: (one) => [one.use],
    colour: shade,
    order: (one, other) => one.mean - other.mean,
    describe: (one) => `${short(one.mean)}, deviation ${short(one.deviation)}`,
  };
})();
