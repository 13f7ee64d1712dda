"""Answers: from members and a graph to a calibrated mixture, also for isolated and for new nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from g3nn.base.threads import enough_for
from g3nn.estimator.members import Answers, Member, Network
from g3nn.estimator.panel import PanelEntry
from g3nn.graph.calibrate import Scaling, Validated, conformal_sets
from g3nn.graph.outcomes import Outcome
from g3nn.graph.task import NodeTask
from g3nn.model.generative import BOTH, POSTERIOR, PRIOR, SIMILAR
from g3nn.model.tabular.paths import Paths

_HALVES = 20
"""Random halves of the validation nodes. The weights are means over them, so that no few nodes decide."""
_STEPS = 20
"""A weight in one half is a multiple of about one over this."""
_SMALLEST = 0.03
"""Members below this weight are dropped."""
_STRENGTH, _ROUNDS = 5.0, 100
"""How many labels a prior of the weights is worth; and steps that find their mode."""
_HALVINGS, _FURTHEST, _FEWEST_TO_COMPARE = 20, 1.0, 20
"""How the certainty of predictions is compared: steps, the largest logarithm of a temperature, and nodes it takes."""


def member_weights(log_probs: np.ndarray, most: int = 8) -> np.ndarray:
    """(M,): the weights of M members in a mixture that sum to 1, most of them 0.

    log_probs: (M, m), log p of the labels of m validation nodes. In each of some random halves of the nodes, members
    are added greedily and with replacement to a mixture (Caruana et al., 2004). The other half says what such a choice
    is worth: if the best single member would be as good there, it answers alone.
    """
    members, nodes = log_probs.shape
    first = int(log_probs.mean(1).argmax())
    alone = np.eye(members)[first]
    if members == 1 or nodes < 4:
        return alone
    rng, densities = np.random.default_rng(0), np.exp(log_probs - log_probs.max(0))
    total, gain = np.zeros(members), 0.0
    for _ in range(_HALVES):
        order = rng.permutation(nodes)
        half, rest = order[: nodes // 2], order[nodes // 2 :]
        found = _greedy(densities[:, half])
        best = int(_log(densities[:, half]).mean(1).argmax())
        total += found
        gain += float((_log(found @ densities[:, rest]) - _log(densities[best, rest])).mean())
    if gain <= 0:
        return alone
    total[np.argsort(-total, kind="stable")[most:]] = 0.0
    total[total < _SMALLEST * total.sum()] = 0.0
    return total / total.sum()


def shrunk_weights(log_probs: np.ndarray, prior: np.ndarray, labels: float | None = None) -> np.ndarray:
    """(M,): the most probable weights of a mixture, which are Dirichlet(1 + _STRENGTH prior) beforehand, by EM. With
    few labels they stay close to the prior (M,). log_probs: as `member_weights` takes them. labels: how many
    of their columns are about different nodes, if not all are."""
    densities = np.exp(log_probs - log_probs.max(0))
    weights, each = prior, 1.0 if labels is None else labels / max(log_probs.shape[1], 1)
    for _ in range(_ROUNDS):
        shares = weights[:, None] * densities
        shares /= np.maximum(shares.sum(0), np.finfo(np.float64).tiny)
        weights = each * shares.sum(1) + _STRENGTH * prior
        weights = weights / weights.sum()
    weights[weights < _SMALLEST] = 0.0
    return np.asarray(weights / weights.sum())


def _greedy(densities: np.ndarray) -> np.ndarray:
    """(M,): the weights with the lowest loss on the way, for densities (M, m) of the labels."""
    mixture, counts = np.zeros(densities.shape[1]), np.zeros(len(densities))
    lowest, weights = np.inf, counts
    for step in range(1, _STEPS + 1):
        losses = -_log((mixture + densities) / step).mean(1)
        chosen = int(losses.argmin())
        mixture, counts = mixture + densities[chosen], counts + np.eye(len(counts))[chosen]
        if losses[chosen] < lowest:
            lowest, weights = losses[chosen], counts / step
    return weights


def _log(values: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(values, np.finfo(np.float64).tiny))


@dataclass(frozen=True, eq=False)
class Calibration:
    """What validation nodes taught: a scaling, and the sorted conformal scores of their labels.

    scored: (m,) the class that each score is about; None where labels are no classes, or an earlier version saved them.
    """

    scaling: Scaling = field(default_factory=Scaling)
    scores: np.ndarray = field(default_factory=lambda: np.zeros(0))
    scored: np.ndarray | None = None

    @classmethod
    def by(cls, outcome: Outcome, scaling: Scaling, answer: np.ndarray, labels: np.ndarray) -> Calibration:
        """With the conformal scores of the labels of nodes, by answers that are scaled here."""
        scaled = outcome.scaled(answer, scaling)
        labels = outcome.conformal_labels(scaled, labels)
        scores = outcome.conformal_scores(scaled, labels)
        order = scores.argsort(axis=0, kind="stable")
        return cls(scaling, np.take_along_axis(scores, order, 0), labels[order] if outcome.exclusive else None)

    @classmethod
    def fit(
        cls,
        outcome: Outcome,
        answer: np.ndarray,
        labels: np.ndarray,
        nodes: np.ndarray,
        tried: int = 1,
        known: np.ndarray | None = None,
    ) -> Calibration:
        """By answers and labels of `nodes`, of which some may count more than once in the scaling. tried: how many
        models were compared by these labels. known: all labels there are, if these say how frequent classes are."""
        scaling = outcome.fit_scaling(answer, labels, nodes)
        _, once, counts = np.unique(nodes, return_index=True, return_counts=True)
        scaling = outcome.with_doubt(scaling, Validated(answer[once], labels[once], counts, known), tried)
        return cls.by(outcome, scaling, answer[once], labels[once])


@dataclass(frozen=True, eq=False)
class Answerer:
    """A weighted mixture of members and its calibration. outcome: gives the form and the unit of the answers.

    calibrations: for nodes with edges ("linked"), for isolated nodes ("isolated") and, where that makes a difference,
    for new nodes with edges ("new") and for those of them whose own scores were inferred ("inferred").
    certainty: the temperatures at which all replicas together are as certain as those that calibrated, about nodes with
    edges and isolated ones; see `evened`.
    """

    members: tuple[Member, ...]
    outcome: Outcome
    device: torch.device
    calibrations: Mapping[str, Calibration]
    certainty: tuple[float, float] = (1.0, 1.0)

    @property
    def refined(self) -> bool:
        """Whether nodes that training knew have scores of their own."""
        return any(member.refined for member in self.members)

    @property
    def networks(self) -> list[Network]:
        """Those of the members that are networks, in the order of their weights."""
        return [member for member in self.members if isinstance(member, Network)]

    @classmethod
    def choose(
        cls,
        members: Sequence[Member],
        task: NodeTask,
        outcome: Outcome,
        device: torch.device,
        prior: np.ndarray | None = None,
    ) -> Answerer:
        """The members that have a weight by the validation nodes: with their edges, and again without. prior: (M,),
        their weights as long as labels do not contradict; None: labels alone decide."""
        without_edges = task.without_edges_of(task.val)
        with enough_for(task.extent), torch.no_grad():
            members = [_for_isolated(member, without_edges, outcome, device) for member in members]
            members = _weighted(members, task, without_edges, outcome, device, prior)
        return cls(tuple(members), outcome, device, {})

    def calibrated_by(
        self, nodes: np.ndarray, task: NodeTask, tried: int = 1, known: np.ndarray | None = None
    ) -> Answerer:
        """With calibrations by the labels of some nodes, (m,): with their edges, and again without; if nodes have
        scores of their own, also as if these were new. tried: how many models were compared by these labels. known: see
        `Calibration.fit`."""
        labels, without_edges = task.labels[nodes], task.without_edges_of(nodes)
        alone = self(without_edges).answer[nodes]
        isolated = Calibration.fit(self.outcome, alone, labels, nodes, tried, known)

        def calibration(answers: Answers, where: np.ndarray) -> Calibration:
            """By those of the nodes that are `where`."""
            parts = (answers.answer[nodes[where]], labels[where], nodes[where])
            return Calibration.fit(self.outcome, *parts, tried, known)

        # Where scores are inferred, what they are worth without is known by not inferring them.
        bare = replace(self, members=tuple(replace(one, infers=False) for one in self.members))
        linked = ~task.isolated[nodes]
        if not linked.any():
            return replace(bare, calibrations={"linked": isolated, "isolated": isolated})
        answerer, calibrations = self, {"linked": calibration(self(task), linked), "isolated": isolated}
        if self.refined:
            as_new = np.isin(np.arange(task.num_nodes), nodes)
            found = self(task, as_new)
            calibrations["new"] = calibration(bare(task, as_new), linked)
            if found.inferred is None or not found.inferred[nodes].any():
                answerer = bare
            else:
                calibrations["inferred"] = calibration(found, found.inferred[nodes])
        return replace(answerer, calibrations=calibrations)

    def of(self, members: Sequence[Member]) -> Answerer:
        """Some of the members alone, with weights that sum to 1 again. If none has a weight for isolated nodes, those
        for others count there."""
        if len(members) == len(self.members):
            return self
        for name in ("weight", "isolated_weight"):
            total = sum(getattr(one, name) for one in members)
            shares: list[Any] = [getattr(one, name) / total if total else one.weight for one in members]
            members = [replace(one, **{name: share}) for one, share in zip(members, shares, strict=True)]
        return replace(self, members=tuple(members))

    def marked(self, panel: Iterable[PanelEntry]) -> tuple[PanelEntry, ...]:
        """The entries of a panel with the weights that its candidates have here."""
        weights = {member.place: member.weight for member in self.members}
        return tuple(
            replace(entry, chosen=place in weights, weight=weights.get(place, 0.0)) for place, entry in enumerate(panel)
        )

    @property
    def held_back(self) -> np.ndarray | None:
        """(n,): nodes about which only a part of what some member learned is asked; None where all is always asked."""
        masks = [one.held_back for one in self.members if one.held_out is not None]
        return np.any(masks, axis=0) if masks else None

    def evened(self, task: NodeTask, judges: Sequence[int]) -> Answerer:
        """With the temperatures at which all replicas together are as certain as those that calibrated, on average over
        nodes without a label. judges: a node of each fold that calibrates; the replicas that answer for it are asked
        about all others too.

        The mean of several replicas is less certain than one of them; but the means of two members agree more often
        than single replicas do, and then their mixture is more certain. Calibration by single replicas knows neither.
        """
        rest = np.setdiff1d(np.arange(task.num_nodes), np.union1d(task.train, task.val))
        if not (self.outcome.exclusive and len(judges)) or len(rest) < _FEWEST_TO_COMPARE:
            return self

        def certainty(answer: np.ndarray) -> float:
            return float(np.exp(answer.max(1)).mean())

        def even(asked: NodeTask) -> float:
            nodes = rest[asked.isolated[rest] == (asked is not task)]
            if len(nodes) < _FEWEST_TO_COMPARE:
                return 1.0
            together = self(asked).answer[nodes]
            alone = [replace(self, members=tuple(one.asked_as(judge) for one in self.members)) for judge in judges]
            usual = np.mean([certainty(one(asked).answer[nodes]) for one in alone])
            low, high = -_FURTHEST, _FURTHEST
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                too_certain = certainty(self.outcome.scaled(together, Scaling(math.exp(middle)))) > usual
                low, high = (middle, high) if too_certain else (low, middle)
            return math.exp((low + high) / 2)

        return replace(self, certainty=(even(task), even(task.with_edges(np.zeros(task.num_edges, dtype=bool)))))

    def asked_by_all(self) -> Answerer:
        """See `Member.asked_by_all`. The calibrations are then those of all replicas together."""
        linked, isolated = self.certainty
        calibrations = {
            kind: replace(one, scaling=one.scaling.warmer(isolated if kind == "isolated" else linked))
            for kind, one in self.calibrations.items()
        }
        members = tuple(member.asked_by_all() for member in self.members)
        return replace(self, members=members, calibrations=calibrations, certainty=(1.0, 1.0))

    def as_asked_by_all(self, answers: Answers) -> Answers:
        """In the form that the calibrations of `asked_by_all` take."""
        answer, held_back = answers.answer.copy(), self.held_back
        for certainty, where in zip(self.certainty, (~answers.isolated, answers.isolated), strict=True):
            if held_back is not None and certainty != 1:
                nodes = held_back & where
                answer[nodes] = self.outcome.scaled(answer[nodes], Scaling(1 / certainty))
        return replace(answers, answer=answer)

    def within(self, nodes: np.ndarray, n: int) -> Answerer:
        """For a graph of n nodes, of which those that training knew are `nodes`."""
        for network in self.networks:
            network.model.posterior.renumber(torch.from_numpy(nodes), n)
        members = []
        for member in self.members:
            held_out, trust, around = member.held_out, member.trust, member.neighbourhood
            if held_out is not None:
                held_out = np.zeros((len(held_out), n), dtype=bool)
                held_out[:, nodes] = member.held_out
            around = around.within(nodes) if isinstance(around, Paths) else around
            trust = None if trust is None else trust.within(nodes)
            members.append(replace(member, held_out=held_out, trust=trust, neighbourhood=around))
        return replace(self, members=tuple(members))

    def __call__(self, task: NodeTask, new: np.ndarray | None = None) -> Answers:
        """For all nodes of a graph. A posterior that looks at labels sees those of the task's training nodes.

        new: (n,) nodes that training did not know. Nothing was learned for each of them; neither they nor isolated
        nodes have scores of their own, unless those can be inferred.
        """
        with enough_for(task.extent), torch.no_grad():
            parts = [member.answers(task, new, self.device, self.outcome) for member in self.members]
        return _mixed(parts, self.members, self.outcome)

    def shared_out(self, answers: Answers) -> Iterator[tuple[np.ndarray, Calibration]]:
        """Masks (n,) that divide the nodes, with the calibration that holds there."""
        left = ~answers.isolated
        kinds = {"inferred": answers.inferred, "new": answers.new, "linked": left, "isolated": answers.isolated}
        for kind, nodes in kinds.items():
            if nodes is not None and kind in self.calibrations:
                yield nodes if kind == "isolated" else left & nodes, self.calibrations[kind]
                left = left & ~nodes

    def calibrated(self, answers: Answers) -> np.ndarray:
        """(n, width)"""
        scaled = np.empty(answers.answer.shape)
        for nodes, calibration in self.shared_out(answers):
            scaled[nodes] = self.outcome.scaled(answers.answer[nodes], calibration.scaling)
        return scaled

    def conformal(self, answers: Answers, alpha: float, by_class: bool = False) -> np.ndarray:
        """(n, K) booleans or (n, T, 2): what cannot be excluded at level alpha, by nodes like the one asked about.
        by_class: at this level for each class by itself."""
        calibrated = self.calibrated(answers)

        def region(answer: np.ndarray, one: Calibration) -> np.ndarray:
            if by_class:
                return conformal_sets(self.outcome.moments(answer)[0], one.scores, alpha, one.scored)
            return self.outcome.conformal(answer, one.scores, alpha)

        parts = [(nodes, region(calibrated[nodes], one)) for nodes, one in self.shared_out(answers)]
        regions = np.empty((len(calibrated), *parts[0][1].shape[1:]), dtype=parts[0][1].dtype)
        for nodes, part in parts:
            regions[nodes] = part
        return regions


def _mixed(parts: Sequence[Answers], members: Sequence[Member], outcome: Outcome) -> Answers:
    """The mixture of what members answer, with other weights for isolated nodes."""
    if len(parts) == 1:
        return parts[0]
    isolated = parts[0].isolated
    answer = np.empty_like(parts[0].answer)
    for nodes, weights in (
        (~isolated, [member.weight for member in members]),
        (isolated, [member.isolated_weight for member in members]),
    ):
        heard = [(part.answer[nodes], weight) for part, weight in zip(parts, weights, strict=True) if weight]
        answer[nodes] = outcome.weighted([one for one, _ in heard], np.array([weight for _, weight in heard]))

    def either(name: str) -> np.ndarray | None:
        masks = [mask for mask in (getattr(part, name) for part in parts) if mask is not None]
        return np.any(masks, axis=0) if masks else None

    return Answers(answer, isolated, either("new"), either("inferred"))


def _for_isolated(member: Member, without_edges: NodeTask, outcome: Outcome, device: torch.device) -> Member:
    """For isolated nodes, the part of the model answers that has the lowest loss on validation nodes without edges."""
    if not isinstance(member, Network) or member.learns_when_asked:
        return member
    parts = (POSTERIOR, SIMILAR) if member.model.prior is None else (PRIOR, POSTERIOR, BOTH, SIMILAR)
    val, losses = without_edges.val, dict[str, float]()
    labels = without_edges.labels[val]
    for part in parts:
        asked = replace(member, isolated_answer=part)
        answer = asked.answers(without_edges, None, device, outcome).answer[val]
        scaling = outcome.fit_scaling(answer, labels, val)
        losses[part], _ = outcome.loss_and_score(outcome.scaled(answer, scaling), labels)
    return replace(member, isolated_answer=min(losses, key=lambda part: losses[part]))


def _stopping_cost(member: Member, nodes: int) -> float:
    """By how much, in nats, each of these validation nodes is too favourable to a network: they chose when training of
    its replicas ended, each by its part of the nodes, and such a number is worth half the logarithm of their count."""
    if not isinstance(member, Network) or not member.stops_early:
        return 0.0
    each = max(nodes / (1 if member.held_out is None else len(member.held_out)), 1.0)
    return 0.5 * math.log(each) / each


def _weighted(
    members: Sequence[Member],
    task: NodeTask,
    without_edges: NodeTask,
    outcome: Outcome,
    device: torch.device,
    prior: np.ndarray | None,
) -> list[Member]:
    """With temperatures and weights; members without any weight are dropped."""
    if len(members) == 1:
        return [replace(members[0], weight=1.0, isolated_weight=1.0)]
    val, labels = task.val, task.labels[task.val]
    answers = [member.answers(task, None, device, outcome).answer[val] for member in members]
    temperatures = [outcome.temperature(answer, labels) for answer in answers]
    members = [replace(one, temperature=t) for one, t in zip(members, temperatures, strict=True)]
    costs = [_stopping_cost(member, len(np.unique(val))) for member in members]

    def weights(answers: Sequence[np.ndarray]) -> list[float]:
        scaled = [outcome.scaled(one, Scaling(t)) for one, t in zip(answers, temperatures, strict=True)]
        log_probs = np.stack([outcome.label_log_prob(one, labels) for one in scaled])
        log_probs -= np.array(costs)[:, None]
        found = member_weights(log_probs) if prior is None else shrunk_weights(log_probs, prior, len(np.unique(val)))
        return list(found.tolist())

    alone = [
        replace(member, temperature=1.0).answers(without_edges, None, device, outcome).answer[val] for member in members
    ]
    shares = zip(members, weights(answers), weights(alone), strict=True)
    found = [replace(member, weight=weight, isolated_weight=isolated) for member, weight, isolated in shares]
    return sorted((one for one in found if one.weight or one.isolated_weight), key=lambda one: -one.weight)
