// The tables and the scatter chart, as far as the filters show them. The address after # holds the filters and the open
// cell; everything on the page follows it.
(() => {
  const { data, element, missing, number, signed, plain, colour, chart } = g3nn;
  const cells = new Map(data.cells.map((cell) => [cell.id, cell]));
  const toggles = [...document.querySelectorAll(".toggle")];
  const names = [...new Set(toggles.map((toggle) => toggle.dataset.filter))];
  const offered = (name) => toggles.filter(({ dataset }) => dataset.filter === name && dataset.value !== "")
    .map(({ dataset }) => dataset.value);
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
    if (cell.model === "g3nn") return "estimator";
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
    if (picked.size === offered(name).length) picked.clear();
    filtered();
  }

  function scatter() {
    const drawn = visible().filter((cell) => !missing(cell.mean) && !missing(cell.published));
    const values = drawn.flatMap((cell) => [cell.mean, cell.published]);
    const low = Math.min(...values, 1) - 0.02;
    const high = Math.max(...values, 0) + 0.02;
    const range = values.length ? [low, high] : [0, 1];
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
      traces: [evidence.guide(range, range), ...traces],
      height: Math.min(580, Math.max(320, 0.85 * holder.clientWidth)),
      x: ["published", { range, tickformat: ".2f" }], y: ["measured", { range, tickformat: ".2f" }],
    };
  }

  function legend() {
    const row = (glyph, name, style = null) =>
      element("span", {}, element("i", { "aria-hidden": "true", style }, glyph), name);
    document.getElementById("scatter-legend").append(
      element("div", {}, "Colour"), ...series.map((name) => row("●", name, `color: var(--${seriesColour(name)})`)),
      element("div", {}, "Shape"), ...datasets.map((name) => row(GLYPHS[symbolOf(name)], capital(name))));
  }

  // The address

  let current = null;

  function address() {
    const parameters = new URLSearchParams();
    chosen.forEach((picked, name) => picked.size && parameters.set(name, [...picked].join(",")));
    if (current) parameters.set("cell", current);
    const text = parameters.toString().replaceAll("%2C", ",");
    return text ? `#${text}` : location.pathname + location.search;
  }

  // What the page does not know is ignored.
  function follow() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    chosen = new Map(names.map((name) => {
      const asked = (parameters.get(name) ?? "").split(",");
      return [name, new Set(offered(name).filter((value) => asked.includes(value)))];
    }));
    show();
    const asked = parameters.get("cell");
    if (asked !== current) showCell(asked);
  }

  // The visible cell next to the open one: by = 1 after it, by = -1 before it.
  function beside(by) {
    const order = visible().map((cell) => cell.id);
    return order[order.indexOf(current) + by];
  }

  function showCell(id) {
    const before = current;
    const cell = cells.get(id);
    current = cell ? id : null;
    if (cell) {
      drawer.open(cell, title(cell), where(cell));
      document.getElementById("previous").disabled = !beside(-1);
      document.getElementById("next").disabled = !beside(1);
    } else {
      drawer.close();
      document.querySelector(`.cell[data-cell="${before}"]`)?.focus();
    }
  }

  // Opening a cell is a step that "back" undoes; anything else replaces the address.
  function go(id, { step = false } = {}) {
    showCell(id);
    history[step ? "pushState" : "replaceState"](null, "", address());
  }

  function filtered() {
    show();
    history.replaceState(null, "", address());
  }

  const clicked = (what, act) => what.addEventListener("click", act);
  const byId = (id) => document.getElementById(id);
  toggles.forEach((toggle) => clicked(toggle, () => pick(toggle.dataset.filter, toggle.dataset.value)));
  clicked(byId("clear"), () => {
    chosen.forEach((picked) => picked.clear());
    filtered();
  });
  for (const button of document.querySelectorAll("[data-cell]")) {
    clicked(button, () => go(button.dataset.cell, { step: true }));
  }
  clicked(byId("close"), () => go(null));
  clicked(byId("previous"), () => go(beside(-1)));
  clicked(byId("next"), () => go(beside(1)));
  clicked(drawer.dialog, (event) => event.target === drawer.dialog && go(null));
  drawer.dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    go(null);
  });
  addEventListener("popstate", follow);

  legend();
  byId("datasets")?.append(tables.simple(data.datasets));
  follow();
  holder.on("plotly_click", (event) => {
    const id = event.points[0]?.customdata;
    if (id) go(id, { step: true });
  });
})();
