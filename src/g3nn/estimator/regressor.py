"""`G3NNRegressor`: the scikit-learn estimator for real values and counts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from g3nn.base.errors import Problems
from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.request import check_share
from g3nn.estimator.scoring import explained
from g3nn.graph.outcomes import OUTCOMES, NormalOutcome, Outcome, Real


@dataclass(eq=False, repr=False)
class G3NNRegressor(RegressorMixin, GraphEstimator):
    """Predicts numbers for the nodes of a partly labelled graph, with deviations and intervals that hold.

    y is (n,) or (n, T) numbers; NaN or None where unknown. By default many models are tried: networks alone, networks
    as posterior of a joint model in which nodes with close values are linked, and boosted trees. Those whose mixture
    gives the validation values the highest log-probability answer together.

    outcome:      "real", or "counts" for whole numbers from 0 on.
    model:        "auto", a name such as "near-gcn" or "gcn", or a `ModelSpec`.
    prior:        as for `G3NNClassifier`; an estimator is a regressor such as HistGradientBoostingRegressor().
    options:      any other option of the parts by name, such as noise="node" for deviations that differ between nodes.
    validation:   share of the labelled nodes that is held back to stop, choose and calibrate by.

    The other parameters are those of `G3NNClassifier`. After `fit`: target_names_ (the columns of y), n_features_in_,
    feature_names_in_ (if the columns have names), model_, panel_ (a `PanelEntry` for each model tried; its val_score
    is the share of the variance, for counts of the deviance, that is explained), temperature_ and isolated_temperature_
    (what variances are multiplied with, for nodes with and without edges), isolated_answer_, task_, val_nodes_,
    n_validation_, n_iter_, history_, history_names_ and notes_, all as for `G3NNClassifier`.
    """

    _: KW_ONLY
    outcome: str = Real.name

    def outcome_for(self, y: Any, problems: Problems) -> type[Outcome]:
        if self.learns(self.outcome):
            return OUTCOMES[self.outcome]
        problems.name("outcome", self.outcome, filter(self.learns, OUTCOMES))
        return Real

    @staticmethod
    def learns(outcome: str) -> bool:
        """Whether this estimator is the one for an outcome."""
        return outcome in OUTCOMES and issubclass(OUTCOMES[outcome], NormalOutcome)

    def table_outcomes(self) -> tuple[str, ...]:
        return (self.outcome,)

    def _name_labels(self, fitted: Fitted) -> None:
        self.target_names_ = fitted.columns

    def predict(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n,) or (n, T): the expectation of each value.

        Nothing given, or the X of the fit: all nodes of the fitted graph. Another X, with edges or without: new nodes,
        answered without a refit; in `edges`, i < n is a node of the fitted graph and n + j the j-th new one. `Nodes`:
        those nodes.
        """
        return self._shaped(self._moments(X, edges)[0])

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """The share of the variance of y that is explained (R squared), the mean over columns; nodes as in `predict`.

        Unknown values (None or NaN) do not count.
        """
        return explained(self.predict(X), y, sample_weight)

    def predict_std(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n,) or (n, T): the standard deviation of each value; nodes as in `predict`."""
        return self._shaped(self._moments(X, edges)[1])

    def predict_interval(self, level: float = 0.9, X: Any = None, edges: Any = None) -> np.ndarray:
        """(2, n) or (2, n, T): lowest and highest values that hold the true one with probability `level` (split
        conformal: as many deviations around the expectation as the validation nodes need).

        A node is compared with validation nodes, an isolated one with validation nodes without their edges, a new one
        with validation nodes as if they were new. They have also served to choose and to stop, so the promise is a
        little optimistic. With fewer than level / (1 - level) validation values no value can be excluded: intervals are
        infinite.
        """
        problems = Problems()
        check_share("level", level, problems)
        problems.raise_if_any()
        ends = self._conformal(1 - float(level), X, edges)
        return np.stack([self._shaped(ends[:, :, 0]), self._shaped(ends[:, :, 1])])

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.fitted_.flat else values
