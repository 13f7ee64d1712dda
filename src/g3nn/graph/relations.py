"""Types of edges and kinds of nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import Problems, counted, warn_caller
from g3nn.base.parse import SHOWN, Edges, all_edges, decode, distinct, encode, merged_edges, stated_edges, to_numpy

MOST_TYPES = 1000
"""More types than that are names of something else."""
_APART = 0.05
"""The ends of a type are different if at most this share of its nodes are at either end."""
EDGE, BETWEEN, BACK = "edge", " to ", " (back)"


class Arcs(NamedTuple):
    """The edges of one type seen from one of their ends: those of a node are a row of `matrix` (n, n)."""

    name: str
    matrix: sp.csr_array


@dataclass(frozen=True, eq=False)
class Relations:
    """The edges of a graph of n nodes by type, and its nodes by kind.

    pairs: (2, M) int64, each pair of nodes once in each type; from source to target where the type is directed, and
    else i < j. types: (M,), the code of each. names: of the T types. directed: (T,) whether their ends differ.
    weights: (M,), as how many edges each counts; None: all as one. kinds: (n,), a code for each node. kind_names: what
    they are called; nodes of one kind need no name.
    """

    pairs: np.ndarray
    types: np.ndarray
    names: tuple[str, ...]
    directed: np.ndarray
    weights: np.ndarray | None
    kinds: np.ndarray
    kind_names: tuple[str, ...] = ("node",)

    @property
    def num_nodes(self) -> int:
        return len(self.kinds)

    @property
    def directions(self) -> tuple[tuple[str, bool], ...]:
        """The name of each type, and whether it is directed."""
        return tuple(zip(self.names, map(bool, self.directed), strict=True))

    @property
    def alike(self) -> bool:
        """Whether all edges are of one type and all nodes of one kind."""
        return len(self.names) == len(self.kind_names) == 1

    def ends(self, type: int) -> tuple[np.ndarray, np.ndarray]:
        """The nodes that an edge of this type may come from, and those that it may lead to: those of kinds that are at
        these ends. Where the same kind may be at both ends these are all nodes of the kinds at either end."""
        source, target = (np.unique(self.kinds[end]) for end in self.of(type).pairs)
        if not self.directed[type] or np.intersect1d(source, target).size:
            source = target = np.union1d(source, target)
        first, second = (np.flatnonzero(np.isin(self.kinds, kinds)) for kinds in (source, target))
        return first, second

    def of(self, type: int) -> Edges:
        """The edges of one type."""
        chosen = self.types == type
        return Edges(self.pairs[:, chosen], None if self.weights is None else self.weights[chosen])

    def kinds_among(self, nodes: np.ndarray) -> tuple[str, ...]:
        """The names of the kinds of some nodes."""
        return tuple(self.kind_names[kind] for kind in np.unique(self.kinds[nodes]))

    @cached_property
    def arcs(self) -> tuple[Arcs, ...]:
        """Every type in each direction in which it says something else."""
        return tuple(self._arcs())

    def _arcs(self) -> Iterator[Arcs]:
        shape = (self.num_nodes, self.num_nodes)
        for code, name in enumerate(self.names):
            some = self.of(code)
            values = np.ones(some.pairs.shape[1]) if some.weights is None else some.weights
            there = sp.csr_array((values, tuple(some.pairs)), shape=shape)
            if self.directed[code]:
                yield Arcs(name, there)
                yield Arcs(backwards(name), sp.csr_array(there.T))
            else:
                yield Arcs(name, sp.csr_array(there + there.T))

    def between(self, pairs: np.ndarray) -> list[str]:
        """For each of some pairs (2, P), in either direction, the names of the types that join it."""
        return [", ".join(self.names[type] for type in types) for types in self.joining(pairs)]

    def joining(self, pairs: np.ndarray) -> list[tuple[int, ...]]:
        """For each of some pairs (2, P), in either direction, the types that join it."""
        n = self.num_nodes
        codes, wanted = _pair_codes(self.pairs, n), _pair_codes(pairs, n)
        order = np.argsort(codes, kind="stable")
        first, last = (np.searchsorted(codes[order], wanted, side) for side in ("left", "right"))
        return [
            tuple(dict.fromkeys(self.types[order[start:stop]].tolist()))
            for start, stop in zip(first, last, strict=True)
        ]

    def among(self, edges: np.ndarray, directed: bool = False) -> Relations:
        """Those between the ends of some edges (2, E), from the first to the second if these are directed."""
        ours, theirs = self._codes(edges, directed)
        return self._at(np.isin(ours, theirs))

    def counts(self, edges: np.ndarray, directed: bool = False) -> np.ndarray:
        """(T,): how many of some edges (2, E) are of each type."""
        return np.bincount(self.among(edges, directed).types, minlength=len(self.names))

    @property
    def shares(self) -> sp.csr_array:
        """(n, T): what share of the edges at each node is of each type."""
        ends, types = self.pairs.ravel(), np.tile(self.types, 2)
        counts = sp.csr_array((np.ones(len(ends)), (ends, types)), shape=(self.num_nodes, len(self.names)))
        return sp.csr_array(sp.diags_array(1 / np.maximum(counts.sum(axis=1), 1)) @ counts)

    def fit(self, pairs: np.ndarray) -> np.ndarray:
        """(P,): whether some pairs (2, P) are of kinds that any type joins."""
        return np.asarray(np.isin(self._kinds_at(pairs), np.unique(self._kinds_at(self.pairs))))

    def only_type(self, pairs: np.ndarray) -> np.ndarray:
        """(P,): the only type that there is, or that joins such kinds, for some pairs (2, P); -1 where several do."""
        ends, of_types = self._kinds_at(pairs), (self._kinds_at(self.of(type).pairs) for type in range(len(self.names)))
        fits = np.array([np.isin(ends, some) | (len(self.names) == 1) for some in of_types])
        return np.where(fits.sum(0) == 1, fits.argmax(0), -1)

    def _kinds_at(self, pairs: np.ndarray) -> np.ndarray:
        return _pair_codes(self.kinds[pairs], len(self.kind_names))

    def join(self, edges: np.ndarray, directed: bool = False) -> np.ndarray:
        """(E,): which of some edges (2, E) are of any type."""
        ours, theirs = self._codes(edges, directed)
        return np.isin(theirs, ours)

    def _codes(self, edges: np.ndarray, directed: bool) -> Iterator[np.ndarray]:
        n = self.num_nodes
        return (i * n + j if directed else encode(i, j, n) for i, j in (self.pairs, edges))

    def without(self, names: Collection[str]) -> Relations:
        """The other types alone."""
        types = np.array([name not in names for name in self.names])
        kept, left = self._at(types[self.types]), tuple(name for name in self.names if name not in names)
        return replace(kept, types=(np.cumsum(types) - 1)[kept.types], names=left, directed=self.directed[types])

    def _at(self, kept: np.ndarray) -> Relations:
        weights = None if self.weights is None else self.weights[kept]
        return replace(self, pairs=self.pairs[:, kept], types=self.types[kept], weights=weights)

    def turned(self, pairs: np.ndarray, types: np.ndarray, kinds: np.ndarray, first: int) -> np.ndarray:
        """Pairs (2, P) of nodes of some kinds, of these types; those turned round whose ends fit only so. An end tells
        by its kind, or where both ends are of one kind as a node that is here, which the `first` nodes are."""
        pairs = pairs.copy()
        for type in np.unique(types[self.directed[types]]):
            ends, (sources, targets) = self.of(type).pairs, (np.unique(self.kinds[end]) for end in self.of(type).pairs)
            if np.intersect1d(sources, targets).size:
                fits = (np.isin(np.arange(len(kinds)), end[end < first]) for end in ends)
            else:
                fits = (np.isin(kinds, some) for some in (sources, targets))
            here = np.flatnonzero(types == type)
            (source, target), (one, other) = (fit.astype(np.int8) for fit in fits), pairs[:, here]
            turn = here[source[other] + target[one] > source[one] + target[other]]
            pairs[:, turn] = pairs[::-1, turn]
        return pairs

    def within(self, nodes: np.ndarray) -> Relations:
        """Those between some nodes, sorted, with these numbered by their places."""
        inside = self._at(np.asarray(np.isin(self.pairs, nodes).all(axis=0)))
        return replace(inside, pairs=np.searchsorted(nodes, inside.pairs), kinds=self.kinds[nodes])

    def joined(self, pairs: np.ndarray, directed: bool) -> Relations:
        """With further pairs (2, P) that weigh as much as others do on average, of the only type that there is, or the
        only one between such kinds. A warning says how many have none."""
        types = self.only_type(pairs)
        known = types >= 0
        if not known.all():
            unknown = counted(int((~known).sum()), "added edge")
            warn_caller(f"edges: {unknown} of no certain type; not used by models that tell types apart")
        pairs, types = pairs[:, known], types[known]
        pairs = pairs if directed else self.turned(pairs, types, self.kinds, self.num_nodes)
        pairs = np.where(self.directed[types], pairs, np.sort(pairs, axis=0))
        weights = None if self.weights is None else np.full(len(types), self.weights.mean())
        return self.enlarged(replace(self, pairs=pairs, types=types, weights=weights))

    def enlarged(self, new: Relations) -> Relations:
        """With the edges of a larger graph, in which these nodes come first."""
        n = new.num_nodes
        pairs, weights, *_ = all_edges([Edges(one.pairs, one.weights) for one in (self, new)])
        types = np.concatenate([self.types, new.types])
        _, first = np.unique((types * n + pairs[0]) * n + pairs[1], return_index=True)
        return replace(new, pairs=pairs, types=types, weights=weights)._at(first)


def backwards(name: str) -> str:
    """A type of arcs, from their targets."""
    return name + BACK


def forwards(arcs: str) -> str:
    """The type of arcs in either direction."""
    return arcs.removesuffix(BACK)


@dataclass(frozen=True, eq=False)
class Codes:
    """Names by number: `codes` (m,) into `names`."""

    codes: np.ndarray
    names: tuple[str, ...]


def read_codes(argument: str, values: object, count: int, what: str, problems: Problems) -> Codes | None:
    """Types or kinds, given as names or as whole numbers."""
    array = to_numpy(values) if not isinstance(values, list | tuple) else np.array(values, dtype=object)
    if array.shape != (count,):
        problems.add(argument, f"shape {array.shape}", f"({count},): one for each {what}")
        return None
    missing = array != array if array.dtype != object else np.array([one is None or one != one for one in array], bool)
    if missing.any():
        given = f"{counted(int(missing.sum()), what)} without one, the first at place {int(missing.argmax())}"
        problems.add(argument, given, f"a name or a number for each {what}")
        return None
    if array.dtype.kind == "O" and all(isinstance(value, Real) for value in array.tolist()):
        array = array.astype(np.float64)
    if array.dtype.kind == "f" and not (array % 1 == 0).all():
        problems.add(argument, f"numbers such as {array[array % 1 != 0][0]}", "names or whole numbers")
        return None
    if array.dtype.kind in "iuf":
        numbers = distinct(array.astype(np.int64))
        names, codes = numbers.astype(str), np.searchsorted(numbers, array)
    else:
        names, codes = np.unique(array.astype(str), return_inverse=True)
    if len(names) > MOST_TYPES:
        shown = ", ".join(map(repr, names[:SHOWN].tolist()))
        advice = "Is it an id, a time or an amount? Leave it out, or put similar ones together."
        problems.add(argument, f"{len(names):,} different ones ({shown}, ...)", f"at most {MOST_TYPES}", advice)
        return None
    return Codes(codes.astype(np.int64), tuple(names.tolist()))


def read_relations(
    edges: object,
    n: int,
    directed: bool,
    problems: Problems,
    *,
    types: object = None,
    kinds: object = None,
    weights: object = None,
    like: Relations | None = None,
    usual: int | None = None,
) -> Relations | None:
    """The relations of a graph, from its edges as they were given; None where neither types nor kinds are, nor
    directions, which make one type of all edges, and where there are no edges.

    types: of the edges, one for each pair as given, by default those that come with the edges, or else the kinds of
    their ends. kinds: of the n nodes.
    directed: whether both ends of every type differ; otherwise they do where hardly any node is at either end. like:
    those of the fit, whose names, kinds and directions hold for other edges as well. usual: where new nodes come after
    those of the fit, the kind of those that nothing tells; without kinds, their edges tell it.
    """
    stated = stated_edges(edges, n, problems, weights, types)
    if stated.types is None and kinds is None and like is None and not directed:
        return None
    known = sorted(stated.names) if like is None else like.names
    given, of_nodes = None, None
    if stated.types is not None:
        given = read_codes("edge_types", stated.types, stated.pairs.shape[1], "edge", problems)
        given = _recoded("edge_types", given, known, problems) if given is not None and known else given
    if like is None or usual is None or kinds is not None:
        of_nodes = _kinds_of(kinds, n, like, problems)
    else:
        of_nodes = kinds_of_new(stated.pairs, None if given is None else given.codes, like, n, usual, directed)
    if problems.found or of_nodes is None:
        return None
    given = given or _untyped(stated.pairs, of_nodes, like, problems)
    kept = stated.pairs[0] != stated.pairs[1]
    kept &= True if stated.weights is None else stated.weights > 0
    if given is None or (like is None and not kept.any()):
        return None
    pairs, codes = stated.pairs[:, kept], given.codes[kept]
    if like is not None and not directed:
        pairs = like.turned(pairs, codes, of_nodes.codes, 0 if usual is None else like.num_nodes)
    values = None if stated.weights is None else stated.weights[kept]
    ways = _ways(pairs, codes, len(given.names), directed, like)
    found, counts = list[Edges](), weights is not False
    for type, way in enumerate(ways):
        own = pairs[:, codes == type]
        # Between different ends an edge weighs as much as it was repeated, too.
        ones = np.ones(own.shape[1]) if way and counts else None
        one = merged_edges(own, ones if values is None else values[codes == type], n, bool(way), counts)[0]
        alike = values is None and one.weights is not None and (one.weights == 1).all()
        found.append(Edges(one.pairs) if alike else one)
    joined, totals, *_ = all_edges(found)
    types_ = np.repeat(np.arange(len(found)), [one.pairs.shape[1] for one in found])
    made = Relations(joined, types_, given.names, ways, totals, of_nodes.codes, of_nodes.names)
    _remark(made, like)
    return made


def kinds_of_new(
    pairs: np.ndarray, types: np.ndarray | None, like: Relations, n: int, usual: int, directed: bool
) -> Codes:
    """(n,): of which kind nodes are where some join the m of the fit: as others are at the other end of edges of the
    same type (code) from such a kind, and without edges the `usual` kind."""
    m, count = like.num_nodes, len(like.kind_names)
    kinds, votes = np.append(like.kinds, np.full(n - m, count)), np.zeros((n - m, count))
    for type in [None] if types is None else np.unique(types):
        here, there = (slice(None), slice(None)) if types is None else (types == type, like.types == type)
        joined = np.zeros((count, count))
        np.add.at(joined, tuple(like.kinds[like.pairs[:, there]]), 1)
        # Where edges have no direction, neither end is the first; between two new nodes, that of the type counts.
        both = joined if directed else joined + joined.T
        alone = joined if directed or (type is not None and like.directed[type]) else both
        for end, other, by, of_end in (
            (pairs[0, here], pairs[1, here], both.T, alone.sum(1)),
            (pairs[1, here], pairs[0, here], both, alone.sum(0)),
        ):
            table = np.vstack([np.where(by.any(1, keepdims=True), by, of_end), of_end])
            table /= np.maximum(table.sum(1, keepdims=True), 1)
            np.add.at(votes, end[end >= m] - m, table[kinds[other[end >= m]]])
    new = np.where(votes.any(axis=1), votes.argmax(axis=1), usual)
    return Codes(np.concatenate([like.kinds, new]), like.kind_names)


def _pair_codes(pairs: np.ndarray, n: int) -> np.ndarray:
    return encode(pairs[0], pairs[1], n)


def _kinds_of(kinds: object, n: int, like: Relations | None, problems: Problems) -> Codes | None:
    if kinds is None:
        if like is not None and len(like.kind_names) > 1:
            problems.add("node_kinds", "nothing", f"a kind for each node, as in the fit: {', '.join(like.kind_names)}")
            return None
        return Codes(np.zeros(n, dtype=np.int64), ("node",) if like is None else like.kind_names)
    found = read_codes("node_kinds", kinds, n, "node", problems)
    return found if found is None or like is None else _recoded("node_kinds", found, like.kind_names, problems)


def _recoded(argument: str, found: Codes, known: Sequence[str], problems: Problems) -> Codes | None:
    """With the numbers that known names have."""
    strange = [name for name in found.names if name not in known]
    if strange:
        advice = f"If it is the name of a file, call that {known[0]}.csv, or give {{{known[0]!r}: ...}}."
        problems.add(argument, _listed(map(repr, strange)), f"those of the fit: {_listed(known)}", advice)
        return None
    places = np.array([known.index(name) for name in found.names], dtype=np.int64)
    return Codes(places[found.codes] if len(places) else found.codes, tuple(known))


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:SHOWN]) + (", ..." if len(shown) > SHOWN else "")


def _untyped(pairs: np.ndarray, kinds: Codes, like: Relations | None, problems: Problems) -> Codes | None:
    """The types of edges that came without: the only one of the fit, or else the kinds of both ends."""
    found = _by_kinds(pairs, kinds)
    if like is None or {*found.names} <= {*like.names}:
        return found if like is None else _recoded("edge_types", found, like.names, problems)
    by_kinds = all(end in like.kind_names for name in like.names for end in name.split(BETWEEN))
    if not pairs.size or (len(like.names) == 1 and not by_kinds):
        return Codes(np.zeros_like(found.codes), like.names)
    if not by_kinds:
        advice = "Give a mapping from types to edges, or a column called type; of Nodes, edge_types."
        problems.add("edges", "no types", f"edges with their types: {_listed(like.names)}", advice)
        return None
    strange = _listed(name for name in found.names if name not in like.names)
    advice = "A column with the kinds of new nodes says of which they are; otherwise their edges do."
    problems.add("edges", f"edges from {strange}", f"edges as in the fit: {_listed(like.names)}", advice)
    return None


def _by_kinds(pairs: np.ndarray, kinds: Codes) -> Codes:
    """The kinds of both ends of each edge, whichever comes first."""
    count = len(kinds.names)
    codes = _pair_codes(kinds.codes[pairs], count)
    if count == 1:
        return Codes(np.zeros(pairs.shape[1], dtype=np.int64), (EDGE,))
    found = distinct(codes)
    names = tuple(BETWEEN.join(kinds.names[end] for end in ends) for ends in decode(found, count).T)
    return Codes(np.searchsorted(found, codes), names)


def _ways(pairs: np.ndarray, codes: np.ndarray, types: int, directed: bool, like: Relations | None) -> np.ndarray:
    """(T,): whether the two ends of each type differ."""
    if like is not None:
        return like.directed
    if directed:
        return np.ones(types, dtype=bool)
    n, ways = int(pairs.max(initial=-1)) + 1, np.zeros(types, dtype=bool)
    for type in range(types):
        source, target = (np.bincount(end, minlength=n) > 0 for end in pairs[:, codes == type])
        ways[type] = (source & target).sum() <= _APART * min(source.sum(), target.sum())
    return ways


def _remark(found: Relations, like: Relations | None) -> None:
    """Say which edges join other kinds of nodes than nearly all of their type."""
    count = len(found.kind_names)
    if count == 1:
        return
    for type, name in enumerate(found.names):
        joined = _pair_codes(found.kinds[found.of(type).pairs], count)
        usual = joined if like is None else _pair_codes(like.kinds[like.of(type).pairs], count)
        ends, times = np.unique(usual, return_counts=True)
        rare = ends[times < 0.01 * times.sum()] if like is None else np.setdiff1d(joined, ends)
        strange = np.isin(joined, rare)
        if strange.any():
            i, j = decode(joined[strange][:1], count)[:, 0]
            kinds = f"{found.kind_names[i]} and {found.kind_names[j]}"
            warn_caller(
                f"edge_types: {counted(int(strange.sum()), 'edge')} of type {name!r} between other kinds of "
                f"nodes than the others of it, such as {kinds}; used as they are"
            )


def kind_mask(relations: Relations, labelled: np.ndarray) -> np.ndarray:
    """(n,): the nodes of kinds that have a label."""
    return np.asarray(np.isin(relations.kinds, np.unique(relations.kinds[labelled])))
