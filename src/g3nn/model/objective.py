"""The training objective: the paper's evidence lower bound, the variant in the authors' code, and plain supervision.

One formula with named terms covers them all. It is pure: a model, a task and noise go in, named terms come out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from g3nn.base.errors import check_name
from g3nn.base.options import choice, flag, integer, number
from g3nn.kernels import NodeSums
from g3nn.model.channels import EdgeChannel, Emission
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import among_few
from g3nn.model.pairs import MISSING, OBSERVED, DrawsPairs, OfType, drawn_pairs, of_types
from g3nn.model.replicas import Noise, Replicas, Scalar
from g3nn.model.terms import TERM_NAMES, Terms, Weights, mean_of

_SPARED = 16
"""An edge and a non-edge have four ends. If these are less than a quarter of the nodes, the others are left out."""

_LEAST = 1e-30
"""The share of a class is taken to be at least this much."""


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
    evenness_weight: Scalar = number(
        0.0, "weight of KL(mean of q || all classes alike), which keeps classes from vanishing", low=0, per_replica=True
    )
    samples: int = integer(1, "number of noisy passes through q in each step; their terms are averaged", low=1, high=16)
    sharpening: float = number(0.5, "temperature that sharpens the mean of the samples", low=0.05, high=1)
    balanced: bool = flag(False, "sharpening leaves each class about as frequent as it was")
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
    def elbo(cls, **changes: object) -> Objective:
        """The paper's objective as written."""
        return cls._with({}, changes)

    @classmethod
    def released(cls, **changes: object) -> Objective:
        """What the authors' code computes. Unlike the paper, it puts the prior's soft labels into the graph term,
        minimises H(q) instead of maximising it, averages node terms over classes too, and takes any pair as a non-edge.
        """
        labels = {"graph_labels": "prior", "label_use": "plug-in", "negatives": "uniform"}
        return cls._with({**labels, "entropy_weight": -1.0, "class_mean": True}, changes)

    @classmethod
    def laplacian(cls, **changes: object) -> Objective:
        """Graph-based regularisation: supervised loss + weight * sum over edges of |q_i - q_j|^2."""
        no_joint = {"graph_weight": 0.0, "kl_weight": 0.0, "prior_weight": 0.0}
        return cls._with({**no_joint, "laplacian_weight": 1.0}, changes)

    @classmethod
    def _with(cls, preset: Mapping[str, Any], changes: Mapping[str, Any]) -> Objective:
        return cls(**{**preset, **changes})

    @classmethod
    def named(cls, name: str, **changes: object) -> Objective:
        """One of `OBJECTIVES`."""
        check_name("objective", name, OBJECTIVES)
        return getattr(cls, name)(**changes)

    @property
    def beyond_labels(self) -> bool:
        """Whether a model without a likelihood is trained on more than labelled nodes: on edges, or on all nodes."""
        return bool(np.any(self.laplacian_weight) or np.any(self.evenness_weight))

    def weights(
        self, replicas: Replicas, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> Weights:
        def each(weight: Scalar) -> Tensor:
            return replicas.scalar(weight).to(device, dtype)

        kl = each(self.kl_weight)
        return Weights.of(
            graph=each(self.graph_weight),
            cross_entropy=kl,
            entropy=-kl * each(self.entropy_weight),
            prior=each(self.prior_weight),
            supervised=each(self.eta),
            features=each(self.feature_weight),
            own=each(1.0),
            laplacian=each(self.laplacian_weight),
            consistency=each(self.consistency_weight),
            distillation=each(self.distillation_weight),
            channels=each(1.0),
            evenness=each(self.evenness_weight),
        )

    def terms(self, model: GenerativeModel, inputs: Inputs, source: DrawsPairs, noise: Noise) -> Terms:
        """Every term of the loss, for each replica."""
        log_qs = [model.with_marks(model.posterior.log_prob(inputs.heard, noise), inputs) for _ in range(self.samples)]
        zero = log_qs[0].new_zeros(log_qs[0].shape[0])
        terms = dict.fromkeys(TERM_NAMES, zero)
        own = [model.posterior.own_loss(log_q, inputs, noise) for log_q in log_qs]
        terms["own"] = mean_of([zero if loss is None else loss for loss in own])
        if np.any(self.laplacian_weight) and source.num_edges:
            q = mean_of([inputs.outcome.mean(log_q) for log_q in log_qs])
            terms["laplacian"] = self._reduce(source.edges.weighted(source.edges.squared_distance(q)))
        if np.any(self.consistency_weight):
            terms["consistency"] = self._consistency(log_qs, inputs)
        if np.any(self.evenness_weight):
            share = mean_of([inputs.outcome.mean(log_q)[:, : inputs.counted].mean(1) for log_q in log_qs])
            terms["evenness"] = (share * (share.clamp_min(_LEAST).log() + math.log(share.shape[1]))).sum(1)
        if learned := [prior for channel in model.channels if (prior := channel.log_prior()) is not None]:
            # In a mean over L it counts once, in all batches together.
            labels = inputs.repeats[0] * inputs.train.numel() if self.reduction == "mean" else 1.0
            terms["channels"] = -torch.stack(learned).sum(0) / labels
        if model.likelihood is None or model.prior is None:
            emission = model.emission(inputs.outcome)
            supervised = [self._over_labels(emission.supervised, inputs, log_q) for log_q in log_qs]
            return Terms(**terms | {"supervised": -mean_of(supervised)})
        return Terms(**terms | self._joint_terms(model, log_qs, inputs, source, noise))

    def _joint_terms(
        self, model: GenerativeModel, log_qs: list[Tensor], inputs: Inputs, source: DrawsPairs, noise: Noise
    ) -> dict[str, Tensor]:
        """The terms in which the label prior and the graph likelihood take part."""
        assert model.prior is not None
        log_p, log_evidence = model.prior.log_joint(inputs, noise)
        emission, of_posterior = model.emission(inputs.outcome), self.graph_labels == "posterior"
        of_nodes = partial(self._node_terms, emission, of_posterior)
        samples = [inputs.for_each(of_nodes, log_q, log_p) for log_q in log_qs]
        beliefs = [labels for _, labels in samples]
        beliefs = [mean_of(beliefs)] if inputs.outcome.pooled else beliefs
        parts = of_types(model.likelihood, source, inputs, self.reduction == "mean")
        terms = {"graph": mean_of([self._graph(model, parts, labels, noise) for labels in beliefs])}
        if model.marked and inputs.marks is not None:
            rows = inputs.marks.rows if self.reduction == "mean" else 1
            explained = mean_of([inputs.marks.expected_log_prob(labels) for labels in beliefs])
            terms["graph"] = terms["graph"] - explained / rows
        terms |= NodeSums(*mean_of([sums for sums, _ in samples]).unbind(1))._asdict()
        if inputs.labels_of_each[0].targets.weight is not None:
            supervised = [self._over_labels(emission.supervised, inputs, log_q) for log_q in log_qs]
            prior = [self._over_labels(emission.observed_prior, inputs, log_q, log_p) for log_q in log_qs]
            terms |= {"supervised": -mean_of(supervised), "prior": -mean_of(prior)}
        if log_evidence is not None:
            terms["features"] = -self._reduce(log_evidence)
        if np.any(self.distillation_weight):
            of_nodes = partial(self._node_terms, inputs.outcome, True)
            taught = [inputs.for_each(of_nodes, q.detach(), log_p)[0] for q in log_qs]
            terms["distillation"] = mean_of([NodeSums(*sums.unbind(1)).cross_entropy for sums in taught])
        return terms

    def _node_terms(
        self, emission: Emission, of_posterior: bool, inputs: Inputs, log_q: Tensor, log_p: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The sums (R, 4) over the nodes that count, and the beliefs of all."""
        classes = inputs.outcome.columns if self.class_mean else 1
        shares = inputs.repeats[0], inputs.repeats[1] / classes
        if self.reduction == "mean":
            shares = 1.0 / max(inputs.train.numel(), 1), 1.0 / (max(inputs.unlabelled.numel(), 1) * classes)
        sums, beliefs = emission.node_terms(log_q, log_p, inputs.targets, of_posterior, shares)
        if inputs.counted is not None:
            some, targets = (slice(None), slice(inputs.counted)), inputs.targets.first(inputs.counted)
            sums, _ = emission.node_terms(log_q[some], log_p[some], targets, of_posterior, shares)
        return sums, beliefs

    def _over_labels(self, log_prob: Callable[..., Tensor], inputs: Inputs, *answers: Tensor) -> Tensor:
        """(R,): mean or sum over the training nodes of what answers say about their labels, (R, |L|)."""

        def own(inputs: Inputs, *answers: Tensor) -> tuple[Tensor]:
            values, weight = log_prob(*answers, inputs.targets), inputs.targets.weight
            if self.reduction == "mean":
                return (values.mean(1) if weight is None else (values * (weight / weight.sum())).sum(1),)
            return (inputs.repeats[0] * (values if weight is None else values * weight).sum(1),)

        return inputs.for_each(own, *answers)[0]

    def _graph(self, model: GenerativeModel, parts: list[OfType], labels: Tensor, noise: Noise) -> Tensor:
        """(R,): minus the expected log-probability of the edges of all types."""
        found = [one.share * self._edges(one, model.edge_channel, labels, noise) for one in parts]
        return found[0] if len(found) == 1 else torch.stack(found).sum(0)

    def _edges(self, part: OfType, channel: EdgeChannel | None, labels: Tensor, noise: Noise) -> Tensor:
        likelihood, source, inputs, _ = part
        if source.num_edges == 0:
            return labels.new_zeros(labels.shape[0])
        how = "all" if self.pairs == "all" else self.negatives
        few = how != "all" and 0 < _SPARED * labels.shape[0] * self.edges_per_step < inputs.n
        if not few:
            state, labels = likelihood.node_state(inputs, noise), likelihood.values(labels, noise)
        drawn = drawn_pairs(source, noise, self.edges_per_step, how)
        if few:
            nodes, drawn = among_few(drawn)
            state, labels = likelihood.state_of(inputs, noise, nodes), likelihood.values(labels[:, nodes], noise)
        score = likelihood.expected_log_prob if self.label_use == "expected" else likelihood.plug_in_score
        if channel is not None:
            score = partial(channel.expected_log_prob, likelihood)
        found = [pairs.weighted(score(state, labels, pairs)) for pairs in drawn]
        if self.reduction == "mean":
            return -torch.stack([values.mean(1) for values in found]).sum(0)
        return -torch.stack([pairs.repeats * values.sum(1) for pairs, values in zip(drawn, found, strict=True)]).sum(0)

    def _consistency(self, log_qs: list[Tensor], inputs: Inputs) -> Tensor:
        """|q_s - t|^2, averaged over samples s. The target t, their mean to the power 1 / T and normalised, gets no
        gradient."""
        samples = [inputs.outcome.mean(log_q) for log_q in log_qs]
        target = inputs.outcome.sharpened(mean_of(samples).detach(), self.sharpening, self.balanced)
        return mean_of([self._reduce((q - target).square().sum(2)) for q in samples])

    def _reduce(self, values: Tensor) -> Tensor:
        """(R,): mean or sum over the second dimension."""
        return values.mean(1) if self.reduction == "mean" else values.sum(1)


OBJECTIVES = ("elbo", "released", "laplacian")
