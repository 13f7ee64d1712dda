"use strict";

// The address after # holds the view: filters and the open cell. Everything on the page follows it.
(() => {
  const { cells } = overview;
  const buttons = new Map([...document.querySelectorAll(".cell")].map((button) => [button.dataset.cell, button]));
  let current = null;

  function address() {
    const parameters = new URLSearchParams();
    overview.write(parameters);
    if (current) parameters.set("cell", current);
    const text = parameters.toString().replaceAll("%2C", ",");
    return text ? `#${text}` : location.pathname + location.search;
  }

  function showCell(id) {
    const before = current;
    current = cells.has(id) ? id : null;
    if (current) {
      panel.open(cells.get(current));
      const order = overview.visible().map((cell) => cell.id);
      document.getElementById("previous").disabled = order.indexOf(current) <= 0;
      document.getElementById("next").disabled = order.indexOf(current) === order.length - 1;
    } else {
      panel.close();
      buttons.get(before)?.focus();
    }
  }

  function follow() {
    const parameters = new URLSearchParams(location.hash.slice(1));
    overview.read(parameters);
    overview.show();
    const asked = parameters.get("cell");
    if (asked !== current) showCell(asked);
  }

  // Opening a cell is a step that "back" undoes; anything else replaces the address.
  function go(id, { step = false } = {}) {
    showCell(id);
    history[step ? "pushState" : "replaceState"](null, "", address());
  }

  function move(by) {
    const order = overview.visible().map((cell) => cell.id);
    const target = order[order.indexOf(current) + by];
    if (target) go(target);
  }

  function filtered() {
    overview.show();
    history.replaceState(null, "", address());
  }

  for (const toggle of overview.toggles) {
    toggle.addEventListener("click", () => {
      overview.pick(toggle.dataset.filter, toggle.dataset.value);
      filtered();
    });
  }
  document.getElementById("clear").addEventListener("click", () => {
    overview.clear();
    filtered();
  });
  for (const button of document.querySelectorAll("[data-cell]")) {
    button.addEventListener("click", () => go(button.dataset.cell, { step: true }));
  }
  document.getElementById("close").addEventListener("click", () => go(null));
  document.getElementById("previous").addEventListener("click", () => move(-1));
  document.getElementById("next").addEventListener("click", () => move(1));
  panel.dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    go(null);
  });
  panel.dialog.addEventListener("click", (event) => event.target === panel.dialog && go(null));
  addEventListener("popstate", follow);

  g3nn.startTheme();
  overview.legend();
  follow();
  document.getElementById("scatter").on("plotly_click", (event) => {
    const id = event.points[0]?.customdata;
    if (id) go(id, { step: true });
  });
})();
