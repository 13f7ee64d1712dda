// What is believed about a node whose label is tags.
const beliefs = (() => {
  const { data, fact, number, whole } = g3nn;
  const { names } = data;
  const { packed, sides, unpack } = graph;
  const MOST_NAMED = 3;
  const told = sides.map((side) => ({
    labels: unpack(side.labels, Uint8Array), entropy: unpack(side.entropy, Float32Array),
    ...Object.fromEntries(["answered", "given", "differing", "doubtful", "doubtful_p"].map((name) =>
      [name, unpack(side[name], Uint16Array)])),
  }));

  // A node by its place, its likeliest tags first. label: 0, 1, or 2 where it is not given.
  function node(place, side = 0) {
    const { labels, entropy, answered, given, differing, doubtful, doubtful_p: doubtfulShare } = told[side];
    const belief = parts.belief(place, side).map((one, rank) => ({ ...one, label: labels[place * packed.width + rank] }));
    return {
      ...graph.node(place, side), belief, answered: answered[place], given: given[place], differing: differing[place],
      entropy: entropy[place], doubtful: doubtful[place], doubtfulProbability: doubtfulShare[place] / parts.FULL,
      known: given[place] > 0, sure: Math.max(0, 1 - entropy[place] / (names.length * Math.LN2)),
    };
  }

  // The first of the answered tags, and how many more there are.
  function answerOf(one, most = MOST_NAMED) {
    if (!one.answered) return "none";
    const listed = one.belief.slice(0, Math.min(one.answered, most)).map(({ name }) => names[name]);
    const more = one.answered - listed.length;
    return listed.join(", ") + (more ? ` and ${more} more` : "");
  }

  const tagsOf = (one) => one.belief.slice(0, one.answered).map(({ name }) => name).sort().join();
  const first = (one) => (one.answered ? one.belief[0].name : -1);
  const shade = (tag) => (tag < 0 ? "var(--muted)" : parts.colour(tag));
  const labelWords = (one) => `${one.given} given for ${one.use}${one.differing ? `, ${one.differing} differ` : ""}`;

  const labelCell = (one) => (!one.given ? "–" : parts.label(
    one.differing ? `${one.differing} of ${one.given}` : String(one.given), labelWords(one), one.differing > 0));

  function details(one) {
    const hidden = names.length - one.belief.length;
    const less = hidden ? `${whole(hidden)} tag${hidden === 1 ? " is" : "s are"} less likely than these` : null;
    return [parts.bars(one.belief, { mark: ({ label }) => (label === 1 ? "✓ " : "") }), g3nn.facts(
      fact("Answer", answerOf(one, packed.width), less),
      fact("Labels", one.given ? labelWords(one) : "not given", one.given ? "✓: this tag was given" : null),
      fact("Entropy", number(one.entropy), `${number(names.length * Math.LN2)} at most`),
      fact("Neighbours", whole(one.degree)),
      fact("Most doubtful tag", names[one.doubtful], `probability ${number(one.doubtfulProbability)}`))];
  }

  const ofTag = (test) => names.map((text, tag) => ({ text, test: (one) => test(one, tag) }));
  const answer = {
    label: "answer", value: (one) => answerOf(one), show: (one) => parts.marked(shade(first(one)), answerOf(one)),
    word: true,
  };
  const doubt = { label: "entropy", value: (one) => one.entropy, show: (one) => number(one.entropy) };

  return {
    node, details, answer, beside: [doubt],
    believed: parts.believed(answer, (one) => number(one.belief[0].probability),
      [{ label: "probability of the likeliest", value: (one) => one.belief[0].probability }]),
    changed: (one, other) => tagsOf(one) !== tagsOf(other),
    given: { label: "labels that differ", value: (one) => one.differing, show: labelCell, word: true },
    doubts: [
      doubt,
      { label: "most doubtful tag", value: (one) => names[one.doubtful], word: true },
      {
        label: "its probability", value: (one) => one.doubtfulProbability,
        show: (one) => number(one.doubtfulProbability),
      },
    ],
    pulled: "the probability of the likeliest tag",
    filters: [
      {
        label: "Answer", options: [
          { text: "none", test: (one) => !one.answered },
          ...ofTag((one, tag) => one.belief.slice(0, one.answered).some(({ name }) => name === tag)),
        ],
      },
      {
        label: "Labels", options: [
          { text: "given", test: (one) => one.known }, { text: "not given", test: (one) => !one.known },
          { text: "differ from the answer", test: (one) => one.differing > 0 },
          // Of many tags only the likeliest are on the page.
          ...(names.length > packed.width ? [] : ofTag((one, tag) =>
            one.belief.some(({ name, label }) => name === tag && label === 1))),
        ],
      },
    ],
    words: (one) => [answerOf(one, packed.width), names[one.doubtful], one.use],
    colour: (one) => shade(first(one)),
    order: (one, other) => first(one) - first(other),
    describe: (one) => `${answerOf(one)}, entropy ${number(one.entropy)}`,
    legend: (shown) => parts.counted(shown.map(first), (tag) => parts.marked(shade(tag), names[tag] ?? "none")),
    validation: () => [evidence.reliability(data.reliability, "known tags of validation nodes")],
  };
})();
