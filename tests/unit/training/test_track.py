"""The books of a stack, epoch by epoch, by hand."""

from __future__ import annotations

import math

import torch

from g3nn.training.track import Track

NAN, INF = math.nan, math.inf


def test_who_improves_who_diverges_and_who_has_waited_long_enough():
    """Four replicas, six epochs at most, a patience of two."""
    track = Track.start({"w": torch.zeros(4, 1)}, 4, 6, 2, torch.device("cpu"), torch.float32)
    losses = torch.tensor([[1, 1, 1, 1], [1, NAN, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]])
    val_loss = torch.tensor(
        [
            [5.0, 5.0, 5.0, 5.0],
            [4.0, 4.0, INF, 6.0],
            [3.0, 3.0, 3.0, 6.0],
            [3.0, 0, 0, 0],
            [2.0, 0, 0, 0],
            [1.0, 0, 0, 0],
        ]
    )
    active = []
    for epoch in range(6):
        track.update(losses[epoch], val_loss[epoch], -val_loss[epoch])
        track.flush({"w": torch.full((4, 1), epoch + 1.0)})
        active.append(track.active.tolist())
    assert active == [
        [True, True, True, True],
        [True, False, False, True],
        [True, False, False, False],
        [True, False, False, False],
        [True, False, False, False],
        [False, False, False, False],
    ]
    assert track.diverged.tolist() == [False, True, True, False]
    assert track.epochs.tolist() == [6, 2, 2, 3]
    assert track.best_epoch.tolist() == [6, 1, 1, 1]
    assert track.best_loss.tolist() == [1, 5, 5, 5]
    assert track.best["w"].flatten().tolist() == [6, 1, 1, 1]
