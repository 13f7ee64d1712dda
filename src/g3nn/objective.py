"""The training objective: the paper's evidence bound, the variant in the authors' code, and plain supervision.

One formula with named parts serves all of them. It is pure: a model, a task and noise in, named terms out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor

from g3nn.errors import check_name
from g3nn.inputs import Inputs
from g3nn.kernels import pair_dot, pair_sum
from g3nn.likelihoods import GraphLikelihood, Pairs
from g3nn.model import GenerativeModel
from g3nn.options import choice, flag, number
from g3nn.pairs import PairSource
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
    laplacian: Tensor
    """sum over edges of |q_i - q_j|^2"""

    @property
    def kl(self) -> Tensor:
        """KL(q(Y_U | X, G) || p(Y_U | X))"""
        return self.cross_entropy - self.entropy

    @property
    def bound(self) -> Tensor:
        """The evidence lower bound on log p(G, Y_L | X), in nats if the reduction is "sum"."""
        return -(self.graph + self.kl + self.prior)

    def stacked(self) -> Tensor:
        """(number of terms, R), in the order of `TERM_NAMES`, without gradient."""
        return torch.stack([getattr(self, name).detach() for name in TERM_NAMES])


TERM_NAMES = tuple(field.name for field in fields(Terms))


class Weights(NamedTuple):
    """The weight of each term for each replica, (R,) each."""

    graph: Tensor
    kl: Tensor
    entropy: Tensor
    prior: Tensor
    eta: Tensor
    laplacian: Tensor

    def total(self, terms: Terms) -> Tensor:
        """(R,): graph + kl (CE - entropy H) + prior + eta supervised + laplacian smoothness."""
        kl = self.kl * (terms.cross_entropy - self.entropy * terms.entropy)
        loss = self.graph * terms.graph + kl + self.prior * terms.prior
        return loss + self.eta * terms.supervised + self.laplacian * terms.laplacian

    def select(self, keep: Tensor) -> Weights:
        return Weights(*(weight[keep] for weight in self))


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
    laplacian_weight: Scalar = number(0.0, "weight of smoothness along edges", low=0, per_replica=True)
    graph_labels: str = choice(
        "posterior", ("posterior", "prior"), "whose labels of unlabelled nodes explain the graph"
    )
    label_use: str = choice(
        "expected", ("expected", "plug-in"), "exact expectation, or soft labels put into the log-odds"
    )
    pairs: str = choice("sampled", ("sampled", "all"), "as many sampled non-edges as edges, or every non-edge")
    negatives: str = choice("non-edges", ("non-edges", "uniform"), "sample true non-edges, or any pair")
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
        values = (
            self.graph_weight,
            self.kl_weight,
            self.entropy_weight,
            self.prior_weight,
            self.eta,
            self.laplacian_weight,
        )
        return Weights(*(replicas.scalar(value).to(device, dtype) for value in values))

    def terms(self, model: GenerativeModel, inputs: Inputs, source: PairSource, noise: Noise) -> Terms:
        """Every term of the loss for each replica."""
        log_q = model.posterior.log_prob(inputs, noise)
        supervised = -self._reduce(_observed_log_prob(log_q, inputs))
        zero = torch.zeros_like(supervised)
        laplacian = self._smoothness(log_q, source)
        if model.likelihood is None or model.prior is None:
            return Terms(zero, zero, zero, zero, supervised, laplacian)
        log_p = model.prior.log_prob(inputs, noise)
        q = log_q.exp()
        return Terms(
            self._graph(
                model.likelihood, inputs, source, q if self.graph_labels == "posterior" else log_p.exp(), noise
            ),
            self._over_unlabelled(-q * log_p, inputs),
            self._over_unlabelled(-q * log_q, inputs),
            -self._reduce(_observed_log_prob(log_p, inputs)),
            supervised,
            laplacian,
        )

    def _graph(
        self, likelihood: GraphLikelihood, inputs: Inputs, source: PairSource, soft: Tensor, noise: Noise
    ) -> Tensor:
        labels = torch.where(inputs.labelled, inputs.observed, soft)
        if source.num_edges == 0:
            return labels.new_zeros(labels.shape[0])
        state = likelihood.node_state(inputs, noise)
        score = likelihood.expected_log_prob if self.label_use == "expected" else likelihood.plug_in_score
        edges = self._reduce(score(state, labels, source.edges))
        if source.num_non_edges == 0:
            return -edges
        non_edges, repeats = self._non_edges(source, noise)
        return -edges - repeats * self._reduce(score(state, labels, non_edges))

    def _non_edges(self, source: PairSource, noise: Noise) -> tuple[Pairs, float]:
        """Non-edges, and how many each stands for in a sum."""
        if self.pairs == "all":
            return source.all_non_edges(), 1.0
        sample = source.sample_uniform if self.negatives == "uniform" else source.sample_non_edges
        repeats = source.num_non_edges / source.num_edges if self.reduction == "sum" else 1.0
        return sample(noise, source.num_edges), repeats

    def _over_unlabelled(self, values: Tensor, inputs: Inputs) -> Tensor:
        """(R,) from (R, n, K): summed over classes and nodes of U. A mask costs less than picking out most rows."""
        size = inputs.unlabelled.numel() if self.reduction == "mean" else 1
        classes = values.shape[2] if self.class_mean else 1
        return torch.where(inputs.labelled, 0.0, values).sum((1, 2)) / (size * classes)

    def _smoothness(self, log_q: Tensor, source: PairSource) -> Tensor:
        """sum over edges of |q_i - q_j|^2, always recorded; without a weight it needs no gradient."""
        if source.num_edges == 0:
            return log_q.new_zeros(log_q.shape[0])
        q = (log_q if self._wants(self.laplacian_weight) else log_q.detach()).exp()
        norm, index = q.square().sum(2), source.edges.index
        return self._reduce(pair_sum(norm, norm, *index) - 2 * pair_dot(q, q, *index))

    def _reduce(self, values: Tensor) -> Tensor:
        """(R,) from (R, anything)."""
        return values.mean(1) if self.reduction == "mean" else values.sum(1)

    @staticmethod
    def _wants(weight: Scalar) -> bool:
        return any(weight) if isinstance(weight, Sequence) else bool(weight)


OBJECTIVES = ("elbo", "released", "laplacian")


def _observed_log_prob(log_prob: Tensor, inputs: Inputs) -> Tensor:
    """(R, |L|): the log-probability of each observed label."""
    rows = log_prob.index_select(1, inputs.train)
    labels = inputs.labels[inputs.train].view(1, -1, 1).expand(rows.shape[0], -1, 1)
    return rows.gather(2, labels).squeeze(2)
