"use strict";

// Pieces that beliefs of several kinds are shown with.
const parts = (() => {
  const { data: { classes }, element, number } = g3nn;
  const FULL = 65535; // Stands for 1 in a share.
  const PALETTE = 10;
  const GOLDEN_ANGLE = 137.5;

  // Of a class or a tag, by its number.
  function colour(name) {
    if (name < PALETTE) return `var(--class-${name})`;
    const hue = (name * GOLDEN_ANGLE) % 360;
    return `light-dark(oklch(0.52 0.13 ${hue}), oklch(0.76 0.12 ${hue}))`;
  }

  const swatch = (shade) => element("i", { class: "swatch", style: `--class: ${shade}`, "aria-hidden": "true" });
  const marked = (shade, text) => element("span", { class: "named", title: text }, swatch(shade),
    element("span", { class: "text" }, text));
  const named = (name) => marked(colour(name), classes[name]);

  const fact = (name, value, more = null) => element("div", {}, element("dt", {}, name),
    element("dd", {}, value, more && element("small", {}, more)));
  const facts = (...rows) => element("dl", { class: "facts" }, ...rows);

  // rows: {name, share, shade, mark}; without a shade there is no bar.
  function bars(rows) {
    const bar = (share) =>
      element("i", { class: "bar", "aria-hidden": "true" }, element("i", { style: `width: ${100 * share}%` }));
    return element("ul", { class: "bars" }, ...rows.map(({ name, share, shade = null, mark = "" }) => element("li",
      shade === null ? { class: "others" } : { style: `--class: ${shade}` },
      element("span", { class: "text", title: name }, mark, name), shade === null ? element("i") : bar(share),
      element("span", { class: "value" }, number(share)))));
  }

  // Entries of the legend of a drawing: how many nodes share a key, the keys in their order.
  function counted(keys, show) {
    const counts = new Map();
    for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1);
    return [...counts].sort(([one], [other]) => one - other).map(([key, many]) =>
      element("span", { class: "entry" }, show(key), element("span", { class: "many" }, `× ${many}`)));
  }

  // A label in a table, marked if it differs from the answer.
  const label = (content, title, differs) =>
    element("span", { class: differs ? "label differs" : "label", title }, differs ? "≠ " : "", content);

  return { FULL, colour, marked, named, fact, facts, bars, counted, label };
})();
