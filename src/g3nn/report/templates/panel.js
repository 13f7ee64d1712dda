"use strict";

// The details of one cell, beside the tables.
const panel = (() => {
  const { data, element, missing, number, signed, colour, figure, section, sortableTable } = g3nn;
  const dialog = document.getElementById("panel");
  const body = document.getElementById("panel-body");

  const spread = (mean, std) => (missing(std) ? number(mean) : `${number(mean)} ± ${number(std)}`);
  const between = (low, high, show = number) => (missing(low) ? null : `${show(low)} to ${show(high)}`);

  const fact = (name, value, more = null, wide = false) => element("div", { class: wide ? "wide" : null },
    element("dt", {}, name), element("dd", {}, value, more && element("small", {}, more)));
  const score = (name, value) => (missing(value) ? null : fact(name, number(value)));

  function difference(value) {
    const direction = Number(value.toFixed(3)) === 0 ? "same" : value > 0 ? "above" : "below";
    const strength = Math.round(100 * Math.min(Math.abs(value) / data.full_colour, 1));
    return element("span", { class: `difference ${direction}`, style: `--strength: ${strength}` }, signed(value));
  }

  function counterpart(cell) {
    if (missing(cell.above)) return null;
    const verdict = `${cell.above ? "above" : "not above"} ${cell.counterpart.toUpperCase()}`;
    const test = `t-test ${size(cell.p_value)}, ${cell.significant ? "" : "not "}significant at ${data.level}`;
    return fact("Against its counterpart", verdict, missing(cell.p_value) ? null : test);
  }

  const size = (p) => (missing(p) ? "–" : p < 0.001 ? "p < 0.001" : `p = ${number(p)}`);

  // The model that validation chose, beside every peer.
  function choice(cell) {
    if (!cell.selected) return null;
    const tests = Object.entries(cell.peers).map(([peer, p]) =>
      element("span", {}, `${peer.toUpperCase()} `, element("b", {}, size(p))));
    return fact("Chosen by validation", "lowest validation loss of all generative models",
      tests.length ? element("span", { class: "options-list" }, "t-tests against ", ...tests) : null, true);
  }

  function facts(cell) {
    const trials = `${cell.trials} trials${cell.failed ? `, ${cell.failed} failed` : ""}`;
    const interval = between(cell.difference_low, cell.difference_high, signed);
    const binomial = between(cell.binomial_low, cell.binomial_high);
    const nodes = cell.test_nodes ? `for ${cell.test_nodes.toLocaleString("en")} test nodes` : null;
    const { ece, brier, nll } = cell.scores ?? {};
    return element("section", {}, element("dl", { class: "facts" },
      missing(cell.mean) ? fact("Measured", "not yet") : fact("Measured", spread(cell.mean, cell.std), trials),
      missing(cell.published) ? null : fact("Published", spread(cell.published, cell.published_std), cell.row),
      missing(cell.difference) ? null
        : fact("Difference", difference(cell.difference), interval && `95 % interval ${interval}`),
      binomial && fact("Binomial 95 % interval", binomial, nodes),
      counterpart(cell),
      missing(cell.val_loss) ? null
        : fact("Validation", `loss ${number(cell.val_loss)}`, `accuracy ${number(cell.val_accuracy)}`),
      score("Calibration error (ECE)", ece),
      score("Brier score", brier),
      score("Negative log-likelihood", nll),
      choice(cell),
      cell.chosen && fact("Chosen point", options(cell.chosen), null, true)));
  }

  const options = (chosen) => element("span", { class: "options-list" },
    ...Object.entries(chosen).map(([name, value]) => element("span", {}, `${name} `, element("b", {}, String(value)))));

  // Every trial as a dot, below what was published.
  function accuracies(cell) {
    const known = cell.runs.filter((run) => !missing(run[1]));
    if (!known.length) return null;
    const build = () => {
      const mean = (value, std, row, shade) => ({
        x: [value], y: [row], mode: "markers", hovertemplate: `${row} ${spread(value, std)}<extra></extra>`,
        marker: { color: shade, size: 11, symbol: "line-ns", line: { color: shade, width: 3 } },
        error_x: { type: "data", array: [std ?? 0], color: shade, thickness: 1.5, width: 0 },
      });
      const trials = {
        x: known.map((run) => run[1]), y: known.map(() => "trials"), mode: "markers",
        customdata: known.map((run) => run[0]), hovertemplate: "seed %{customdata}: %{x:.3f}<extra></extra>",
        marker: { color: colour("accent", 0.55), size: 9 },
      };
      const rows = ["trials", "measured", "published"];
      return {
        traces: [
          trials, mean(cell.mean, cell.std, "measured", colour("accent")),
          ...(missing(cell.published) ? [] : [mean(cell.published, cell.published_std, "published", colour("muted"))]),
        ],
        height: 150, x: ["test accuracy", { tickformat: ".3f", nticks: 7 }],
        y: ["", { categoryorder: "array", categoryarray: rows, showgrid: false, showline: false, ticks: "" }],
      };
    };
    return section("Trials and published value", "Bars are one standard deviation.",
      figure("Test accuracy of every trial", build));
  }

  function grid({ grid: { names, points } }) {
    if (!points.length) return null;
    const loss = names.length;
    const columns = [
      ...names.map((label) => ({ label })),
      { label: "mean validation loss", show: (value) => number(value, 4) },
      { label: "seeds" },
      { label: "chosen", word: true, show: (value) => (value ? "chosen" : "") },
    ];
    const ordered = [...points].sort((one, other) =>
      other[loss + 1] - one[loss + 1] || (one[loss] ?? Infinity) - (other[loss] ?? Infinity));
    const note = `The ${points.length} points that were tried. Those with the most seeds reached the last round, `
      + "where the lowest mean was chosen.";
    const mark = (row) => (row.at(-1) ? "chosen" : null);
    return section("Grid", note, sortableTable(columns, ordered, { caption: "Grid", mark }));
  }

  function fill(cell) {
    document.getElementById("panel-title").textContent = overview.title(cell);
    document.getElementById("panel-where").textContent = overview.where(cell);
    const pairs = [evidence.degrees, evidence.reliability, evidence.confusion, evidence.runs];
    const parts = [
      facts(cell), accuracies(cell), evidence.curves(cell),
      element("div", { class: "pairs" }, ...pairs.map((part) => part(cell)).filter(Boolean)), grid(cell),
    ];
    body.replaceChildren(...parts.filter(Boolean));
    if (!cell.runs.length) body.append(element("p", { class: "empty" }, "No trial of this cell is stored yet."));
  }

  function open(cell) {
    g3nn.removeCharts(body);
    fill(cell);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    document.getElementById("panel-title").focus();
    g3nn.drawFigures();
  }

  function close() {
    if (dialog.open) dialog.close();
    g3nn.removeCharts(body);
    body.replaceChildren();
  }

  return { dialog, open, close };
})();
