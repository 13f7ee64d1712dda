"use strict";

// The tables and the scatter chart: what the filters leave of them.
const overview = (() => {
  const { data, element, missing, number, signed, colour, chart } = g3nn;
  const cells = new Map(data.cells.map((cell) => [cell.id, cell]));
  const toggles = [...document.querySelectorAll(".toggle")];
  const names = [...new Set(toggles.map((toggle) => toggle.dataset.filter))];
  const holder = document.getElementById("scatter");
  const GLYPHS = { circle: "●", square: "■", diamond: "◆", "triangle-up": "▲", cross: "✚", star: "★" };
  const SERIES = 4;

  const series = [...new Set(data.cells.map(seriesOf))];
  const generative = data.cells.filter((cell) => cell.kind === "generative");
  const objectives = [...new Set(generative.map((cell) => cell.objective))];
  const datasets = [...new Set(data.cells.map((cell) => cell.dataset))];
  const symbolOf = (dataset) => Object.keys(GLYPHS)[datasets.indexOf(dataset) % Object.keys(GLYPHS).length];
  const seriesColour = (name) => `series-${series.indexOf(name) % SERIES}`;

  function seriesOf(cell) {
    return cell.kind === "generative" ? `generative, ${cell.objective}` : "discriminative";
  }

  const title = (cell) => `${cell.label.toUpperCase()} on ${capital(cell.dataset)}`;
  const where = (cell) => `Table ${cell.table}, ${cell.setting}, ${seriesOf(cell)}`;
  const capital = (name) => name.charAt(0).toUpperCase() + name.slice(1);

  // chosen: name of a filter -> the set of values picked; an empty set lets everything through.
  let chosen = new Map(names.map((name) => [name, new Set()]));
  const passes = (name, value) => !chosen.get(name)?.size || chosen.get(name).has(value);

  // The objective does not change a discriminative model, so that filter leaves it alone.
  function passesCell(cell) {
    return passes("setting", cell.setting) && passes("dataset", cell.dataset) && passes("kind", cell.kind)
      && (cell.kind === "discriminative" || passes("objective", cell.objective));
  }

  const visible = () => data.cells.filter(passesCell);

  function show() {
    for (const toggle of toggles) {
      const { filter, value } = toggle.dataset;
      const pressed = value === "" ? !chosen.get(filter).size : chosen.get(filter).has(value);
      toggle.setAttribute("aria-pressed", String(pressed));
    }
    for (const column of document.querySelectorAll(".results [data-dataset]")) {
      column.hidden = !passes("dataset", column.dataset.dataset);
    }
    for (const group of document.querySelectorAll(".results tbody")) {
      const { kind, objective } = group.dataset;
      group.hidden = !passes("kind", kind) || (kind === "generative" && !passes("objective", objective));
    }
    const compared = objectives.filter((objective) => passes("objective", objective));
    for (const mean of document.querySelectorAll("[data-best]")) {
      mean.classList.toggle("bold", compared.every((objective) => mean.dataset.best.split(" ").includes(objective)));
    }
    const left = new Set(visible().map((cell) => cell.id));
    for (const block of document.querySelectorAll(".block")) {
      const own = [...block.querySelectorAll(".cell")].map((button) => button.dataset.cell);
      block.hidden = !passes("setting", block.dataset.setting) || !own.some((id) => left.has(id));
    }
    document.getElementById("nothing").hidden = left.size > 0 || !data.cells.length;
    const shown = document.getElementById("shown");
    if (shown) shown.textContent = `${left.size} of ${data.cells.length} cells`;
    chart(holder, "Published against measured accuracy", scatter);
  }

  function pick(name, value) {
    const picked = chosen.get(name);
    if (value === "") picked.clear();
    else if (!picked.delete(value)) picked.add(value);
    // All of them picked is the same as no filter.
    if (picked.size === toggles.filter((toggle) => toggle.dataset.filter === name).length - 1) picked.clear();
  }

  function clear() {
    chosen.forEach((picked) => picked.clear());
  }

  // The filters as they stand in the address, and back. What the page does not know is ignored.
  function write(parameters) {
    chosen.forEach((picked, name) => picked.size && parameters.set(name, [...picked].join(",")));
  }

  function read(parameters) {
    chosen = new Map(names.map((name) => {
      const known = toggles.filter((toggle) => toggle.dataset.filter === name).map((toggle) => toggle.dataset.value);
      const asked = (parameters.get(name) ?? "").split(",");
      return [name, new Set(known.filter((value) => value !== "" && asked.includes(value)))];
    }));
  }

  function scatter() {
    const drawn = visible().filter((cell) => !missing(cell.mean) && !missing(cell.published));
    const values = drawn.flatMap((cell) => [cell.mean, cell.published]);
    const low = Math.min(...values, 1) - 0.02;
    const high = Math.max(...values, 0) + 0.02;
    const range = values.length ? [low, high] : [0, 1];
    const diagonal = {
      x: range, y: range, mode: "lines", hoverinfo: "skip",
      line: { color: colour("strong-line"), width: 1, dash: "dot" },
    };
    const bars = (of, shade) => ({ type: "data", array: of, color: shade, thickness: 1, width: 0 });
    const traces = series.map((name) => {
      const own = drawn.filter((cell) => seriesOf(cell) === name);
      const faint = colour(seriesColour(name), 0.35);
      return {
        name, mode: "markers", customdata: own.map((cell) => cell.id),
        x: own.map((cell) => cell.published), y: own.map((cell) => cell.mean),
        error_x: bars(own.map((cell) => cell.published_std ?? 0), faint),
        error_y: bars(own.map((cell) => cell.std ?? 0), faint),
        text: own.map((cell) => `<b>${plain(title(cell))}</b><br>${plain(where(cell))}<br>`
          + `published ${number(cell.published)}, measured ${number(cell.mean)} (${signed(cell.difference)})`),
        hovertemplate: "%{text}<extra></extra>",
        marker: {
          color: colour(seriesColour(name), 0.85), size: 9, symbol: own.map((cell) => symbolOf(cell.dataset)),
          line: { color: colour("ground"), width: 1 },
        },
      };
    });
    return {
      traces: [diagonal, ...traces], height: Math.min(580, Math.max(320, 0.85 * holder.clientWidth)),
      x: ["published", { range, tickformat: ".2f" }], y: ["measured", { range, tickformat: ".2f" }],
    };
  }

  // The chart library reads a few tags in text; names are never meant as such.
  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

  function legend() {
    const row = (glyph, name, style = null) =>
      element("span", {}, element("i", { "aria-hidden": "true", style }, glyph), name);
    document.getElementById("scatter-legend").append(
      element("div", {}, "Colour"), ...series.map((name) => row("●", name, `color: var(--${seriesColour(name)})`)),
      element("div", {}, "Shape"), ...datasets.map((name) => row(GLYPHS[symbolOf(name)], capital(name))));
  }

  return { cells, toggles, title, where, capital, visible, show, pick, clear, read, write, legend, plain };
})();
