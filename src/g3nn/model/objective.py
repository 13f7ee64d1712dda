"""The training objective: the paper's evidence lower bound, the variant in the authors' code, and plain supervision.

One formula with named terms covers them all. It is pure: a model, a task and noise go in, named terms come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from g3nn.base.errors import check_name
from g3nn.base.options import choice, flag, integer, number
from g3nn.kernels import NodeSums, pair_dot, pair_sum
from g3nn.model.channels import Emission
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import GraphLikelihood, Pairs, among_few
from g3nn.model.pairs import MISSING, OBSERVED, DrawsPairs
from g3nn.model.replicas import Noise, Replicas, Scalar


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of the loss before weighting, each (R,). All are to be minimised except `entropy`."""

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
    """- log p(X) if the prior models the features too, else zero"""
    own: Tensor
    """an additional loss of the posterior; zero for most"""
    laplacian: Tensor
    """sum over edges of |q_i - q_j|^2; zero without a weight"""
    consistency: Tensor
    """distance between samples of q and their sharpened mean; zero without a weight"""
    distillation: Tensor
    """- E_q log p(Y_U | X) with a gradient for the prior only; zero without a weight"""
    channels: Tensor
    """- log p of what is learned about channels, up to a constant; zero without such channels"""

    @property
    def kl(self) -> Tensor:
        """KL(q(Y_U | X, G) || p(Y_U | X))"""
        return self.cross_entropy - self.entropy

    @property
    def bound(self) -> Tensor:
        """The evidence lower bound on log p(G, Y_L | X), in nats if the reduction is "sum".

        With a model of the features it bounds log p(G, Y_L, X). With channels G and Y_L are what was seen, and it
        includes the log-probability of what is learned about them.
        """
        return -(self.graph + self.kl + self.prior + self.features + self.channels)

    @cached_property
    def stacked(self) -> Tensor:
        """(number of terms, R), in the order of `TERM_NAMES`."""
        return torch.stack([getattr(self, name) for name in TERM_NAMES])


TERM_NAMES = tuple(field.name for field in fields(Terms))
_FROM_THE_START = ("prior", "supervised", "features", "own", "channels")
"""The terms with full weight from the first epoch; the others depend on answers, which have to be learned first."""

_ON_DEMAND = ("laplacian", "consistency", "distillation")
"""The terms that are computed only if some replica gives them a weight."""

_SPARED = 16
"""An edge and a non-edge have four ends. If these are less than a quarter of the nodes, the others are left out."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The weight of each term.

    table: (number of terms, R). rises, on_demand: (number of terms, 1) booleans, the terms whose weights a warm-up
    raises, and those that are computed only on demand.
    """

    table: Tensor
    rises: Tensor
    on_demand: Tensor

    def total(self, terms: Terms, ramp: float | Tensor = 1.0) -> Tensor:
        """(R,): graph + kl (CE - entropy H) + prior + eta supervised + features + own + terms on demand, weighted.

        ramp: an additional factor for the terms that rise.
        """
        return self.weighed(terms.stacked, ramp)

    def weighed(self, values: Tensor, ramp: float | Tensor = 1.0) -> Tensor:
        """(..., R): the same for values (..., number of terms, R), in the order of `TERM_NAMES`."""
        weighted = self.table * values
        if isinstance(ramp, Tensor) or ramp != 1.0:
            weighted = torch.where(self.rises, ramp * weighted, weighted)
        return weighted.sum(-2)

    def recorded(self, terms: Terms) -> Tensor:
        """(number of terms, R): the terms without gradient. Terms on demand are zero for replicas that give them no
        weight, so that a record does not depend on the other replicas of the stack."""
        values = terms.stacked.detach()
        return torch.where(self.on_demand, values * (self.table != 0), values)

    def select(self, keep: Tensor) -> Weights:
        return replace(self, table=self.table[:, keep])


