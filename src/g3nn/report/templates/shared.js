"use strict";

// What every page shares: reading its data, making elements, the theme, tables that sort, charts that follow the theme.
const g3nn = (() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);

  // An element with attributes and children. Text goes in as text, never as markup.
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  const missing = (value) => value === null || value === undefined;
  const number = (value, digits = 3) => (missing(value) ? "–" : value.toFixed(digits).replace("-", "−"));

  function signed(value, digits = 3) {
    if (missing(value)) return "–";
    const text = number(value, digits);
    return value > 0 && Number(value.toFixed(digits)) !== 0 ? `+${text}` : text;
  }

  // Theme

  const probe = root.appendChild(element("span", { hidden: true }));
  const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark.matches);

  // A colour of the style sheet as the charts need it: resolved for the present theme.
  function colour(name, opacity = 1) {
    probe.style.color = `var(--${name})`;
    const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g);
    return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
  }

  // A page opened from a file may be denied storage; then the choice lasts as long as the page.
  function remember(theme) {
    try {
      localStorage.setItem("g3nn-theme", theme);
    } catch {
      console.debug("The theme is not remembered.");
    }
  }

  function showTheme() {
    document.getElementById("theme").setAttribute("aria-pressed", String(isDark()));
    charts.forEach(draw);
  }

  function startTheme() {
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      showTheme();
    });
    systemIsDark.addEventListener("change", showTheme);
    showTheme();
  }

  // Paper is white, also for charts, whose colours the style sheet cannot reach.
  addEventListener("beforeprint", () => {
    const before = root.dataset.theme;
    root.dataset.theme = "light";
    charts.forEach(draw);
    addEventListener("afterprint", () => {
      root.dataset.theme = before;
      charts.forEach(draw);
    }, { once: true });
  });

  // Tables

  // One column: label, and optionally show(value) for the text, word: true for text to be aligned left.
  // Rows are arrays of values; a missing value is sorted last in both directions. mark(row) gives a row its class.
  function sortableTable(columns, rows, { caption, mark = () => null } = {}) {
    const body = element("tbody");
    const heads = columns.map((column, index) => {
      const button = element("button", { type: "button" }, column.label);
      const head = element("th", { scope: "col", "aria-sort": "none", class: column.word ? "word" : null }, button);
      button.addEventListener("click", () => sort(index, head.getAttribute("aria-sort") === "ascending" ? -1 : 1));
      return head;
    });

    function fill(ordered) {
      const cell = (column, value) => element("td", { class: column.word ? "word" : null },
        missing(value) ? "–" : (column.show ?? String)(value));
      body.replaceChildren(...ordered.map((row) => element("tr", { class: mark(row) },
        ...columns.map((column, index) => cell(column, row[index])))));
    }

    function sort(index, direction) {
      heads.forEach((head) => head.setAttribute("aria-sort", "none"));
      heads[index].setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      fill([...rows].sort((one, other) => compare(one[index], other[index], direction)));
    }

    fill(rows);
    const table = element("table", { class: "plain" }, element("thead", {}, element("tr", {}, ...heads)), body);
    return element("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption }, table);
  }

  function compare(one, other, direction) {
    if (missing(one) || missing(other)) return Number(missing(one)) - Number(missing(other));
    return direction * (one < other ? -1 : Number(one > other));
  }

  // Charts

  const charts = new Map();

  const axis = (title, more = {}) => ({
    title: { text: title, font: { size: 12 }, standoff: 6 },
    gridcolor: colour("line"), linecolor: colour("strong-line"), zeroline: false, showline: true,
    ticks: "outside", ticklen: 3, tickcolor: colour("strong-line"), tickfont: { size: 11 },
    automargin: true, fixedrange: true, ...more,
  });

  function draw(build, holder) {
    const { traces, x, y, height = 220, layout = {} } = build();
    const family = getComputedStyle(document.body).fontFamily;
    return Plotly.react(holder, traces, {
      height, autosize: true, margin: { l: 46, r: 14, t: 10, b: 40 }, showlegend: false, hovermode: "closest",
      paper_bgcolor: "rgba(0, 0, 0, 0)", plot_bgcolor: "rgba(0, 0, 0, 0)",
      font: { family, size: 12, color: colour("muted") },
      hoverlabel: {
        bgcolor: colour("raised"), bordercolor: colour("strong-line"), font: { family, color: colour("ink") },
      },
      xaxis: axis(...[x].flat()), yaxis: axis(...[y].flat()), ...layout,
    }, { displayModeBar: false, responsive: true });
  }

  // Draw what build() describes, now and whenever the theme changes. build: () => {traces, x, y, height, layout}, where
  // x and y are the title of an axis, or [title, settings].
  function chart(holder, label, build) {
    holder.classList.add("chart");
    holder.setAttribute("role", "img");
    holder.setAttribute("aria-label", label);
    charts.set(holder, build);
    return draw(build, holder);
  }

  // A chart can only be drawn into what is on the page. A figure waits until drawFigures() is called.
  let waiting = [];

  function figure(label, build, caption = null) {
    const holder = element("div");
    waiting.push([holder, label, build]);
    return element("figure", {}, caption && element("figcaption", {}, caption), holder);
  }

  function drawFigures() {
    const ready = waiting;
    waiting = [];
    ready.forEach((one) => chart(...one));
  }

  const section = (title, note, ...children) =>
    element("section", {}, element("h3", {}, title), note && element("p", { class: "note" }, note), ...children);

  function removeCharts(inside) {
    for (const holder of charts.keys()) {
      if (inside.contains(holder)) {
        Plotly.purge(holder);
        charts.delete(holder);
      }
    }
  }

  // The address after # belongs to the view of the page, so the link to the content must not change it.
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });

  return {
    data, element, missing, number, signed, colour, startTheme, sortableTable, section, chart, figure, drawFigures,
    removeCharts,
  };
})();
