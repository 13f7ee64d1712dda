"""A stack: R replicas of one model in training, each with its own hyper-parameters, noise, stopping and best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import torch
from torch import Tensor

from g3nn.kernels.adam import StackedAdam
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.networks import moving_buffers
from g3nn.model.objective import Objective
from g3nn.model.pairs import DrawsPairs, PairSource
from g3nn.model.replicas import Noise, Replicas
from g3nn.model.terms import TERM_NAMES
from g3nn.training.capture import Captured
from g3nn.training.options import BEST, LAST, TrainingOptions
from g3nn.training.track import Track

HISTORY_NAMES = (*TERM_NAMES, "val_loss", "val_score")
"""What is recorded in each epoch for each replica."""

_LARGE = 50_000_000
"""Nodes and edges, times replicas, from which on an epoch is not captured."""

_EPOCHS_PER_LOOK = 25
"""How many captured epochs run before the host checks which replicas have stopped."""


Endings = dict[str, Tensor]
"""How each of R trainings ended, in the order of the seeds: `diverged`, and by their names the fields of a `FitResult`
that follow from the training. Tensors on the CPU, losses and scores in double precision."""


class Stack:
    """Trains its replicas until each has stopped; afterwards `model` holds every replica's best snapshot.

    The answer at a replica's lowest validation loss is kept. A replica whose loss is no longer finite is stopped and
    reported; the others are not affected, since no operation mixes replicas.

    An epoch is a fixed sequence of operations on the device: update, evaluate, record. On a GPU it is captured once and
    replayed, and the host checks only every few dozen epochs; a replica that stopped in between is frozen.
    """

    def __init__(
        self, model: GenerativeModel, objective: Objective, inputs: Inputs, replicas: Replicas, options: TrainingOptions
    ) -> None:
        device, dtype = inputs.device, inputs.dtype
        self.inputs, self.objective, self.options = inputs, objective, options
        self.model = model.to(device, dtype)
        self.epoch = 0
        self._size = replicas.size
        self._live = torch.arange(replicas.size)
        self._seeds = torch.tensor(replicas.seeds, device=device)
        self._weights = objective.weights(replicas, device, dtype)
        lr, decay = (replicas.scalar(value).to(device, dtype) for value in (options.lr, options.weight_decay))
        self._adam = StackedAdam(self._trainable(), lr, decay)
        self._names = [name for name, parameter in self.model.named_parameters() if parameter.requires_grad]
        # A model without parameters has nothing to learn: one epoch is enough.
        limit = options.epochs if self._adam.parameters else 1
        self._track = Track.start(self.model.state_dict(), replicas.size, limit, options.patience, device, dtype)
        captured = device.type == "cuda" and bool(self._adam.parameters) and self._capturable()
        self._stride = _EPOCHS_PER_LOOK if captured else 1
        self._recent = torch.empty(self._stride, len(HISTORY_NAMES), replicas.size, device=device, dtype=dtype)
        self._epoch: Callable[[], None] = Captured(self.advance) if captured else self.advance
        self._score: Callable[..., tuple[Tensor, Tensor]] = self._scored
        self._gone: list[tuple[Tensor, Track]] = []
        self._history: list[tuple[Tensor, Tensor]] = []

    def _capturable(self) -> bool:
        """Whether an epoch is worth capturing and can be: on a large graph launches cost nothing beside the work, and a
        capture would hold memory of its own."""
        return self.model.posterior.capturable and self.inputs.task.extent * self._size < _LARGE

    @cached_property
    def source(self) -> PairSource:
        return PairSource(self.inputs, self.objective.isolated_nodes)

    @cached_property
    def _validation_inputs(self) -> Inputs:
        return self.options.validation_inputs(self.inputs)

    def _trainable(self) -> list[torch.nn.Parameter]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def finished(self) -> bool:
        return self.num_live == 0

    @property
    def num_live(self) -> int:
        return self._live.numel()

    @property
    def latest(self) -> dict[str, float]:
        """The terms of the last epoch, averaged over the replicas that were live in it."""
        means = self._history[-1][1][-1].mean(1).tolist()
        return dict(zip(HISTORY_NAMES, means, strict=True))

    def step(self) -> None:
        """Some epochs for every live replica (one, except on a GPU); finished replicas then leave the stack."""
        for _ in range(self._stride):
            self._epoch()
        self.epoch += self._stride
        self._history.append((self._live, self._recent.to("cpu", torch.float32, copy=True)))
        active = self._track.active.cpu()
        idle = 1 - active.double().mean().item()
        # A GPU hardly notices a few idle replicas, but a new capture costs as much as many epochs.
        if idle == 1 or idle > (0.25 if self._stride > 1 else 0):
            self._drop(~active)

    @torch.enable_grad()
    def advance(self) -> None:
        """One epoch on the device; the host does not wait for it."""
        clock = self._track.clock
        losses, recorded = self._learn(clock if clock.is_cuda else self.epoch)
        with torch.no_grad():
            validation = self._validated()
            record = torch.cat([recorded, validation])
            self._recent.index_copy_(0, (clock % self._stride).view(1), record.unsqueeze(0))
            val_loss, val_score = validation
            # Where the last parameters are kept, every epoch counts as better than the one before.
            criterion = val_loss if self.options.keep == BEST else -(clock + 1).to(val_loss).expand_as(val_loss)
            self._track.update(losses, criterion.contiguous(), val_score)
            self._track.keep(moving_buffers(self.model))

    def _learn(self, step: int | Tensor) -> tuple[Tensor, Tensor]:
        """Change the parameters; the losses (R,) and the terms to record."""
        return self._update(self.inputs, self.source, Noise(self._seeds, step), self._ramp(step), self._track.fresh)

    def _update(
        self, inputs: Inputs, source: DrawsPairs, noise: Noise, ramp: float | Tensor, fresh: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """One step of Adam. fresh: the replicas whose parameters are at their best before it."""
        losses, recorded = self._score(inputs, source, noise, ramp)
        self._adam.zero_grad()
        if self._adam.parameters:
            losses.sum().backward()
            self._adam.step(fresh, [self._track.best[name] for name in self._names])
        return losses.detach(), recorded

    def _scored(self, inputs: Inputs, source: DrawsPairs, noise: Noise, ramp: float | Tensor) -> tuple[Tensor, Tensor]:
        """The losses (R,), and the terms to record."""
        terms = self.objective.terms(self.model, inputs, source, noise)
        return self._weights.total(terms, ramp), self._weights.recorded(terms)

    def _validated(self) -> Tensor:
        """(2, R): loss and score on the validation nodes; NaN without such nodes, and then nothing is predicted."""
        if not any(one.val.numel() for one in self.inputs.labels_of_each):
            return self._recent.new_full((2, self.num_live), torch.nan)
        answer = self.model.predict_log_prob(self._validation_inputs)
        return self.options.validated(answer, self.inputs, self.model.emission(self.inputs.outcome))

    def _ramp(self, step: int | Tensor) -> float | Tensor:
        """What the terms without observed labels are multiplied by in this epoch."""
        if self.objective.warm_up == 0:
            return 1.0
        if isinstance(step, Tensor):
            return ((step + 1) / self.objective.warm_up).clamp(max=1.0).to(self.inputs.dtype)
        return min(1.0, (step + 1) / self.objective.warm_up)

    def _drop(self, done: Tensor) -> None:
        self._track.flush(self.model.state_dict())
        gone, keep = (mask.nonzero().squeeze(1) for mask in (done, ~done))
        self._gone.append((self._live[gone], self._track.select(gone)))
        self._track = self._track.select(keep)
        self._live = self._live[keep]
        self.inputs = self.inputs.of_replicas(keep.tolist())
        keep = keep.to(self.inputs.device)
        self._seeds, self._weights = self._seeds[keep], self._weights.select(keep)
        self._recent = self._recent[:, :, keep].contiguous()
        self.model.select(keep)
        self._adam.select(keep, self._trainable())
        if self._stride > 1:
            self._epoch = Captured(self.advance)

    def state(self) -> dict[str, Tensor]:
        """What `resume` needs, as tensors. Valid until a replica is dropped."""
        none = torch.empty(0, len(HISTORY_NAMES), self._size)
        return {**self._changing(), "history": torch.cat([none, *(values for _, values in self._history)])}

    @torch.no_grad()
    def resume(self, state: Mapping[str, Tensor]) -> None:
        """Go on from the `state` of a stack that was made alike."""
        for name, tensor in self._changing().items():
            tensor.copy_(state[name])
        self._history = [(self._live, state["history"])]
        self.epoch = len(state["history"])

    def _changing(self) -> dict[str, Tensor]:
        """Every tensor that training changes in place."""
        adam = self._adam
        moments = zip(self._names, adam.first, adam.second, strict=True)
        parts: dict[str, Mapping[str, Tensor]] = {
            "model": self.model.state_dict(),
            "best": self._track.best,
            "track": self._track.books,
            "adam": {"steps": adam.steps},
            **{f"adam.{name}": {"first": first, "second": second} for name, first, second in moments},
        }
        return {f"{part}.{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}

    def history(self, start: int = 0) -> Tensor:
        """(epochs, len(HISTORY_NAMES), R): what was recorded after `start` epochs, NaN after a replica stopped."""
        found = torch.full((self.epoch - start, len(HISTORY_NAMES), self._size), torch.nan)
        end = self.epoch
        for live, values in reversed(self._history):
            if end <= start:
                break
            known = values[-(end - start) :]
            found[end - start - len(known) : end - start, :, live] = known
            end -= len(values)
        epochs = torch.empty(self._size, dtype=torch.int64)
        for replicas, track in [*self._gone, (self._live, self._track)]:
            epochs[replicas] = track.epochs.cpu()
        stopped = torch.arange(start, self.epoch)[:, None] >= epochs[None, :]
        return found.masked_fill_(stopped.unsqueeze(1), torch.nan)

    def end(self) -> Endings:
        """Restores the snapshots into `model`, all R of them, and returns how each training ended."""
        self._track.flush(self.model.state_dict())
        parts = [*self._gone, (self._live, self._track)]
        order = torch.cat([ids for ids, _ in parts]).argsort()
        track = Track.join([track for _, track in parts]).select(order)
        self.model.restore(track.best)
        history, epochs = self.history(), track.epochs.cpu()
        best_epoch = track.best_epoch.cpu()
        val_loss = track.best_loss.cpu()
        if self.options.keep == LAST:
            at = (best_epoch - 1).clamp_min(0).unsqueeze(0)
            val_loss = history[:, len(TERM_NAMES)].gather(0, at).squeeze(0)
        return {
            "val_loss": torch.where(best_epoch > 0, val_loss, torch.nan).double(),
            "val_score": track.best_score.cpu().double(),
            "epochs": epochs,
            "best_epoch": best_epoch,
            "diverged": track.diverged.cpu(),
            "history": history[: int(epochs.max())],
        }