@dataclass(frozen=True)
class Objective:
    """loss = - E_q log p(G|X,Y) + KL(q(Y_U|X,G) || p(Y_U|X)) - log p(Y_L|X) - eta log q(Y_L|X,G)

    with a weight for every term. Nodes in L enter the graph term with their observed labels. If labels or edges came
    through a channel, it takes the place of what was observed: log p of it, and beliefs about what is true.
    """

    eta: Scalar = number(1.0, "weight of the supervised term", low=0, per_replica=True)
    graph_weight: Scalar = number(1.0, "weight of the graph likelihood", low=0, per_replica=True)
    kl_weight: Scalar = number(1.0, "weight of KL(q || prior)", low=0, per_replica=True)
    entropy_weight: Scalar = number(1.0, "weight of H(q) inside the KL; 1 is the true KL", per_replica=True)
    prior_weight: Scalar = number(1.0, "weight of the prior's loss on labelled nodes", low=0, per_replica=True)
    feature_weight: Scalar = number(1.0, "weight of log p(X), if the prior models it", low=0, per_replica=True)
    laplacian_weight: Scalar = number(0.0, "weight of squared differences of q along edges", low=0, per_replica=True)
    consistency_weight: Scalar = number(
        0.0, "weight of the distance between samples of q and their sharpened mean", low=0, per_replica=True
    )
    distillation_weight: Scalar = number(
        0.0,
        "weight of an additional cross-entropy - E_q log p(Y_U), with a gradient for the prior only",
        low=0,
        per_replica=True,
    )
    samples: int = integer(1, "number of noisy passes through q in each step; their terms are averaged", low=1, high=16)
    sharpening: float = number(0.5, "temperature that sharpens the mean of the samples", low=0.05, high=1)
    warm_up: int = integer(
        0, "number of epochs in which the weights of the terms without observed labels rise linearly", low=0
    )
    graph_labels: str = choice(
        "posterior", ("posterior", "prior"), "whether q or the prior labels the unlabelled nodes in the graph term"
    )
    label_use: str = choice(
        "expected", ("expected", "plug-in"), "take the exact expectation, or put soft labels into the log-odds"
    )
    pairs: str = choice("sampled", ("sampled", "all"), "sample as many non-edges as edges, or use every non-edge")
    edges_per_step: int = integer(
        0, "number of edges, and of non-edges, that the graph term samples in each step; 0 for all edges", low=0
    )
    negatives: str = choice(
        "non-edges",
        ("non-edges", "uniform", "degrees"),
        "sample true non-edges, any pairs, or non-edges in proportion to degree with importance weights",
    )
    isolated_nodes: str = choice(
        OBSERVED,
        (OBSERVED, MISSING),
        "isolated nodes truly have no edges, or their edges are missing and the graph term ignores them",
    )
    reduction: str = choice("mean", ("mean", "sum"), "means over pairs and nodes, or sums (the bound in nats)")
    class_mean: bool = flag(False, "divide cross-entropy and entropy by the number of classes")

    @classmethod
    def elbo(cls, **changes: Any) -> Objective:
        """The paper's objective as written."""
        return cls(**changes)

    @classmethod
    def released(cls, **changes: Any) -> Objective:
        """What the authors' code computes. Unlike the paper, it puts the prior's soft labels into the graph term,
        minimises H(q) instead of maximising it, averages node terms over classes too, and takes any pair as a non-edge.
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

    @property
    def needs_pairs(self) -> bool:
        """Whether a model without a likelihood is trained on edges too."""
        return self._wants(self.laplacian_weight)

    def weights(
        self, replicas: Replicas, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> Weights:
        def each(weight: Scalar) -> Tensor:
            return replicas.scalar(weight).to(device, dtype)

        kl = each(self.kl_weight)
        weights = {
            "graph": each(self.graph_weight),
            "cross_entropy": kl,
            "entropy": -kl * each(self.entropy_weight),
            "prior": each(self.prior_weight),
            "supervised": each(self.eta),
            "features": each(self.feature_weight),
            "own": each(1.0),
            "laplacian": each(self.laplacian_weight),
            "consistency": each(self.consistency_weight),
            "distillation": each(self.distillation_weight),
            "channels": each(1.0),
        }
        table = torch.stack([weights[name] for name in TERM_NAMES])
        rises = torch.tensor([[name not in _FROM_THE_START] for name in TERM_NAMES], device=device)
        on_demand = torch.tensor([[name in _ON_DEMAND] for name in TERM_NAMES], device=device)
        return Weights(table, rises, on_demand)

    def terms(self, model: GenerativeModel, inputs: Inputs, source: DrawsPairs, noise: Noise) -> Terms:
        """Every term of the loss, for each replica."""
        log_qs = [model.posterior.log_prob(inputs.heard, noise) for _ in range(self.samples)]
        zero = log_qs[0].new_zeros(log_qs[0].shape[0])
        own = [model.posterior.own_loss(log_q, inputs, noise) for log_q in log_qs]
        shared = {
            "own": _mean([zero if loss is None else loss for loss in own]),
            "laplacian": self._smoothness(log_qs, inputs, source) if self._wants(self.laplacian_weight) else zero,
            "consistency": self._consistency(log_qs, inputs) if self._wants(self.consistency_weight) else zero,
            "channels": self._learned_channels(model, inputs, zero),
        }
        emission = model.emission(inputs.outcome)
        if model.likelihood is None or model.prior is None:
            observed = [emission.supervised(log_q, inputs.targets) for log_q in log_qs]
            supervised = -_mean([self._over_labels(log_prob, inputs) for log_prob in observed])
            no_joint = dict.fromkeys(("graph", "cross_entropy", "entropy", "prior", "features", "distillation"), zero)
            return Terms(**no_joint, **shared, supervised=supervised)
        log_p, log_evidence = model.prior.log_joint(inputs, noise)
        of_posterior = self.graph_labels == "posterior"
        samples = [self._node_terms(emission, log_q, log_p, inputs, of_posterior) for log_q in log_qs]
        beliefs = [labels for _, labels in samples]
        beliefs = [_mean(beliefs)] if inputs.outcome.pooled else beliefs
        graph = _mean([self._graph(model, inputs, source, labels, noise) for labels in beliefs])
        sums = NodeSums(*_mean([sums for sums, _ in samples]).unbind(1))
        if inputs.targets.weight is not None:
            sums = self._weighted_labels(emission, sums, log_qs, log_p, inputs)
        return Terms(
            **sums._asdict(),
            **shared,
            graph=graph,
            features=zero if log_evidence is None else -self._reduce(log_evidence),
            distillation=self._lesson(log_qs, log_p, inputs) if self._wants(self.distillation_weight) else zero,
        )

    def _learned_channels(self, model: GenerativeModel, inputs: Inputs, zero: Tensor) -> Tensor:
        """- log p of what is learned about channels. In a mean over L it counts once, in all batches together."""
        channels = (channel for channel in (model.label_channel, model.edge_channel) if channel is not None)
        learned = [log_prior for channel in channels if (log_prior := channel.log_prior()) is not None]
        labels = inputs.repeats[0] * inputs.train.numel() if self.reduction == "mean" else 1.0
        return -torch.stack(learned).sum(0) / labels if learned else zero

    def _node_terms(
        self, emission: Emission, log_q: Tensor, log_p: Tensor, inputs: Inputs, of_posterior: bool
    ) -> tuple[Tensor, Tensor]:
        """The sums (R, 4) over the nodes that count, and the beliefs of all."""
        how = (of_posterior, self._shares(inputs))
        sums, beliefs = emission.node_terms(log_q, log_p, inputs.targets, *how)
        if inputs.counted is not None:
            some, targets = (slice(None), slice(inputs.counted)), inputs.targets.first(inputs.counted)
            sums, _ = emission.node_terms(log_q[some], log_p[some], targets, *how)
        return sums, beliefs

    def _weighted_labels(
        self, emission: Emission, sums: NodeSums, log_qs: list[Tensor], log_p: Tensor, inputs: Inputs
    ) -> NodeSums:
        """The terms of observed labels, in which nodes count as often as their weights say."""
        targets = inputs.targets
        supervised = [self._over_labels(emission.supervised(log_q, targets), inputs) for log_q in log_qs]
        prior = [self._over_labels(emission.observed_prior(log_q, log_p, targets), inputs) for log_q in log_qs]
        return sums._replace(supervised=-_mean(supervised), prior=-_mean(prior))

    def _over_labels(self, values: Tensor, inputs: Inputs) -> Tensor:
        """(R,): mean or sum over the training nodes of values (R, |L|)."""
        weight = inputs.targets.weight
        if self.reduction == "mean":
            return values.mean(1) if weight is None else (values * (weight / weight.sum())).sum(1)
        return inputs.repeats[0] * (values if weight is None else values * weight).sum(1)

    def _shares(self, inputs: Inputs) -> tuple[float, float]:
        """The weight of one node in the sums over L and over U."""
        classes = inputs.outcome.columns if self.class_mean else 1
        if self.reduction == "sum":
            return inputs.repeats[0], inputs.repeats[1] / classes
        return 1.0 / inputs.train.numel(), 1.0 / (max(inputs.unlabelled.numel(), 1) * classes)

    def _graph(
        self, model: GenerativeModel, inputs: Inputs, source: DrawsPairs, labels: Tensor, noise: Noise
    ) -> Tensor:
        likelihood, channel = model.likelihood, model.edge_channel
        assert likelihood is not None
        if source.num_edges == 0:
            return labels.new_zeros(labels.shape[0])
        how = "all" if self.pairs == "all" else self.negatives
        few = how != "all" and 0 < _SPARED * labels.shape[0] * self.edges_per_step < inputs.n
        if not few:
            state, labels = likelihood.node_state(inputs, noise), _values(likelihood, labels, noise)
        drawn = [source.observed(noise, self.edges_per_step)]
        if source.num_non_edges > 0:
            drawn.append(source.absent(noise, self.edges_per_step, how))
        if few:
            nodes, pairs = among_few([pairs for pairs, _ in drawn])
            drawn = [(some, repeats) for some, (_, repeats) in zip(pairs, drawn, strict=True)]
            state = likelihood.state_of(inputs, noise, nodes)
            labels = _values(likelihood, labels[:, nodes], noise)
        score = likelihood.expected_log_prob if self.label_use == "expected" else likelihood.plug_in_score
        if channel is not None:
            score = partial(channel.expected_log_prob, likelihood)
        found = [self._reduce(_weighted(score(state, labels, pairs), pairs)) for pairs, _ in drawn]
        if self.reduction != "mean":
            found = [repeats * total for total, (_, repeats) in zip(found, drawn, strict=True)]
        return -torch.stack(found).sum(0)

    def _smoothness(self, log_qs: list[Tensor], inputs: Inputs, source: DrawsPairs) -> Tensor:
        """sum over edges of |q_i - q_j|^2."""
        q = _mean([inputs.outcome.mean(log_q) for log_q in log_qs])
        if source.num_edges == 0:
            return q.new_zeros(q.shape[0])
        norm, index = q.square().sum(2), source.edges.index
        distance = pair_sum(norm, norm, *index) - 2 * pair_dot(q, q, *index)
        return self._reduce(_weighted(distance, source.edges))

    def _consistency(self, log_qs: list[Tensor], inputs: Inputs) -> Tensor:
        """|q_s - t|^2, averaged over samples s. The target t, their mean to the power 1 / T and normalised, gets no
        gradient."""
        samples = [inputs.outcome.mean(log_q) for log_q in log_qs]
        target = inputs.outcome.sharpened(_mean(samples).detach(), self.sharpening)
        return _mean([self._reduce((q - target).square().sum(2)) for q in samples])

    def _lesson(self, log_qs: list[Tensor], log_p: Tensor, inputs: Inputs) -> Tensor:
        """- E_q log p over U, without a gradient for q."""
        samples = [self._node_terms(inputs.outcome, log_q.detach(), log_p, inputs, True) for log_q in log_qs]
        return _mean([NodeSums(*sums.unbind(1)).cross_entropy for sums, _ in samples])

    def _reduce(self, values: Tensor) -> Tensor:
        """(R,): mean or sum over the second dimension."""
        return values.mean(1) if self.reduction == "mean" else values.sum(1)

    @staticmethod
    def _wants(weight: Scalar) -> bool:
        return any(weight) if isinstance(weight, Sequence) else bool(weight)


OBJECTIVES = ("elbo", "released", "laplacian")


def _mean(values: list[Tensor]) -> Tensor:
    return values[0] if len(values) == 1 else torch.stack(values).mean(0)


def _weighted(scores: Tensor, pairs: Pairs) -> Tensor:
    """(R, P): each score times the weight of its pair."""
    return scores if pairs.weight is None else scores * pairs.weight


def _values(likelihood: GraphLikelihood, beliefs: Tensor, noise: Noise) -> Tensor:
    """Beliefs, or if a likelihood wants samples (R, n, 2T): values drawn from beliefs (R, n, 2T), mean and variance,
    followed by a variance of zero."""
    if likelihood.expectation != "samples":
        return beliefs
    mean, variance = beliefs.chunk(2, dim=2)
    values = mean + variance.sqrt() * noise.normal(mean)
    return torch.cat([values, torch.zeros_like(values)], dim=2)
