"""Ensembles: networks of one trial that are trained apart and answer together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from g3nn.inputs import Inputs
from g3nn.outcomes import Outcome
from g3nn.training.stack import Outcomes, TrainingOptions, validated

_APART = 1 << 32
"""Between the seeds of two members: more than any run has trials."""


def member_seeds(seeds: Sequence[int], members: int) -> tuple[int, ...]:
    """The seeds of all members, those of a trial in a row; the first has the seed of the trial."""
    return tuple(_wrapped(seed + _APART * member) for seed in seeds for member in range(members))


def together(answers: Tensor, members: int, outcome: Outcome) -> Tensor:
    """(trials, n, width): the mixture of the members of each trial, from the answers (trials * members, n, width)."""
    return answers if members == 1 else torch.cat([outcome.mixture(part) for part in answers.split(members)])


def of_trials(outcomes: Outcomes, judged: Tensor, inputs: Inputs, options: TrainingOptions) -> Outcomes:
    """How trials ended, from how their members did and what these answer together where they are judged.

    A trial takes as long as its slowest member, and has diverged or found nothing finite if one of them has. The terms
    of its history are means over the members that were still in training.
    """
    members = options.ensemble
    best = outcomes.best_epoch.view(-1, members)
    found = (best > 0).all(1)
    val_loss, val_accuracy = torch.where(found, validated(judged, inputs, options.calibrated).cpu(), torch.nan)
    return Outcomes(
        val_loss=val_loss,
        val_accuracy=val_accuracy,
        epochs=outcomes.epochs.view(-1, members).amax(1),
        best_epoch=best.amax(1) * found,
        diverged=outcomes.diverged.view(-1, members).any(1),
        history=outcomes.history.unflatten(2, (-1, members)).nanmean(3),
    )


def joined(parts: Sequence[Outcomes]) -> Outcomes:
    """Those of several stacks in a row; the history ends with the longest."""
    longest = max(part.history.shape[0] for part in parts)
    padded = [
        torch.nn.functional.pad(part.history, (0, 0, 0, 0, 0, longest - part.history.shape[0]), value=torch.nan)
        for part in parts
    ]
    return Outcomes(
        val_loss=torch.cat([part.val_loss for part in parts]),
        val_accuracy=torch.cat([part.val_accuracy for part in parts]),
        epochs=torch.cat([part.epochs for part in parts]),
        best_epoch=torch.cat([part.best_epoch for part in parts]),
        diverged=torch.cat([part.diverged for part in parts]),
        history=torch.cat(padded, dim=2),
    )


def _wrapped(seed: int) -> int:
    """Within 64 bits, where seeds near their end go on at the beginning."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)
