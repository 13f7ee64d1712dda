"""The progress of a stack: for each replica its best epoch so far, a snapshot of it, and whether it continues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from g3nn.kernels.backend import fast

_PER_REPLICA = ("best_loss", "best_score", "best_epoch", "epochs", "active", "diverged", "fresh")


@dataclass(frozen=True, eq=False)
class Track:
    """(R,) tensors, changed in place by operations that never wait for the host.

    clock: 0-d, the number of epochs done. best: the state of the model at each replica's best epoch, except where it is
    `fresh`: then the model itself is at its best, and is copied just before it changes (or by `flush`).
    """

    clock: Tensor
    best_loss: Tensor
    best_score: Tensor
    best_epoch: Tensor
    epochs: Tensor
    active: Tensor
    diverged: Tensor
    fresh: Tensor
    best: dict[str, Tensor]
    limit: int
    patience: int

    @classmethod
    def start(
        cls, state: Mapping[str, Tensor], R: int, limit: int, patience: int, device: torch.device, dtype: torch.dtype
    ) -> Track:
        def full(value: float, dtype: torch.dtype) -> Tensor:
            return torch.full((R,), value, dtype=dtype, device=device)

        return cls(
            clock=torch.zeros((), dtype=torch.int64, device=device),
            best_loss=full(torch.inf, dtype),
            best_score=full(torch.nan, dtype),
            best_epoch=full(0, torch.int64),
            epochs=full(0, torch.int64),
            active=full(True, torch.bool),
            diverged=full(False, torch.bool),
            fresh=full(False, torch.bool),
            best={name: tensor.detach().clone() for name, tensor in state.items()},
            limit=limit,
            patience=patience,
        )

    @property
    def books(self) -> dict[str, Tensor]:
        """All but the snapshots, by name."""
        return {name: getattr(self, name) for name in ("clock", *_PER_REPLICA)}

    def update(self, losses: Tensor, val_loss: Tensor, val_score: Tensor) -> None:
        """After an epoch: which replicas improved, diverged, or ran out of patience."""
        kernels: Any = fast(losses) if losses.is_cuda else None
        if kernels is not None:
            kernels.keep_book(losses, val_loss, val_score, tuple(self.books.values()), self.limit, self.patience)
            return
        self.clock.add_(1)
        finite = torch.isfinite(losses) & torch.isfinite(val_loss)
        improved = self.active & finite & (val_loss < self.best_loss)
        _overwrite(self.best_loss, improved, val_loss)
        _overwrite(self.best_score, improved, val_score)
        _overwrite(self.best_epoch, improved, self.clock)
        _overwrite(self.epochs, self.active, self.clock)
        self.diverged.logical_or_(self.active & ~finite)
        waiting = (self.clock - self.best_epoch < self.patience) & (self.clock < self.limit)
        self.active.logical_and_(finite & waiting)
        self.fresh.copy_(improved)

    def flush(self, state: Mapping[str, Tensor]) -> None:
        """Copy the state of every fresh replica."""
        self.keep(state)
        self.fresh.zero_()

    def keep(self, state: Mapping[str, Tensor]) -> None:
        """Copy these parts where a replica is fresh; the others follow later."""
        for name, tensor in state.items():
            _overwrite(self.best[name], self.fresh.view(-1, *(1 for _ in tensor.shape[1:])), tensor)

    def select(self, keep: Tensor) -> Track:
        """The replicas at these positions."""
        keep = keep.to(self.clock.device)
        own = {name: getattr(self, name)[keep] for name in _PER_REPLICA}
        return replace(self, **own, best={name: tensor[keep] for name, tensor in self.best.items()})

    @staticmethod
    def join(tracks: Sequence[Track]) -> Track:
        """The replicas of several tracks in a row."""
        own: dict[str, Any] = {name: torch.cat([getattr(track, name) for track in tracks]) for name in _PER_REPLICA}
        best = {name: torch.cat([track.best[name] for track in tracks]) for name in tracks[0].best}
        return replace(tracks[0], **own, best=best)


def _overwrite(target: Tensor, where: Tensor, value: Tensor) -> None:
    target.copy_(torch.where(where, value, target))
