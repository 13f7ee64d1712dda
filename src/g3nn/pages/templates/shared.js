"use strict";

// What every page shares: reading its data, making elements, the theme, and charts that follow the theme.
const g3nn = (() => {
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById("data").textContent);

  // Give an element attributes and children. Text goes in as text, never as markup.
  function dress(made, attributes, children) {
    Object.entries(attributes).forEach(([key, value]) => missing(value) || made.setAttribute(key, value));
    made.append(...children.filter((child) => !missing(child)));
    return made;
  }

  const SVG = document.querySelector("svg").namespaceURI;
  const element = (name, attributes = {}, ...children) => dress(document.createElement(name), attributes, children);
  const shape = (name, attributes, ...children) => dress(document.createElementNS(SVG, name), attributes, children);

  const missing = (value) => value === null || value === undefined;
  const number = (value, digits = 3) => (missing(value) ? "–" : value.toLocaleString("en",
    { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−"));
  const signed = (value) => (value > 0 && Number(value.toFixed(3)) ? "+" : "") + number(value);
  const whole = (count) => number(count, 0);

  // The chart library reads a few tags in text; names are never meant as such.
  const plain = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const short = (text, length) => plain(text.length > length ? `${text.slice(0, length - 1)}…` : text);

  const fact = (name, value, more = null, wide = false) => element("div", { class: wide ? "wide" : null },
    element("dt", {}, name), element("dd", {}, value, more && element("small", {}, more)));
  const facts = (...rows) => element("dl", { class: "facts" }, ...rows);

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

  // Any colour as a canvas takes it: resolved for the present theme.
  function resolved(text) {
    probe.style.color = text;
    return getComputedStyle(probe).color;
  }

  function drawAll() {
    charts.forEach(draw);
    dispatchEvent(new Event("themed"));
  }

  function showTheme() {
    document.getElementById("theme").setAttribute("aria-pressed", String(isDark()));
    drawAll();
  }

  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
    // A page opened from a file may be denied storage; then the choice lasts as long as the page.
    try { localStorage.setItem("g3nn-theme", root.dataset.theme); } catch { console.debug("No storage."); }
  });
  systemIsDark.addEventListener("change", showTheme);

  // Paper is white, also for charts, whose colours the style sheet cannot reach.
  function drawAs(theme) {
    root.dataset.theme = theme;
    drawAll();
  }

  addEventListener("beforeprint", () => {
    const before = root.dataset.theme;
    drawAs("light");
    addEventListener("afterprint", () => drawAs(before), { once: true });
  });

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
    element("section", {}, element("h3", {}, title), element("p", { class: "note" }, note), ...children);

  function removeCharts(inside) {
    for (const holder of [...charts.keys()].filter((one) => inside.contains(one))) {
      Plotly.purge(holder);
      charts.delete(holder);
    }
  }

  // The address after # holds what the reader looks at, so links to sections of the page must not change it.
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const section = document.querySelector(link.getAttribute("href"));
      section.scrollIntoView();
      section.focus({ preventScroll: true });
    });
  }

  showTheme();

  return {
    data, element, shape, missing, number, signed, whole, plain, short, fact, facts, colour, resolved, section, chart, figure,
    drawFigures, removeCharts,
  };
})();
