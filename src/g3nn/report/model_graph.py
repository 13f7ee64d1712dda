"""A fitted graph, or as much of it as a page can hold, as lists and compact arrays for the scripts."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.report.averages import tidy

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.task import NodeTask

MOST_NODES, MOST_EDGES = 20_000, 100_000
"""A graph up to this size is embedded whole; of a larger one, the surroundings of listed nodes up to this size."""

MOST_NEIGHBOURS = 30
"""So many are drawn around a node."""

MOST_CLASSES = 8
"""The likeliest classes or tags of each node, whose probabilities are embedded; so many columns of numbers are, too."""

LISTED_NODES, LISTED_EDGES = 2_000, 1_000
"""The lengths of the tables."""

FULL = np.iinfo(np.uint16).max
"""What stands for 1 where a share is embedded in two bytes, and for nothing where a class is."""


@dataclass(frozen=True, eq=False)
class Findings(ABC):
    """What a fitted estimator says of its graph. audit: with every edge of the task."""

    task: NodeTask
    ids: list[str]
    audit: AuditTables | None

    @property
    @abstractmethod
    def doubt(self) -> np.ndarray:
        """(n,): the higher, the less sure the answer."""

    @abstractmethod
    def beliefs(self, nodes: np.ndarray) -> dict[str, Any]:
        """What is believed of these nodes, packed for the scripts."""

    @cached_property
    def likely(self) -> np.ndarray | None:
        """(E,): the probability of each edge of the task, if there was an audit."""
        if self.audit is None:
            return None
        rows, n = self.audit.edges, self.task.num_nodes
        found = np.empty(self.task.num_edges)
        order = np.argsort(self.task.edges[0] * n + self.task.edges[1])
        found[order] = rows["probability"][np.argsort(rows["source"] * n + rows["target"])]
        return found

    @cached_property
    def degree(self) -> np.ndarray:
        """(n,): the number of edges at each node, whatever their direction."""
        return np.bincount(self.task.edges.ravel(), minlength=self.task.num_nodes)


@dataclass(frozen=True, eq=False)
class Lists:
    """The rows of the tables, the most remarkable first: nodes, positions of edges, and pairs with probabilities."""

    uncertain: np.ndarray
    suspicious: np.ndarray
    missing: np.ndarray
    missing_probability: np.ndarray

    @classmethod
    def of(cls, found: Findings) -> Lists:
        uncertain = np.argsort(-found.doubt, kind="stable")[:LISTED_NODES]
        none = np.zeros(0, dtype=np.int64)
        if found.audit is None or found.likely is None:
            return cls(uncertain, none, np.stack([none, none]), np.zeros(0))
        suspicious = np.argsort(found.likely, kind="stable")[:LISTED_EDGES]
        rows = found.audit.missing[:LISTED_EDGES]
        return cls(uncertain, suspicious, np.stack([rows["source"], rows["target"]]), rows["probability"])

    def nodes(self, edges: np.ndarray) -> list[int]:
        """Every listed node once, those at the top of a table first."""
        listed = [self.uncertain, *edges[:, self.suspicious], *self.missing]
        ranks = zip_longest(*(part.tolist() for part in listed))
        return list(dict.fromkeys(node for rank in ranks for node in rank if node is not None))


@dataclass(frozen=True, eq=False)
class Part:
    """What is embedded: nodes, of which the first `explorable` come with their edges, and positions of edges."""

    nodes: np.ndarray
    explorable: int
    edges: np.ndarray


def embedded(found: Findings) -> dict[str, Any]:
    """The graph for the scripts. Nodes are numbered by their place in `ids`, edges by their place in `source`."""
    lists = Lists.of(found)
    task = found.task
    whole = task.num_nodes <= MOST_NODES and task.num_edges <= MOST_EDGES
    part = Part(np.arange(task.num_nodes), task.num_nodes, np.arange(task.num_edges)) if whole else around(found, lists)
    place = np.full(task.num_nodes, -1, dtype=np.int64)
    place[part.nodes] = np.arange(len(part.nodes))
    edge_place = np.full(task.num_edges, -1, dtype=np.int64)
    edge_place[part.edges] = np.arange(len(part.edges))
    missing = zip(*place[lists.missing].tolist(), lists.missing_probability.tolist(), strict=True)
    return {
        "whole": whole,
        "directed": task.directed,
        "nodes": task.num_nodes,
        "edges": task.num_edges,
        "explorable": part.explorable,
        "start": int(place[_start(found, lists)]),
        **_nodes(found, part.nodes),
        **_edges(found, part.edges, place),
        "uncertain": place[lists.uncertain].tolist(),
        "suspicious": edge_place[lists.suspicious].tolist(),
        "missing": [[one, other, tidy(value)] for one, other, value in missing],
    }


def around(found: Findings, lists: Lists) -> Part:
    """Listed nodes with their least likely edges, from the top of the tables down to where the page is full."""
    edges = found.task.edges
    listed = lists.nodes(edges)
    near = _incident(found, np.array(listed))
    nodes, kept = dict.fromkeys(listed), dict.fromkeys(lists.suspicious.tolist())
    explorable: list[int] = []
    for node in listed:
        own = near.get(node, np.zeros(0, dtype=np.int64))
        new = dict.fromkeys(end for end in edges[:, own].ravel().tolist() if end not in nodes)
        if len(nodes) + len(new) > MOST_NODES or len(kept) + len(own) > MOST_EDGES:
            break
        nodes |= new
        kept |= dict.fromkeys(own.tolist())
        explorable.append(node)
    order = dict.fromkeys(explorable) | nodes
    return Part(np.array(list(order)), len(explorable), np.array(list(kept), dtype=np.int64))


def _incident(found: Findings, nodes: np.ndarray) -> dict[int, np.ndarray]:
    """The least likely edges of each of the nodes, as positions."""
    ends = found.task.edges.ravel()
    at = np.flatnonzero(np.isin(ends, nodes))
    position = at % max(found.task.num_edges, 1)
    strangeness = position if found.likely is None else found.likely[position]
    order = np.lexsort((strangeness, ends[at]))
    owners, starts = np.unique(ends[at][order], return_index=True)
    # Without any start `split` would still give one run, an empty one.
    runs = np.split(position[order], starts[1:])[: len(starts)]
    return {owner: run[:MOST_NEIGHBOURS] for owner, run in zip(owners.tolist(), runs, strict=True)}


def _start(found: Findings, lists: Lists) -> int:
    """The node that is shown first, one of the most uncertain."""
    labelled = np.concatenate([found.task.train, found.task.val])
    open_ = ~np.isin(lists.uncertain, labelled)
    degree = found.degree[lists.uncertain]
    # The first node for which the most holds: a label to be found, and neighbours enough to be worth a look.
    return int(lists.uncertain[np.argmax(2 * open_ + (degree > 0) + (degree > 2))])


def _nodes(found: Findings, nodes: np.ndarray) -> dict[str, Any]:
    """use: 1 for training nodes, 2 for validation nodes."""
    use = np.zeros(found.task.num_nodes)
    use[found.task.train], use[found.task.val] = 1, 2
    return {
        "ids": [found.ids[node] for node in nodes.tolist()],
        "degree": packed(found.degree[nodes], np.uint32),
        "use": packed(use[nodes], np.uint8),
        **found.beliefs(nodes),
    }


def _edges(found: Findings, edges: np.ndarray, place: np.ndarray) -> dict[str, Any]:
    """quantiles: every hundredth of the probabilities of all edges, to hold one against."""
    source, target = place[found.task.edges[:, edges]]
    ends = {"source": packed(source, np.uint16), "target": packed(target, np.uint16)}
    if found.likely is None:
        return {**ends, "probability": None, "quantiles": []}
    quantiles = np.quantile(found.likely, np.linspace(0, 1, 101)).tolist() if found.likely.size else []
    probability = packed(found.likely[edges], np.float32)
    return {**ends, "probability": probability, "quantiles": [tidy(value) for value in quantiles]}


def shares(values: np.ndarray) -> str:
    """Numbers from 0 to 1 in two bytes each."""
    return packed(np.rint(np.clip(values, 0, 1) * FULL), np.uint16)


def packed(values: np.ndarray, kind: type[np.generic]) -> str:
    """Little-endian numbers in base64, as the scripts read them."""
    return base64.b64encode(values.astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode("ascii")
