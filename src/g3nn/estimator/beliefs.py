"""What an estimator of scikit-learn makes of the features, for the prior of a joint model and as columns for others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.base.parse import Matrix
from g3nn.graph.outcomes import Outcome
from g3nn.graph.outcomes.base import as_stack
from g3nn.graph.task import NodeTask
from g3nn.model.tabular import CrossFitted


@dataclass(frozen=True, eq=False)
class LearnedPrior:
    """p(y | x) by an estimator. beliefs: (m, width), about the nodes of the graph that it was learned on: those about
    training nodes come from models that have not seen their labels."""

    model: CrossFitted
    beliefs: np.ndarray

    @classmethod
    def fit(cls, estimator: Any, task: NodeTask, weights: np.ndarray | None, seed: int) -> LearnedPrior:
        """From features and labels of the training nodes. weights: (n,), how often the label of each node counts."""
        own = None if weights is None else weights[task.train]
        parts = (task.features, task.labels, task.train, task.outcome_model())
        return cls(*CrossFitted.fit(estimator, *parts, seed=seed, weights=own))

    def about(self, features: Matrix, known: np.ndarray) -> np.ndarray:
        """(n, width): about nodes with these features, among which `known` are those that it was learned on."""
        new = np.setdiff1d(np.arange(features.shape[0]), known)
        found = np.empty((features.shape[0], self.beliefs.shape[1]))
        found[known] = self.beliefs[: len(known)]
        if new.size:
            found[new] = self.model.answers(features[new].astype(np.float32))
        return found


def with_belief_columns(task: NodeTask, outcome: Outcome) -> NodeTask:
    """The task whose features have more columns: the beliefs as probabilities of classes or tags, as means of numbers,
    as log-rates of counts."""
    assert task.beliefs is not None
    if outcome.numbers_per_column == 1:
        columns = outcome.mean(as_stack(task.beliefs))[0].numpy()
    else:
        columns = task.beliefs[:, : outcome.columns]
    columns = columns.astype(np.float32)
    if sp.issparse(task.features):
        return replace(task, features=sp.csr_array(sp.hstack([task.features, sp.csr_array(columns)])))
    return replace(task, features=np.concatenate([task.features, columns], axis=1))
