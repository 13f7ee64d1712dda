"use strict";

// The tables of classes, of uncertain nodes and of remarkable edges.
const lists = (() => {
  const { data, number } = g3nn;
  const { packed, classes, node, edge } = graph;

  function classTable() {
    const columns = [
      { label: "class", value: ([name]) => classes[name], show: ([name]) => graph.named(name), word: true },
      { label: "training labels", value: (row) => row[1], show: (row) => row[1].toLocaleString("en") },
      { label: "validation labels", value: (row) => row[2], show: (row) => row[2].toLocaleString("en") },
      { label: "nodes answered", value: (row) => row[3], show: (row) => row[3].toLocaleString("en") },
      { label: "mean probability", value: (row) => row[4], show: (row) => number(row[4], 2) },
      { label: "found on validation", value: (row) => row[5], show: (row) => number(row[5], 2) },
    ];
    const many = classes.length > 15;
    return tables.paged("Classes", columns, data.class_rows,
      { search: many ? ([name]) => [classes[name]] : null, size: many ? 10 : 15 });
  }

  const answerOf = (one) => classes[one.answer];
  const labelOf = (one) => (one.label === null ? null : classes[one.label]);

  function uncertain() {
    const columns = [
      { label: "node", value: (one) => one.id, show: (one) => graph.reference(one.place), word: true },
      { label: "answer", value: answerOf, show: (one) => graph.named(one.answer), word: true },
      { label: "probability", value: (one) => one.probability, show: (one) => number(one.probability) },
      { label: "entropy", value: (one) => one.entropy, show: (one) => number(one.entropy) },
      { label: "belief", value: (one) => one.probability, show: graph.beliefBar, word: true },
      { label: "also in its set", value: (one) => one.setSize, show: graph.setCell, word: true },
      { label: "degree", value: (one) => one.degree },
      { label: "label", value: labelOf, show: graph.labelCell, word: true },
    ];
    return tables.paged("Uncertain nodes", columns, packed.uncertain.map(node),
      { search: (one) => [one.id, answerOf(one), labelOf(one) ?? "", one.use], size: 10 });
  }

  const end = (side, label) => [
    { label, value: (row) => row[side].id, show: (row) => graph.reference(row[side].place), word: true },
    { label: "answer", value: (row) => answerOf(row[side]), show: (row) => graph.named(row[side].answer), word: true },
  ];

  function pairs(caption, rows, empty) {
    const columns = [
      { label: "rank", value: (row) => row.rank },
      ...end("one", packed.directed ? "from" : "node"), ...end("other", packed.directed ? "to" : "other node"),
      { label: "probability", value: (row) => row.probability, show: (row) => graph.odds(row.probability) },
    ];
    const search = ({ one, other }) => [one.id, answerOf(one), other.id, answerOf(other)];
    return tables.paged(caption, columns, rows, { search, empty, size: 10 });
  }

  function suspicious() {
    const rows = packed.suspicious.map((place, index) => {
      const { source, target, probability } = edge(place);
      return { rank: index + 1, one: node(source), other: node(target), probability };
    });
    return pairs("Suspicious edges", rows, "The graph has no edges.");
  }

  function missing() {
    const rows = packed.missing.map(([one, other, probability], index) =>
      ({ rank: index + 1, one: node(one), other: node(other), probability }));
    return pairs("Likely missing edges", rows, "No pair was found that would be expected to have an edge.");
  }

  return { classTable, uncertain, suspicious, missing };
})();
