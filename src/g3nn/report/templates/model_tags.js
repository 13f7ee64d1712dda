"use strict";

// What is believed of a node whose label is tags.
const beliefs = (() => {
  const { data: { classes: tags }, number } = g3nn;
  const { packed, unpack } = graph;
  const { FULL, fact } = parts;
  const MOST_NAMED = 3;
  const NONE = "var(--muted)";
  const ranked = unpack(packed.tags, Uint16Array);
  const shares = unpack(packed.beliefs, Uint16Array);
  const labels = unpack(packed.labels, Uint8Array);
  const [answered, given, differing, doubtful, doubtfulShare] =
    [packed.answered, packed.given, packed.differing, packed.doubtful, packed.doubtful_p]
      .map((text) => unpack(text, Uint16Array));
  const entropy = unpack(packed.entropy, Float32Array);
  const count = (many) => `${many.toLocaleString("en")} tag${many === 1 ? "" : "s"}`;

  // A node by its place, its likeliest tags first. label: 0, 1, or 2 where it is not given.
  function node(place) {
    const start = place * packed.width;
    const belief = Array.from({ length: packed.width }, (_, rank) =>
      ({ tag: ranked[start + rank], probability: shares[start + rank] / FULL, label: labels[start + rank] }));
    return {
      ...graph.node(place), belief, answered: answered[place], given: given[place], differing: differing[place],
      entropy: entropy[place], doubtful: doubtful[place], doubtfulProbability: doubtfulShare[place] / FULL,
      known: given[place] > 0, sure: Math.max(0, 1 - entropy[place] / (tags.length * Math.LN2)),
    };
  }

  // The first of the answered tags, and how many more there are.
  function answerOf(one, most = MOST_NAMED) {
    if (!one.answered) return "none";
    const names = one.belief.slice(0, Math.min(one.answered, most)).map(({ tag }) => tags[tag]);
    const more = one.answered - names.length;
    return names.join(", ") + (more ? ` and ${more} more` : "");
  }

  const first = (one) => (one.answered ? one.belief[0].tag : -1);
  const shade = (tag) => (tag < 0 ? NONE : parts.colour(tag));
  const labelWords = (one) => `${one.given} given for ${one.use}${one.differing ? `, ${one.differing} differ` : ""}`;

  function labelCell(one) {
    if (!one.given) return "–";
    return parts.label(one.differing ? `${one.differing} of ${one.given}` : String(one.given), labelWords(one),
      one.differing > 0);
  }

  function details(one) {
    const rows = one.belief.map(({ tag, probability, label }) => ({
      name: tags[tag], share: probability, shade: parts.colour(tag), mark: ["", "✓ ", ""][label],
    }));
    const hidden = tags.length - one.belief.length;
    return [parts.bars(rows), parts.facts(
      fact("Answer", answerOf(one, packed.width), hidden ? `${count(hidden)} less likely than these` : null),
      fact("Labels", one.given ? labelWords(one) : "not given", one.given ? "✓: this tag was given" : null),
      fact("Entropy", number(one.entropy), `${number(tags.length * Math.LN2)} at most`),
      fact("Neighbours", one.degree.toLocaleString("en")),
      fact("Most doubtful tag", tags[one.doubtful], `probability ${number(one.doubtfulProbability)}`))];
  }

  const answer = { label: "answer", value: (one) => answerOf(one), show: (one) => parts.marked(shade(first(one)),
    answerOf(one)), word: true };
  const doubt = { label: "entropy", value: (one) => one.entropy, show: (one) => number(one.entropy) };

  return {
    node, details, answer, beside: [doubt],
    given: { label: "labels that differ", value: (one) => one.differing, show: labelCell, word: true },
    doubts: [
      doubt,
      { label: "most doubtful tag", value: (one) => tags[one.doubtful], word: true },
      {
        label: "its probability", value: (one) => one.doubtfulProbability,
        show: (one) => number(one.doubtfulProbability),
      },
    ],
    words: (one) => [answerOf(one, packed.width), tags[one.doubtful], one.use],
    colour: (one) => shade(first(one)),
    order: (one, other) => first(one) - first(other),
    describe: (one) => `${answerOf(one)}, entropy ${number(one.entropy)}`,
    legend: (shown) => parts.counted(shown.map(first), (tag) => parts.marked(shade(tag), tag < 0 ? "none" : tags[tag])),
  };
})();
