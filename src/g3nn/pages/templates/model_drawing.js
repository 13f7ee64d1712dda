// A node in the middle, its neighbours around it: the same graph always gives the same drawing.
const drawing = (() => {
  const { missing, shape } = g3nn;
  const MOST_LEVEL_LABELS = 12; // With more neighbours their names are turned outwards.
  const MOST_NUMBERED = 12; // With more edges there is no room for their probabilities.
  const UNLIKELY = 80; // An edge is dashed if at least this percentage of edges are likelier.
  const LETTER = 7.6; // The width of a wide letter, about.

  // Names often begin alike, so the middle is cut out.
  function short(text, length) {
    const letters = [...text];
    if (letters.length <= length) return text;
    const head = Math.ceil((length - 1) / 2);
    return `${letters.slice(0, head).join("")}…${letters.slice(head + 1 - length).join("")}`;
  }

  // Sizes in pixels for a drawing of this width.
  function measures(width, spokes) {
    const count = spokes.length;
    const turned = count > MOST_LEVEL_LABELS;
    const letters = Math.floor(Math.min(110, (turned ? 0.16 : 0.19) * width) / LETTER);
    const longest = Math.max(1, ...spokes.map(({ one }) => [...one.name].length));
    const room = LETTER * Math.min(letters, longest) + 36;
    const height = turned ? Math.min(width, 620) : Math.min(Math.max((count > 3 ? 0.8 : 0.6) * width, 290), 500);
    const radius = turned ? Math.min(width, height) / 2 - room : Math.min(width / 2 - room, height / 2 - 46);
    const dot = Math.max(5, Math.min(13, 0.5 * Math.PI * radius / Math.max(count, 1)));
    return { height, radius, dot, turned, letters, numbered: count <= MOST_NUMBERED && width > 440 };
  }

  // A disc in the colour of the answer; the more certain the answer, the longer the ring around it.
  function disc(one, x, y, size, thickness) {
    const reach = size + 1.2 * thickness;
    const around = 2 * Math.PI * reach;
    const colour = `--class: ${beliefs.colour(one)}`;
    return shape("g", { transform: `translate(${x} ${y})`, style: colour },
      shape("circle", { class: "rest", r: reach, "stroke-width": thickness }),
      shape("circle", {
        class: "sure", r: reach, "stroke-width": thickness, transform: "rotate(-90)",
        "stroke-dasharray": `${around * one.sure} ${around}`,
      }),
      shape("circle", { class: "fill", r: size }),
      !one.known ? null : shape("circle", { class: "known", r: Math.max(2, 0.28 * size) }));
  }

  function name(one, angle, { radius, dot, turned, letters }) {
    const text = short(one.name, letters);
    const right = Math.cos(angle) >= -1e-9;
    const distance = radius + dot + 10;
    if (turned) {
      const degrees = angle * 180 / Math.PI + (right ? 0 : 180);
      return shape("text", {
        class: "name", "text-anchor": right ? "start" : "end", dy: "0.35em",
        transform: `rotate(${degrees}) translate(${right ? distance : -distance} 0)`,
      }, text);
    }
    const above = Math.abs(Math.cos(angle)) < 0.3;
    return shape("text", {
      class: "name", x: Math.cos(angle) * (distance + 2), y: Math.sin(angle) * (distance + 5), dy: "0.35em",
      "text-anchor": above ? "middle" : right ? "start" : "end",
    }, text);
  }

  // The less likely an edge, the thinner; the least likely are dashed, and suggested ones dotted.
  function line(link, x, y) {
    const ends = { x2: x, y2: y };
    if (link.suggested) {
      return shape("line", { ...ends, class: "edge suggested", "stroke-width": 2.5, "stroke-dasharray": "1 5" });
    }
    const likelier = graph.rarity(link.probability);
    return shape("line", {
      ...ends, class: "edge", style: `--shade: ${graph.shade(link.types)}`, "stroke-width": missing(likelier) ? 1.5 : 4 - 0.032 * likelier,
      "stroke-dasharray": !missing(likelier) && likelier >= UNLIKELY ? "4 4" : null,
    });
  }

  function arrow(link, angle, { radius, dot }, middle) {
    const at = link.outgoing ? radius - dot - 9 : middle + 12;
    const turn = angle * 180 / Math.PI + (link.outgoing ? 0 : 180);
    return shape("path", {
      class: "arrow", style: `--shade: ${graph.shade(link.types)}`, d: "M4 0L-4 -4.5L-4 4.5z",
      transform: `translate(${Math.cos(angle) * at} ${Math.sin(angle) * at}) rotate(${turn})`,
    });
  }

  const edgeText = (link) => (missing(link.probability) ? (link.suggested ? "suggested edge" : "edge")
    : `${link.suggested ? "suggested edge" : "edge"} with probability ${graph.odds(link.probability)}`);
  const typed = (link) => [edgeText(link), graph.typeText(link)].filter(Boolean).join(", ");
  const describe = ({ one, links }) =>
    `${one.name}${one.kind ? ` (${one.kind})` : ""}: ${beliefs.describe(one)}; ${links.map(typed).join("; ")}`;

  // spokes: [{one, links}], one for each neighbour, in the order in which they are drawn.
  function draw(centre, spokes, width, { directed }) {
    const sizes = measures(width, spokes);
    const middle = Math.max(18, Math.min(26, 0.14 * sizes.radius));
    const groups = spokes.map((spoke, index) => {
      const angle = 2 * Math.PI * index / spokes.length - Math.PI / 2;
      const [x, y] = [Math.cos(angle) * sizes.radius, Math.sin(angle) * sizes.radius];
      const half = (sizes.radius + middle) / 2;
      return shape("g", {
        class: "neighbour", role: "button", tabindex: index ? -1 : 0, "data-place": spoke.one.place,
        "aria-label": describe(spoke), "aria-disabled": graph.explorable(spoke.one.place) ? null : "true",
      },
      shape("title", {}, describe(spoke)),
      shape("line", { class: "reach", x2: x, y2: y }),
      line(spoke.links[0], x, y),
      ...(directed ? spoke.links.map((link) => arrow(link, angle, sizes, middle)) : []),
      shape("circle", { class: "target", cx: x, cy: y, r: sizes.dot + 8 }),
      disc(spoke.one, x, y, sizes.dot, Math.max(2, 0.28 * sizes.dot)),
      sizes.numbered && !missing(spoke.links[0].probability) ? shape("text", {
        class: "number", x: Math.cos(angle) * half, y: Math.sin(angle) * half, dy: "0.35em", "text-anchor": "middle",
      }, graph.odds(spoke.links[0].probability)) : null,
      name(spoke.one, angle, sizes));
    });
    return shape("svg", {
      viewBox: `${-width / 2} ${-sizes.height / 2} ${width} ${sizes.height}`, width, height: sizes.height,
      role: "group", "aria-label": `${centre.name} and its neighbours`,
    }, ...groups, disc(centre, 0, 0, middle, 5),
    spokes.length ? null : shape("text", { class: "name", y: middle + 34, "text-anchor": "middle" }, "no edges"));
  }

  return { draw };
})();
