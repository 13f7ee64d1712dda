"""Batches of a task: labelled and unlabelled nodes, edges and non-edges, with the neighbourhoods that answer for them.

The mean of what the objective gives over batches is what it gives for the whole graph, if every neighbour is drawn.
With fewer, each step over the graph is right on average, and a network, which is not linear, nearly so.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from g3nn.graph.outcomes import Outcome, Targets
from g3nn.graph.task import NodeTask
from g3nn.model.inputs import centred_log_degrees, degree_table
from g3nn.model.likelihoods import Pairs
from g3nn.model.pairs import OBSERVED
from g3nn.model.replicas import Noise
from g3nn.training.batches.features import FeatureRows
from g3nn.training.batches.hops import SampledHop
from g3nn.training.batches.pairs import BatchPairs, PairDraws
from g3nn.training.batches.rows import GraphRows
from g3nn.training.batches.sampled import Sampled
from g3nn.training.batches.sampling import Neighbourhood, Sampler


class BatchSource:
    """Where batches of a task come from. The graph and dense features are on the device if `on_device`, and batches
    are drawn there; otherwise they stay in memory, or in the file that is mapped, and batches travel.

    fan_out: the most neighbours that each step takes of a node, the step nearest to the targets first; 0 for all.
    """

    def __init__(
        self,
        task: NodeTask,
        outcome: Outcome,
        fan_out: tuple[int, ...],
        device: torch.device,
        *,
        on_device: bool = True,
        isolated_nodes: str = OBSERVED,
        label_weights: np.ndarray | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.task, self.outcome, self.device, self.dtype = task, outcome, device, dtype
        self.fan_out = fan_out
        place = device if on_device else torch.device("cpu")
        self.rows = GraphRows.of_neighbours(task.edges, task.num_nodes, task.weights).to(place)
        self._sampler = Sampler(self.rows)
        self._x = FeatureRows(task.features, device, dtype, on_device)
        self._draws = PairDraws(task, self.rows, isolated_nodes) if task.num_edges else None
        self._targets = outcome.targets(task.labels, task.train, place, dtype)
        self._unlabelled = torch.from_numpy(task.unlabelled).to(place)
        self._degrees = torch.from_numpy(degree_table(task)).to(place, dtype)
        self._log_degrees = centred_log_degrees(self._degrees).to(dtype)
        self._beliefs = None if task.beliefs is None else torch.from_numpy(task.beliefs).to(place, dtype)
        self._label_weights = None if label_weights is None else torch.from_numpy(label_weights).to(place, dtype)

    def labelled(self, nodes: Tensor, noise: Noise) -> Sampled:
        """These training nodes alone, for a model that is trained on labels only."""
        return self._sampled(nodes.to(self.rows.rowptr.device), nodes[:0], len(nodes), noise)[0]

    def batch(self, labelled: Tensor, size: int, noise: Noise, negatives: str) -> tuple[Sampled, BatchPairs]:
        """These training nodes, with `size` unlabelled nodes, edges and non-edges. noise: of one replica."""
        place = self.rows.rowptr.device
        labelled = labelled.to(place)
        nodes = torch.cat([labelled, self._free_nodes(size, noise)])
        if self._draws is None:
            none = self._pairs(torch.zeros(2, 0, dtype=torch.int64, device=self.device), True, None)
            return self._sampled(nodes, nodes[:0], len(labelled), noise)[0], BatchPairs(none, none, 0, 0)
        edges, weights = self._draws.edges(noise, size)
        others, other_weights = self._draws.non_edges(noise, size, negatives)
        inputs, near = self._sampled(nodes, torch.cat([edges.flatten(), others.flatten()]), len(labelled), noise)
        ends = self._sampler.positions(near, torch.cat([edges, others], dim=1)).to(self.device).split(size, dim=1)
        pairs = [self._pairs(*part) for part in zip(ends, (True, False), (weights, other_weights), strict=True)]
        return inputs, BatchPairs(pairs[0], pairs[1], self._draws.num_edges, self._draws.num_non_edges)

    def _pairs(self, ends: Tensor, present: bool, weight: Tensor | None) -> Pairs:
        weight = None if weight is None else weight.to(self.device, self.dtype)
        return Pairs(ends[0], ends[1], present=present, weight=weight)

    @cached_property
    def validation(self) -> Sampled:
        """The validation nodes and their labels, in the order of the task, to judge answers by."""
        nodes = torch.from_numpy(self.task.val)
        noise = Noise(torch.zeros(1, dtype=torch.int64, device=nodes.device), 0)
        inputs, _ = self._sampled(nodes[:0], nodes, 0, noise, fan_out=())
        return replace(inputs, val=torch.arange(len(nodes), device=self.device))

    def _free_nodes(self, size: int, noise: Noise) -> Tensor:
        """So many nodes of U, uniform and independent; none if U is empty."""
        if self._unlabelled.numel() == 0:
            return self._unlabelled
        return self._unlabelled[noise.integers(self._unlabelled.numel(), size)[0]]

    def around(self, nodes: Tensor, noise: Noise) -> Sampled:
        """These nodes alone, to be answered for; none of them counts as labelled or not."""
        inputs, _ = self._sampled(nodes[:0], nodes, 0, noise)
        return inputs

    def _sampled(
        self, nodes: Tensor, more: Tensor, labelled: int, noise: Noise, fan_out: tuple[int, ...] | None = None
    ) -> tuple[Sampled, Neighbourhood]:
        near = self._sampler.around(nodes, more, self.fan_out if fan_out is None else fan_out, noise)
        inner = near.nodes[: near.sizes[0]]
        targets = self._targets_at(inner, labelled)
        steps = SampledHop.steps(near, self.rows, self.device, self.dtype)
        x = self._x.at(near.nodes)
        free = torch.arange(labelled, len(nodes), device=self.device)
        none = torch.zeros(2, 0, dtype=torch.int64, device=self.device)
        near_inputs = Sampled(
            self.task,
            x.first(len(inner)),
            none,
            targets.values,
            targets.train,
            free[:0],
            free,
            observed=self.outcome.as_inputs(targets),
            outcome=self.outcome,
            targets=targets,
            beliefs=None if self._beliefs is None else self._beliefs[inner].to(self.device),
            counted=len(nodes),
            repeats=(len(self.task.train) / max(labelled, 1), self._unlabelled.numel() / max(len(free), 1)),
            of_nodes=self._degrees[inner].to(self.device),
            log_of_nodes=self._log_degrees[inner].to(self.device),
        )
        wide = replace(near_inputs, x=x, steps=steps, counted=None)
        return replace(near_inputs, wide=wide), near

    def _targets_at(self, nodes: Tensor, labelled: int) -> Targets:
        """The labels of these nodes. Ends of pairs have theirs where training sees it; only the first nodes count."""
        whole = self._targets
        rows = [part[nodes].to(self.device) for part in (whole.values, whole.known, whole.observed)]
        weight = None if self._label_weights is None else self._label_weights[nodes[:labelled]].to(self.device)
        train = torch.arange(labelled, device=self.device)
        return Targets(rows[0], rows[1], rows[2], train, whole.scale.to(self.device), weight)
