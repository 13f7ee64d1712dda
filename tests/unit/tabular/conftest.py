from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from g3nn.graph.outcomes import OUTCOMES, Outcome


class Table(NamedTuple):
    """Nodes without a graph: the first 90 are for training."""

    X: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    outcome: Outcome


@pytest.fixture(scope="session")
def table() -> Any:
    """Labels of each outcome that two of six features tell; of three columns some values are unknown."""

    def make(name: str, columns: int = 3) -> Table:
        rng = np.random.default_rng(3)
        X = rng.normal(size=(120, 6))
        train = np.arange(90)
        signal = X[:, [0]] * np.array([2.0, -2.0, 1.0]) + X[:, [1]] * np.array([1.0, 1.0, -2.0])
        if name == "classes":
            labels = (signal + 0.3 * rng.normal(size=signal.shape)).argmax(1)
        else:
            noisy = signal[:, :columns] + 0.3 * rng.normal(size=(120, columns))
            values = {"tags": noisy > 0, "real": 1000 + 50 * noisy, "counts": rng.poisson(np.exp(noisy / 2 + 1))}
            labels = values[name].astype(np.float64)
            labels[rng.random(labels.shape) < 0.1] = np.nan
        size = 3 if name == "classes" else columns
        return Table(X, labels, train, OUTCOMES[name].of(labels[train], size))

    return make
