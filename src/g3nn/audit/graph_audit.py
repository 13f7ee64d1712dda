"""`GraphAudit`: how likely every edge and non-edge is, given features and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from g3nn.audit.checks import check_graph, checked_beliefs, checked_count, checked_pairs
from g3nn.audit.cross_fit import cross_fit, split_edges
from g3nn.audit.latent import LatentGraph
from g3nn.audit.missing import candidates
from g3nn.audit.observed import Observed
from g3nn.audit.options import AuditOptions
from g3nn.audit.sampling import SampledGraph, sample_graph
from g3nn.audit.survey import Survey, plug_in
from g3nn.errors import DataError, Problems
from g3nn.options import check
from g3nn.task import NodeTask
from g3nn.training.checks import checked_device, checked_seeds

DENSITIES = ("balanced", "observed")

_ROW = np.dtype([("rank", np.int64), ("source", np.int64), ("target", np.int64), ("probability", np.float64)])


@dataclass(frozen=True, eq=False)
class AuditTables:
    """What an audit finds, as structured arrays with the columns rank (from 1), source, target and probability.

    edges:   every observed edge, the most suspicious first.
    missing: pairs without an edge that probably should have one, the likeliest first.
    """

    edges: np.ndarray
    missing: np.ndarray


@dataclass(frozen=True, eq=False)
class GraphAudit:
    """p(e_ij = 1 | X, Y) averaged over beliefs about the labels: sum_kl q_ik q_jl sigmoid(logit_kl(i, j)).

    The logit is bilinear in a latent space that the features span, with a K x K table for the labels and a term for the
    degree of each end (see `audit.pair_model`). Unlike the p(G | X, Y) of the training objective it also reads the
    features of neighbours up to `hops` steps away; `hops=0` turns that off. The labels enter through q alone, which is
    held fixed.

    An edge must not vouch for itself. So the edges are split into parts, and each is judged by a model to which its
    part was unknown, neither as an edge to learn from nor as a way to a neighbour. Pairs without an edge are judged by
    the mean of all models' log-odds. The beliefs q did see all edges; nothing is done about that.

    Models are fitted to equal numbers of edges and non-edges. So a probability of 0.5 means "as likely an edge as a
    non-edge, if there were as many of the one as of the other": good for ranking and to look at. With
    `density="observed"` all log-odds are shifted by the one number at which the model expects as many edges as were
    observed (near log(edges / non-edges) where the model is calibrated): the probability that a pair is linked in a
    graph as sparse as this one.
    """

    task: NodeTask
    q: np.ndarray
    graph: LatentGraph
    fold: np.ndarray
    """(E,): which model judges each edge."""

    @classmethod
    def fit(cls, task: NodeTask, q: Any, *, seed: int = 0, device: str = "auto", **options: Any) -> GraphAudit:
        """Fit the graph models to the edges of a task.

        q:       (n, K) beliefs about the labels; rows sum to one, one-hot where a label was observed.
        options: see `AuditOptions`.
        """
        problems = Problems()
        beliefs = checked_beliefs(q, task, problems)
        check(options, [AuditOptions], problems)
        seeds, place = checked_seeds(1, seed, problems), checked_device(device, problems)
        check_graph(task, problems)
        problems.raise_if_any()
        chosen, own_seed = AuditOptions(**options), seeds[0] % 2**63
        fold = split_edges(task.num_edges, chosen.folds, own_seed)
        return cls(task, beliefs, cross_fit(task, beliefs, fold, chosen, own_seed, place), fold)

    def edge_proba(self, pairs: Any, density: str = "balanced") -> np.ndarray:
        """(P,): the probability of an edge for each of pairs (2, P); see the class for the two densities."""
        problems = Problems()
        problems.name("density", density, DENSITIES)
        checked = checked_pairs(pairs, self.task.num_nodes, problems)
        problems.raise_if_any()
        place = self._observed.find(checked)
        seen = place >= 0
        shift = self._survey.shift if density == "observed" else 0.0
        found = np.empty(place.size)
        found[seen] = self.graph.probability_of(self.q, checked[:, seen], self.fold[place[seen]], shift)
        found[~seen] = self.graph.probability(self.q, checked[:, ~seen], shift)
        return found

    def suspicious(self) -> np.ndarray:
        """Every observed edge, the least probable first; see `AuditTables.edges`."""
        probability = self.edge_proba(self.task.edges)
        return _table(self.task.edges, probability, np.argsort(probability, kind="stable"))

    def missing(self, count: int = 100) -> np.ndarray:
        """The `count` likeliest pairs without an edge among candidates; see `AuditTables.missing`.

        Candidates are found in time about linear in the size of the graph: nodes with a common neighbour, and pairs
        whose features and labels are such that the model puts many edges there. In a small graph, these are all pairs.
        """
        problems = Problems()
        wanted = checked_count(count, problems)
        problems.raise_if_any()
        # Candidates are ranked with beliefs in place of labels, which is almost the order of the probabilities.
        pairs = candidates(self._survey, plug_in(self.graph, self.q), self._observed, 4 * wanted + 1000)
        probability = self.edge_proba(pairs)
        return _table(pairs, probability, np.argsort(-probability, kind="stable")[:wanted])

    def tables(self, missing: int = 100) -> AuditTables:
        """Observed edges from the most suspicious on, and as many likely missing ones as asked for."""
        return AuditTables(self.suspicious(), self.missing(missing))

    def sample(self, seed: int = 0) -> SampledGraph:
        """A new graph as dense as the observed one: labels drawn from q, then edges from p(G | X, Y)."""
        problems = Problems()
        seeds = checked_seeds(1, seed, problems)
        problems.raise_if_any()
        rng = np.random.default_rng(seeds[0] % 2**63)
        return sample_graph(self.graph, self._survey, self.q, self._observed, self.fold, rng)

    def state(self) -> dict[str, np.ndarray]:
        """What was fitted, as plain arrays; `from_state` takes them back."""
        return {"left": self.graph.left, "right": self.graph.right, "table": self.graph.table, "fold": self.fold}

    @classmethod
    def from_state(cls, task: NodeTask, q: Any, state: Mapping[str, np.ndarray]) -> GraphAudit:
        """The audit that was fitted to this task with these beliefs."""
        n, E, K = task.num_nodes, task.num_edges, task.num_classes
        nothing = np.zeros(0)
        shape = state.get("left", nothing).shape
        folds, latent = (shape[0], shape[2]) if len(shape) == 3 else (1, 1)
        wanted = {"left": (folds, n, latent), "right": (folds, n, latent), "table": (folds, K, K), "fold": (E,)}
        for name, its_shape in wanted.items():
            if state.get(name, nothing).shape != its_shape:
                raise DataError(f"the audit does not belong to this graph: {name} should have shape {its_shape}")
            if not np.isfinite(state[name]).all():
                raise DataError(f"the audit is damaged: {name} holds values that are not finite")
        if state["fold"].dtype.kind != "i" or not np.isin(state["fold"], np.arange(folds)).all():
            raise DataError(f"the audit is damaged: fold should hold numbers 0..{folds - 1}")
        problems = Problems()
        beliefs = checked_beliefs(q, task, problems)
        check_graph(task, problems)
        problems.raise_if_any()
        return cls(task, beliefs, LatentGraph(state["left"], state["right"], state["table"]), state["fold"])

    @cached_property
    def _observed(self) -> Observed:
        return Observed.of(self.task)

    @cached_property
    def _survey(self) -> Survey:
        return Survey.of(self.graph, self.q, self._observed, self.fold)


def _table(pairs: np.ndarray, probability: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Rows in the given order, ranked from 1."""
    table = np.empty(order.size, dtype=_ROW)
    table["rank"] = np.arange(1, order.size + 1)
    table["source"], table["target"] = pairs[:, order]
    table["probability"] = probability[order]
    return table
