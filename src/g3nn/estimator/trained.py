"""Trained replicas of one candidate, and how good their mean is on the validation nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from g3nn.calibrate import Scaling
from g3nn.estimator.candidates import Candidate
from g3nn.estimator.judging import judge_of
from g3nn.inputs import Inputs
from g3nn.outcomes import NumberOutcome, Outcome
from g3nn.task import NodeTask
from g3nn.training import FitResult


@dataclass(frozen=True)
class PanelEntry:
    """How one candidate did. val_loss: of its averaged replicas after temperature scaling, by which the choice is made.

    That is close to what the answers will be like, and no unfair advantage: each gets the same single parameter.
    Whoever left the panel early has few replicas, and after the first round few epochs. val_accuracy: with another
    outcome than classes its score, such as the share of the variance that is explained.
    """

    model: str
    objective: str
    options: Mapping[str, Any]
    val_loss: float
    val_accuracy: float
    epochs: int
    chosen: bool = False
    replicas: int = 1


@dataclass(frozen=True, eq=False)
class Trained:
    """R replicas: those with a usable answer, so R may be 0.

    probabilities: (R, validation nodes, K); with another outcome than classes its answers (R, validation nodes, width).
    outcome: in whose form and unit they are. epochs, best_epoch: (R,). history: (longest, terms, R), NaN after the end
    of a replica. state: the parameters, each leading with R.
    """

    candidate: Candidate
    objective: str
    seeds: tuple[int, ...]
    probabilities: np.ndarray
    epochs: np.ndarray
    best_epoch: np.ndarray
    history: np.ndarray
    state: dict[str, Tensor]
    outcome: Outcome

    @classmethod
    def of(cls, candidate: Candidate, result: FitResult, at: np.ndarray, task: NodeTask) -> Trained:
        """The replicas at these positions of a stack; one that diverged before its first epoch is left out."""
        at = at[np.isfinite(result.val_loss[at])]
        longest = int(result.epochs[at].max(initial=0))
        return cls(
            candidate,
            result.objective,
            tuple(result.seeds[t] for t in at.tolist()),
            _answers(result, task)[at].astype(np.float64),
            result.epochs[at],
            result.best_epoch[at],
            result.history[:longest, :, at],
            {name: tensor[torch.from_numpy(at)] for name, tensor in result.model.state_dict().items()},
            result.model.posterior.sizes.outcome,
        )

    def joined(self, other: Trained) -> Trained:
        """The replicas of both."""
        longest = max(len(self.history), len(other.history))
        histories = [_padded(one.history, longest) for one in (self, other)]
        return Trained(
            self.candidate,
            self.objective,
            self.seeds + other.seeds,
            np.concatenate([self.probabilities, other.probabilities]),
            np.concatenate([self.epochs, other.epochs]),
            np.concatenate([self.best_epoch, other.best_epoch]),
            np.concatenate(histories, axis=2),
            {name: torch.cat([tensor, other.state[name]]) for name, tensor in self.state.items()},
            self.outcome,
        )

    def _mean(self) -> np.ndarray:
        """(validation nodes, width): the answer of all replicas together."""
        if isinstance(self.outcome, NumberOutcome):
            return judge_of(self.outcome).averaged(torch.from_numpy(self.probabilities))
        return np.log(np.maximum(self.probabilities.mean(0), np.finfo(np.float64).tiny))

    def entry(self, labels: np.ndarray) -> PanelEntry:
        """How well the mean of the replicas does on the validation nodes, whose labels these are."""
        loss, accuracy = math.inf, 0.0
        if self.seeds:
            judge, mean = judge_of(self.outcome), self._mean()
            loss = judge.loss(judge.scaled(mean, Scaling(judge.temperature(mean, labels))), labels)
            accuracy = judge.score(mean, labels)
        options, longest = dict(self.candidate.options), int(self.epochs.max(initial=0))
        replicas = len(self.seeds)
        return PanelEntry(self.candidate.name, self.objective, options, loss, accuracy, longest, replicas=replicas)


def _answers(result: FitResult, task: NodeTask) -> np.ndarray:
    """(R, validation nodes, width): probabilities of classes, else the answers of the replicas."""
    if result.outcome.name == "classes":
        return result.probabilities[:, task.val]
    inputs = Inputs.of(task, outcome=result.model.posterior.sizes.outcome)
    with torch.no_grad():
        return np.asarray(result.model.predict_log_prob(inputs)[:, inputs.val].numpy())


def _padded(history: np.ndarray, longest: int) -> np.ndarray:
    return np.pad(history, ((0, longest - len(history)), (0, 0), (0, 0)), constant_values=np.nan)
