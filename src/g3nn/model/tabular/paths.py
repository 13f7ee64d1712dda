"""What a node has around it in a graph with several types of edges, as columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn  # Its parts are imported where they are used: they take long.

from g3nn.base.parse import Matrix
from g3nn.graph.relations import Relations, forwards, kind_mask
from g3nn.graph.task import NodeTask
from g3nn.kernels.sparse import row_mean

_LONGEST, _MOST_PATHS, _MOST_EXTENDED = 3, 128, 48
"""Steps of a path; paths that become columns; and paths of one length that are extended."""
_COVERED, _FEWEST = 0.03, 2
"""A path says something if it leads somewhere from this share of the labelled nodes, and at least from this number."""
_MOST_ENDS, _COMPONENTS, _MOST_COMPONENTS = 256, 32, 1024
"""Where more nodes are at the end of a path, columns are leading singular vectors of the shares, at most so many of one
path and of all together."""
_MOST_PRODUCT, _MOST_WORK, _MOST_ENTRIES = 30_000_000, 500_000_000, 60_000_000
"""Entries that the rows of a path may have, and products that are summed up in them; and entries of all paths of one
length, and of all means."""
_DENSE = 0.3
"""A matrix with a larger share of entries is dense."""
_NARROW, _MOST_MEANS = 128, 24
"""Up to this number of dense features they stay as they are; and of how many paths dense features are averaged."""

Path = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PathColumns:
    """Columns of one path, which is the names of its arcs.

    ends: nodes of the fit; the share of a node's walks that end at each of them is a column, or with `basis` (ends, r)
    these shares are multiplied by it. means: whether the mean of the features at its end are columns. scales: of shares
    and of means.
    """

    path: Path
    ends: np.ndarray
    basis: np.ndarray | None
    means: bool
    scales: np.ndarray

    def width(self, shares: sp.csr_array) -> int:
        """How many entries its shares take as columns."""
        return shares.nnz if self.basis is None else shares.shape[0] * self.basis.shape[1]


@dataclass(frozen=True, eq=False)
class Paths:
    """Columns of a node: its own features; how many arcs of each type it has, as log(1 + x); and of every path of types
    up to three steps the mean of the features at its end and the shares of its end nodes, where a walk takes every arc
    of a node as often as the others of the type. All columns of one kind together have the same size.

    asked: kinds of nodes that have columns, the others have none. own: the scale of the features, 0 if they are no
    columns. arcs: the types that are counted. degrees: the scale of their counts. basis: (d, r), what features are
    multiplied by before they are averaged; None: they stay.
    """

    asked: np.ndarray
    arcs: Path
    paths: tuple[PathColumns, ...]
    own: float
    degrees: float
    basis: np.ndarray | None

    @classmethod
    def of_degrees(cls, task: NodeTask) -> Paths:
        """The counts of arcs alone."""
        relations = _relations(task)
        rows = np.flatnonzero(kind_mask(relations, np.union1d(task.train, task.val)))
        arcs = tuple(arc.name for arc in relations.arcs)
        asked, size = np.unique(relations.kinds[rows]), _size(_counts(relations, rows, arcs))
        return cls(asked, arcs, (), 0.0, size, None)

    @classmethod
    def fit(cls, task: NodeTask, seed: int = 0) -> Paths:
        relations, features = _relations(task), task.features
        labelled = np.union1d(task.train, task.val)
        rows = np.flatnonzero(kind_mask(relations, labelled))
        chosen = np.isin(rows, labelled)
        basis = _basis(features, seed)
        averaged, found, dense = _averaged(features, basis), list[PathColumns](), not sp.issparse(features)
        steps, room = _steps(relations), _MOST_ENTRIES
        walks = list(_walks(steps, rows, chosen))
        rank = max(min(_COMPONENTS, _MOST_COMPONENTS // max(len(walks), 1)), 1)
        for path, shares in walks:
            means = averaged is not None and room > 0 and not (dense and len(found) >= _MOST_MEANS)
            there = shares @ averaged if means and _affordable(shares, averaged) else None
            found.append(_columns(path, shares, there, rank if room > 0 else 0, seed))
            room -= found[-1].width(shares) + (0 if there is None else _stored(there))
        counts = _counts(relations, rows, arcs := tuple(steps))
        own = _size(features[rows])
        return cls(np.unique(relations.kinds[rows]), arcs, tuple(found), own, _size(counts), basis)

    def of_types(self, names: Collection[str]) -> Paths:
        """The columns that follow from edges of these types, without a node's own features."""
        arcs = tuple(arc for arc in self.arcs if forwards(arc) in names)
        paths = tuple(one for one in self.paths if set(one.path) <= set(arcs))
        return replace(self, arcs=arcs, paths=paths, own=0.0)

    def within(self, nodes: np.ndarray) -> Paths:
        """For a larger graph, in which the nodes of the fit are `nodes`."""
        return replace(self, paths=tuple(replace(one, ends=nodes[one.ends]) for one in self.paths))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_last"}

    def apply(self, task: NodeTask) -> Matrix:
        """(n, D) float32, sparse where most of it is 0. That of the last task is kept."""
        asked = (task.relations, task.features)
        if not self._last or any(one is not other for one, other in zip(asked, self._last[0], strict=True)):
            self._last[:] = asked, self._applied(task)
        return self._last[1]

    @cached_property
    def _last(self) -> list[Any]:
        return []

    def _applied(self, task: NodeTask) -> Matrix:
        relations = _relations(task)
        rows = np.flatnonzero(np.isin(relations.kinds, self.asked))
        steps, averaged = _steps(relations), _averaged(task.features, self.basis)
        parts = [sp.csr_array(task.features[rows]) / self.own] if self.own else []
        parts.append(_counts(relations, rows, self.arcs) / self.degrees)
        known: dict[Path, sp.csr_array] = {(): _start(rows, task.num_nodes)}
        for one in self.paths:
            known[one.path] = shares = _walk(one.path, known, steps)
            if len(one.ends):
                ends = shares[:, one.ends]
                parts.append(sp.csr_array(ends if one.basis is None else ends @ one.basis) / one.scales[0])
            if one.means:
                assert averaged is not None
                parts.append(sp.csr_array(shares @ averaged) / one.scales[1])
        columns = sp.csr_array(sp.hstack(parts), dtype=np.float32)
        if columns.nnz > _DENSE * task.num_nodes * columns.shape[1]:
            found = np.zeros((task.num_nodes, columns.shape[1]), np.float32)
            found[rows] = columns.toarray()
            return found
        return sp.csr_array(_start(rows, task.num_nodes).T @ columns)


