// One node: its drawing, what is believed about it, and a table of its neighbours. The address after # holds its id.
const explorer = (() => {
  const { data, element, missing, signed, whole } = g3nn;
  const { packed } = graph;
  const node = (place) => beliefs.node(place, graph.side());
  const MOST_SUGGESTED = 5;
  const MOST_MATCHES = 12;
  const holder = document.getElementById("drawing");
  const input = document.getElementById("find-id");
  const status = document.getElementById("find-status");
  let current = null;
  let around = [];
  let drawnWidth = 0;

  // Neighbours with the same answer stand together; the least likely edges are drawn where there are too many.
  function spokes(links) {
    const ends = new Map();
    for (const link of links) {
      const { neighbour } = link;
      if (ends.has(neighbour)) ends.get(neighbour).links.push(link);
      else if (link.suggested || ends.size < data.drawn) ends.set(neighbour, { one: node(neighbour), links: [link] });
    }
    return [...ends.values()].sort((one, other) => Number(one.links[0].suggested) - Number(other.links[0].suggested)
      || (one.links[0].types[0] ?? 0) - (other.links[0].types[0] ?? 0) || beliefs.order(one.one, other.one) || (one.links[0].probability ?? 0) - (other.links[0].probability ?? 0)
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

  // What is drawn of all edges.
  function count({ degree }) {
    const links = around.flatMap((spoke) => spoke.links);
    const edges = links.filter((link) => !link.suggested).length;
    const suggested = links.length - edges;
    const cut = graph.typed() ? `${whole(edges)} of ${whole(degree)} edges are of this type and drawn.` : edges < degree ? `${whole(edges)} of ${whole(degree)} edges are drawn`
      + `${packed.probability !== null ? ", the least likely ones" : ""}.` : "";
    const dotted = `${suggested} suggested ${suggested === 1 ? "edge is" : "edges are"} dotted.`;
    return [cut, suggested ? dotted : ""].join(" ").trim();
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
    ...[parts.reference, ...parts.kind].map((column) => parts.about("one", column)),
    ...parts.type.map((column) => parts.about("link", column)),
    ...(packed.directed ? [way] : []),
    ...(packed.probability === null ? [] : likely),
    ...[beliefs.answer, ...beliefs.beside, parts.degree, beliefs.given].map((column) => parts.about("one", column)),
  ];
  const table = tables.paged("Neighbours", columns, [], {
    empty: "This node has no edges.", also: parts.original.map((column) => parts.about("one", column)), mark: (row) => (row.link.suggested ? "suggested" : null),
  });
  document.getElementById("neighbours-table").append(table);

  // What pulled the answer up (a bar to the right) or down, for the nodes that were asked about.
  function reasons({ place }) {
    const fitted = graph.side() ? " About the answer with all edges." : "";
    const many = Object.keys(packed.why).length;
    if (!packed.why[place]) {
      return [element("p", { class: "note" }, many ? `Why? The ${whole(many)} least certain nodes come with reasons.`
        : "Why? On a graph of this size reasons take minutes, so the page has none. In Python, explain of the loaded model works them out.")];
    }
    const { neighbours, features } = packed.why[place];
    const most = Math.max(...[...neighbours, ...features].map(([, value]) => Math.abs(value)), 1e-12);
    const row = ([name, pull]) => element("li", { class: pull < 0 ? "against" : "for" },
      element("span", { class: "text" }, name), element("i", { class: "bar", "aria-hidden": "true" },
        element("i", { style: `width: ${100 * Math.abs(pull) / most}%` })),
      element("span", { class: "value" }, signed(pull)));
    const part = (title, note, rows) => (rows.length
      ? [g3nn.section(title, note, element("ul", { class: "bars pulls" }, ...rows.map(row)))] : []);
    return [
      ...part("Why: neighbours", `How much higher ${beliefs.pulled} is because of each edge. Measured: the edge was left `
        + `out and the model answered again.${fitted}`, neighbours.map(([other, pull, type]) => [type ? element("span", {}, graph.reference(other), element("small", {}, type))
          : graph.reference(other), pull])),
      ...part("Why: features", `How much higher ${beliefs.pulled} is because of each feature of the node. Estimated, for `
        + `networks only: gradient times value.${fitted}`, features),
    ];
  }

  // What the reader's own table says about a node.
  function original(one) {
    if (!parts.original.length) return [];
    const left = packed.columns_left_out;
    return [g3nn.section("From your table",
      left ? `${whole(left)} more columns are not on this page.` : "",
      element("dl", { class: "facts own" }, ...parts.original.map(({ label, value }) =>
        g3nn.fact(label, element("span", { class: "text" }, value(one) ?? "–")))))];
  }

  function show(place) {
    const links = [...graph.links(place), ...graph.suggestions(place).slice(0, MOST_SUGGESTED)];
    const one = node(place);
    current = place;
    around = spokes(links);
    draw();
    document.getElementById("legend").replaceChildren(
      ...beliefs.legend([one, ...around.map((spoke) => spoke.one)]), ...parts.typed(around.flatMap((spoke) => spoke.links)), element("p", { class: "note" }, count(one)));
    document.getElementById("node").replaceChildren(
      element("h3", { id: "node-name", tabindex: -1, class: "id" }, one.name),
      one.kind || one.name !== one.id ? element("p", { class: "note" },
        [one.kind, one.name === one.id ? null : `id ${one.id}`].filter(Boolean).join(", ")) : "",
      ...beliefs.details(one));
    document.getElementById("more").replaceChildren(...reasons(one), ...original(one));
    const hidden = one.degree - links.filter((link) => !link.suggested).length;
    const absent = hidden > 0 && !graph.typed() ? ` (${whole(hidden)} more are not on this page)` : "";
    document.getElementById("neighbours-title").textContent = `Neighbours of ${one.name}${absent}`;
    table.refill(links.map((link) => ({ link, one: node(link.neighbour) })));
    input.value = one.name;
    status.textContent = "";
    dispatchEvent(new Event("shown"));
  }

  // A step that "back" undoes.
  function go(place) {
    if (!graph.explorable(place) || place === current) return;
    show(place);
    history.pushState(null, "", `#${new URLSearchParams({ node: packed.ids[place] })}`);
  }

  function follow() {
    const asked = graph.place(new URLSearchParams(location.hash.slice(1)).get("node"));
    show(graph.explorable(asked) ? asked : packed.start);
  }

  // Show a node where the reader sees it.
  function open(place) {
    go(place);
    document.getElementById("explorer").scrollIntoView();
    document.getElementById("node-name").focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const reference = event.target.closest("[data-node]");
    if (reference) open(Number(reference.dataset.node));
  });

  // The tab key reaches one neighbour of the drawing, from there the arrow keys walk around.
  function focus(group) {
    if (!group) return;
    holder.querySelectorAll(".neighbour").forEach((one) => one.setAttribute("tabindex", one === group ? 0 : -1));
    group.focus();
  }

  holder.addEventListener("click", (event) => {
    const group = event.target.closest(".neighbour");
    if (group) go(Number(group.dataset.place));
  });
  holder.addEventListener("keydown", (event) => {
    const all = [...holder.querySelectorAll(".neighbour")];
    const at = all.indexOf(event.target.closest(".neighbour"));
    const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: -1 };
    if (at < 0 || !(event.key in steps || event.key === "Enter" || event.key === " ")) return;
    event.preventDefault();
    if (event.key in steps) {
      focus(all.at(steps[event.key] % all.length));
      return;
    }
    const before = current;
    go(Number(all[at].dataset.place));
    const drawn = (selector) => holder.querySelector(`.neighbour${selector}`);
    // The focus moves to where the reader came from.
    if (current !== before) focus(drawn(`[data-place="${before}"]`) ?? drawn(""));
  });

  function matches(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const [starting, inside] = [[], []];
    for (let place = 0; place < packed.explorable && starting.length < MOST_MATCHES; place += 1) {
      const at = [packed.ids[place], graph.names[place]].map((one) => one.toLowerCase().indexOf(wanted));
      if (at.includes(0)) starting.push(place);
      else if (Math.max(...at) > 0) inside.push(place);
    }
    return [...starting, ...inside].slice(0, MOST_MATCHES);
  }

  input.addEventListener("input", () => {
    status.textContent = "";
    const options = matches(input.value).map((place) => element("option",
      { value: packed.ids[place] }, packed.ids[place] === graph.names[place] ? null : graph.names[place]));
    document.getElementById("find-list").replaceChildren(...options);
  });

  // Go to the node with this id or name, else to the first whose id or name begins with it or holds it.
  document.getElementById("find").addEventListener("submit", (event) => {
    event.preventDefault();
    const exact = graph.place(input.value.trim()) ?? graph.called(input.value.trim());
    const place = graph.explorable(exact) ? exact : matches(input.value)[0] ?? null;
    const reason = exact === null ? "No node has such an id or name." : "The neighbours of this node are not on this page.";
    status.textContent = place === null ? reason : "";
    if (place !== null) go(place);
  });

  document.getElementById("explorer-bar").append(...graph.typeSwitch("Explorer"), ...graph.sideSwitch());
  addEventListener("turned", () => show(current));
  addEventListener("popstate", follow);
  new ResizeObserver(() => Math.floor(holder.clientWidth) !== drawnWidth && draw()).observe(holder);

  return { follow, open, current: () => current };
})();
