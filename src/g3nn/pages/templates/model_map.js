// The whole graph on one canvas. Nodes stand where Python put them; the reader zooms, filters and chooses.
const map = (() => {
  const { element, resolved, colour } = g3nn;
  const { packed, unpack } = graph;
  const { bubbles, links } = packed.map;
  const [x, y] = [packed.map.x, packed.map.y].map((text) =>
    Array.from(unpack(text, Uint16Array), (share) => share / parts.FULL));
  const MOST_ZOOM = 24;
  const MOST_LEGEND = 14; // With more classes the legend would be longer than the map.
  const EDGE = 20; // Around the map, so that no dot is cut off.
  const REACH = 14; // So far from a dot, in pixels, a click still means it.
  const AHEAD = 0.9; // The arrow keys look within about this angle, in radians, to both sides.
  const canvas = document.getElementById("map-canvas");
  const status = document.getElementById("map-status");
  const pen = canvas.getContext("2d");
  const still = document.createElement("canvas"); // What does not change while the reader points at nodes.
  const base = still.getContext("2d");
  const told = [null, null]; // The nodes, by side.
  const nodesOf = (side) => told[side] ??= packed.ids.map((_, place) => beliefs.node(place, side));
  let nodes = nodesOf(0);
  const [lowest, highest] = [y.reduce((one, other) => Math.min(one, other)), y.reduce((one, other) => Math.max(one, other))];
  const share = bubbles.length ? 1 : Math.max(0.45, highest - lowest); // How high the map is if it is 1 wide.
  let [width, height, zoom] = [0, 0, 1];
  let [left, top] = [0.5, 0.5]; // What is in the middle of the canvas.
  let chosen = nodes.map(() => true);
  let shades = null;
  let pointed = null;

  const choosers = parts.filters().map((filter) => tables.chooser(filter, "Map"));
  const scale = () => zoom * (Math.min(width, height / share) - 2 * EDGE);
  const across = (value) => width / 2 + (value - left) * scale();
  const down = (value) => height / 2 + (value - top) * scale();

  // The radius of a dot: in bubbles so that neighbours hardly touch, else by the room there is.
  function size() {
    if (!bubbles.length) return Math.max(2.2, Math.min(9, 0.11 * width / Math.sqrt(nodes.length))) * Math.min(zoom, 2.2);
    const [, , radius, members] = bubbles[0];
    return Math.min(12, Math.max(0.7, 0.66 * scale() * radius / Math.sqrt(members)));
  }

  function line(on, one, other, thickness) {
    on.lineWidth = thickness;
    on.beginPath();
    on.moveTo(across(one[0]), down(one[1]));
    on.lineTo(across(other[0]), down(other[1]));
    on.stroke();
  }

  function disc(on, middle, level, radius) {
    on.beginPath();
    on.arc(across(middle), down(level), radius, 0, 2 * Math.PI);
    on.fill();
  }

  // Suspicious edges stand out, unless they are hidden.
  function edges() {
    const [plain, odd] = [base.strokeStyle, colour("below", 0.8)];
    for (let number = 0; number < graph.size; number += 1) {
      const one = graph.edge(number);
      const { source, target, suspicious, types } = one;
      if (types.length) base.setLineDash(suspicious ? [4, 3] : []);
      base.globalAlpha = types.length ? 0.7 : 1;
      base.strokeStyle = types.length ? shadeOf(graph.shade(types)) : suspicious ? odd : plain;
      if (graph.isShown(one)) line(base, [x[source], y[source]], [x[target], y[target]], 1);
    }
    base.setLineDash([]);
    base.globalAlpha = 1;
    base.strokeStyle = plain;
  }

  function backdrop() {
    base.strokeStyle = colour("strong-line", bubbles.length ? 0.3 : 0.45);
    if (!bubbles.length) edges();
    const most = Math.max(1, ...links.map(([, , many]) => many));
    for (const [one, other, many, suspicious] of links) {
      const left = many - graph.side() * suspicious;
      if (left) line(base, bubbles[one], bubbles[other], Math.max(0.5, 5 * left / most));
    }
    base.lineWidth = 1;
    base.strokeStyle = colour("strong-line", 0.6);
    base.fillStyle = colour("surface");
    for (const [middle, level, radius] of bubbles) {
      disc(base, middle, level, radius * scale());
      base.stroke();
    }
  }

  function dot(on, place, radius, ring) {
    on.fillStyle = shades[place];
    disc(on, x[place], y[place], radius);
    if (!ring) return;
    on.lineWidth = ring;
    on.stroke();
  }

  // Everything but the node that is looked at.
  function draw() {
    if (!width) return;
    shades ??= nodes.map((one) => shadeOf(beliefs.colour(one)));
    base.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    base.clearRect(0, 0, width, height);
    backdrop();
    const radius = size();
    base.strokeStyle = colour("ink");
    for (const wanted of [false, true]) {
      base.globalAlpha = wanted ? 1 : 0.1;
      nodes.forEach((one, place) => chosen[place] === wanted
        && dot(base, place, radius, one.known ? Math.max(0.6, 0.22 * radius) : 0));
    }
    base.globalAlpha = 1;
    aim();
  }

  // The node that is shown below, with its edges, and the one that is pointed at.
  function aim() {
    if (!width) return;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(still, 0, 0);
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.strokeStyle = colour("accent");
    const current = explorer.current();
    for (const { neighbour } of graph.links(current)) {
      line(pen, [x[current], y[current]], [x[neighbour], y[neighbour]], 1.5);
    }
    for (const place of [current, pointed]) if (place !== null) dot(pen, place, size() + 2.5, 2.5);
  }

  // Each colour is looked up once: asking the browser takes long.
  const known = new Map();
  function shadeOf(text) {
    if (!known.has(text)) known.set(text, resolved(text));
    return known.get(text);
  }

  function say() {
    const one = nodes[pointed ?? explorer.current()];
    const given = one.known ? `; label given for ${one.use}` : "";
    status.textContent = `${one.name}${one.name === one.id ? "" : ` (${one.id})`}: ${beliefs.describe(one)}${given}`;
  }

  function point(place) {
    if (place === pointed) return;
    pointed = place;
    canvas.style.cursor = place === null ? "" : "pointer";
    say();
    aim();
  }

  // The node at a place of the canvas.
  function nearest(event) {
    const { left: edge, top: roof } = canvas.getBoundingClientRect();
    let [best, least] = [null, Math.max(REACH, size()) ** 2];
    nodes.forEach((_, place) => {
      const distance = (across(x[place]) - event.clientX + edge) ** 2 + (down(y[place]) - event.clientY + roof) ** 2;
      if (chosen[place] && distance < least) [best, least] = [place, distance];
    });
    return best;
  }

  // The nearest node in the direction of an arrow key.
  function ahead(from, [right, below]) {
    let [best, least] = [from, Infinity];
    nodes.forEach((_, place) => {
      const [far, deep] = [x[place] - x[from], y[place] - y[from]];
      const distance = Math.hypot(far, deep);
      const along = far * right + deep * below;
      if (!chosen[place] || place === from || along <= distance * Math.cos(AHEAD)) return;
      const cost = 2 * distance - along;
      if (cost < least) [best, least] = [place, cost];
    });
    return best;
  }

  function open(place) {
    if (graph.explorable(place)) explorer.open(place);
    else status.textContent = `${nodes[place].name}: the neighbours of this node are not on this page.`;
  }

  function look(middle, level, nearer) {
    zoom = Math.min(MOST_ZOOM, Math.max(1, nearer));
    const room = 0.5 - 0.5 / zoom;
    [left, top] = [middle, level].map((value) => Math.min(0.5 + room, Math.max(0.5 - room, value)));
    // Only a map that can be moved takes the finger from the page.
    canvas.style.touchAction = zoom > 1 ? "none" : "auto";
    draw();
  }

  const button = (label, text, action) => {
    const made = element("button", { type: "button", class: "quiet", "aria-label": label }, text);
    made.addEventListener("click", action);
    return made;
  };

  function filter() {
    chosen = nodes.map((one) => choosers.every(({ test }) => test(one)));
    const many = chosen.filter(Boolean).length;
    const words = many < nodes.length ? [`${g3nn.whole(many)} of ${g3nn.whole(nodes.length)} nodes`] : [];
    if (graph.side()) words.push(`${g3nn.whole(changes())} with another answer`);
    shown.textContent = words.join(", ");
    if (pointed !== null && !chosen[pointed]) pointed = null;
    draw();
  }

  // How many of the chosen nodes are answered otherwise without suspicious edges.
  const changes = () => nodesOf(0).filter((one, place) =>
    chosen[place] && beliefs.changed(one, nodesOf(1)[place])).length;

  const shown = element("span", { class: "shown", role: "status" });
  document.getElementById("map-bar").append(...choosers.map((one) => one.element),
    ...(bubbles.length ? [] : graph.typeSwitch("Map")), ...graph.sideSwitch(),
    element("span", { class: "turn" }, shown, button("Nearer", "+", () => look(left, top, 1.6 * zoom)),
      button("Farther", "−", () => look(left, top, zoom / 1.6)), button("Whole map", "⤢", () => look(0.5, 0.5, 1))));
  choosers.forEach((one) => one.element.addEventListener("change", filter));

  // A finger or a mouse that moves the map does not choose a node.
  let held = null;
  canvas.addEventListener("pointerdown", (event) => {
    held = { x: event.clientX, y: event.clientY, left, top, moved: false, place: nearest(event) };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) {
      point(nearest(event));
      return;
    }
    const [right, below] = [event.clientX - held.x, event.clientY - held.y];
    held.moved ||= Math.hypot(right, below) > 5;
    if (held.moved && zoom > 1) look(held.left - right / scale(), held.top - below / scale(), zoom);
  });
  addEventListener("pointerup", () => setTimeout(() => { held = null; }));
  canvas.addEventListener("pointerleave", () => point(null));
  // A click knows its place in whole pixels only, which is not enough among thousands of dots.
  canvas.addEventListener("click", (event) => {
    const place = held ? held.place : nearest(event);
    if (place !== null && !held?.moved) open(place);
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    look(left, top, zoom * (event.deltaY < 0 ? 1.25 : 0.8));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const ways = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const at = pointed ?? explorer.current();
    if (event.key in ways) {
      event.preventDefault();
      point(ahead(at, ways[event.key]));
      if (zoom > 1) look(x[pointed], y[pointed], zoom);
    } else if (event.key === "+" || event.key === "-") {
      look(x[at], y[at], event.key === "+" ? 1.6 * zoom : zoom / 1.6);
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(at);
    }
  });

  function resize() {
    const room = Math.floor(canvas.parentElement.clientWidth);
    if (!room || room === width) return;
    width = room;
    height = Math.round(Math.min(width * share, 620));
    canvas.width = still.width = width * devicePixelRatio;
    canvas.height = still.height = height * devicePixelRatio;
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    draw();
  }

  function explain() {
    const legend = beliefs.legend(nodes);
    const more = legend.length > MOST_LEGEND ? element("span", { class: "many" }, `and ${legend.length - MOST_LEGEND} more`)
      : "";
    document.getElementById("map-legend").replaceChildren(...legend.slice(0, MOST_LEGEND), more,
      ...(bubbles.length ? [] : parts.typed(Array.from({ length: graph.size }, (_, number) => graph.edge(number)).filter(graph.isShown))));
  }

  function turn() {
    nodes = nodesOf(graph.side());
    shades = null;
    explain();
    filter();
    say();
  }

  function show() {
    explain();
    say();
    resize();
    new ResizeObserver(resize).observe(canvas.parentElement);
    addEventListener("shown", () => { pointed = null; say(); aim(); });
    addEventListener("turned", turn);
    addEventListener("themed", () => { shades = null; known.clear(); draw(); });
  }

  return { show, at: (place) => [across(x[place]), down(y[place])], pointed: () => pointed };
})();