def _relations(task: NodeTask) -> Relations:
    assert task.relations is not None
    return task.relations


def _start(rows: np.ndarray, n: int) -> sp.csr_array:
    return sp.csr_array((np.ones(len(rows), np.float32), (np.arange(len(rows)), rows)), shape=(len(rows), n))


def _steps(relations: Relations) -> dict[str, sp.csr_array]:
    """By type of arc, (n, n) whose rows sum to one, or to zero where a node has none."""
    return {arcs.name: row_mean(arcs.matrix).astype(np.float32) for arcs in relations.arcs}


def _walk(path: Path, known: Mapping[Path, sp.csr_array], steps: Mapping[str, sp.csr_array]) -> sp.csr_array:
    """(m, n): where the walks of a path end."""
    place = next(length for length in range(len(path), -1, -1) if path[:length] in known)
    shares = known[path[:place]]
    for name in path[place:]:
        shares = sp.csr_array(shares @ steps[name]) if name in steps else shares * 0
    return shares


def _walks(
    steps: Mapping[str, sp.csr_array], rows: np.ndarray, labelled: np.ndarray
) -> Iterator[tuple[Path, sp.csr_array]]:
    """The paths that lead somewhere from enough labelled nodes (m,) among the rows (m,), the shortest and best covered
    first."""
    size = next(iter(steps.values())).shape[0] if steps else 0
    last: list[tuple[Path, sp.csr_array]] = [((), _start(rows, size))]
    starts = {name: (np.diff(step.indptr) > 0).astype(np.float32) for name, step in steps.items()}
    count, least = 0, max(_COVERED * labelled.sum(), _FEWEST)
    for _ in range(_LONGEST):
        longer = list[tuple[int, Path, sp.csr_array]]()
        for path, shares in last[:_MOST_EXTENDED]:
            near = shares[labelled]
            covered = {name: int(np.count_nonzero(near @ start)) for name, start in starts.items()}
            longer += [(covers, (*path, name), shares) for name, covers in covered.items() if covers >= least]
        longer.sort(key=lambda one: (-one[0], one[1]))
        last, room = [], _MOST_ENTRIES
        for _, path, shares in longer:
            if count == _MOST_PATHS or room <= 0:
                break
            if _affordable(shares, steps[path[-1]]):
                last.append((path, sp.csr_array(shares @ steps[path[-1]])))
                count, room = count + 1, room - last[-1][1].nnz
                yield last[-1]


