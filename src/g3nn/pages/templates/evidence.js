// Sections with charts of how a model trained and how good it is. Each takes what it draws and gives null where that is
// missing. Charts appear with g3nn.drawFigures().
const evidence = (() => {
  const { data, element, number, colour, figure, section, short } = g3nn;
  const LABELLED_FIELDS = 12; // A larger confusion matrix has no room for numbers.
  const { score = { key: "accuracy", title: "accuracy" } } = data;
  const TERMS = {
    val_loss: "validation loss",
    [`val_${score.key}`]: `validation ${score.title}`,
    supervised: "supervised: −log q(labels)",
    graph: "graph: −E log p(G | X, Y)",
    cross_entropy: "cross-entropy: −E log p(Y | X)",
    entropy: "entropy of q",
    prior: "prior: −log p(labels | X)",
    laplacian: "Laplacian",
  };

  const guide = (x, y) => ({
    x, y, mode: "lines", hoverinfo: "skip", line: { color: colour("strong-line"), width: 1, dash: "dot" },
  });

  // runs: "trials" or "replicas".
  function curves({ epochs = [], terms = {} } = {}, runs) {
    if (!epochs.length) return null;
    const order = Object.keys(TERMS);
    const names = Object.keys(terms).sort((one, other) => order.indexOf(one) - order.indexOf(other));
    const label = (name) => TERMS[name] ?? name;
    const charts = names.map((name) => figure(label(name), () => curve(epochs, terms[name]), label(name)));
    const note = `The mean over the ${runs} and, shaded, their range, as long as at least half of them run. Terms are `
      + "shown before they are weighted.";
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

  // A bin is [low, high, nodes per trial, accuracy, confidence], of a single model with both ends of an interval.
  const column = (bins, index) => bins.map((bin) => bin[index]);
  const whiskers = (bins) => (bins[0].length < 7 ? {} : {
    error_y: {
      type: "data", symmetric: false, array: bins.map((bin) => bin[6] - bin[3]),
      arrayminus: bins.map((bin) => bin[3] - bin[5]), color: colour("accent", 0.55), thickness: 1.25, width: 3,
    },
  });
  const counts = (bins) => bins.map((bin) => Math.round(bin[2]));

  function degrees(bins = [], things) {
    if (!bins.length) return null;
    const build = () => ({
      traces: [{
        type: "bar", x: bins.map(([low, high]) => (low === high ? `${low}` : `${low}–${high}`)), y: column(bins, 3),
        customdata: counts(bins), marker: { color: colour("accent", 0.75) }, cliponaxis: false,
        text: bins.map((bin) => number(bin[3], 2)), textposition: "outside",
        hovertemplate: "%{x} neighbours: accuracy %{y:.3f}, %{customdata} nodes<extra></extra>",
      }],
      height: 280, x: ["number of neighbours", { type: "category" }], y: ["accuracy", { range: [0, 1.08], nticks: 6 }],
    });
    const note = `The ${things} by their number of neighbours in the graph that the model sees.`;
    return section("Accuracy by degree", note, figure("Accuracy by degree", build));
  }

  // A line through points between 0 and 1, to be compared with the diagonal.
  const points = (x, y, customdata, hover, more = {}) => ({
    x, y, customdata, ...more, mode: "lines+markers", line: { color: colour("accent"), width: 1.75 }, marker: { size: 7 },
    hovertemplate: `${hover}<extra></extra>`,
  });

  function reliability(bins = [], things) {
    if (!bins.length) return null;
    const build = () => {
      const most = Math.max(...column(bins, 2));
      const amounts = {
        type: "bar", x: bins.map(([low, high]) => (low + high) / 2), y: bins.map((bin) => bin[2] / most / 4),
        width: bins.map(([low, high]) => 0.9 * (high - low)), marker: { color: colour("line") }, hoverinfo: "skip",
      };
      const hover = "confidence %{x:.3f}: accuracy %{y:.3f}, %{customdata} answers";
      return {
        traces: [amounts, guide([0, 1], [0, 1]), points(column(bins, 4), column(bins, 3), counts(bins), hover,
          whiskers(bins))],
        height: 280, x: ["confidence", { range: [0, 1.03] }], y: ["accuracy", { range: [0, 1.08], nticks: 6 }],
      };
    };
    const note = `On the dotted line answers are right as often as they claim. Grey: how many of the ${things}.`
      + `${bins[0].length < 7 ? "" : " Whiskers: 95 % intervals; with few answers they are long."}`;
    return section("Reliability", note, figure("Reliability diagram", build));
  }

  // [claimed share, share found] of intervals.
  function coverage(rows = []) {
    if (!rows.length) return null;
    const hover = "claimed %{x:.2f}: found %{y:.3f}";
    const build = () => ({
      traces: [guide([0, 1], [0, 1]), points(column(rows, 0), column(rows, 1), null, hover)],
      height: 300, x: ["claimed share", { range: [0, 1.03] }], y: ["share inside", { range: [0, 1.03], nticks: 6 }],
    });
    return section("Interval coverage", "The share of validation values inside the intervals that the predicted "
      + "distributions claim. On the dotted line it is the share they claim.", figure("Interval coverage", build));
  }

  // counts[k][l]: nodes of the class names[k] that were answered names[l].
  function confusion(names, counted = [], note) {
    if (!counted.length) return null;
    const places = names.map((_, index) => index);
    const totals = counted.map((row) => row.reduce((sum, one) => sum + one, 0));
    const shares = counted.map((row, truth) => row.map((value) => value / Math.max(totals[truth], 1)));
    const name = (place, length) => short(names[place], length);
    const described = counted.map((row, truth) => row.map((value, answer) => `${Number(value.toFixed(1))} of `
      + `${Number(totals[truth].toFixed(1))} nodes of class ${name(truth, 40)} were answered ${name(answer, 40)}`));
    const text = shares.map((row) => row.map((share) => (share < 0.005 ? "" : share.toFixed(2))));
    const build = () => {
      const fields = {
        type: "heatmap", x: places, y: places, z: shares, zmin: 0, zmax: 1, showscale: false, xgap: 2, ygap: 2,
        colorscale: [[0, colour("raised")], [1, colour("heat")]], customdata: described,
        hovertemplate: "%{customdata}<extra></extra>", text, textfont: { size: 11 },
        texttemplate: names.length <= LABELLED_FIELDS ? "%{text}" : "",
      };
      const bare = {
        showgrid: false, showline: false, ticks: "", tickvals: places, ticktext: places.map((place) => name(place, 16)),
      };
      const slanted = names.some((text) => text.length > 3);
      return {
        traces: [fields],
        height: Math.min(600, Math.max(330, 130 + (slanted && innerWidth > 900 ? 90 : 26) * names.length)),
        x: ["answered class", { ...bare, tickangle: slanted ? -35 : 0 }],
        y: ["true class", { ...bare, autorange: "reversed" }],
      };
    };
    return section("Confusion", note, figure("Confusion matrix", build));
  }

  return { curves, degrees, reliability, coverage, confusion, guide };
})();
