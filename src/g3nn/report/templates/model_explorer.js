"use strict";

// One node: its drawing, what is believed of it, and a table of its neighbours.
const explorer = (() => {
  const { data, element, missing } = g3nn;
  const { packed } = graph;
  const { node } = beliefs;
  const MOST_SUGGESTED = 5;
  const MOST_MATCHES = 12;
  const holder = document.getElementById("drawing");
  const input = document.getElementById("find-id");
  const status = document.getElementById("find-status");
  const whole = (count) => count.toLocaleString("en");
  let current = null;
  let around = [];
  let drawnWidth = 0;

  // Neighbours with the same answer stand together; the least likely edges are drawn where there are too many.
  function spokes(place) {
    const links = graph.links(place);
    const suggested = graph.suggestions(place).slice(0, MOST_SUGGESTED);
    const found = new Map();
    for (const link of [...links, ...suggested]) {
      const { neighbour } = link;
      if (found.has(neighbour)) found.get(neighbour).links.push(link);
      else if (link.suggested || found.size < data.drawn) found.set(neighbour, { one: node(neighbour), links: [link] });
    }
    return [...found.values()].sort((one, other) => Number(one.links[0].suggested) - Number(other.links[0].suggested)
      || beliefs.order(one.one, other.one) || (one.links[0].probability ?? 0) - (other.links[0].probability ?? 0)
      || one.one.place - other.one.place);
  }

  function draw() {
    const width = Math.floor(holder.clientWidth);
    if (current === null || !width) return;
    drawnWidth = width;
    const focused = holder.contains(document.activeElement) ? document.activeElement.dataset.place : null;
    holder.replaceChildren(drawing.draw(node(current), around, width, packed));
    if (focused) focus(holder.querySelector(`[data-place="${focused}"]`));
  }

  function count() {
    const { degree } = node(current);
    const links = around.flatMap((spoke) => spoke.links);
    const edges = links.filter((link) => !link.suggested).length;
    const suggested = links.length - edges;
    const cut = edges < degree ? `${whole(edges)} of ${whole(degree)} edges are drawn`
      + `${packed.probability !== null ? ", the least likely ones" : ""}.` : "";
    const dotted = `${suggested} suggested ${suggested === 1 ? "edge is" : "edges are"} dotted.`;
    return [cut, suggested ? dotted : ""].join(" ").trim();
  }

  function legend() {
    const shown = [node(current), ...around.map((spoke) => spoke.one)];
    document.getElementById("legend")
      .replaceChildren(...beliefs.legend(shown), element("p", { class: "note" }, count()));
  }

  function details() {
    const one = node(current);
    const name = element("h3", { id: "node-name", tabindex: -1, class: "id" }, one.id);
    document.getElementById("node").replaceChildren(name, ...beliefs.details(one));
  }

  // Neighbours

  function rarity(row) {
    const likelier = graph.rarity(row.link.probability);
    return row.link.suggested ? "suggested" : missing(likelier) ? null : `${likelier} %`;
  }

  const way = {
    label: "way", value: ({ link }) => Number(link.outgoing), show: ({ link }) => (link.outgoing ? "to it" : "from it"),
    word: true,
  };
  const likely = [
    {
      label: "edge probability", value: ({ link }) => link.probability,
      show: ({ link }) => graph.odds(link.probability),
    },
    { label: "likelier edges", value: ({ link }) => graph.rarity(link.probability), show: rarity },
  ];
  const columns = [
    lists.of("one", lists.reference),
    ...(packed.directed ? [way] : []),
    ...(packed.probability === null ? [] : likely),
    ...[beliefs.answer, ...beliefs.beside, lists.degree, beliefs.given].map((column) => lists.of("one", column)),
  ];
  const table = tables.paged("Neighbours", columns, [], {
    size: 10, empty: "This node has no edges.", mark: (row) => (row.link.suggested ? "suggested" : null),
  });
  document.getElementById("neighbours-table").append(table);

  function rows() {
    const all = [...graph.links(current), ...graph.suggestions(current).slice(0, MOST_SUGGESTED)];
    return all.map((link) => ({ link, one: node(link.neighbour) }));
  }

  // Show a node. What cannot be explored is left alone.
  function show(place) {
    if (!graph.explorable(place)) return;
    current = place;
    around = spokes(place);
    draw();
    legend();
    details();
    const listed = rows();
    const { id, degree } = node(place);
    const hidden = degree - listed.filter((row) => !row.link.suggested).length;
    const absent = hidden > 0 ? ` (${whole(hidden)} more are not on this page)` : "";
    document.getElementById("neighbours-title").textContent = `Neighbours of ${id}${absent}`;
    table.refill(listed);
    input.value = id;
    status.textContent = "";
  }

  // The drawing with the keyboard: one neighbour at a time can be reached with the tab key, arrows walk around.
  function focus(group) {
    if (!group) return;
    holder.querySelectorAll(".neighbour").forEach((one) => one.setAttribute("tabindex", one === group ? 0 : -1));
    group.focus();
  }

  const focusName = () => document.getElementById("node-name").focus({ preventScroll: true });

  function walk(event) {
    const all = [...holder.querySelectorAll(".neighbour")];
    const at = all.indexOf(event.target.closest(".neighbour"));
    const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: -1 };
    if (at < 0 || !(event.key in steps)) return false;
    focus(all.at(steps[event.key] % all.length));
    return true;
  }

  // After a step by the keyboard one stands where one came from.
  function focusNeighbour(place) {
    focus(holder.querySelector(`[data-place="${place}"]`) ?? holder.querySelector(".neighbour"));
  }

  function matches(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const known = packed.ids.slice(0, packed.explorable);
    const starting = known.filter((id) => id.toLowerCase().startsWith(wanted));
    const inside = starting.length < MOST_MATCHES ? known.filter((id) => id.toLowerCase().indexOf(wanted) > 0) : [];
    return [...new Set([...starting, ...inside])].slice(0, MOST_MATCHES);
  }

  input.addEventListener("input", () => {
    status.textContent = "";
    const options = matches(input.value).map((id) => element("option", { value: id }));
    document.getElementById("find-list").replaceChildren(...options);
  });

  // The place of the node with this id, else of the first whose id begins with it or holds it.
  function find(text) {
    const exact = graph.place(text.trim());
    const place = graph.explorable(exact) ? exact : graph.place(matches(text)[0]);
    const reason = exact === null ? "No node has such an id." : "The neighbours of this node are not on this page.";
    status.textContent = place === null ? reason : "";
    return place;
  }

  new ResizeObserver(() => Math.floor(holder.clientWidth) !== drawnWidth && draw()).observe(holder);

  return { holder, show, walk, focusNeighbour, focusName, find, current: () => current };
})();
