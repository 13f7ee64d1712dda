"use strict";

// Ways from node to node. The address after # holds the one that the explorer shows.
const walk = (() => {
  const { packed } = graph;
  const fill = (id, ...content) => document.getElementById(id)?.append(...content.filter(Boolean));
  const address = (place) => `#${new URLSearchParams({ node: packed.ids[place] })}`;

  // A step that "back" undoes.
  function go(place) {
    if (!graph.explorable(place) || place === explorer.current()) return;
    explorer.show(place);
    history.pushState(null, "", address(place));
  }

  function follow() {
    const asked = graph.place(new URLSearchParams(location.hash.slice(1)).get("node"));
    explorer.show(graph.explorable(asked) ? asked : packed.start);
  }

  function toExplorer() {
    document.getElementById("explorer").scrollIntoView();
    explorer.focusName();
  }

  document.addEventListener("click", (event) => {
    const reference = event.target.closest("[data-node]");
    if (reference) {
      go(Number(reference.dataset.node));
      toExplorer();
    }
  });

  explorer.holder.addEventListener("click", (event) => {
    const group = event.target.closest(".neighbour");
    if (group) go(Number(group.dataset.place));
  });
  explorer.holder.addEventListener("keydown", (event) => {
    const group = event.target.closest(".neighbour");
    const chosen = group && (event.key === "Enter" || event.key === " ");
    if (chosen) {
      const before = explorer.current();
      go(Number(group.dataset.place));
      if (explorer.current() !== before) explorer.focusNeighbour(before);
    }
    if (explorer.walk(event) || chosen) event.preventDefault();
  });

  document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const place = explorer.find(document.getElementById("find-id").value);
    if (place !== null) go(place);
  });

  // The address belongs to the explorer, so the links to the parts of the page must not change it.
  document.querySelector(".contents").addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    const part = document.querySelector(link.getAttribute("href"));
    part.scrollIntoView();
    part.focus({ preventScroll: true });
  });

  addEventListener("popstate", follow);

  // What every page of a fitted model ends with.
  function start() {
    fill("uncertain-table", lists.uncertain());
    if (packed.probability !== null) {
      fill("suspicious-table", lists.suspicious());
      fill("missing-table", lists.missing());
    }
    g3nn.startTheme();
    g3nn.drawFigures();
    follow();
  }

  return { fill, start };
})();
