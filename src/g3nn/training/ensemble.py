"""Ensembles: networks of one trial that are trained apart and answer together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import torch
from torch import Tensor

from g3nn.inputs import Inputs
from g3nn.outcomes import Outcome
from g3nn.training.stack import Endings, TrainingOptions, validated

_APART = 1 << 32
"""Between the seeds of two members: more than any run has trials."""


def member_seeds(seeds: Sequence[int], members: int) -> tuple[int, ...]:
    """The seeds of all members, those of a trial in a row; the first has the seed of the trial."""
    return tuple(_wrapped(seed + _APART * member) for seed in seeds for member in range(members))


def mixed(answers: Tensor, members: int, outcome: Outcome) -> Tensor:
    """(trials, n, width): the mixture of the members of each trial, from the answers (trials * members, n, width)."""
    return answers if members == 1 else torch.cat([outcome.mixture(trial) for trial in answers.split(members)])


def trial_endings(endings: Endings, validation_answers: Tensor, inputs: Inputs, options: TrainingOptions) -> Endings:
    """How trials ended, from how their members did and what these answer together for the validation nodes.

    A trial takes as long as its slowest member, and it diverged, or never had a finite loss, if one of them did. The
    terms of its history are means over the members that were still in training.
    """
    members = options.ensemble
    best = endings.best_epoch.view(-1, members)
    usable = (best > 0).all(1)
    scores = validated(validation_answers, inputs, options.calibrated).cpu()
    val_loss, val_score = torch.where(usable, scores, torch.nan)
    return Endings(
        val_loss=val_loss,
        val_score=val_score,
        epochs=endings.epochs.view(-1, members).amax(1),
        best_epoch=best.amax(1) * usable,
        diverged=endings.diverged.view(-1, members).any(1),
        history=endings.history.unflatten(2, (-1, members)).nanmean(3),
    )


def joined(parts: Sequence[Endings]) -> Endings:
    """The endings of several stacks in a row; the history is as long as the longest."""
    longest = max(part.history.shape[0] for part in parts)
    padded = [
        torch.nn.functional.pad(part.history, (0, 0, 0, 0, 0, longest - part.history.shape[0]), value=torch.nan)
        for part in parts
    ]
    names = [field.name for field in fields(Endings) if field.name != "history"]
    arrays = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
    return Endings(**arrays, history=torch.cat(padded, dim=2))


def _wrapped(seed: int) -> int:
    """Within 64 bits, where seeds near their end continue at the beginning."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)
