"""What a fit gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from g3nn.model import GenerativeModel


@dataclass(frozen=True, eq=False)
class FitResult:
    """The trials of one model on one task. Arrays have one entry per trial, in the order of `seeds`.

    test_accuracy, val_accuracy: at the epoch of the lowest validation loss `val_loss`.
    status: "stopped" (early stopping), "limit" (ran all epochs) or "diverged" (loss no longer finite; its numbers are
    those of the best epoch before that, NaN if there was none).
    With an `ensemble` a trial has several members: probabilities are their mean, epochs and status those of the slowest
    and the worst of them, and `model` holds all members, those of a trial in a row.

    probabilities: (trials, n, K), of classes or tags. history: (epochs, terms, trials), names in `history_names`.

    outcome: what the labels are. If they are not classes, test_accuracy and val_accuracy hold the score of the outcome
    instead: the share of tags that are right, of the variance (real values) or of the deviance (counts) explained.
    predictions, deviations: (trials, n, T), mean and standard deviation of q in the unit of the labels; None for
    classes. test_log_prob: the mean log-probability (density) of a test label; val_loss is minus that of a validation
    label.
    """

    dataset: str
    setting: str
    model_name: str
    objective: str
    hyperparameters: dict[str, Any]
    seeds: tuple[int, ...]
    test_accuracy: np.ndarray
    val_accuracy: np.ndarray
    val_loss: np.ndarray
    epochs: np.ndarray
    best_epoch: np.ndarray
    status: tuple[str, ...]
    seconds: float
    probabilities: np.ndarray
    history: np.ndarray
    history_names: tuple[str, ...]
    model: GenerativeModel
    outcome: str
    predictions: np.ndarray | None
    deviations: np.ndarray | None
    test_log_prob: np.ndarray

    @property
    def trials(self) -> int:
        return len(self.seeds)

    def to_json(self) -> dict[str, Any]:
        """The numbers as plain types, as `g3nn train --json` prints them. A missing number is null."""
        beyond_classes = {"outcome": self.outcome, "test_log_prob": _numbers(self.test_log_prob)}
        return {
            "dataset": self.dataset,
            "setting": self.setting,
            "model": self.model_name,
            "objective": self.objective,
            "hyperparameters": self.hyperparameters,
            "test_accuracy": _numbers(self.test_accuracy),
            "val_accuracy": _numbers(self.val_accuracy),
            "val_loss": _numbers(self.val_loss),
            "epochs": self.epochs.tolist(),
            "status": list(self.status),
            "seeds": list(self.seeds),
            "seconds": round(self.seconds, 3),
            **(beyond_classes if self.outcome != "classes" else {}),
        }

    def __repr__(self) -> str:
        known = self.test_accuracy[np.isfinite(self.test_accuracy)]
        mean, std = (known.mean(), known.std(ddof=int(known.size > 1))) if known.size else (np.nan, np.nan)
        trials = f"{self.trials} trial{'s' if self.trials > 1 else ''}"
        where = f"{self.dataset} {self.setting}"
        return f"FitResult({self.model_name} [{self.objective}] on {where}: test {mean:.3f} ± {std:.3f}, {trials})"


def _numbers(values: np.ndarray) -> list[float | None]:
    return [round(float(value), 6) if np.isfinite(value) else None for value in values]
