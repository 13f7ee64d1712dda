"""What a fit returns: trials, each predicted by one network or by several that were trained separately."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from g3nn.base.errors import warn_caller
from g3nn.graph.outcomes import Outcome
from g3nn.model.channels import Emission
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.training.options import TrainingOptions
from g3nn.training.stack import HISTORY_NAMES, Endings

_APART = 1 << 32
"""Between the seeds of two members: more than any run has trials."""

_PER_TRIAL = ("test_score", "val_score", "val_loss", "epochs", "best_epoch", "test_log_prob")


def history_names(outcome: Outcome) -> tuple[str, ...]:
    """The names of what is recorded in each epoch, the score by its own."""
    return (*HISTORY_NAMES[:-1], f"val_{outcome.score_key}")


@dataclass(frozen=True, eq=False)
class FitResult:
    """The trials of one model on one task. Arrays have one entry per trial, in the order of `seeds`.

    test_score, val_score: what the outcome is scored by (accuracy for classes), at the epoch of the lowest validation
    loss `val_loss`. For classes they are also called `test_accuracy` and `val_accuracy`.
    test_log_prob: the mean log-probability (or density) of a test label; `val_loss` is minus that of a validation
    label.
    status: "stopped" (early stopping), "limit" (ran all epochs) or "diverged" (the loss was no longer finite; the
    numbers are those of the best epoch before that, NaN if there was none).
    answers: (trials, n, width), the parameters of q at each node in the form of the outcome.
    history: (epochs, terms, trials), the terms as in `history_names`; NaN after a trial stopped. In batches it judges
    validation nodes by drawn neighbours, and `val_loss` and `val_score` by all of them.

    With an `ensemble`, a trial has several members: its answer is their mixture, its epochs and status those of the
    slowest and the worst of them, and `model` holds all members, those of one trial in a row.
    """

    dataset: str
    setting: str
    model_name: str
    objective: str
    hyperparameters: dict[str, object]
    seeds: tuple[int, ...]
    test_score: np.ndarray
    val_score: np.ndarray
    val_loss: np.ndarray
    epochs: np.ndarray
    best_epoch: np.ndarray
    status: tuple[str, ...]
    seconds: float
    answers: Tensor
    history: np.ndarray
    model: GenerativeModel
    outcome: Outcome
    test_log_prob: np.ndarray

    @property
    def trials(self) -> int:
        return len(self.seeds)

    @property
    def test_accuracy(self) -> np.ndarray:
        """(trials,): the share of test nodes whose class is right."""
        return self._accuracy("test")

    @property
    def val_accuracy(self) -> np.ndarray:
        """(trials,): the share of validation nodes whose class is right."""
        return self._accuracy("val")

    def _accuracy(self, part: str) -> np.ndarray:
        if self.outcome.score_key != "accuracy":
            kind = f"outcome {self.outcome.name!r} is scored by {self.outcome.score_title}"
            raise AttributeError(f"no {part}_accuracy: {kind}; use {part}_score")
        return self.test_score if part == "test" else self.val_score

    @cached_property
    def probabilities(self) -> np.ndarray:
        """(trials, n, K): of classes, or of each tag by itself."""
        if not self.outcome.pooled:
            raise AttributeError(f"outcome {self.outcome.name!r} has no probabilities; use predictions and deviations")
        return np.asarray(self.outcome.mean(self.answers).numpy())

    @property
    def predictions(self) -> np.ndarray:
        """(trials, n, K or T): the mean of q in the unit of the labels; of classes and tags their probabilities."""
        return self.outcome.in_units(self.answers)[0]

    @property
    def deviations(self) -> np.ndarray:
        """(trials, n, K or T): the standard deviation of q in the unit of the labels."""
        return self.outcome.in_units(self.answers)[1]

    @property
    def history_names(self) -> tuple[str, ...]:
        return history_names(self.outcome)

    @property
    def members(self) -> int:
        """How many networks answer together for a trial."""
        members = self.hyperparameters["ensemble"]
        assert isinstance(members, int)
        return members

    def select(self, keep: Sequence[int] | np.ndarray) -> FitResult:
        """The trials at these positions; this result stays as it was."""
        at = np.asarray(keep, dtype=np.int64)
        rows = (at[:, None] * self.members + np.arange(self.members)).ravel()
        model = copy.deepcopy(self.model)
        model.select(torch.from_numpy(rows))
        return replace(
            self,
            **{name: getattr(self, name)[at] for name in _PER_TRIAL},
            hyperparameters={
                name: [value[t] for t in at.tolist()] if isinstance(value, list) else value
                for name, value in self.hyperparameters.items()
            },
            seeds=tuple(self.seeds[t] for t in at.tolist()),
            status=tuple(self.status[t] for t in at.tolist()),
            answers=self.answers[torch.from_numpy(at)],
            history=self.history[: int(self.epochs[at].max(initial=0)), :, at],
            model=model,
        )

    @staticmethod
    def join(results: Sequence[FitResult]) -> FitResult:
        """The trials of several results of one model on one task, in a row."""
        if len(results) == 1:
            return results[0]
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(result, name) for result in results]) for name in _PER_TRIAL
        }
        return replace(
            results[0],
            **arrays,
            seeds=tuple(seed for result in results for seed in result.seeds),
            status=tuple(status for result in results for status in result.status),
            seconds=sum(result.seconds for result in results),
            answers=torch.cat([result.answers for result in results]),
            history=_side_by_side([result.history for result in results]),
            model=GenerativeModel.join([result.model for result in results]),
        )

    def to_json(self) -> dict[str, object]:
        """The numbers as plain types, as `g3nn train --json` prints them. A missing number is null."""
        score = self.outcome.score_key
        beyond_classes = {"outcome": self.outcome.name, "test_log_prob": _numbers(self.test_log_prob)}
        return {
            "dataset": self.dataset,
            "setting": self.setting,
            "model": self.model_name,
            "objective": self.objective,
            "hyperparameters": self.hyperparameters,
            f"test_{score}": _numbers(self.test_score),
            f"val_{score}": _numbers(self.val_score),
            "val_loss": _numbers(self.val_loss),
            "epochs": self.epochs.tolist(),
            "status": list(self.status),
            "seeds": list(self.seeds),
            "seconds": round(self.seconds, 3),
            **(beyond_classes if score != "accuracy" else {}),
        }

    def __repr__(self) -> str:
        scores = self.test_score[np.isfinite(self.test_score)]
        mean, std = (scores.mean(), scores.std(ddof=int(scores.size > 1))) if scores.size else (np.nan, np.nan)
        trials = f"{self.trials} trial{'s' if self.trials > 1 else ''}"
        where = f"{self.dataset} {self.setting}"
        return f"FitResult({self.model_name} [{self.objective}] on {where}: test {mean:.3f} ± {std:.3f}, {trials})"


def _numbers(values: np.ndarray) -> list[float | None]:
    return [round(float(value), 6) if np.isfinite(value) else None for value in values]


def member_seeds(seeds: Sequence[int], members: int) -> tuple[int, ...]:
    """The seeds of all members, those of a trial in a row; the first has the seed of the trial."""
    apart = (seed + _APART * member for seed in seeds for member in range(members))
    # Within 64 bits, where seeds near their end continue at the beginning.
    return tuple((seed + (1 << 63)) % (1 << 64) - (1 << 63) for seed in apart)


def mixed(answers: Tensor, members: int, outcome: Outcome) -> Tensor:
    """(trials, n, width): the mixture of the members of each trial, from the answers (trials * members, n, width)."""
    return answers if members == 1 else torch.cat([outcome.mixture(trial) for trial in answers.split(members)])


def trial_endings(
    endings: Endings,
    validation_answers: Tensor,
    inputs: Inputs,
    emission: Emission,
    options: TrainingOptions,
) -> Endings:
    """How trials ended, from how their members did and what these answer together for the validation nodes in the end.

    A trial takes as long as its slowest member, and it diverged, or never had a finite loss, if one of them did. The
    terms of its history are means over the members that were still in training.
    """
    members = options.ensemble
    epochs, best, diverged = (endings[name].view(-1, members) for name in ("epochs", "best_epoch", "diverged"))
    usable = (best > 0).all(1)
    scores = options.validated(validation_answers, inputs, emission).cpu().double()
    val_loss, val_score = torch.where(usable, scores, torch.nan)
    return {
        "val_loss": val_loss,
        "val_score": val_score,
        "epochs": epochs.amax(1),
        "best_epoch": best.amax(1) * usable,
        "diverged": diverged.any(1),
        "history": endings["history"].unflatten(2, (-1, members)).nanmean(3),
    }


def evaluated(answer: torch.Tensor, inputs: Inputs) -> tuple[np.ndarray, np.ndarray]:
    """(R,) each: loss and score at the test nodes, NaN where there are none."""
    test = inputs.task.test
    if test.size == 0:
        return np.full(answer.shape[0], np.nan), np.full(answer.shape[0], np.nan)
    found = inputs.outcome.validation(answer, inputs.targets, torch.from_numpy(test).to(inputs.device))
    cost, score = found.double().cpu().numpy()
    return cost, score


def note_divergence(status: tuple[str, ...], seeds: tuple[int, ...]) -> None:
    bad = [seed for seed, word in zip(seeds, status, strict=True) if word == "diverged"]
    if bad:
        warn_caller(
            f"the loss of {len(bad)} of {len(seeds)} trials became NaN or infinite (seeds {bad[:5]}); "
            "they were stopped, the others continued. A lower lr usually helps"
        )


def joined(parts: Sequence[Endings]) -> Endings:
    """The endings of several stacks in a row."""
    together = {name: torch.cat([part[name] for part in parts]) for name in parts[0] if name != "history"}
    return together | {"history": torch.from_numpy(_side_by_side([part["history"].numpy() for part in parts]))}


def _side_by_side(histories: Sequence[np.ndarray]) -> np.ndarray:
    """Histories (epochs, terms, R) as one that is as long as the longest."""
    longest = max(map(len, histories))
    missing = [((0, longest - len(history)), (0, 0), (0, 0)) for history in histories]
    padded = [np.pad(one, rows, constant_values=np.nan) for one, rows in zip(histories, missing, strict=True)]
    return np.concatenate(padded, axis=2)
