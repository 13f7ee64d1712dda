"""A training in batches, for graphs that are too large to be walked over as a whole in every step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.networks import moving_buffers
from g3nn.model.objective import Objective
from g3nn.model.pairs import DrawsPairs
from g3nn.model.replicas import Noise, Replicas
from g3nn.training.batches.sampled import Sampled
from g3nn.training.batches.source import NO_PAIRS, BatchSource, drawn_ahead
from g3nn.training.options import TrainingOptions
from g3nn.training.stack import Stack
from g3nn.training.workers import Workers

_DRAWING = 0x5DEECE66D
"""Added to a seed for what is drawn into a batch, apart from the noise of the networks."""
_AT_ONCE = 4
"""How many times as large batches of validation nodes are, since nothing is kept for a backward pass."""
_APART = 0x2545F4914F6CD
"""Between the seeds of two processes that train together."""
_ALONE = Workers()
_LABELLED = -2
"""The number of the batch of all labelled nodes; -1 is that of no nodes, and validation nodes count from 0."""


class BatchStack(Stack):
    """One replica, whose epoch visits every labelled node once, in batches.

    Which nodes and pairs a batch holds follows from the seed of the replica. Validation nodes are answered from
    neighbourhoods that are drawn alike in every epoch, so that losses can be compared.

    Where every step takes all neighbours, these neighbourhoods are found once; and where a batch is also all labelled
    nodes of a model of labels alone, that batch is the whole graph as far as it matters.

    Several processes share the labelled nodes, and each draws its batches from its own share, with noise of its own. A
    step follows the mean of their gradients, so their parameters remain alike. They also share the validation nodes.
    """

    def __init__(
        self,
        model: GenerativeModel,
        objective: Objective,
        batches: BatchSource,
        replicas: Replicas,
        options: TrainingOptions,
        workers: Workers = _ALONE,
    ) -> None:
        self._batches = batches
        self._workers = workers
        self._seed = replicas.seeds[0]
        super().__init__(model, objective, batches.validation, replicas, options)
        place = batches.place
        self._checking = torch.tensor(replicas.seeds, device=place) + 2 * _DRAWING
        self._seeds = self._seeds + self._workers.rank * _APART
        self._drawing = self._seeds.to(place) + _DRAWING
        self._around: dict[int, Sampled] = {}
        self._score = self._workers.averaged(self.model, self._scored, unused=not batches.task.num_edges)

    def _capturable(self) -> bool:
        """No two batches have the same shapes."""
        return False

    def _learn(self, step: int | Tensor) -> tuple[Tensor, Tensor]:
        """An epoch: the means over its batches."""
        parts = self._parts()
        found = []
        first = self.epoch * len(parts)

        def draw(turn: int) -> tuple[Inputs, DrawsPairs]:
            return self._drawn(parts[turn], Noise(self._drawing, first + turn))

        for turn, (inputs, source) in enumerate(drawn_ahead(draw, len(parts), self._batches.device)):
            # Only before the first step of an epoch the parameters are those that were validated.
            fresh = self._track.fresh if turn == 0 else None
            found.append(self._update(inputs, source, Noise(self._seeds, first + turn), self._ramp(self.epoch), fresh))
        for buffer in moving_buffers(self.model).values():
            self._workers.as_first(buffer)
        losses, recorded = (self._workers.mean(torch.stack(each).mean(0)) for each in zip(*found, strict=True))
        return losses, recorded

    def first_step(self) -> None:
        """The first step of an epoch."""
        inputs, source = self._drawn(self._parts()[0], Noise(self._drawing, 0))
        self._update(inputs, source, Noise(self._seeds, 0), self._ramp(self.epoch), None)

    def _parts(self) -> tuple[Tensor, ...]:
        """This process's share of the labelled nodes in the order of this epoch, as batches of about the same size: in
        every process as many, since each step waits for all."""
        train, size = self._batches.task.train, self._workers.size
        order = np.random.default_rng([self._seed % 2**64, _DRAWING, self.epoch])
        count = -(-(len(train) // size) // self.options.batch)
        nodes = torch.from_numpy(order.permutation(train[self._workers.rank :: size]))
        return nodes.to(self._batches.place).tensor_split(count)

    def _drawn(self, labelled: Tensor, noise: Noise) -> tuple[Inputs, DrawsPairs]:
        """What the objective needs of a batch: without a model of the graph, and without a term over its edges or over
        all nodes, the labelled nodes."""
        if self.model.likelihood is None and not self.objective.beyond_labels:
            alike = len(labelled) == len(self._batches.task.train)
            return self._found(_LABELLED, alike, lambda: self._batches.labelled(labelled, noise)), NO_PAIRS
        return self._batches.batch(labelled, self.options.batch, noise, self.objective.negatives)

    def _validated(self) -> Tensor:
        nodes = torch.from_numpy(self._batches.task.val)
        parts = list(enumerate(nodes.split(_AT_ONCE * self.options.batch)))
        # A process without a part predicts for no nodes, which gives the width of an answer.
        mine = parts[self._workers.rank :: self._workers.size] or [(-1, nodes[:0])]
        found = {number: self._answered(part, number) for number, part in mine}
        blank = next(iter(found.values()))
        answers = [found.get(number, blank.new_zeros(1, len(part), blank.shape[2])) for number, part in parts]
        # All but one process add zeros.
        answer = self._workers.sum(torch.cat(answers, dim=1))
        emission = self.model.emission(self.inputs.outcome)
        return self._workers.as_first(self.options.validated(answer, self.inputs, emission))

    def _answered(self, nodes: Tensor, number: int) -> Tensor:
        noise = Noise(self._checking, number)
        found = self.model.predict_log_prob(self._found(number, True, lambda: self._batches.around(nodes, noise)))
        return found[:, : len(nodes)]

    def _found(self, key: int, alike: bool, find: Callable[[], Sampled]) -> Sampled:
        """What is found, once for all epochs if it is always alike. alike: as far as nodes go; neighbours are if all
        are taken."""
        if not alike or any(self._batches.fan_out):
            return find()
        if key not in self._around:
            self._around[key] = find()
        return self._around[key]
