"""The options of a training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from g3nn.base.options import choice, counts, flag, integer, number
from g3nn.model.channels import Emission
from g3nn.model.inputs import Inputs
from g3nn.model.replicas import Scalar

BEST, LAST = "best", "last"
"""Which parameters a replica ends with."""


@dataclass(frozen=True)
class TrainingOptions:
    lr: Scalar = number(0.01, "learning rate of Adam", low=0, open_ends=True, per_replica=True)
    weight_decay: Scalar = number(5e-4, "L2 penalty on all parameters", low=0, per_replica=True)
    epochs: int = integer(2000, "at most this many epochs", low=1)
    patience: int = integer(200, "stop after this many epochs without a lower validation loss", low=1)
    validation: str = choice(
        "graph", ("graph", "isolated"), "validation nodes are answered with their edges, or as if they had none"
    )
    calibrated: bool = flag(False, "compare validation losses at the temperature that is best for each answer")
    keep: str = choice(
        BEST,
        (BEST, LAST),
        "keep the parameters of the lowest validation loss and stop early, or train all epochs and keep the last ones",
    )
    ensemble: int = integer(1, "networks of a trial, trained apart, whose mean probabilities are its answer", low=1)

    batch: int = integer(
        0, "labelled nodes of a step, and as many unlabelled nodes, edges and non-edges; 0 for the whole graph", low=0
    )
    fan_out: str = counts(
        "15/10/5", "in batches, the most neighbours that each step over the graph takes of a node; 0 for all"
    )

    def validation_inputs(self, inputs: Inputs) -> Inputs:
        """The graph on which validation nodes are predicted."""
        return inputs if self.validation == "graph" else inputs.without_edges_of(inputs.task.val)

    @torch.no_grad()
    def validated(self, answer: Tensor, inputs: Inputs, emission: Emission) -> Tensor:
        """(2, R): loss and score of answers (R, n, width) on the validation nodes, whose labels `emission` judges; NaN
        without such nodes, as where the last parameters are kept."""

        def own(inputs: Inputs, answer: Tensor) -> tuple[Tensor, Tensor]:
            if inputs.val.numel() == 0:
                return answer.new_full((len(answer),), torch.nan), answer.new_full((len(answer),), torch.nan)
            where = inputs.targets, inputs.val
            loss, score = emission.validation(answer, *where)
            return emission.calibrated_loss(answer, *where) if self.calibrated else loss, score

        return torch.stack(inputs.for_each(own, answer))
