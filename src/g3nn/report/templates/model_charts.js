"use strict";

// The models that were tried, and what the validation nodes say of the chosen one.
const charts = (() => {
  const { data, element, missing, number, colour, figure, section } = g3nn;
  const { classes } = data;
  const wide = matchMedia("(width >= 56rem)");
  const OTHERS = -1;
  const LABELLED_FIELDS = 12; // A larger matrix has no room for numbers.
  const DARK_FIELD = 0.72; // From this share on a field is so dark that its text must be light.

  // The chart library reads a few tags in text; names are never meant as such.
  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const short = (text, length = 18) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

  // A row is [model, objective, options, loss, accuracy, epochs, replicas, chosen].
  const ordered = [...data.panel].sort((one, other) => (one[3] ?? Infinity) - (other[3] ?? Infinity));
  const ranks = new Map(ordered.map((row, index) => [row, index + 1]));

  function bars(title, index, range) {
    const known = ordered.filter((row) => !missing(row[index]));
    const build = () => ({
      traces: [{
        type: "bar", orientation: "h", x: known.map((row) => row[index]), y: known.map((row) => ranks.get(row)),
        marker: { color: known.map((row) => (row[7] ? colour("accent") : colour("series-0", 0.45))) },
        text: known.map((row) => number(row[index])), textposition: "outside", cliponaxis: false,
        customdata: known.map((row) => plain(`${row[0]}, ${row[1]}${row[2] ? `, ${row[2]}` : ""}`)),
        hovertemplate: "%{customdata}: %{x:.4f}<extra></extra>",
      }],
      height: 54 + 25 * ordered.length, x: [title, { range, nticks: 5, showgrid: false }],
      y: ["", {
        autorange: "reversed", showgrid: false, showline: false, ticklen: 4, tickcolor: "rgba(0, 0, 0, 0)",
        tickvals: known.map((row) => ranks.get(row)),
        ticktext: known.map((row) => plain(`${ranks.get(row)}. ${short(row[0])}`)),
      }],
      layout: { margin: { l: 46, r: 46, t: 6, b: 40 } },
    });
    return figure(`${title} of every model tried`, build);
  }

  function panel() {
    const columns = [
      { label: "#", value: (row) => ranks.get(row) },
      { label: "model", value: (row) => row[0], word: true },
      { label: "objective", value: (row) => row[1], word: true },
      { label: "options", value: (row) => row[2], word: true },
      { label: "loss", value: (row) => row[3], show: (row) => number(row[3], 4) },
      { label: "accuracy", value: (row) => row[4], show: (row) => number(row[4]) },
      { label: "epochs", value: (row) => row[5] },
      { label: "replicas", value: (row) => row[6] },
      { label: "chosen", value: (row) => Number(row[7]), show: (row) => (row[7] ? "chosen" : ""), word: true },
    ];
    const mark = (row) => (row[7] ? "chosen" : null);
    const table = tables.paged("Models tried", columns, ordered, { mark });
    if (ordered.length === 1) {
      return [element("p", { class: "note" }, "This model was asked for; no other was tried."), table];
    }
    const highest = Math.max(...ordered.map((row) => row[3] ?? 0));
    const note = "Each was judged by its loss on the validation nodes; the lowest was chosen. Models without a chance "
      + "left early, with one replica and few epochs.";
    return [
      element("p", { class: "note" }, note),
      element("div", { class: "pairs" }, bars("validation loss", 3, [0, 1.05 * highest]),
        bars("validation accuracy", 4, [0, 1.05])),
      table,
    ];
  }

  function confusion({ confusion: { classes: shown = [], counts = [] } = {} }) {
    if (!counts.length) return null;
    const name = (number) => (number === OTHERS ? "all others" : classes[number]);
    const places = shown.map((_, index) => index);
    const totals = counts.map((row) => row.reduce((sum, one) => sum + one, 0));
    const shares = counts.map((row, index) => row.map((value) => value / Math.max(totals[index], 1)));
    const slanted = shown.some((number) => name(number).length > 3);
    const told = counts.map((row, truth) => row.map((value, answer) =>
      plain(`${value} of ${totals[truth]} nodes of ${short(name(shown[truth]), 40)} were answered `)
        + plain(short(name(shown[answer]), 40))));
    const build = () => {
      const fields = {
        type: "heatmap", x: places, y: places, z: shares, zmin: 0, zmax: 1, showscale: false, xgap: 2, ygap: 2,
        colorscale: [[0, colour("raised")], [1, colour("heat")]], customdata: told,
        hovertemplate: "%{customdata}<extra></extra>",
      };
      const flat = shares.flat();
      const labels = {
        mode: "text", hoverinfo: "skip",
        x: places.flatMap(() => places), y: places.flatMap((place) => places.map(() => place)),
        text: flat.map((share) => (share < 0.005 ? "" : share.toFixed(2))),
        textfont: { size: 11, color: flat.map((share) => colour(share > DARK_FIELD ? "on-heat" : "ink")) },
      };
      const bare = {
        showgrid: false, showline: false, ticks: "", tickvals: places,
        ticktext: shown.map((number) => plain(short(name(number), 16))),
      };
      return {
        traces: shown.length <= LABELLED_FIELDS ? [fields, labels] : [fields],
        height: wide.matches ? Math.min(600, 160 + 90 * shown.length) : Math.max(300, 130 + 26 * shown.length),
        x: ["answered class", { ...bare, tickangle: slanted ? -35 : 0 }],
        y: ["true class", { ...bare, autorange: "reversed" }],
      };
    };
    const note = "The share of each class's validation nodes that got each answer.";
    const cut = ` Only the ${shown.length - 1} classes with the most errors have rows of their own.`;
    return section("Confusion", shown.at(-1) === OTHERS ? note + cut : note, figure("Confusion matrix", build));
  }

  // The charts of trials say "test" and "trials", which are validation nodes and replicas here.
  function noted(part, note) {
    if (part) part.querySelector(".note").textContent = note;
    return part;
  }

  function validation() {
    const nodes = `${(data.test_nodes ?? 0).toLocaleString("en")} validation nodes`;
    const pairs = [
      confusion(data),
      noted(evidence.reliability(data), "On the dotted line an answer is right as often as it says. Grey: how many of "
        + `the ${nodes}.`),
      noted(evidence.degrees(data), "Validation nodes by their number of neighbours."),
    ];
    const replicas = "Of the chosen model: mean over its replicas, and from the lowest to the highest of them, as long "
      + "as at least half of them train. Terms are shown before they are weighted.";
    return [
      element("div", { class: "pairs judged" }, ...pairs.filter(Boolean)), noted(evidence.curves(data), replicas),
    ].filter(Boolean);
  }

  return { panel, validation };
})();
