"""A training in batches, for graphs that are too large to be walked over as a whole in every step."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from g3nn.batches import BatchSource
from g3nn.inputs import Inputs
from g3nn.model import GenerativeModel
from g3nn.objective import Objective
from g3nn.pairs import PairSource
from g3nn.replicas import Noise, Replicas
from g3nn.training.stack import Stack, TrainingOptions, validated

_DRAWING = 0x5DEECE66D
"""Added to a seed for what is drawn into a batch, apart from the noise of the networks."""
_AT_ONCE = 4
"""Validation nodes are answered in batches so many times as large, since nothing is kept for a backward pass."""


class BatchStack(Stack):
    """One replica, whose epoch visits every labelled node once, in batches.

    Which nodes and pairs a batch holds follows from the seed of the replica. Validation nodes are answered from
    neighbourhoods that are drawn alike in every epoch, so that losses can be compared.
    """

    def __init__(
        self,
        model: GenerativeModel,
        objective: Objective,
        batches: BatchSource,
        replicas: Replicas,
        options: TrainingOptions,
    ) -> None:
        self._batches = batches
        self._drawing, self._checking = (
            torch.tensor(replicas.seeds, device=batches.rows.rowptr.device) + apart
            for apart in (_DRAWING, 2 * _DRAWING)
        )
        self._order = np.random.default_rng([replicas.seeds[0] % 2**64, _DRAWING])
        super().__init__(model, objective, cast(Any, batches), replicas, options)

    def _capturable(self) -> bool:
        """No two batches have the same shapes."""
        return False

    def _learn(self, step: int | Tensor) -> tuple[Tensor, Tensor]:
        """An epoch: the means over its batches."""
        train = torch.from_numpy(self._order.permutation(self._batches.task.train))
        parts = train.split(self.options.batch)
        found = []
        for turn, labelled in enumerate(parts):
            number = self.epoch * len(parts) + turn
            inputs, source = self._drawn(labelled, Noise(self._drawing, number))
            # Only before the first step of an epoch the parameters are those that were validated.
            fresh = self._track.fresh if turn == 0 else None
            found.append(self._update(inputs, source, Noise(self._seeds, number), self._ramp(self.epoch), fresh))
        losses, recorded = zip(*found, strict=True)
        return torch.stack(losses).mean(0), torch.stack(recorded).mean(0)

    def _drawn(self, labelled: Tensor, noise: Noise) -> tuple[Inputs, PairSource]:
        """What the objective needs of a batch: without a model of the graph, and without a term over its edges, the
        labelled nodes."""
        if self.model.likelihood is None and not self.objective.needs_pairs:
            return self._batches.labelled(labelled, noise), cast(PairSource, None)
        inputs, pairs = self._batches.batch(labelled, self.options.batch, noise, self.objective.negatives)
        return inputs, cast(PairSource, pairs)

    def _validated(self) -> Tensor:
        nodes = torch.from_numpy(self._batches.task.val)
        answers = []
        for number, part in enumerate(nodes.split(_AT_ONCE * self.options.batch)):
            inputs = self._batches.around(part, Noise(self._checking, number))
            answers.append(self.model.predict_log_prob(inputs)[:, : len(part)])
        return validated(torch.cat(answers, dim=1), self._batches.validation, self.options.calibrated)
