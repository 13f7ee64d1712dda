"""A stack: R replicas of one model in training, each with its own hyper-parameters, noise, stopping and best."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from g3nn.evaluate import accuracy, cross_entropy
from g3nn.inputs import Inputs
from g3nn.model import GenerativeModel
from g3nn.objective import TERM_NAMES, Objective
from g3nn.options import integer, number
from g3nn.pairs import PairSource
from g3nn.replicas import Noise, Replicas, Scalar
from g3nn.training.adam import StackedAdam

HISTORY_NAMES = (*TERM_NAMES, "val_loss", "val_accuracy")
"""What is recorded in each epoch for each replica."""


@dataclass(frozen=True)
class TrainingOptions:
    lr: Scalar = number(0.01, "learning rate of Adam", low=0, open_ends=True, per_replica=True)
    weight_decay: Scalar = number(5e-4, "L2 penalty on all parameters", low=0, per_replica=True)
    epochs: int = integer(2000, "at most this many epochs", low=1)
    patience: int = integer(200, "stop after this many epochs without a lower validation loss", low=1)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How each of the R trainings ended, in the order of the seeds; tensors on the CPU."""

    val_loss: Tensor
    val_accuracy: Tensor
    epochs: Tensor
    best_epoch: Tensor
    diverged: Tensor
    history: Tensor
    """(epochs, len(HISTORY_NAMES), R), NaN after a replica stopped."""


class Stack:
    """Trains its replicas until each has stopped; afterwards `model` holds every replica's best snapshot.

    A replica's answer at its lowest validation loss is the one that is kept. A replica whose loss is no longer finite
    is stopped and reported; the others do not notice, since no operation mixes replicas.
    """

    def __init__(
        self, model: GenerativeModel, objective: Objective, inputs: Inputs, replicas: Replicas, options: TrainingOptions
    ) -> None:
        device = inputs.device
        self.inputs, self.objective, self.options = inputs, objective, options
        self.model = model.to(device, inputs.dtype)
        self.source = PairSource(inputs)
        R = replicas.size
        self._live = torch.arange(R, device=device)
        self._seeds = torch.tensor(replicas.seeds, device=device)
        self._weights = objective.weights(replicas, device)
        lr, decay = replicas.scalar(options.lr).to(device), replicas.scalar(options.weight_decay).to(device)
        self._adam = StackedAdam(self._trainable(), lr, decay)
        self._best_state = {name: tensor.clone() for name, tensor in self._tensors().items()}
        self._best_loss = torch.full((R,), math.inf, device=device)
        self._best_accuracy = torch.full((R,), math.nan, device=device)
        self._best_epoch = torch.zeros(R, dtype=torch.int64, device=device)
        self._epochs = torch.zeros(R, dtype=torch.int64, device=device)
        self._diverged = torch.zeros(R, dtype=torch.bool, device=device)
        self._history: list[tuple[Tensor, Tensor]] = []
        self.epoch = 0

    def _trainable(self) -> list[torch.nn.Parameter]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def _tensors(self) -> dict[str, Tensor]:
        return {name: tensor.detach() for name, tensor in self.model.state_dict().items()}

    @property
    def finished(self) -> bool:
        return self._live.numel() == 0

    @property
    def num_live(self) -> int:
        return self._live.numel()

    @property
    def latest(self) -> dict[str, float]:
        """The terms of the last epoch, averaged over the replicas that were live in it."""
        means = self._history[-1][1].mean(1).tolist()
        return dict(zip(HISTORY_NAMES, means, strict=True))

    def step(self) -> None:
        """One epoch for every live replica: update, evaluate, remember the best, let the finished ones go."""
        terms = self.objective.terms(self.model, self.inputs, self.source, Noise(self._seeds, self.epoch))
        losses = self._weights.total(terms)
        self._adam.zero_grad()
        if losses.requires_grad:
            losses.sum().backward()
            self._adam.step()
        self.epoch += 1
        val_loss, val_accuracy = self._validate()
        self._history.append((self._live, torch.cat([terms.stacked(), torch.stack([val_loss, val_accuracy])])))
        finite = torch.isfinite(losses.detach()) & torch.isfinite(val_loss)
        self._diverged[self._live[~finite]] = True
        self._epochs[self._live] = self.epoch
        improved = finite & (val_loss < self._best_loss[self._live])
        if improved.any():
            self._remember(improved, val_loss, val_accuracy)
        waited = self.epoch - self._best_epoch[self._live]
        done = ~finite | (waited >= self.options.patience)
        if self.epoch >= self.options.epochs or not losses.requires_grad:
            done = torch.ones_like(done)
        if done.any():
            self._drop(done)

    @torch.no_grad()
    def _validate(self) -> tuple[Tensor, Tensor]:
        log_q = self.model.predict_log_prob(self.inputs)
        labels, nodes = self.inputs.labels, self.inputs.val
        return cross_entropy(log_q, labels, nodes), accuracy(log_q, labels, nodes)

    def _remember(self, improved: Tensor, val_loss: Tensor, val_accuracy: Tensor) -> None:
        who = self._live[improved]
        self._best_loss[who], self._best_accuracy[who] = val_loss[improved], val_accuracy[improved]
        self._best_epoch[who] = self.epoch
        for name, tensor in self._tensors().items():
            self._best_state[name][who] = tensor[improved]

    def _drop(self, done: Tensor) -> None:
        keep = (~done).nonzero().squeeze(1)
        self._live, self._seeds = self._live[keep], self._seeds[keep]
        self._weights = self._weights.select(keep)
        self.model.select(keep)
        self._adam.select(keep, self._trainable())

    def outcomes(self) -> Outcomes:
        """Restores the best snapshots into `model`, all R of them, and says how each training ended."""
        self.model.restore(self._best_state)
        R = self._best_loss.numel()
        history = torch.full((len(self._history), len(HISTORY_NAMES), R), math.nan)
        for epoch, (live, values) in enumerate(self._history):
            history[epoch][:, live.cpu()] = values.float().cpu()
        return Outcomes(
            val_loss=self._best_loss.cpu(),
            val_accuracy=self._best_accuracy.cpu(),
            epochs=self._epochs.cpu(),
            best_epoch=self._best_epoch.cpu(),
            diverged=self._diverged.cpu(),
            history=history,
        )
