"use strict";

// The tables of uncertain nodes and of remarkable edges.
const lists = (() => {
  const { packed, edge } = graph;
  const { node } = beliefs;
  const reference = { label: "node", value: (one) => one.id, show: (one) => graph.reference(one.place), word: true };
  const degree = { label: "degree", value: (one) => one.degree };

  function uncertain() {
    const columns = [reference, beliefs.answer, ...beliefs.doubts, degree, beliefs.given];
    return tables.paged("Uncertain nodes", columns, packed.uncertain.map(node),
      { search: (one) => [one.id, ...beliefs.words(one)], size: 10 });
  }

  // A column about one of the things that a row is about.
  const of = (side, column) => ({
    ...column, value: (row) => column.value(row[side]), show: (row) => (column.show ?? column.value)(row[side]),
  });
  const end = (side, label) => [of(side, { ...reference, label }), of(side, beliefs.answer)];

  function pairs(caption, rows, empty) {
    const columns = [
      { label: "rank", value: (row) => row.rank },
      ...end("one", packed.directed ? "from" : "node"), ...end("other", packed.directed ? "to" : "other node"),
      { label: "probability", value: (row) => row.probability, show: (row) => graph.odds(row.probability) },
    ];
    const search = ({ one, other }) => [one, other].flatMap((side) => [side.id, String(beliefs.answer.value(side))]);
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

  return { uncertain, suspicious, missing, reference, degree, of };
})();
