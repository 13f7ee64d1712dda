"use strict";

// What trials left behind, averaged: sections with charts. Each takes a record with the parts it draws and gives null
// where they are missing. Charts appear with g3nn.drawFigures().
const evidence = (() => {
  const { element, missing, number, colour, figure, section, sortableTable } = g3nn;
  const TERMS = {
    val_loss: "validation loss",
    val_accuracy: "validation accuracy",
    supervised: "supervised: −log q(labels)",
    graph: "graph: −E log p(G | X, Y)",
    cross_entropy: "cross-entropy: −E log p(Y | X)",
    entropy: "entropy of q",
    prior: "prior: −log p(labels | X)",
    laplacian: "Laplacian",
  };
  // From this share on a field of the confusion matrix is so dark that its text must be light.
  const DARK_FIELD = 0.72;

  function curves({ curves: { epochs = [], terms = {} } = {} }) {
    if (!epochs.length) return null;
    const order = Object.keys(TERMS);
    const known = Object.keys(terms).sort((one, other) => order.indexOf(one) - order.indexOf(other));
    const label = (name) => TERMS[name] ?? name;
    const charts = known.map((name) => figure(label(name), () => curve(epochs, terms[name]), label(name)));
    const note = "Mean over the trials, and from the lowest to the highest of them, as long as at least half of them "
      + "run. Terms are shown before they are weighted.";
    return section("Learning curves", note, element("div", { class: "small-charts" }, ...charts));
  }

  function curve(epochs, { mean, low, high }) {
    const edge = { x: epochs, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
    const band = { ...edge, y: high, fill: "tonexty", fillcolor: colour("accent", 0.2) };
    const line = { x: epochs, y: mean, mode: "lines", line: { color: colour("accent"), width: 1.75 } };
    return {
      traces: [{ ...edge, y: low }, band, { ...line, hovertemplate: "epoch %{x}: %{y:.3f}<extra></extra>" }],
      height: 160, x: ["epoch", { nticks: 5 }], y: ["", { nticks: 5 }],
    };
  }

  // A bin is [low, high, nodes per trial, accuracy, confidence].
  const column = (bins, index) => bins.map((bin) => bin[index]);
  const nodes = (bins) => bins.map((bin) => Math.round(bin[2]));

  function degrees({ degrees: bins = [] }) {
    if (!bins.length) return null;
    const build = () => ({
      traces: [{
        type: "bar", x: bins.map(([low, high]) => (low === high ? `${low}` : `${low}–${high}`)), y: column(bins, 3),
        customdata: nodes(bins), marker: { color: colour("accent", 0.75) }, cliponaxis: false,
        text: bins.map((bin) => number(bin[3], 2)), textposition: "outside",
        hovertemplate: "%{x} neighbours: accuracy %{y:.3f}, %{customdata} nodes<extra></extra>",
      }],
      height: 280, x: ["number of neighbours", { type: "category" }], y: ["accuracy", { range: [0, 1.08], nticks: 6 }],
    });
    const note = "Test nodes by their number of neighbours in the graph that the model sees.";
    return section("Accuracy by degree", note, figure("Accuracy by degree", build));
  }

  function reliability({ reliability: bins = [] }) {
    if (!bins.length) return null;
    const build = () => {
      const most = Math.max(...column(bins, 2));
      const counts = {
        type: "bar", x: bins.map(([low, high]) => (low + high) / 2), y: bins.map((bin) => bin[2] / most / 4),
        width: bins.map(([low, high]) => 0.9 * (high - low)), marker: { color: colour("line") }, hoverinfo: "skip",
      };
      const ideal = {
        x: [0, 1], y: [0, 1], mode: "lines", hoverinfo: "skip",
        line: { color: colour("strong-line"), width: 1, dash: "dot" },
      };
      const found = {
        x: column(bins, 4), y: column(bins, 3), mode: "lines+markers", customdata: nodes(bins),
        line: { color: colour("accent"), width: 1.75 }, marker: { size: 7 },
        hovertemplate: "confidence %{x:.3f}: accuracy %{y:.3f}, %{customdata} nodes<extra></extra>",
      };
      return {
        traces: [counts, ideal, found], height: 280,
        x: ["confidence", { range: [0, 1.03] }], y: ["accuracy", { range: [0, 1.08], nticks: 6 }],
      };
    };
    const note = "On the dotted line an answer is right as often as it says. Grey: how many nodes.";
    return section("Reliability", note, figure("Reliability diagram", build));
  }

  function confusion({ confusion: counts = [] }) {
    if (!counts.length) return null;
    const classes = counts.map((row, index) => String(index));
    const shares = counts.map((row) => row.map((value) => value / Math.max(row.reduce((sum, one) => sum + one, 0), 1)));
    const build = () => {
      const fields = {
        type: "heatmap", x: classes, y: classes, z: shares, zmin: 0, zmax: 1, showscale: false, xgap: 2, ygap: 2,
        colorscale: [[0, colour("raised")], [1, colour("heat")]], customdata: counts,
        hovertemplate: "class %{y} answered %{x}: %{z:.3f} of the class, %{customdata} nodes a trial<extra></extra>",
      };
      const flat = shares.flat();
      const labels = {
        mode: "text", hoverinfo: "skip",
        x: classes.flatMap(() => classes), y: classes.flatMap((name) => classes.map(() => name)),
        text: flat.map((share) => (share < 0.005 ? "" : share.toFixed(2))),
        textfont: { size: 11, color: flat.map((share) => colour(share > DARK_FIELD ? "on-heat" : "ink")) },
      };
      const bare = { type: "category", showgrid: false, showline: false, ticks: "" };
      return {
        traces: [fields, labels], height: 330,
        x: ["answered class", bare], y: ["true class", { ...bare, autorange: "reversed" }],
      };
    };
    const note = "The share of each class's test nodes that got each answer, over all trials.";
    return section("Confusion", note, figure("Confusion matrix", build));
  }

  // A run is [seed, test accuracy, validation loss, epochs, status, error].
  function runs({ runs: rows = [] }) {
    if (!rows.length) return null;
    const columns = [
      { label: "seed" },
      { label: "accuracy", show: (value) => number(value) },
      { label: "loss", show: (value) => number(value, 4) },
      { label: "epochs" },
      { label: "status", word: true },
    ];
    if (rows.some((row) => !missing(row[5]) && row[5] !== "")) columns.push({ label: "error", word: true });
    const note = "Test accuracy and validation loss, where the latter was lowest.";
    return section("Trials", note, sortableTable(columns, rows, { caption: "Trials" }));
  }

  return { curves, degrees, reliability, confusion, runs };
})();
