"""What the attacker attacks: the answers of networks as differentiable functions of a graph whose edges may be there in
part. Their parameters were trained by the library, and stay as they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from adaptive_attack_trust import PartGraph, SoftTrust, chance_pairs
from torch import Tensor

from g3nn.estimator.panel import panel_of
from g3nn.graph.outcomes.labels import without_labels_of
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import FeatureTransform
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors.appnp import APPNP
from g3nn.model.posteriors.gcn import GCN
from g3nn.queries import edge_trust
from g3nn.queries.edge_trust import SHARES, EdgeTrust
from g3nn.queries.genuine import Evidence
from g3nn.training import FitResult
from g3nn.training.plan import Plan

EPOCHS, REPLICAS = 200, 2
"""The attacker's networks train on the training labels alone, and for a fixed time: it has no others to validate on."""

_EXACT = 1e-6
"""The `SoftTrust.floor` where edges are there or not."""


class Answer(ABC):
    """A victim as the attacker imagines it. `learn` trains its networks on a graph; each call adds to those that
    answer. dtype: in which gradients are computed."""

    def __init__(self, task: NodeTask, seed: int, device: str, dtype: torch.dtype = torch.float32) -> None:
        self.task, self.seed, self.device, self.dtype = _as_seen(task), seed, device, dtype
        self.first: list[FitResult] = []
        """What was trained on the first graph."""
        self._trainings = 0

    @abstractmethod
    def learn(self, edges: np.ndarray) -> None:
        """Train on the graph with these edges (2, E)."""

    @abstractmethod
    def log_prob(self, graph: PartGraph, chance: Tensor, exact: bool = False) -> Tensor:
        """(n, K): of the mean of all networks. chance: pairs that are no edges. exact: whether all pairs are edges."""

    @abstractmethod
    def library_log_prob(self, edges: np.ndarray) -> np.ndarray:
        """(n, K): what the networks of the first graph say about another one, by the code of the library."""

    def on(self, edges: np.ndarray) -> Tensor:
        """(n, K): the differentiable answer for these edges."""
        with torch.no_grad():
            pairs = torch.from_numpy(edges).to(self.device)
            there = torch.ones(edges.shape[1], dtype=self.dtype, device=self.device)
            graph = PartGraph(pairs, there, self.task.num_nodes)
            chance = torch.from_numpy(chance_pairs(edges, self.task.num_nodes, self.seed)).to(self.device)
            return self.log_prob(graph, chance, exact=True)

    def _trained(self, task: NodeTask, model: str, objective: str, options: Mapping[str, Any]) -> FitResult:
        seed, self._trainings = self.seed + 1000 * self._trainings, self._trainings + 1
        plan = Plan.check(model, objective, REPLICAS, seed, "mlp", self.device, options).for_all_labels(EPOCHS)
        return plan.fit(replace(task, val=task.train), progress=False)


