"""Everything that a fit finds out, in one place: what answers are given from, and what is saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from g3nn.estimator.answers import Calibrations
from g3nn.estimator.prediction import Known
from g3nn.estimator.trained import PanelEntry
from g3nn.model import GenerativeModel, ModelSpec
from g3nn.task import NodeTask


@dataclass(frozen=True, eq=False)
class Fitted:
    """A chosen and trained model with its graph, calibration and training record.

    classes: (K,) as the caller names them; the names of the T columns of another outcome. flat: whether labels came as
    (n,), so that answers of one column do too. epochs: how long the chosen model trained. history: (epochs, terms, R),
    its learning curves, the terms as in `history_names`. hyperparameters: every option of it, defaults included.
    """

    classes: np.ndarray
    spec: ModelSpec
    objective: str
    hyperparameters: dict[str, Any]
    seeds: tuple[int, ...]
    panel: tuple[PanelEntry, ...]
    epochs: int
    history: np.ndarray
    history_names: tuple[str, ...]
    known: Known
    calibrations: Calibrations
    flat: bool = True

    @property
    def task(self) -> NodeTask:
        return self.known.task

    @property
    def model(self) -> GenerativeModel:
        """The trained replicas."""
        return self.known.answerer.model
