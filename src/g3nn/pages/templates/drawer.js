// The details of one cell, in a drawer beside the tables.
const drawer = (() => {
  const { data, element, missing, number, signed, whole, fact, colour, figure, section } = g3nn;
  const dialog = document.getElementById("drawer");
  const body = document.getElementById("drawer-body");

  const spread = (mean, std) => (missing(std) ? number(mean) : `${number(mean)} ± ${number(std)}`);
  const between = (low, high, show = number) => (missing(low) ? null : `${show(low)} to ${show(high)}`);

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
    const [name, why] = cell.counterpart
      ? ["Chosen by validation", "lowest validation loss of all generative models"] : ["Peers", "networks beside it"];
    const tests = Object.entries(cell.peers).map(([peer, p]) =>
      element("span", {}, `${peer.toUpperCase()} `, element("b", {}, size(p))));
    return fact(name, why,
      tests.length ? element("span", { class: "options-list" }, "t-tests against ", ...tests) : null, true);
  }

  function facts(cell) {
    const trials = `${cell.trials} trials${cell.failed ? `, ${cell.failed} failed` : ""}`;
    const interval = between(cell.difference_low, cell.difference_high, signed);
    const binomial = between(cell.binomial_low, cell.binomial_high);
    const nodes = cell.test_nodes ? `for ${whole(cell.test_nodes)} test nodes` : null;
    const { ece, brier, nll } = cell.scores ?? {};
    return element("section", {}, g3nn.facts(
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
      ...Object.entries(cell.figures).map(([name, value]) => score(name, value)),
      choice(cell),
      Object.keys(cell.chosen ?? {}).length ? fact("Chosen point", options(cell.chosen), null, true) : null));
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

  // A point is [options ..., mean validation loss, seeds, chosen or not].
  function grid({ grid: { names, points } }) {
    if (!points.length) return null;
    const loss = names.length;
    const columns = Object.fromEntries(names.map((name) => [name, null]));
    Object.assign(columns, { "mean validation loss": 4, seeds: 0, chosen: null });
    const rows = [...points].sort((one, other) =>
      other[loss + 1] - one[loss + 1] || (one[loss] ?? Infinity) - (other[loss] ?? Infinity));
    const note = `The ${points.length} points that were tried. Those with the most seeds reached the last round, `
      + "where the lowest mean was chosen.";
    return section("Grid", note, tables.simple({ caption: "Grid", columns, rows }));
  }

  // A run is [seed, test accuracy, validation loss, epochs, status, error].
  function runs({ runs: rows }) {
    if (!rows.length) return null;
    const columns = { seed: 0, accuracy: 3, loss: 4, epochs: 0, status: null };
    if (rows.some((row) => row[5])) columns.error = null;
    return section("Trials", "Test accuracy and validation loss at the epoch of the lowest validation loss.",
      tables.simple({ caption: "Trials", columns, rows }));
  }

  function open(cell, title, where) {
    const pairs = [
      evidence.degrees(cell.degrees, "test nodes"), evidence.reliability(cell.reliability, "test nodes"),
      evidence.confusion((cell.confusion ?? []).map((_, index) => String(index)), cell.confusion,
        "The share of each class's test nodes that got each answer, over all trials."),
      runs(cell),
    ];
    const sections = [
      facts(cell), accuracies(cell), evidence.curves(cell.curves, "trials"),
      element("div", { class: "pairs" }, ...pairs.filter(Boolean)), grid(cell),
      cell.runs.length ? null : element("p", { class: "empty" }, "No trial of this cell is stored yet."),
    ];
    g3nn.removeCharts(body);
    body.replaceChildren(...sections.filter(Boolean));
    document.getElementById("drawer-title").textContent = title;
    document.getElementById("drawer-where").textContent = where;
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    document.getElementById("drawer-title").focus();
    g3nn.drawFigures();
  }

  function close() {
    if (dialog.open) dialog.close();
    g3nn.removeCharts(body);
    body.replaceChildren();
  }

  return { dialog, open, close };
})();