class PlainAnswer(Answer):
    """A graph convolutional network, to which all edges are alike."""

    def __init__(self, task: NodeTask, seed: int, device: str, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(task, seed, device, dtype)
        self._parameters: list[tuple[Tensor, ...]] = []

    def learn(self, edges: np.ndarray) -> None:
        result = self._trained(self.task.with_edges(edges), "gcn", "elbo", {"hidden": 64, "weight_decay": 5e-4})
        self.first = self.first or [result]
        gcn = result.model.posterior.to(self.device)
        assert isinstance(gcn, GCN)
        with torch.no_grad():
            start = Inputs.of(self.task, self.device).x.matmul(gcn.weight1)
            parts = start, gcn.bias1.unsqueeze(1), gcn.weight2, gcn.bias2.unsqueeze(1)
            self._parameters.append(tuple(part.detach().to(self.dtype) for part in parts))

    def log_prob(self, graph: PartGraph, chance: Tensor, exact: bool = False) -> Tensor:
        spread = propagation(graph.adjacency(torch.ones_like(graph.presence)))
        start, bias1, weight2, bias2 = (torch.cat(part) for part in zip(*self._parameters, strict=True))
        hidden = torch.relu(spread @ start + bias1)
        return _mean(spread @ (hidden @ weight2) + bias2)

    def library_log_prob(self, edges: np.ndarray) -> np.ndarray:
        return _library(self.first, [self.task.with_edges(edges)], self.device)


class DoubtingAnswer(Answer):
    """The networks of the estimator that doubt edges: `sbm-appnp` of the panel, for each share of edges that may be
    genuine, on edges that count as much as they are believed."""

    def __init__(self, task: NodeTask, seed: int, device: str, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(task, seed, device, dtype)
        self.prior = label_prior(self.task, seed, device)
        self._trust = SoftTrust.of(self.task.features, self.prior, device, dtype)
        self._start: dict[float, list[Tensor]] = {share: [] for share in SHARES}
        self._network = next(one for one in panel_of(task.kind, task.num_classes, 1.0) if one[0] == "sbm-appnp")

    def learn(self, edges: np.ndarray) -> None:
        results = []
        for task, share in zip(self.weighed(edges), SHARES, strict=True):
            result = self._trained(task, *self._network)
            network = result.model.posterior.to(self.device)
            assert isinstance(network, APPNP)
            self._options = network.options
            with torch.no_grad():
                self._start[share].append(network.network(Inputs.of(task, self.device), None).to(self.dtype))
            results.append(result)
        self.first = self.first or results

    def weighed(self, edges: np.ndarray) -> list[NodeTask]:
        """The task with edges that count as much as they are believed, for each share."""
        task = self.task.with_edges(edges)
        found = Evidence(task, seed=self.seed).judge(self.prior, SHARES)
        least = edge_trust._LEAST
        return [EdgeTrust(one.share, edges, np.maximum(one.probability, least)).weigh(task) for one in found]

    def log_prob(self, graph: PartGraph, chance: Tensor, exact: bool = False) -> Tensor:
        soft = replace(self._trust, floor=_EXACT) if exact else self._trust
        scores, a = [], self._options.teleport
        for share, found in zip(SHARES, soft(graph, chance, SHARES), strict=True):
            spread = propagation(graph.adjacency(found.probability.clamp_min(edge_trust._LEAST)))
            start = torch.cat(self._start[share])
            z = start
            for _ in range(self._options.steps):
                z = (1 - a) * (spread @ z) + a * start
            scores.append(z)
        return _mean(torch.cat(scores))

    def library_log_prob(self, edges: np.ndarray) -> np.ndarray:
        return _library(self.first, self.weighed(edges), self.device)


ANSWERS: dict[str, type[Answer]] = {"gcn": PlainAnswer, "g3nn": DoubtingAnswer}
"""By the victim for which an attack is made."""


def label_prior(task: NodeTask, seed: int, device: str) -> np.ndarray:
    """(n, K): what features alone say about labels, and one-hot for training nodes, as in `edge_trust`."""
    outcome = task.outcome_model()
    labels = without_labels_of(task.labels, task.unlabelled)
    return outcome.groups(edge_trust._by_features(task, outcome, seed, device), labels)[1]


def propagation(adjacency: Tensor) -> Tensor:
    """D^-1/2 (A + I) D^-1/2"""
    scale = (1 + adjacency.sum(1)).rsqrt()
    looped = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype, device=adjacency.device)
    return scale.unsqueeze(1) * looped * scale


def _as_seen(task: NodeTask) -> NodeTask:
    """With the view of word counts by which the estimator judges edges; other features stay as they are."""
    if not sp.issparse(task.features):
        return task
    view = FeatureTransform.fit("length", task.features, np.ones(task.num_features, dtype=bool))
    return replace(task, features=view.apply(task.features))


def _mean(scores: Tensor) -> Tensor:
    """(n, K): the log of the mean probabilities that belong to scores (R, n, K)."""
    return scores.log_softmax(2).logsumexp(0) - np.log(len(scores))


@torch.no_grad()
def _library(results: list[FitResult], tasks: list[NodeTask], device: str) -> np.ndarray:
    found = [
        result.model.to(device).predict_log_prob(Inputs.of(task, device))
        for result, task in zip(results, tasks, strict=True)
    ]
    return _mean(torch.cat(found)).cpu().numpy()
