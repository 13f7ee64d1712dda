"""What columns say about edges: amounts and categories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from g3nn.base.errors import Problems
from g3nn.base.parse import encode, to_numpy
from g3nn.graph.relations import EDGE


@dataclass(frozen=True, eq=False)
class Marks:
    """C columns of M edges as they were stated, so that an edge may have several rows, or none.

    pairs: (2, M) int64 nodes, from source to target. values: (M, C) float64, numbers or codes 0, 1, ... of categories,
    NaN where nothing is known. categories: (C,), how many each column has, 0 for numbers. types: (M,), the code of each
    row in `names`. directed: (T,), whether the two ends of a type differ.
    """

    pairs: np.ndarray
    values: np.ndarray
    categories: tuple[int, ...]
    types: np.ndarray
    names: tuple[str, ...]
    directed: tuple[bool, ...]

    @classmethod
    def of(
        cls,
        pairs: object,
        values: object,
        categories: Sequence[int] = (),
        types: object = None,
        directed: bool | Collection[str] = False,
    ) -> Marks:
        """Checked. categories: by default all columns hold numbers. types: (M,) names, as in `Relations`. directed: of
        all types, or the names of those that are. Raises one `InputError` that lists every problem."""
        problems, ends, table = Problems(), to_numpy(pairs), np.array(to_numpy(values), dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        sizes = tuple(categories) or (0,) * table.shape[-1]
        if ends.ndim != 2 or len(ends) != 2 or table.ndim != 2 or len(table) != ends.shape[-1]:
            problems.add("marks", f"shapes {table.shape} and {ends.shape}", "values (M, C) for pairs (2, M)")
        elif len(sizes) != table.shape[1]:
            problems.add("marks", f"categories for {len(sizes)} columns", f"how many each of {table.shape[1]} has")
        elif any(_are_wrong(*column) for column in zip(table.T, sizes, strict=True)):
            wrong = "infinite values, or codes that are not among the categories"
            problems.add("marks", wrong, "finite numbers, codes from 0 on, and NaN where nothing is known")
        problems.raise_if_any()
        given = np.full(len(table), EDGE) if types is None else np.asarray(types).astype(str)
        names, codes = np.unique(given, return_inverse=True)
        ways = tuple(bool(directed) if isinstance(directed, bool) else name in directed for name in names.tolist())
        return cls(ends.astype(np.int64), table, sizes, codes.astype(np.int64), tuple(names.tolist()), ways)

    def read(self, edges: np.ndarray, n: int, directed: bool, problems: Problems) -> Marks:
        """Those of the edges (2, E) of a graph with n nodes."""
        if self.pairs.size and not 0 <= self.pairs.min() <= self.pairs.max() < n:
            problems.add("marks", "pairs with nodes outside the graph", f"node numbers 0..{n - 1}")
            return self
        return self.among(edges, n, directed)

    def among(self, edges: np.ndarray, n: int, directed: bool) -> Marks:
        """Those of some edges (2, E) between n nodes."""
        ours, theirs = (i * n + j if directed else encode(i, j, n) for i, j in (self.pairs, edges))
        return self._at(np.isin(ours, theirs))

    def within(self, nodes: np.ndarray) -> Marks:
        """Those between some nodes, sorted, with these numbered by their places."""
        inside = self._at(np.asarray(np.isin(self.pairs, nodes).all(axis=0)))
        return replace(inside, pairs=np.searchsorted(nodes, inside.pairs))

    def without(self, names: Collection[str]) -> Marks:
        """Those of other types."""
        return self._at(~np.isin(self.types, [code for code, name in enumerate(self.names) if name in names]))

    def _at(self, kept: np.ndarray) -> Marks:
        return replace(self, pairs=self.pairs[:, kept], values=self.values[kept], types=self.types[kept])


def _are_wrong(values: np.ndarray, size: int) -> bool:
    known = values[~np.isnan(values)]
    return not (np.isin(known, np.arange(size)) if size else np.isfinite(known)).all()
