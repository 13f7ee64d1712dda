"use strict";

// What is believed of a node whose label is a class.
const beliefs = (() => {
  const { data: { classes }, element, number } = g3nn;
  const { packed, unpack } = graph;
  const { FULL, fact, named } = parts;
  const ranked = unpack(packed.classes, Uint16Array);
  const shares = unpack(packed.beliefs, Uint16Array);
  const entropy = unpack(packed.entropy, Uint16Array);
  const sets = unpack(packed.sets, Uint16Array);
  const label = unpack(packed.label, Uint16Array);

  // A node by its place. Its classes are those of its set first, then by how likely they are.
  function node(place) {
    const start = place * packed.width;
    const belief = Array.from({ length: packed.width }, (_, rank) =>
      ({ class: ranked[start + rank], probability: shares[start + rank] / FULL }));
    const likeliest = belief.reduce((best, one) => (one.probability > best.probability ? one : best));
    return {
      ...graph.node(place), belief, answer: likeliest.class, probability: likeliest.probability,
      sure: likeliest.probability, known: label[place] !== FULL, label: label[place] === FULL ? null : label[place],
      entropy: Math.log(classes.length) * entropy[place] / FULL, setSize: sets[place],
    };
  }

  const answerOf = (one) => classes[one.answer];
  const labelOf = (one) => (one.label === null ? null : classes[one.label]);
  const differs = (one) => one.label !== null && one.label !== one.answer;
  const byProbability = (belief) => [...belief].sort((one, other) => other.probability - one.probability);

  // What is believed of a node as one bar, cut into classes.
  function beliefBar({ belief }) {
    const told = belief.filter((one) => one.probability >= 0.0005);
    const text = told.map((one) => `${classes[one.class]} ${number(one.probability)}`).join(", ");
    return element("span", { class: "belief", role: "img", "aria-label": text, title: text },
      ...byProbability(told).map((one) => element("i", {
        style: `--class: ${parts.colour(one.class)}; width: ${(100 * one.probability).toFixed(2)}%`,
      })));
  }

  function labelCell(one) {
    if (one.label === null) return "–";
    const title = `${labelOf(one)}, given for ${one.use}${differs(one) ? ", differs from the answer" : ""}`;
    return parts.label(named(one.label), title, differs(one));
  }

  // What else is in the set of classes of a node: one name, and how many more there are.
  function setCell({ belief, setSize, answer: own }) {
    const others = belief.slice(0, setSize).map((one) => one.class).filter((name) => name !== own);
    if (!others.length) return "–";
    const title = others.map((name) => classes[name]).join(", ");
    return element("span", { class: "set", title }, named(others[0]), setSize > 2 ? ` + ${setSize - 2}` : "");
  }

  function bars({ belief }) {
    const told = belief.reduce((sum, one) => sum + one.probability, 0);
    const rows = byProbability(belief).map((one) =>
      ({ name: classes[one.class], share: one.probability, shade: parts.colour(one.class) }));
    const more = classes.length - belief.length;
    return parts.bars(more > 0 ? [...rows, { name: `${more} more`, share: Math.max(0, 1 - told) }] : rows);
  }

  function details(one) {
    const names = one.belief.slice(0, one.setSize).map((part) => classes[part.class]).join(", ");
    const more = one.setSize - Math.min(one.setSize, one.belief.length);
    const given = `given for ${one.use}${differs(one) ? ", differs from the answer" : ""}`;
    return [bars(one), parts.facts(
      fact("Answer", named(one.answer), `probability ${number(one.probability)}`),
      one.label === null ? fact("Label", "not given") : fact("Label", named(one.label), given),
      fact("Entropy", number(one.entropy), `${number(Math.log(classes.length))} at most`),
      fact("Neighbours", one.degree.toLocaleString("en")),
      fact("Set of classes", element("span", { class: "set-names" }, more ? `${names} and ${more} more` : names)))];
  }

  const answer = { label: "answer", value: answerOf, show: (one) => named(one.answer), word: true };
  const probability = { label: "probability", value: (one) => one.probability, show: (one) => number(one.probability) };
  const belief = { label: "belief", value: (one) => one.probability, show: beliefBar, word: true };
  const given = { label: "label", value: labelOf, show: labelCell, word: true };

  return {
    node, details, answer, beside: [probability, belief], given,
    doubts: [
      probability,
      { label: "entropy", value: (one) => one.entropy, show: (one) => number(one.entropy) },
      belief,
      { label: "also in its set", value: (one) => one.setSize, show: setCell, word: true },
    ],
    words: (one) => [answerOf(one), labelOf(one) ?? "", one.use],
    colour: (one) => parts.colour(one.answer),
    order: (one, other) => one.answer - other.answer,
    describe: (one) => `${answerOf(one)} with probability ${number(one.probability)}`,
    legend: (shown) => parts.counted(shown.map((one) => one.answer), named),
  };
})();
