"""A fitted graph, or the part of it that a page can hold, as lists and compact arrays for the scripts."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from g3nn.graph.relations import kind_mask
from g3nn.pages.described import Described, clean
from g3nn.pages.layout import GraphMap, laid_out
from g3nn.pages.model import FittedEstimator

if TYPE_CHECKING:
    from g3nn.graph.relations import Relations
    from g3nn.graph.task import NodeTask
    from g3nn.pages.model_views import AnswerView
    from g3nn.queries import AuditTables

MOST_NODES, MOST_EDGES = 20_000, 100_000
"""A graph up to this size is embedded whole; of a larger one, the surroundings of listed nodes up to this size."""

MOST_NEIGHBOURS = 30
"""At most this many neighbours are drawn around a node."""

MOST_EXPLAINED, MOST_REASONS, MOST_WORK, MOST_FOR_ONE = 60, 8, 1_500_000, 30_000_000
"""The most nodes, of the least certain, that come with reasons for their predictions, and the most reasons of a kind.
Work is the number of new predictions times the size of the graph: a few seconds, or half a minute for one node."""

LISTED_NODES, LISTED_EDGES = 2_000, 1_000
"""The lengths of the tables."""

SUSPECT = 0.5
"""An edge is suspicious if it is less likely than this: likelier absent, were there as many edges as pairs without."""

FULL = np.iinfo(np.uint16).max
"""Stands for 1 where a share is embedded in two bytes, and for no class where a class is."""


_NOTHING = np.zeros(0, dtype=np.int64)

NO_PAIRS = np.zeros(0, dtype=[("source", np.int64), ("target", np.int64), ("probability", np.float64)])


@dataclass(frozen=True, eq=False)
class Graph:
    """What a page shows of a graph.

    view: the answers. likely: (E,) the probability of each edge, None if the edges were not audited. missing: pairs
    without an edge that should have one, as `AuditTables` lists them.
    """

    estimator: FittedEstimator
    described: Described
    view: AnswerView
    likely: np.ndarray | None
    missing: np.ndarray

    @property
    def task(self) -> NodeTask:
        return self.view.task

    @property
    def relations(self) -> Relations | None:
        return self.task.apart

    @cached_property
    def asked(self) -> np.ndarray:
        """(n,): the nodes of kinds that have a label."""
        known = np.concatenate([self.task.train, self.task.val])
        return np.ones(self.task.num_nodes, bool) if self.relations is None else kind_mask(self.relations, known)

    @cached_property
    def degree(self) -> np.ndarray:
        return degrees(self.task)

    @cached_property
    def uncertain(self) -> np.ndarray:
        """Nodes, the least certain first; after them those of kinds without any label. There are some of each kind."""
        order = np.argsort(-self.view.doubt, kind="stable")
        order = order[np.argsort(~self.asked[order], kind="stable")]
        if self.relations is None:
            return order[:LISTED_NODES]
        # Half of the list is divided among the kinds.
        kinds, share = self.relations.kinds[order], LISTED_NODES // (2 * len(self.relations.kind_names))
        later = np.ones(len(order), dtype=bool)
        for kind in np.unique(kinds):
            later[np.flatnonzero(kinds == kind)[:share]] = False
        return order[np.sort(np.argsort(later, kind="stable")[:LISTED_NODES])]

    @cached_property
    def suspect(self) -> np.ndarray:
        """(E,): which edges are suspicious. The scripts see the same: probabilities are embedded in four bytes each."""
        likely = np.ones(self.task.num_edges) if self.likely is None else self.likely
        found: np.ndarray = likely.astype(np.float32) < SUSPECT
        return found

    @cached_property
    def suspicious(self) -> np.ndarray:
        """Positions of suspicious edges, the least likely first."""
        if self.likely is None:
            return _NOTHING
        return np.argsort(self.likely, kind="stable")[: min(int(self.suspect.sum()), LISTED_EDGES)]

    @cached_property
    def without(self) -> AnswerView | None:
        """The answers on the graph without suspicious edges; None if there are none."""
        return type(self.view)(self.estimator.fitted_.without(self.suspect)) if self.suspect.any() else None

    @cached_property
    def pairs(self) -> np.ndarray:
        """(2, m): the ends of the missing edges."""
        return np.stack([self.missing[end][:LISTED_EDGES] for end in ("source", "target")])

    @cached_property
    def listed(self) -> list[int]:
        """Every node of a table once, those at the top of a table first."""
        columns = [self.uncertain, *self.task.edges[:, self.suspicious], *self.pairs]
        ranks = zip_longest(*(column.tolist() for column in columns))
        return list(dict.fromkeys(node for rank in ranks for node in rank if node is not None))


def degrees(task: NodeTask) -> np.ndarray:
    """(n,): the number of edges at each node, whatever their direction."""
    return np.bincount(task.edges.ravel(), minlength=task.num_nodes)


def edge_probabilities(task: NodeTask, audit: AuditTables) -> np.ndarray | None:
    """(E,): the probability of each edge of the task, or None if the audit is about other edges."""
    n, rows = task.num_nodes, audit.edges
    keys, audited = task.edges[0] * n + task.edges[1], rows["source"] * n + rows["target"]
    order, ranks = np.argsort(keys), np.argsort(audited)
    same = np.array_equal(keys[order], audited[ranks])
    return rows["probability"][ranks][np.argsort(order)] if same else None


def embedded(graph: Graph) -> dict[str, object]:
    """The graph for the scripts. Nodes are numbered by their place in `ids`, edges by their place in `source`."""
    task = graph.task
    nodes, explorable, edges = np.arange(task.num_nodes), task.num_nodes, np.arange(task.num_edges)
    whole = task.num_nodes <= MOST_NODES and task.num_edges <= MOST_EDGES
    if not whole:
        nodes, explorable, edges = _surroundings(graph)
    place, edge_place = _places(nodes, task.num_nodes), _places(edges, task.num_edges)
    told = _nodes(graph, nodes)
    return {
        "whole": whole,
        "directed": task.directed,
        "nodes": task.num_nodes,
        "edges": task.num_edges,
        "explorable": explorable,
        "start": int(place[_start(graph)]),
        **told,
        **_edges(graph, edges, place),
        **_types(graph.relations, nodes, task.edges[:, edges]),
        "map": _map(laid_out(task.edges, task.num_nodes, graph.view.key), nodes, task.edges[:, graph.suspect]),
        "why": _why(graph, explorable, place),
        "uncertain": place[graph.uncertain].tolist(),
        "suspect": SUSPECT,
        "suspects": int(graph.suspect.sum()),
        "suspicious": edge_place[graph.suspicious].tolist(),
        "without": _without(graph, nodes, told),
        "missing": list(zip(*place[graph.pairs].tolist(), graph.missing["probability"].tolist(), strict=False)),
    }


def _places(kept: np.ndarray, size: int) -> np.ndarray:
    """Where each of `size` things is among those that are kept."""
    place = np.full(size, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    return place


def _surroundings(graph: Graph) -> tuple[np.ndarray, int, np.ndarray]:
    """Listed nodes with their least likely edges, from the top of the tables down, until the page is full.

    Returns nodes, how many of them (the first ones) come with their edges, and positions of edges.
    """
    edges = graph.task.edges
    near = _incident(graph)
    nodes, kept = dict.fromkeys(graph.listed), dict.fromkeys(graph.suspicious.tolist())
    explorable: dict[int, None] = {}
    for node in graph.listed:
        own = near.get(node, _NOTHING)
        new = dict.fromkeys(end for end in edges[:, own].ravel().tolist() if end not in nodes)
        if len(nodes) + len(new) > MOST_NODES or len(kept) + len(own) > MOST_EDGES:
            break
        nodes |= new
        kept |= dict.fromkeys(own.tolist())
        explorable[node] = None
    return np.array(list(explorable | nodes)), len(explorable), np.array(list(kept), dtype=np.int64)


def _incident(graph: Graph) -> dict[int, np.ndarray]:
    """The least likely edges of each listed node, as positions."""
    ends = graph.task.edges.ravel()
    at = np.flatnonzero(np.isin(ends, graph.listed))
    position = at % max(graph.task.num_edges, 1)
    order = np.lexsort((position if graph.likely is None else graph.likely[position], ends[at]))
    owners, starts = np.unique(ends[at][order], return_index=True)
    # Without any start `split` would still give one run, an empty one.
    runs = np.split(position[order], starts[1:])[: len(starts)]
    return {owner: run[:MOST_NEIGHBOURS] for owner, run in zip(owners.tolist(), runs, strict=True)}


def _start(graph: Graph) -> int:
    """The node that is shown first: one of the least certain, best without a label and with several neighbours."""
    unlabelled = ~np.isin(graph.uncertain, np.concatenate([graph.task.train, graph.task.val]))
    asked, degree = graph.asked[graph.uncertain], graph.degree[graph.uncertain]
    return int(graph.uncertain[np.argmax(4 * asked + 2 * unlabelled + (degree > 0) + (degree > 2))])


def _nodes(graph: Graph, nodes: np.ndarray) -> dict[str, object]:
    """use: 1 for training nodes, 2 for validation nodes."""
    use = np.zeros(graph.task.num_nodes)
    use[graph.task.train], use[graph.task.val] = 1, 2
    return {
        **graph.described.at(nodes),
        "degree": packed(graph.degree[nodes], np.uint32),
        "use": packed(use[nodes], np.uint8),
        **graph.view.beliefs(nodes),
    }


def _without(graph: Graph, nodes: np.ndarray, told: dict[str, object]) -> dict[str, object] | None:
    """What is different about these nodes on the graph without suspicious edges; the rest is as `told`."""
    if graph.without is None:
        return None
    left = degrees(graph.task.with_edges(~graph.suspect))
    changed = {"degree": packed(left[nodes], np.uint32), **graph.without.beliefs(nodes)}
    return {name: value for name, value in changed.items() if value != told[name]}


def _edges(graph: Graph, edges: np.ndarray, place: np.ndarray) -> dict[str, object]:
    """quantiles: every hundredth of the probabilities of all edges, to compare one with."""
    source, target = place[graph.task.edges[:, edges]]
    ends = {"source": packed(source, np.uint16), "target": packed(target, np.uint16)}
    if graph.likely is None:
        return {**ends, "probability": None, "quantiles": []}
    quantiles = np.quantile(graph.likely, np.linspace(0, 1, 101)).tolist() if graph.likely.size else []
    return {**ends, "probability": packed(graph.likely[edges], np.float32), "quantiles": quantiles}


def _types(relations: Relations | None, nodes: np.ndarray, edges: np.ndarray) -> dict[str, object]:
    """Of which types these edges (2, E) are, numbered from that of most edges on, and of which kinds these nodes. An
    edge has a place in `sets`, since several types may join a pair. None where there is only one."""
    types = kinds = None
    if relations is not None and len(relations.names) > 1:
        order = by_size(relations)
        number, joining = np.argsort(order), relations.joining(edges)
        sets = {joined: place for place, joined in enumerate(dict.fromkeys(joining))}
        types = {
            "names": [clean(relations.names[type]) for type in order.tolist()],
            "sets": [sorted(number[list(joined)].tolist()) for joined in sets],
            "at": packed(np.array([sets[joined] for joined in joining]), np.uint32),
        }
    if relations is not None and len(relations.kind_names) > 1:
        names = [clean(name) for name in relations.kind_names]
        kinds = {"names": names, "at": packed(relations.kinds[nodes], np.uint16)}
    return {"types": types, "kinds": kinds}


def by_size(relations: Relations) -> np.ndarray:
    """Types of edges, those of most edges first."""
    return np.argsort(-np.bincount(relations.types, minlength=len(relations.names)), kind="stable")


def _map(layout: GraphMap, nodes: np.ndarray, suspicious: np.ndarray) -> dict[str, object]:
    """Where the embedded nodes stand; bubbles are [x, y, radius, nodes], links [bubble, bubble, edges, how many of them
    are among the suspicious (2, S)]."""
    bubbles = len(layout.bubbles)
    ends = np.sort(layout.group[suspicious], axis=0) if bubbles else layout.links[:2, :0]
    doubted = np.bincount(ends[0] * bubbles + ends[1], minlength=bubbles**2)
    one, other, _ = layout.links
    return {
        "x": shares(layout.points[nodes, 0]),
        "y": shares(layout.points[nodes, 1]),
        "bubbles": np.column_stack([layout.bubbles, layout.sizes]).tolist(),
        "links": np.vstack([layout.links, doubted[one * bubbles + other]]).T.tolist(),
    }


def _why(graph: Graph, explorable: int, place: np.ndarray) -> dict[int, dict[str, object]]:
    """By the place of a node: its neighbours, [place, how much higher the answer is because of the edge, its type where
    there are several], and its features, [name, how much higher because of its value]. Only the least certain nodes are
    explained, since a model answers once more for each edge. Features that were made from the edges would mean nothing
    to a reader."""
    nodes = [node for node in graph.uncertain.tolist() if place[node] < explorable][:MOST_EXPLAINED]
    work = np.cumsum(1 + graph.degree[nodes]) * (1_000 + graph.task.num_nodes + graph.task.num_edges)
    affordable = max(int((work <= MOST_WORK).sum()), int((work[:1] <= MOST_FOR_ONE).sum()))
    if not affordable:
        return {}
    asked, told = np.array(nodes[:affordable], dtype=np.int64), {}
    fitted = graph.estimator.fitted_
    word = "feature " if fitted.features is None else ""
    several = graph.relations is not None and len(graph.relations.names) > 1
    for node, (neighbours, features) in zip(asked.tolist(), graph.estimator.explain(asked, ids=False), strict=True):
        near = [
            [int(place[one.node]), one.change, *([clean(one.type)] if several else [])]
            for one in neighbours
            if place[one.node] >= 0
        ]
        own = [] if fitted.structural else [(word + clean(name), value) for name, value in features]
        told[int(place[node])] = {"neighbours": near[:MOST_REASONS], "features": own[:MOST_REASONS]}
    return told


def shares(values: np.ndarray) -> str:
    """Numbers from 0 to 1 in two bytes each."""
    return packed(np.rint(np.clip(values, 0, 1) * FULL), np.uint16)


def packed(values: np.ndarray, kind: type[np.generic]) -> str:
    """Little-endian numbers in base64, as the scripts read them."""
    return base64.b64encode(values.astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")
