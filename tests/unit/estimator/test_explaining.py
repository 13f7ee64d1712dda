"""Explanations: neighbours by leaving their edges out, features by gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn import G3NNClassifier, G3NNRegressor, InputError, load_model
from g3nn.graph.features import FeatureTable


@pytest.fixture(scope="module")
def linked() -> G3NNClassifier:
    """Two groups of nodes that features do not tell apart."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    edges = np.array([(i, j) for i in range(40) for j in range(i) if y[i] == y[j] and rng.random() < 0.3]).T
    labels = np.where(np.arange(40) % 2 == 0, y, -1)
    X = np.column_stack([y + 0.5 * rng.standard_normal(40), rng.standard_normal(40)])
    return G3NNClassifier("gcn", ensemble=2, epochs=60, device="cpu").fit(X, labels, edges)


def test_a_neighbour_is_judged_by_the_answer_without_its_edge(linked):
    (found,) = linked.explain([3])
    task, fitted = linked.task_, linked.fitted_
    around = task.edges[:, (task.edges == 3).any(axis=0)]
    assert sorted(one.node for one in found.neighbours) == sorted((around.sum(axis=0) - 3).tolist())
    strongest = found.neighbours[0]
    assert abs(strongest.change) == max(abs(one.change) for one in found.neighbours)
    pair = sorted((3, strongest.node))
    kept = ~(task.edges == np.array(pair)[:, None]).all(axis=0)
    without = fitted.answerer(replace(task.with_edges(kept), train=fitted.seen)).answer[3]
    answer = fitted.answers.answer[3]
    assert strongest.change == pytest.approx(answer.max() - without[answer.argmax()], abs=1e-6)
    assert sum(one.change for one in found.neighbours) > 0


def test_features_pull_by_their_gradient(linked):
    """Compared with a small step of each feature."""
    (found,) = linked.explain([3])
    fitted, pulls = linked.fitted_, dict(found.features)
    k, task = int(fitted.answers.answer[3].argmax()), fitted.task
    for column in range(2):
        step, values = 1e-3, []
        for sign in (-1, 1):
            features = task.features.copy()
            features[3, column] += sign * step
            values.append(fitted.answerer(replace(task, features=features, train=fitted.seen)).answer[3, k])
        slope = (values[1] - values[0]) / (2 * step)
        assert pulls[str(column)] == pytest.approx(slope * task.features[3, column], rel=0.05, abs=1e-3)


def test_numbers_and_isolated_nodes():
    rng = np.random.default_rng(0)
    X, edges = rng.standard_normal((30, 2)), np.array([np.arange(19), np.arange(1, 20)])
    y = np.where(np.arange(30) < 25, X[:, 0], np.nan)
    regressor = G3NNRegressor("gcn", ensemble=1, epochs=20, device="cpu").fit(X, y, edges)
    alone, end = regressor.explain([29, 0])
    assert alone.neighbours == []
    assert [one.node for one in end.neighbours] == [1]
    assert {name for name, _ in end.features} <= {"0", "1"}


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_values_that_were_filled_in_explain_nothing(kind, tmp_path):
    rng = np.random.default_rng(0)
    X, edges = 3 + rng.standard_normal((30, 3)), np.array([np.arange(29), np.arange(1, 30)])
    X[[3, 7], 1] = np.nan
    X[3, 2] = np.nan
    y = np.where(np.arange(30) < 20, np.arange(30) % 2, -1)
    model = G3NNClassifier("gcn", ensemble=1, epochs=5, device="cpu").fit(kind(X), y, edges)
    model.save(tmp_path / "model")
    for one in (model, load_model(tmp_path / "model")):
        found = [{name for name, _ in explained.features} for explained in one.explain([3, 7, 8])]
        assert found == [{"0"}, {"0", "2"}, {"0", "1", "2"}]


def test_nodes_outside_the_graph_are_refused(linked):
    with pytest.raises(InputError, match="nodes"):
        linked.explain([40])


def test_finding_missing_values_changes_no_features():
    matrix = sp.csr_array(np.array([[0.0, np.nan, 2.0], [1.0, 0.0, 0.0], [np.nan, 3.0, 4.0]], dtype=np.float32))
    before = matrix.copy()
    table = FeatureTable(matrix)
    np.testing.assert_array_equal(table.blanks.nonzero(), [[0, 2], [1, 0]])
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(table.matrix, part), getattr(before, part))
