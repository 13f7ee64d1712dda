"use strict";

// Fills the page of an estimator of numbers or tags.
(() => {
  const { data, element, missing, number, colour, figure, section } = g3nn;
  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

  // A column with digits holds numbers, others hold words.
  function table({ caption, columns, rows }) {
    const shown = columns.map(({ label, digits }, index) => ({
      label, word: digits === null, value: (row) => row[index],
      show: (row) => (digits === null || missing(row[index]) ? row[index] : number(row[index], digits)),
    }));
    const words = columns.flatMap(({ digits }, index) => (digits === null ? [index] : []));
    const search = rows.length > 10 ? (row) => words.map((index) => row[index] ?? "") : null;
    return tables.paged(caption, shown, rows, { search, size: 10 });
  }

  const line = (x, y, dash = "dot") => ({
    x, y, mode: "lines", hoverinfo: "skip", line: { color: colour("strong-line"), width: 1, dash },
  });

  function residuals({ residuals: found } = {}) {
    if (!found) return null;
    const ends = [Math.min(...found.answers), Math.max(...found.answers)];
    const build = () => ({
      traces: [line(ends, [0, 0]), {
        x: found.answers, y: found.residuals, customdata: found.ids.map(plain), mode: "markers",
        marker: { size: 6, color: colour("accent", 0.55) },
        hovertemplate: "%{customdata}: answer %{x:.4g}, value %{y:+.4g} off<extra></extra>",
      }],
      height: 300, x: "answer", y: "value less answer",
    });
    return section("Residuals", "How far the value of each validation node is from its answer.",
      figure("Residuals of the validation nodes", build));
  }

  function coverage({ coverage: rows } = {}) {
    if (!rows) return null;
    const build = () => ({
      traces: [line([0, 1], [0, 1]), {
        x: rows.map((row) => row[0]), y: rows.map((row) => row[1]), mode: "lines+markers",
        line: { color: colour("accent"), width: 1.75 }, marker: { size: 7 },
        hovertemplate: "claimed %{x:.2f}: found %{y:.3f}<extra></extra>",
      }],
      height: 300, x: ["claimed share", { range: [0, 1.03] }], y: ["share inside", { range: [0, 1.03], nticks: 6 }],
    });
    return section("Interval coverage", "How many validation values are inside the intervals that the predicted "
      + "distributions claim. On the dotted line as many as they say.", figure("Interval coverage", build));
  }

  Object.entries(data.tables).forEach(([place, content]) => walk.fill(place, table(content)));
  const reliability = evidence.reliability({ reliability: data.charts.reliability });
  if (reliability) {
    reliability.querySelector(".note").textContent = "On the dotted line a tag is as it was answered as often as its "
      + "probability says. Grey: how many tags of validation nodes.";
  }
  const curves = evidence.curves(data);
  if (curves) {
    curves.querySelector(".note").textContent = "Of the chosen model: mean over its replicas, and from the lowest to "
      + "the highest of them. Terms are shown before they are weighted.";
  }
  const pairs = [residuals(data.charts), coverage(data.charts), reliability].filter(Boolean);
  walk.fill("validation-body", pairs.length ? element("div", { class: "pairs" }, ...pairs) : null, curves);
  walk.start();
})();
