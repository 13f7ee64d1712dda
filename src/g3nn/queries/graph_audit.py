"""`GraphAudit`: how likely every edge and non-edge is, given features, labels and the rest of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from g3nn.base.errors import DataError, Problems
from g3nn.base.options import check, flag, integer, number, pick
from g3nn.base.parse import NO_EDGES, pair_array, to_numpy
from g3nn.base.threads import enough_for
from g3nn.graph.task import NodeTask
from g3nn.kernels.sparse import is_identity
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.nlsm import NeighbourLatentSpace, NeighbourOptions
from g3nn.model.networks import ReplicaCount
from g3nn.model.objective import Objective
from g3nn.model.posteriors import LabelPosterior
from g3nn.model.priors.uniform import UniformPrior
from g3nn.model.replicas import Noise, Replicas, Sizes
from g3nn.queries.audit_tables import TYPE_ROW, AuditTables, ranked_pairs
from g3nn.queries.choosing import check_count
from g3nn.queries.genuine import Evidence, GenuineEdges, coordinates
from g3nn.queries.scores import ObservedEdges, PairScores, genuine_by_score, log_odds
from g3nn.queries.survey import SampledGraph, Survey
from g3nn.training import TrainingOptions
from g3nn.training.checks import checked_device, checked_seeds
from g3nn.training.options import LAST
from g3nn.training.progress import Course
from g3nn.training.stack import Stack


@dataclass(frozen=True)
class AuditOptions(NeighbourOptions):
    latent: int = integer(32, "number of dimensions of the latent space", low=1)
    latent_dropout: float = number(0.5, "share of the features left out of each step", low=0, high=0.95)
    hops: int = integer(2, "how many steps away neighbours' features help to place a node", low=0, high=2)
    degrees: bool = flag(True, "let nodes with many other edges have more edges")
    coordinates: int = integer(128, "features are reduced to this many directions, if there are more", low=1)
    replicas: int = integer(3, "models fitted with different seeds, whose log-odds are averaged", low=1)
    epochs: int = integer(100, "updates of each model", low=1)
    edges_per_step: int = integer(4096, "how many edges, and as many non-edges, one update looks at; 0: all", low=0)
    lr: float = number(0.03, "learning rate of Adam", low=0, open_ends=True)
    weight_decay: float = number(2e-4, "L2 penalty on all parameters", low=0)


class GivenBeliefs(LabelPosterior):
    """q(Y | X, G) that was found before: (n, K), nothing to learn."""

    uses_graph: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, replicas: Replicas, q: Tensor) -> None:
        super().__init__(sizes, replicas)
        self.each = ReplicaCount(replicas)
        self._log_q = q.clamp_min(torch.finfo(q.dtype).tiny).log()

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        return self.each(self._log_q)


def fit_scores(
    task: NodeTask, q: np.ndarray, options: AuditOptions, seed: int, device: torch.device, progress: Course
) -> dict[str, np.ndarray]:
    """What the likelihood says of every pair after training on the graph term alone, with q (n, K) held fixed: left,
    right and table of `PairScores`."""
    features = coordinates(task.features, options.coordinates)
    inputs = Inputs.of(replace(task, features=features, val=task.val[:0]), device)
    replicas = Replicas(tuple(np.random.default_rng(seed).integers(2**62, size=options.replicas).tolist()))
    sizes = Sizes.of(inputs.task)
    likelihood = NeighbourLatentSpace(sizes, replicas.within("likelihood"), options)
    beliefs = GivenBeliefs(sizes, replicas, torch.from_numpy(q).to(device, inputs.dtype))
    objective = Objective(
        eta=0.0, kl_weight=0.0, prior_weight=0.0, feature_weight=0.0, edges_per_step=options.edges_per_step
    )
    training = TrainingOptions(lr=options.lr, weight_decay=options.weight_decay, epochs=options.epochs, keep=LAST)
    model = GenerativeModel(beliefs, likelihood, UniformPrior(sizes, replicas))
    stack = Stack(model, objective, inputs, replicas, training)
    with enough_for(inputs.task.extent, replicas.size), progress.training(options.epochs) as watch:
        while not stack.finished:
            stack.step()
            watch(stack, 0)
        stack.end()
        with torch.no_grad():
            left, right = likelihood.ends(likelihood.node_state(inputs, None))
            # The mean of the replicas' log-odds is again an inner product and a table.
            return {
                "left": torch.cat(list(left / len(left)), dim=1).cpu().numpy(),
                "right": torch.cat(list(right), dim=1).cpu().numpy(),
                "table": likelihood.table().mean(0).cpu().numpy(),
            }


DENSITIES = ("balanced", "observed", "genuine")

_SHARE = 0.5
"""Of the edges that may be genuine, before they are looked at."""

_LEAST_EDGES = 3

_ROUNDING = 1e-3


@dataclass(frozen=True, eq=False)
class GraphAudit:
    """For pairs without an edge p(e_ij = 1 | X, G) = sum_kl q_ik q_jl p(e_ij = 1 | X, G, y_i = k, y_j = l).

    The right-hand side is the likelihood `nlsm`, which reads features, labels, neighbours' features and degrees. It is
    trained on the graph term of the objective alone, with the beliefs q about labels held fixed. Observed edges have
    the log-odds of `Evidence`, which also weights the edges of networks: the judgement of an edge comes from
    the graph without it, and where edges have types, from what others of its type are like. The direction of an arc
    does not count there. Other pairs are judged as if all edges were of one type, among kinds that any type joins.

    Training sees equal numbers of edges and non-edges. So a probability of 0.5 means "as likely an edge as a non-edge,
    if there were as many of the one as of the other": good for ranking and to look at. With `density="observed"` all
    log-odds are shifted by the one number at which as many edges are expected as were observed (near
    log(edges / non-edges) where the model is calibrated): the probability that a pair is linked in a graph as sparse as
    this one. With `density="genuine"` it is the probability that an edge with these log-odds is genuine, and not one
    between two nodes by chance, once it has been observed; see `genuine_by_score`.

    genuine: (2, m), log-odds and this probability at each of them; None if too few pairs by chance were judged.
    """

    task: NodeTask
    q: np.ndarray
    scores: PairScores
    genuine: np.ndarray | None = None

    @classmethod
    def fit(
        cls,
        task: NodeTask,
        q: object,
        *,
        judged: GenuineEdges | None = None,
        seed: int = 0,
        device: str = "auto",
        progress: Course | None = None,
        **options: object,
    ) -> GraphAudit:
        """Learn what the edges of a task look like.

        q:       (n, K) beliefs about the labels; rows sum to one, one-hot where a label was observed.
        judged:  which edges are genuine. None: judged by q, which is less certain where q depends on false edges.
        options: see `AuditOptions`.
        """
        with Problems() as problems:
            beliefs = _checked_beliefs(q, task, problems)
            check(options, [AuditOptions], problems)
            seeds, place = checked_seeds(1, seed, problems), checked_device(device, problems)
            check_graph(task, problems)
        chosen, whole = pick(options, AuditOptions), seeds[0] % 2**63
        judged = judged or Evidence(task, is_identity(task.features), whole, by_type=True).judge(beliefs, (_SHARE,))[0]
        learned = fit_scores(task, beliefs, chosen, whole, place, progress or Course())
        genuine = genuine_by_score(judged.log_odds, judged.by_chance) if len(judged.by_chance) else None
        return cls(task, beliefs, PairScores(**learned, odds=judged.log_odds), genuine)

    def edge_proba(self, pairs: object, density: str = "balanced") -> np.ndarray:
        """(P,): the probability of an edge for each of P pairs; see the class for the three densities.

        pairs: (2, P) or (P, 2) node numbers, a tuple (sources, targets) or a data frame.
        """
        with Problems() as problems:
            problems.name("density", density, DENSITIES)
            checked = _checked_pairs(pairs, self.task.num_nodes, problems)
        if density == "genuine":
            return np.asarray(np.interp(log_odds(self._probability(checked)), *self._genuine))
        return self._probability(checked, self._survey.shift if density == "observed" else 0.0)

    def _probability(self, pairs: np.ndarray, shift: float = 0.0) -> np.ndarray:
        return self.scores.probability(self.q, pairs, self._observed.find(pairs), shift)

    def suspicious(self) -> np.ndarray:
        """Every observed edge, the least probable first; see `AuditTables.edges`."""
        probability = self._probability(self.task.edges)
        order = np.argsort(probability, kind="stable")
        types = None if self.task.apart is None else self.task.apart.between(self.task.edges[:, order])
        return ranked_pairs(self.task.edges, probability, order, types)

    def missing(self, count: int = 100) -> np.ndarray:
        """The `count` likeliest pairs without an edge; see `AuditTables.missing`.

        They are searched in time about linear in the size of the graph: among nodes with a common neighbour, and where
        features and labels make edges likely. In a small graph all pairs are looked at.
        """
        with Problems() as problems:
            check_count(count, problems, "count", low=0)
        pairs = self._survey.likely_pairs(4 * count + 1000)
        probability = self._probability(pairs)
        order, types, relations = np.argsort(-probability, kind="stable")[:count], None, self.task.apart
        if relations is not None:
            types = [(*relations.names, "")[type] for type in relations.only_type(pairs[:, order]).tolist()]
        return ranked_pairs(pairs, probability, order, types)

    def tables(self, missing: int = 100) -> AuditTables:
        """All observed edges, the most suspicious first, and the given number of likely missing ones."""
        tables, relations = AuditTables(self.suspicious(), self.missing(missing)), self.task.apart
        if relations is None:
            return tables
        doubted = self.task.edges[:, self._probability(self.task.edges) < 0.5]
        counts = (relations.counts(edges, self.task.directed) for edges in (self.task.edges, doubted))
        rows = list(zip(relations.names, *(count.tolist() for count in counts), strict=True))
        return replace(tables, types=np.array(rows, dtype=TYPE_ROW))

    def sample(self, seed: int = 0) -> SampledGraph:
        """A new graph as dense as the observed one: labels drawn from q, then each edge with its probability given the
        rest of the observed graph."""
        with Problems() as problems:
            seeds = checked_seeds(1, seed, problems)
        rng = np.random.default_rng(seeds[0] % 2**63)
        return self._survey.sample(rng)

    def state(self) -> dict[str, np.ndarray]:
        """What was learned, as plain arrays; `from_state` takes them back."""
        return dict(vars(self.scores)) | ({} if self.genuine is None else {"genuine": self.genuine})

    @classmethod
    def from_state(cls, task: NodeTask, q: object, state: Mapping[str, np.ndarray]) -> GraphAudit:
        """The audit that was fitted to this task with these beliefs. Release 0.2.0 did not store what is genuine."""
        n, K = task.num_nodes, task.num_classes
        nothing = np.zeros(0)
        width = state.get("left", nothing).shape[-1]
        # Release 0.2.0 stored the log-odds of edges without those of their labels.
        edges = "edges" if "edges" in state else "odds"
        shapes = {"left": (n, width), "right": (n, width), "table": (K, K), edges: (task.num_edges,)}
        known = {"genuine": (2, max(state["genuine"].shape[-1], 1))} if "genuine" in state else {}
        for name, shape in (shapes | known).items():
            if state.get(name, nothing).shape != shape:
                raise DataError(f"the audit does not belong to this graph: {name} should have shape {shape}")
            if not np.isfinite(state[name]).all():
                raise DataError(f"the audit is damaged: {name} holds values that are not finite")
        with Problems() as problems:
            beliefs = _checked_beliefs(q, task, problems)
            check_graph(task, problems)
        scores = PairScores(state["left"], state["right"], state["table"], state[edges])
        if edges == "edges":
            i, j = task.edges
            scores = replace(scores, odds=log_odds(scores.linked(beliefs[i], beliefs[j], scores.odds)))
        return cls(task, beliefs, scores, state.get("genuine"))

    @cached_property
    def _observed(self) -> ObservedEdges:
        return ObservedEdges(self.task.edges, self.task.num_nodes, self.task.directed, self.task.apart)

    @cached_property
    def _genuine(self) -> np.ndarray:
        """Where no pair by chance was judged, edges with log-odds t are taken to be e^t times as frequent among edges
        as among pairs by chance: edges with the weight e^-t stand for those."""
        if self.genuine is not None:
            return self.genuine
        odds = log_odds(self._probability(self.task.edges))
        return genuine_by_score(odds, odds, np.exp(-odds))

    @cached_property
    def _survey(self) -> Survey:
        return Survey(self.scores, self.q, self._observed)


def check_graph(task: NodeTask, problems: Problems) -> None:
    """Whether anything can be learned about the edges of a task."""
    n = task.num_nodes
    pairs = n * (n - 1) if task.directed else n * (n - 1) // 2
    if task.num_edges < _LEAST_EDGES:
        given = f"a graph with {task.num_edges or 'no'} edge{'' if task.num_edges == 1 else 's'}"
        advice = "That is too little to learn what an edge looks like."
        problems.add("edges", given, f"at least {_LEAST_EDGES} edges to audit", advice)
    elif task.num_edges == pairs:
        problems.add("edges", "a graph where every pair is linked", "at least one pair without an edge")


def _checked_beliefs(q: object, task: NodeTask, problems: Problems) -> np.ndarray:
    """(n, K) in double precision, rows that sum to one."""
    beliefs, shape = to_numpy(q), (task.num_nodes, task.num_classes)
    if beliefs.shape != shape:
        problems.add("q", f"shape {beliefs.shape}", f"a probability for each node and class, shape {shape}")
    elif beliefs.dtype.kind not in "biuf" or not np.isfinite(beliefs).all():
        problems.add("q", "values that are not finite numbers", "probabilities")
    elif (beliefs < 0).any() or (abs(beliefs.sum(1) - 1) > _ROUNDING).any():
        problems.add("q", "negative values, or rows that do not sum to 1", "probabilities")
    else:
        return beliefs.astype(np.float64) / beliefs.sum(1, keepdims=True, dtype=np.float64)
    return np.zeros(shape)


def _checked_pairs(pairs: object, n: int, problems: Problems) -> np.ndarray:
    """(2, P) int64."""
    given = pair_array("pairs", pairs, problems)
    if given.size == 0:
        return NO_EDGES
    if given.ndim != 2 or given.shape[0] != 2:
        problems.add("pairs", f"shape {given.shape}", "shape (2, P) or (P, 2)")
    elif given.dtype.kind not in "iu":
        problems.add("pairs", f"values of type {given.dtype}", "node numbers (integers)")
    elif given.min() < 0 or given.max() >= n:
        problems.add("pairs", f"node numbers {given.min()}..{given.max()}", f"node numbers 0..{n - 1}")
    elif (given[0] == given[1]).any():
        problems.add("pairs", f"{int((given[0] == given[1]).sum())} pairs of a node with itself", "two different nodes")
    else:
        return given.astype(np.int64)
    return np.zeros((2, 0), dtype=np.int64)
