"""The training objective: the paper's evidence bound, the variant in the authors' code, and plain supervision.

One formula with named parts serves all of them. It is pure: a model, a task and noise in, named terms out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from g3nn.errors import check_name
from g3nn.inputs import Inputs
from g3nn.kernels import pair_dot, pair_sum
from g3nn.likelihoods import GraphLikelihood, Pairs
from g3nn.model import GenerativeModel
from g3nn.options import choice, flag, integer, number
from g3nn.pairs import MISSING, OBSERVED, PairSource
from g3nn.replicas import Noise, Replicas, Scalar


@dataclass(frozen=True, eq=False)
class Terms:
    """The parts of the loss before weighting, each (R,), each a quantity to be minimised except `entropy`."""

    graph: Tensor
    """- E_q log p(G | X, Y)"""
    cross_entropy: Tensor
    """- E_q log p(Y_U | X)"""
    entropy: Tensor
    """H(q(Y_U | X, G))"""
    prior: Tensor
    """- log p(Y_L | X)"""
    supervised: Tensor
    """- log q(Y_L | X, G)"""
    features: Tensor
    """- log p(X), where the prior is a model of the features too; zero otherwise"""
    own: Tensor
    """what the posterior has to learn besides; zero for most"""
    laplacian: Tensor
    """sum over edges of |q_i - q_j|^2; zero unless it has a weight"""
    consistency: Tensor
    """how far samples of q are from their sharpened mean; zero unless it has a weight"""
    distillation: Tensor
    """- E_q log p(Y_U | X) as a lesson for the prior alone; zero unless it has a weight"""

    @property
    def kl(self) -> Tensor:
        """KL(q(Y_U | X, G) || p(Y_U | X))"""
        return self.cross_entropy - self.entropy

    @property
    def bound(self) -> Tensor:
        """The evidence lower bound on log p(G, Y_L | X), in nats if the reduction is "sum".

        With a model of the features it bounds log p(G, Y_L, X).
        """
        return -(self.graph + self.kl + self.prior + self.features)

    @cached_property
    def stacked(self) -> Tensor:
        """(number of terms, R), in the order of `TERM_NAMES`."""
        return torch.stack([getattr(self, name) for name in TERM_NAMES])


TERM_NAMES = tuple(field.name for field in fields(Terms))
_LABELLED = ("prior", "supervised", "features", "own")
"""The terms that count in full from the first epoch on; the others rest on answers, which have to be learned first."""
_CROSS_ENTROPY = 2
"""Where it stands among the sums that an outcome gives."""
_ON_DEMAND = 3
"""The last terms: smoothness, consistency, distillation."""


@dataclass(frozen=True, eq=False)
class Weights:
    """What each term is multiplied with.

    table: (number of terms, R). rises: (number of terms, 1) booleans, the terms that a ramp holds back.
    """

    table: Tensor
    rises: Tensor

    def total(self, terms: Terms, ramp: float | Tensor = 1.0) -> Tensor:
        """(R,): graph + kl (CE - entropy H) + prior + eta supervised + features + own + what is computed on demand,
        each with its weight.

        ramp: what the terms that rest on answers are multiplied with on top of their weights.
        """
        weighted = self.table * terms.stacked
        if isinstance(ramp, Tensor) or ramp != 1.0:
            weighted = torch.where(self.rises, ramp * weighted, weighted)
        return weighted.sum(0)

    def recorded(self, terms: Terms) -> Tensor:
        """(number of terms, R): the terms without gradient. What is computed only on demand counts for nothing where it
        has no weight, so that a record does not depend on what a neighbour in the stack asks for."""
        values = terms.stacked.detach()
        return torch.cat([values[:-_ON_DEMAND], values[-_ON_DEMAND:] * (self.table[-_ON_DEMAND:] != 0)])

    def select(self, keep: Tensor) -> Weights:
        return Weights(self.table[:, keep], self.rises)


@dataclass(frozen=True)
class Objective:
    """loss = - E_q log p(G|X,Y) + KL(q(Y_U|X,G) || p(Y_U|X)) - log p(Y_L|X) - eta log q(Y_L|X,G)

    with a weight on every term. Nodes in L enter the graph term with their observed labels.
    """

    eta: Scalar = number(1.0, "weight of the supervised term", low=0, per_replica=True)
    graph_weight: Scalar = number(1.0, "weight of the graph likelihood", low=0, per_replica=True)
    kl_weight: Scalar = number(1.0, "weight of KL(q || prior)", low=0, per_replica=True)
    entropy_weight: Scalar = number(1.0, "weight of H(q) inside the KL; 1 is the true KL", per_replica=True)
    prior_weight: Scalar = number(1.0, "weight of the prior's own labelled loss", low=0, per_replica=True)
    feature_weight: Scalar = number(1.0, "weight of log p(X), where the prior has one", low=0, per_replica=True)
    laplacian_weight: Scalar = number(0.0, "weight of smoothness along edges", low=0, per_replica=True)
    consistency_weight: Scalar = number(
        0.0, "weight of the distance between samples of q and their sharpened mean", low=0, per_replica=True
    )
    distillation_weight: Scalar = number(
        0.0, "weight of what the prior learns from q on top of the KL, without q following it", low=0, per_replica=True
    )
    samples: int = integer(1, "noisy passes through q in every step, whose terms are averaged", low=1, high=16)
    sharpening: float = number(0.5, "temperature that sharpens the mean of the samples", low=0.05, high=1)
    warm_up: int = integer(
        0, "epochs in which the weights of all terms without observed labels rise to their values", low=0
    )
    graph_labels: str = choice(
        "posterior", ("posterior", "prior"), "whose labels of unlabelled nodes explain the graph"
    )
    label_use: str = choice(
        "expected", ("expected", "plug-in"), "exact expectation, or soft labels put into the log-odds"
    )
    pairs: str = choice("sampled", ("sampled", "all"), "as many sampled non-edges as edges, or every non-edge")
    edges_per_step: int = integer(
        0, "how many edges, drawn anew in each step, the graph term looks at, and as many non-edges; 0: all", low=0
    )
    negatives: str = choice(
        "non-edges",
        ("non-edges", "uniform", "degrees"),
        "sample true non-edges, any pair, or non-edges between nodes with many neighbours, weighted to make up for it",
    )
    isolated_nodes: str = choice(
        OBSERVED,
        (OBSERVED, MISSING),
        "nodes without edges are known to have none, or their edges are missing: then the graph says nothing of them",
    )
    reduction: str = choice("mean", ("mean", "sum"), "means over pairs and nodes, or sums: the bound in nats")
    class_mean: bool = flag(False, "divide cross-entropy and entropy by K")

    @classmethod
    def elbo(cls, **changes: Any) -> Objective:
        """The paper's formulas as written."""
        return cls(**changes)

    @classmethod
    def released(cls, **changes: Any) -> Objective:
        """What the authors' code computes. It differs from the paper: the prior's soft labels are put into the graph
        term, H(q) is minimised instead of maximised, node terms are means over classes too, and non-edges are any pair.
        """
        differences: dict[str, Any] = {
            "graph_labels": "prior",
            "label_use": "plug-in",
            "entropy_weight": -1.0,
            "class_mean": True,
            "negatives": "uniform",
        }
        return cls(**{**differences, **changes})

    @classmethod
    def laplacian(cls, **changes: Any) -> Objective:
        """Graph-based regularisation: supervised loss + weight * sum over edges of |q_i - q_j|^2."""
        differences = {"graph_weight": 0.0, "kl_weight": 0.0, "prior_weight": 0.0, "laplacian_weight": 1.0}
        return cls(**{**differences, **changes})

    @classmethod
    def named(cls, name: str, **changes: Any) -> Objective:
        check_name("objective", name, OBJECTIVES)
        preset: Objective = getattr(cls, name)(**changes)
        return preset

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def weights(
        self, replicas: Replicas, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> Weights:
        graph, kl, entropy, prior, eta, features, laplacian, consistency, distillation = (
            replicas.scalar(value).to(device, dtype)
            for value in (
                self.graph_weight,
                self.kl_weight,
                self.entropy_weight,
                self.prior_weight,
                self.eta,
                self.feature_weight,
                self.laplacian_weight,
                self.consistency_weight,
                self.distillation_weight,
            )
        )
        one = torch.ones_like(graph)
        each = [graph, kl, -kl * entropy, prior, eta, features, one, laplacian, consistency, distillation]
        rises = torch.tensor([[name not in _LABELLED] for name in TERM_NAMES], device=device)
        return Weights(torch.stack(each), rises)

    def terms(self, model: GenerativeModel, inputs: Inputs, source: PairSource, noise: Noise) -> Terms:
        """Every term of the loss for each replica."""
        log_qs = [model.posterior.log_prob(inputs, noise) for _ in range(self.samples)]
        R, K = log_qs[0].shape[0], inputs.outcome.columns
        zero = log_qs[0].new_zeros(R)
        own = _mean([self._own(model, log_q, inputs, noise) for log_q in log_qs])
        laplacian = self._smoothness(log_qs, inputs, source) if self._wants(self.laplacian_weight) else zero
        consistency = self._consistency(log_qs, inputs) if self._wants(self.consistency_weight) else zero
        if model.likelihood is None or model.prior is None:
            observed = [inputs.outcome.supervised(log_q, inputs.targets) for log_q in log_qs]
            supervised = -_mean([self._reduce(log_prob) for log_prob in observed])
            return Terms(zero, zero, zero, zero, supervised, zero, own, laplacian, consistency, zero)
        log_p, log_evidence = model.prior.log_joint(inputs, noise)
        how = (inputs.targets, self.graph_labels == "posterior", self._shares(inputs, K))
        parts = [inputs.outcome.node_terms(log_q, log_p, *how) for log_q in log_qs]
        beliefs = [labels for _, labels in parts]
        beliefs = [_mean(beliefs)] if inputs.outcome.pooled else beliefs
        graph = _mean([self._graph(model.likelihood, inputs, source, labels, noise) for labels in beliefs])
        supervised, prior, cross_entropy, entropy = _mean([sums for sums, _ in parts]).unbind(1)
        features = zero if log_evidence is None else -self._reduce(log_evidence)
        distillation = self._lesson(log_qs, log_p, inputs) if self._wants(self.distillation_weight) else zero
        on_demand = (laplacian, consistency, distillation)
        return Terms(graph, cross_entropy, entropy, prior, supervised, features, own, *on_demand)

    def _shares(self, inputs: Inputs, K: int) -> tuple[float, float]:
        """How much one node counts in the sums over L and over U."""
        classes = K if self.class_mean else 1
        if self.reduction == "sum":
            return 1.0, 1.0 / classes
        return 1.0 / inputs.train.numel(), 1.0 / (max(inputs.unlabelled.numel(), 1) * classes)

    def _graph(
        self, likelihood: GraphLikelihood, inputs: Inputs, source: PairSource, labels: Tensor, noise: Noise
    ) -> Tensor:
        if source.num_edges == 0:
            return labels.new_zeros(labels.shape[0])
        state = likelihood.node_state(inputs, noise)
        if likelihood.expectation == "samples":
            labels = _sampled(labels, noise)
        score = likelihood.expected_log_prob if self.label_use == "expected" else likelihood.plug_in_score
        pairs, repeats = self._edges(source, noise)
        edges = repeats * self._reduce(_counted(score(state, labels, pairs), pairs))
        if source.num_non_edges == 0:
            return -edges
        non_edges, repeats = self._non_edges(source, noise)
        return -edges - repeats * self._reduce(_counted(score(state, labels, non_edges), non_edges))

    def _edges(self, source: PairSource, noise: Noise) -> tuple[Pairs, float]:
        """Edges, and how many each stands for in a sum."""
        count = self.edges_per_step
        if count == 0 or count >= source.num_edges:
            return source.edges, 1.0
        return source.sample_edges(noise, count), source.num_edges / count if self.reduction == "sum" else 1.0

    def _non_edges(self, source: PairSource, noise: Noise) -> tuple[Pairs, float]:
        """Non-edges, and how many each stands for in a sum."""
        if self.pairs == "all":
            return source.all_non_edges(), 1.0
        sample = {
            "non-edges": source.sample_non_edges,
            "uniform": source.sample_uniform,
            "degrees": source.sample_by_degree,
        }[self.negatives]
        count = min(self.edges_per_step or source.num_edges, source.num_edges)
        return sample(noise, count), source.num_non_edges / count if self.reduction == "sum" else 1.0

    @staticmethod
    def _own(model: GenerativeModel, log_q: Tensor, inputs: Inputs, noise: Noise) -> Tensor:
        lesson = model.posterior.own_loss(log_q, inputs, noise)
        return log_q.new_zeros(log_q.shape[0]) if lesson is None else lesson

    def _smoothness(self, log_qs: list[Tensor], inputs: Inputs, source: PairSource) -> Tensor:
        """sum over edges of |q_i - q_j|^2."""
        q = _mean([inputs.outcome.mean(log_q) for log_q in log_qs])
        if source.num_edges == 0:
            return q.new_zeros(q.shape[0])
        norm, index = q.square().sum(2), source.edges.index
        return self._reduce(pair_sum(norm, norm, *index) - 2 * pair_dot(q, q, *index))

    def _consistency(self, log_qs: list[Tensor], inputs: Inputs) -> Tensor:
        """|q_s - t|^2, averaged over samples s, where t is their mean to the power 1 / T, normalised. The target t gets
        no gradient."""
        samples = [inputs.outcome.mean(log_q) for log_q in log_qs]
        target = inputs.outcome.sharpened(_mean(samples).detach(), self.sharpening)
        return _mean([self._reduce((q - target).square().sum(2)) for q in samples])

    def _lesson(self, log_qs: list[Tensor], log_p: Tensor, inputs: Inputs) -> Tensor:
        """- E_q log p over U, without a gradient for q."""
        how = (inputs.targets, True, self._shares(inputs, inputs.outcome.columns))
        parts = [inputs.outcome.node_terms(log_q.detach(), log_p, *how) for log_q in log_qs]
        return _mean([sums[:, _CROSS_ENTROPY] for sums, _ in parts])

    def _reduce(self, values: Tensor) -> Tensor:
        """(R,) from (R, anything)."""
        return values.mean(1) if self.reduction == "mean" else values.sum(1)

    @staticmethod
    def _wants(weight: Scalar) -> bool:
        return any(weight) if isinstance(weight, Sequence) else bool(weight)


OBJECTIVES = ("elbo", "released", "laplacian")


def _mean(values: list[Tensor]) -> Tensor:
    return values[0] if len(values) == 1 else torch.stack(values).mean(0)


def _counted(scores: Tensor, pairs: Pairs) -> Tensor:
    """(R, P): each score as often as its pair counts."""
    return scores if pairs.weight is None else scores * pairs.weight


def _sampled(beliefs: Tensor, noise: Noise) -> Tensor:
    """(R, n, 2T): values drawn from beliefs of the same shape, mean and variance, and no variance."""
    mean, variance = beliefs.chunk(2, dim=2)
    values = mean + variance.sqrt() * noise.normal(mean)
    return torch.cat([values, torch.zeros_like(values)], dim=2)
