"""`G3NNRegressor`: the scikit-learn estimator for real values and counts."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from g3nn.errors import Problems
from g3nn.estimator.base import GraphEstimator, check_judged, node_numbers
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.groups import number_groups
from g3nn.estimator.measures import COVERAGE_LEVEL, number_measures
from g3nn.estimator.numbers import as_columns
from g3nn.estimator.request import is_share
from g3nn.task import NodeTask

_ROUNDING = 1e-6


@dataclass(eq=False, repr=False)
class G3NNRegressor(RegressorMixin, GraphEstimator):
    """Predicts numbers for the nodes of a partly labelled graph, with deviations and intervals that hold.

    y is (n,) or (n, T) numbers; NaN or None where unknown. By default a panel of models is trained: networks alone, and
    networks as posterior of a joint model in which nodes with close values are linked. The one with the highest
    log-probability of the validation values answers, as the mean of `ensemble` replicas.

    outcome:      "real" for real values, "counts" for counts (whole numbers from 0 on).
    model:        "auto", a name such as "near-gcn" or "gcn", or a `ModelSpec`.
    options:      any other option of the parts by name, such as noise="node" for deviations that differ between nodes.
    validation:   share of the labelled nodes that is held back to stop, choose and calibrate by.

    The other parameters are those of `G3NNClassifier`. After `fit`: target_names_ (the columns of y), n_features_in_,
    feature_names_in_ (if the columns have names), model_, panel_ (a `PanelEntry` for each model tried; its val_accuracy
    is the share of the variance, for counts of the deviance, that is explained), temperature_ and isolated_temperature_
    (what variances are multiplied with, for nodes with and without edges), isolated_answer_, task_, val_nodes_,
    n_validation_, n_iter_, history_, history_names_ and notes_, all as for `G3NNClassifier`.
    """

    _: KW_ONLY
    outcome: str = "real"

    def _name_labels(self, fitted: Fitted) -> None:
        self.target_names_ = fitted.classes

    def predict(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n,) or (n, T): the expectation of each value.

        Nothing given: all nodes of the fitted graph. X alone or with edges: new nodes, answered without a refit; in
        `edges`, i < n is a node of the fitted graph and n + j the j-th new one. `Nodes`: those nodes.
        """
        return self._shaped(self._moments(X, edges)[0])

    def predict_std(self, X: Any = None, edges: Any = None) -> np.ndarray:
        """(n,) or (n, T): the standard deviation of each value; nodes as in `predict`."""
        return self._shaped(self._moments(X, edges)[1])

    def predict_interval(self, level: float = 0.9, X: Any = None, edges: Any = None) -> np.ndarray:
        """(2, n) or (2, n, T): lowest and highest values that hold the true one with probability `level` (split
        conformal: as many deviations around the expectation as the validation nodes need).

        The validation nodes have also served to choose and to stop, so the promise is a little optimistic. Nodes
        without edges are compared with validation nodes without theirs, and new ones with validation nodes as if they
        were new. With fewer than level / (1 - level) validation values nothing can be left out: intervals are infinite.
        """
        if not is_share(level):
            problems = Problems()
            problems.add("level", repr(level), "a number strictly between 0 and 1")
            problems.raise_if_any()
        answers = self._ask(X, edges)
        found = self.fitted_.calibrations.intervals(answers, self._number_judge(), float(level))
        if self.outcome == "counts":
            # Counts are whole, so nothing inside is lost; a count at the very end must not fall to rounding.
            ends = np.ceil(found[0] - _ROUNDING), np.floor(found[1] + _ROUNDING)
            found = np.maximum(np.stack(ends), 0.0)
        return found[:, :, 0] if self.fitted_.flat else found

    def evaluate(self, nodes: Any, y: Any) -> dict[str, Any]:
        """How good the answers for these nodes of the fitted graph are (mask or numbers), given their values.

        rmse, mae, r2, log_prob (mean log-probability or density of a value), coverage (share of the values inside 90 %
        intervals) and the number of nodes. Of several columns these are means, and `columns` holds them for each.
        """
        check_is_fitted(self)
        problems = Problems()
        chosen = node_numbers(nodes, self.task_.num_nodes, problems)
        values = as_columns(y, self.outcome, len(self.target_names_), problems)
        check_judged(chosen, len(values), problems)
        problems.raise_if_any()
        low, high = self.predict_interval(COVERAGE_LEVEL).reshape(2, self.task_.num_nodes, -1)[:, chosen]
        judge, answers = self._number_judge(), self.fitted_.known.answers.at(chosen)
        answer = self.fitted_.calibrations.scaled(answers, judge)
        mean, log_prob = judge.in_units(answer)[0], judge.log_prob(answer, values)
        columns = [number_measures(*column) for column in zip(values.T, mean.T, log_prob.T, low.T, high.T, strict=True)]
        found: dict[str, Any] = {name: float(np.nanmean([one[name] for one in columns])) for name in columns[0]}
        if not self.fitted_.flat:
            found["columns"] = dict(zip(map(str, self.target_names_.tolist()), columns, strict=True))
        return {**found, "nodes": len(chosen)}

    def _moments(self, X: Any, edges: Any) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation (n, T)."""
        answers = self._ask(X, edges)
        judge = self._number_judge()
        return judge.in_units(self.fitted_.calibrations.scaled(answers, judge))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[:, 0] if self.fitted_.flat else values

    def _for_audit(self) -> tuple[NodeTask, np.ndarray]:
        """An edge is judged by what its ends are like: the values of the first column in five groups of equal size."""
        mean, deviation = self._moments(None, None)
        return number_groups(self.task_, mean[:, 0], deviation[:, 0])