def _affordable(left: sp.csr_array, right: Matrix) -> bool:
    """Whether their product takes neither too long nor too much memory."""
    work = left.nnz * right.shape[1]
    if sp.issparse(right):
        work = int(np.diff(right.indptr)[left.indices].sum())
    return work <= _MOST_WORK and min(work, left.shape[0] * right.shape[1]) <= _MOST_PRODUCT


def _stored(matrix: Matrix) -> int:
    return int(matrix.nnz if sp.issparse(matrix) else matrix.size)


def _columns(path: Path, shares: sp.csr_array, there: Matrix | None, rank: int, seed: int) -> PathColumns:
    """rank: of the basis, if there is to be one; with 0 the ends are no columns."""
    ends = np.flatnonzero(np.bincount(shares.indices, minlength=shares.shape[1]) >= _FEWEST)[: rank * shares.shape[1]]
    basis, sizes = None, np.ones(2)
    part: Matrix = shares[:, ends]
    if len(ends) > _MOST_ENDS:
        svd = sklearn.decomposition.TruncatedSVD(min(rank, part.shape[0] - 1), random_state=seed).fit(part)
        basis = svd.components_.T.astype(np.float32)
        part = part @ basis
    sizes[0] = _size(part)
    means = there is not None and there.sum() != 0
    if there is not None and means:
        sizes[1] = _size(there)
    return PathColumns(path, ends, basis, bool(means), sizes)


def _basis(features: Matrix, seed: int) -> np.ndarray | None:
    """Dense features of many columns are reduced."""
    n, d = features.shape
    if sp.issparse(features) or d <= _NARROW:
        return None
    svd = sklearn.decomposition.TruncatedSVD(min(_COMPONENTS, n - 1), random_state=seed).fit(features)
    return np.asarray(svd.components_.T, dtype=np.float32)


def _averaged(features: Matrix, basis: np.ndarray | None) -> Matrix:
    return features if basis is None else features @ basis


def _counts(relations: Relations, rows: np.ndarray, arcs: Path) -> sp.csr_array:
    """(m, A): log(1 + the number of arcs of each type)."""
    matrices = dict(relations.arcs)
    none = np.zeros(relations.num_nodes)
    counts = [np.asarray(matrices[name].sum(axis=1)).ravel() if name in matrices else none for name in arcs]
    return sp.csr_array(np.log1p(np.stack(counts, axis=1)[rows]))


def _size(columns: Matrix) -> float:
    """The root mean square of the lengths of rows; 1 if all are 0."""
    stored = columns.data if sp.issparse(columns) else columns
    size = float(np.sqrt(np.square(stored, dtype=np.float64).sum() / max(columns.shape[0], 1)))
    return size or 1.0
