// What is believed about a node whose label is a class.
const beliefs = (() => {
  const { data, element, fact, number, whole } = g3nn;
  const { names } = data;
  const { sides, unpack } = graph;
  const { FULL, named } = parts;
  const told = sides.map((side) => [side.entropy, side.sets, side.label].map((text) => unpack(text, Uint16Array)));

  // A node by its place. The classes of its set come first, then the likeliest.
  function node(place, side = 0) {
    const belief = parts.belief(place, side);
    const [entropy, sets, label] = told[side];
    const likeliest = belief.reduce((best, one) => (one.probability > best.probability ? one : best));
    return {
      ...graph.node(place, side), belief, answer: likeliest.name, probability: likeliest.probability,
      sure: likeliest.probability, known: label[place] !== FULL, label: label[place] === FULL ? null : label[place],
      entropy: Math.log(names.length) * entropy[place] / FULL, setSize: sets[place],
    };
  }

  const answerOf = (one) => names[one.answer];
  const labelOf = (one) => (one.label === null ? null : names[one.label]);
  const differs = (one) => one.label !== null && one.label !== one.answer;
  const given = (one) => `given for ${one.use}${differs(one) ? ", differs from the answer" : ""}`;
  const byProbability = (belief) => [...belief].sort((one, other) => other.probability - one.probability);

  // The belief about a node as one bar, cut into classes.
  function beliefBar({ belief }) {
    const visible = byProbability(belief.filter((one) => one.probability >= 0.0005));
    const text = visible.map((one) => `${names[one.name]} ${number(one.probability)}`).join(", ");
    return element("span", { class: "belief", role: "img", "aria-label": text, title: text },
      ...visible.map((one) => element("i", {
        style: `--class: ${parts.colour(one.name)}; width: ${(100 * one.probability).toFixed(2)}%`,
      })));
  }

  const labelCell = (one) => (one.label === null ? "–"
    : parts.label(named(one.label), `${labelOf(one)}, ${given(one)}`, differs(one)));

  // What else is in the set of a node: one class, and how many more there are.
  function setCell({ belief, setSize, answer }) {
    const others = belief.slice(0, setSize).map((one) => one.name).filter((name) => name !== answer);
    if (!others.length) return "–";
    const title = others.map((name) => names[name]).join(", ");
    return element("span", { class: "set", title }, named(others[0]), setSize > 2 ? ` + ${setSize - 2}` : "");
  }

  function details(one) {
    const listed = one.belief.slice(0, one.setSize).map(({ name }) => names[name]).join(", ");
    const more = one.setSize - Math.min(one.setSize, one.belief.length);
    const hidden = names.length - one.belief.length;
    const rest = Math.max(0, 1 - one.belief.reduce((sum, { probability }) => sum + probability, 0));
    return [parts.bars(byProbability(one.belief),
      { others: hidden > 0 ? { text: `${hidden} more`, probability: rest } : null }), g3nn.facts(
      fact("Answer", named(one.answer), `probability ${number(one.probability)}`),
      one.label === null ? fact("Label", "not given") : fact("Label", named(one.label), given(one)),
      fact("Entropy", number(one.entropy), `${number(Math.log(names.length))} at most`),
      fact("Neighbours", whole(one.degree)),
      fact("Set of classes", element("span", { class: "set-names" }, more ? `${listed} and ${more} more` : listed)))];
  }

  const answer = { label: "answer", value: answerOf, show: (one) => named(one.answer), word: true };
  const probability = { label: "probability", value: (one) => one.probability, show: (one) => number(one.probability) };
  const belief = { label: "belief", value: (one) => one.probability, show: beliefBar, word: true, files: [] };
  const setNames = ({ belief: own, setSize }) => own.slice(0, setSize).map(({ name }) => names[name]).join(" | ");
  const ofClass = (test) => names.map((text, name) => ({ text, test: (one) => test(one, name) }));

  function validation() {
    const { confusion: { names: rows, counts, cut } = {}, reliability, degrees } = data;
    const note = "The share of each class's validation nodes that got each answer."
      + `${cut ? ` Only the ${rows.length - 1} classes with the most errors have rows of their own.` : ""}`;
    return [evidence.confusion(rows, counts, note), evidence.reliability(reliability, "validation nodes"),
      evidence.degrees(degrees, "validation nodes")];
  }

  return {
    node, details, validation, answer, beside: [probability, belief],
    believed: parts.believed(answer, (one) => number(one.probability), [probability]),
    changed: (one, other) => one.answer !== other.answer,
    given: { label: "label", value: labelOf, show: labelCell, word: true },
    doubts: [
      probability,
      { label: "entropy", value: (one) => one.entropy, show: (one) => number(one.entropy) },
      belief,
      {
        label: "also in its set", value: (one) => one.setSize, show: setCell, word: true,
        files: [{ label: "set", value: setNames }],
      },
    ],
    pulled: "the log-probability of the answer",
    filters: [
      { label: "Answer", options: ofClass((one, name) => one.answer === name) },
      {
        label: "Label", options: [
          { text: "given", test: (one) => one.known }, { text: "not given", test: (one) => !one.known },
          { text: "differs from the answer", test: differs }, ...ofClass((one, name) => one.label === name),
        ],
      },
    ],
    words: (one) => [answerOf(one), labelOf(one) ?? "", one.use],
    colour: (one) => parts.colour(one.answer),
    order: (one, other) => one.answer - other.answer,
    describe: (one) => `${answerOf(one)} with probability ${number(one.probability)}`,
    legend: (shown) => parts.counted(shown.map((one) => one.answer), named),
  };
})();
