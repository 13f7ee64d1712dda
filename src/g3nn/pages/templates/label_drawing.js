// Small drawings of the page on which people label: a neighbourhood, bars, and the curve that says when to stop.
const drawing = (() => {
  const { element, shape, number } = g3nn;

  const { colour } = palette;
  const cut = (text, length) => {
    const letters = [...text];
    return letters.length <= length ? text : `${letters.slice(0, length - 1).join("")}…`;
  };
  // No digit more than is meant, and never certainty where there is none.
  function percent(share) {
    if (share < 1 && share >= 0.995) return "> 99 %";
    return share > 0 && share < 0.005 ? "< 1 %" : `${Math.round(100 * share)} %`;
  }

  function odds(probability) {
    if (probability >= 0.995) return "> 0.99";
    return probability < 0.005 ? "< 0.01" : number(probability, 2);
  }

  // nodes: [id, title, label, guess, sure], the middle one first; edges: pairs of places. place(name): of a class.
  function neighbourhood({ nodes, edges, degree }, place) {
    const [width, height] = [440, nodes.length > 1 ? 320 : 120];
    const points = spread(nodes.length, edges, width, height);
    const near = new Set(edges.filter(([one]) => one === 0).map(([, other]) => other));
    const lines = edges.map(([one, other]) => shape("line", {
      class: one === 0 ? "line" : "line far",
      x1: points[one][0], y1: points[one][1], x2: points[other][0], y2: points[other][1],
    }));
    const dots = nodes.map(([, title, label, guess, sure], index) => {
      const name = label ?? guess;
      const known = label === null ? (name === null ? "blank" : "") : "known";
      const kind = index === 0 ? "middle" : known;
      const paler = label === null && name !== null ? `; fill-opacity: ${(0.2 + 0.8 * sure).toFixed(2)}` : "";
      return shape("circle", {
        class: `dot ${kind}`, cx: points[index][0], cy: points[index][1], r: index === 0 ? 15 : near.has(index) ? 9 : 5,
        style: name === null ? null : `--class: ${colour(place(name))}${paler}`,
      }, shape("title", {}, describe(title, label, guess, sure)));
    });
    const names = nodes.map(([, title], index) => {
      if (!near.has(index)) return null;
      const [x, y] = points[index];
      // Towards the middle, since neighbours of neighbours stand behind.
      const room = 2 * Math.min(x, width - x) - 8;
      return shape("text", { x, y: y + (y < height / 2 ? 23 : -14), "text-anchor": "middle" },
        cut(title, Math.max(4, Math.min(Math.floor(room / 7), near.size > 6 ? 11 : 18))));
    });
    const told = nodes.flatMap(([, title, label, guess, sure], index) =>
      (near.has(index) ? [describe(title, label, guess, sure)] : []));
    const alone = nodes.length > 1 ? null
      : shape("text", { class: "small", x: width / 2, y: height - 18, "text-anchor": "middle" }, "no neighbours");
    return shape("svg", {
      class: "drawn", viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `${nodes[0][1]} has ${degree} neighbours. ${told.join("; ")}`,
    }, ...lines, ...dots, ...names.filter(Boolean), alone);
  }

  function describe(title, label, guess, sure) {
    if (label !== null) return `${title}: labelled ${label}`;
    return guess === null ? `${title}: nothing known` : `${title}: probably ${guess}, ${percent(sure)}`;
  }

  // Neighbours stand around the middle, theirs further out behind them.
  function spread(count, edges, width, height) {
    const parent = new Map();
    for (const [one, other] of edges) if (!parent.has(other) && other > one) parent.set(other, one);
    const near = [...parent].filter(([, one]) => one === 0).map(([node]) => node).sort((a, b) => a - b);
    const [x, y] = [width / 2, height / 2];
    const points = Array.from({ length: count }, () => [x, y]);
    const at = (angle, share) => [x + Math.cos(angle) * share * (x - 95), y + Math.sin(angle) * share * (y - 42)];
    near.forEach((node, index) => {
      const angle = 2 * Math.PI * (index + 0.25) / near.length - Math.PI / 2;
      points[node] = at(angle, near.length > 8 ? 0.72 + 0.24 * (index % 2) : 0.82);
      const own = [...parent].filter(([, one]) => one === node).map(([far]) => far);
      own.forEach((far, place) => {
        const turn = angle + (place - (own.length - 1) / 2) * Math.min(0.34, 4 / near.length / own.length);
        const [px, py] = [Math.cos(turn), Math.sin(turn)];
        points[far] = [x + px * (x - 34), y + py * (y - 14)];
      });
    });
    return points;
  }

  // rows: [name, probability]; key(name): the key that chooses a class, if there is one.
  function bars(rows, place, key) {
    return element("ul", { class: "bars" }, ...rows.map(([name, probability]) => element("li", {
      style: `--class: ${colour(place(name))}`,
    }, element("span", { class: "text", title: name }, key(name) ? element("kbd", {}, key(name)) : null, name),
    element("i", { class: "bar", "aria-hidden": "true" }, element("i", { style: `width: ${100 * probability}%` })),
    element("span", { class: "value" }, odds(probability)))));
  }

  // The classes in a neighbourhood, those of most nodes first, each in its colour.
  function key({ nodes }, place) {
    const counts = new Map();
    for (const [, , label, guess] of nodes) counts.set(label ?? guess, (counts.get(label ?? guess) ?? 0) + 1);
    counts.delete(null);
    const found = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
    return element("p", { class: "key" }, ...found.map((name) => element("span", { class: "named" },
      element("i", { class: "swatch", style: `--class: ${colour(place(name))}`, "aria-hidden": "true" }), name)));
  }

  // Neighbours by the type of their edges: [type, number, [[id, title, label, guess, sure, kind], ...]].
  const groups = ({ types }, place) => types.flatMap(([type, many, nodes]) => [
    element("h3", {}, type, element("span", { class: "many" }, ` × ${many}`)),
    element("ul", { class: "group" }, ...nodes.map(([, title, label, guess, sure, kind]) => {
      const name = label ?? guess;
      return element("li", { title: describe(title, label, guess, sure) },
        element("i", { class: "swatch", style: name === null ? null : `--class: ${colour(place(name))}`, "aria-hidden": "true" }),
        element("span", {}, title, " ", element("small", {}, [kind, label ?? (guess && `probably ${guess}`)].filter(Boolean).join(", "))));
    }), nodes.length < many ? element("li", {}, element("small", {}, `and ${many - nodes.length} more`)) : null)]);

  // rows: [name, change]; above 0 pulls towards the guess.
  function pulls(rows) {
    const most = Math.max(...rows.map(([, change]) => Math.abs(change)), 1e-9);
    return element("ul", { class: "bars pulls" }, ...rows.map(([name, change]) => element("li", {
      class: change < 0 ? "against" : "for",
    }, element("span", { class: "text", title: name }, name), element("span", { class: "bar", "aria-hidden": "true" },
      element("i", { style: `width: ${100 * Math.abs(change) / most}%` })),
    element("span", { class: "value" }, g3nn.signed(change)))));
  }

  // curve: [labels, share, low, high]; asked: [labels, share].
  function course({ curve, asked }) {
    const [width, height, left, top, bottom] = [440, 190, 34, 12, 30];
    const all = [...curve, ...asked].map(([labels]) => labels);
    const [first, last] = [Math.min(...all), Math.max(...all)];
    const x = (labels) => left + (width - left - 14) * (last > first ? (labels - first) / (last - first) : 0.5);
    const y = (share) => top + (height - top - bottom) * (1 - share);
    const path = (points) => points.map(([labels, share], index) =>
      `${index ? "L" : "M"}${x(labels).toFixed(1)} ${y(share).toFixed(1)}`).join("");
    const band = curve.length ? [...curve.map(([labels, , , high]) => [labels, high]),
      ...[...curve].reverse().map(([labels, , low]) => [labels, low])] : [];
    const grid = [0, 0.5, 1].flatMap((share) => [
      shape("line", { class: "grid", x1: left, x2: width - 14, y1: y(share), y2: y(share) }),
      shape("text", { class: "small", x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${100 * share}`)]);
    const ticks = [...new Set([first, last])].map((labels) => shape("text", {
      class: "small", x: x(labels), y: height - 10, "text-anchor": labels === last && last > first ? "end" : "start",
    }, `${labels} labels`));
    const end = curve.at(-1);
    return shape("svg", {
      class: "drawn", viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `Share of right guesses in percent, after ${first} to ${last} labels`,
    }, ...grid, ...ticks, curve.length ? shape("path", { class: "band", d: `${path(band)}Z` }) : null,
    asked.length > 1 ? shape("path", { class: "asked", d: path(asked) }) : null,
    curve.length > 1 ? shape("path", { class: "course", d: path(curve) }) : null,
    end ? shape("line", { class: "course", x1: x(end[0]), x2: x(end[0]), y1: y(end[2]), y2: y(end[3]) }) : null,
    end ? shape("circle", { class: "now", cx: x(end[0]), cy: y(end[1]), r: 4.5 }) : null);
  }

  return { colour, percent, odds, neighbourhood, key, groups, bars, pulls, course };
})();
