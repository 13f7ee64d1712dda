"""Weights of edges, from the caller's arrays or a column of a table to better answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import g3nn
from g3nn.base.errors import G3NNWarning, InputError
from g3nn.base.parse import Edges


class Noisy(NamedTuple):
    """The edges of a block model and as many others between any nodes, whose weights are lower on average.

    y: the labels, -1 for the nodes in `hidden`.
    """

    X: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    hidden: np.ndarray
    val: np.ndarray
    edges: np.ndarray
    weights: np.ndarray


@pytest.fixture(scope="module")
def noisy() -> Noisy:
    task = g3nn.synthetic(nodes=400, classes=4, degree=5, features=16, labels_per_class=10, val=60, test=240, seed=0)
    rng = np.random.default_rng(0)
    every = np.concatenate([task.edges, rng.integers(400, size=(2, task.num_edges))], axis=1)
    weights = np.concatenate([rng.gamma(4.0, 1.0, task.num_edges), rng.gamma(4.0, 0.25, task.num_edges)])
    # Each pair once, as a table would have it.
    _, first = np.unique(np.sort(every, axis=0), axis=1, return_index=True)
    first = first[every[0, first] != every[1, first]]
    y = np.full(400, -1)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    return Noisy(task.features, y, task.labels, np.flatnonzero(y < 0), task.val, every[:, first], weights[first])


@pytest.mark.slow
def test_weights_that_tell_true_edges_from_false_ones_help(noisy):
    def accuracy(weights: np.ndarray | None) -> float:
        clf = g3nn.G3NNClassifier("gcn", ensemble=1, epochs=60, device="cpu")
        answers = clf.fit(noisy.X, noisy.y, noisy.edges, val=noisy.val, weights=weights).predict()
        return float((answers == noisy.truth)[noisy.hidden].mean())

    assert accuracy(noisy.weights) > accuracy(None) + 0.03


@pytest.mark.parametrize("bad", [-0.5, np.nan, np.inf])
def test_weights_that_are_none_are_refused_however_they_come(noisy, bad):
    weights, n = noisy.weights.copy(), len(noisy.y)
    weights[3] = bad
    frame = pd.DataFrame({"source": noisy.edges[0], "target": noisy.edges[1], "weight": weights})
    matrix = sp.csr_array((weights, tuple(noisy.edges)), shape=(n, n))
    quick = g3nn.G3NNClassifier("gcn", denoise=True, ensemble=1, epochs=2, device="cpu")
    for given in (
        {"X": noisy.X, "edges": noisy.edges, "weights": weights},
        {"X": noisy.X, "edges": frame},
        {"X": noisy.X, "edges": matrix},
        {"X": g3nn.Nodes(noisy.X, noisy.edges, weights=weights)},
    ):
        with pytest.raises(InputError, match=r"^weights: got 1 (negative|NaN or infinite) values.*of at least 0"):
            quick.fit(**given, y=noisy.y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:denoise")
def test_weights_need_not_be_probabilities(noisy):
    """Only their ratios count, also where edges are doubted."""
    quick = g3nn.G3NNClassifier("gcn", denoise=True, ensemble=1, epochs=2, device="cpu")
    found = [
        quick.fit(noisy.X, noisy.y, noisy.edges, val=noisy.val, weights=scale * noisy.weights).predict_proba()
        for scale in (1.0, 50.0)
    ]
    np.testing.assert_allclose(*found, atol=1e-4)


def test_a_column_of_weights_makes_the_same_task(noisy, assert_same_task):
    nodes = pd.DataFrame(noisy.X, columns=[f"x{column}" for column in range(noisy.X.shape[1])])
    nodes["group"] = pd.Series(noisy.y).where(noisy.y >= 0).astype("Int64")
    edges = pd.DataFrame({"source": noisy.edges[0], "target": noisy.edges[1], "weight": noisy.weights})
    with pytest.warns(G3NNWarning, match="its numbers are the weights of the edges"):
        graph = g3nn.read_tables(nodes, edges, label="group")
    quick = g3nn.G3NNClassifier("gcn", ensemble=1, epochs=2, device="cpu")
    from_arrays = quick.fit(noisy.X, noisy.y, noisy.edges, weights=noisy.weights).task_
    assert from_arrays.weights is not None
    assert_same_task(quick.fit(graph).task_, from_arrays)


def test_repeats_of_an_array_weigh_in_a_fit_and_beside_new_nodes(noisy, assert_same_task, tmp_path):
    n, count = len(noisy.y), noisy.edges.shape[1]
    repeats, new = np.random.default_rng(1).integers(1, 4, count), noisy.X[:2] + 1
    more = np.array([[n, n, n, n + 1], [3, 3, 5, 7]])
    of_new = sp.coo_array(([2, 1, 1], ([n, n, n + 1], [3, 5, 7])), shape=(n + 2, n + 2))

    def fitted(edges: np.ndarray, weights: np.ndarray | None = None) -> g3nn.G3NNClassifier:
        quick = g3nn.G3NNClassifier("gcn", ensemble=1, epochs=2, device="cpu")
        return quick.fit(noisy.X, noisy.y, edges, val=noisy.val, weights=weights)

    more_pairs = repeats.sum() - count
    told = f"{count:,} edges in {repeats.sum():,} pairs; the others are {more_pairs:,} repeats. An edge weighs"
    with pytest.warns(G3NNWarning, match=told):
        counted = fitted(np.repeat(noisy.edges, repeats, axis=1))
    weighed = fitted(noisy.edges, repeats)
    assert_same_task(counted.task_, weighed.task_)
    counted.save(tmp_path / "model")
    for one in (counted, g3nn.load_model(tmp_path / "model")):
        with pytest.warns(G3NNWarning, match="3 edges in 4 pairs; the others are 1 repeat. An edge weighs"):
            found = one.predict_proba(new, more)
        np.testing.assert_allclose(found, weighed.predict_proba(new, of_new), rtol=1e-5)
        weights = one.fitted_._weighted(Edges(more[:, 1:])).weights
        np.testing.assert_allclose(weights, 1 / repeats.mean(), rtol=1e-12, err_msg="stated once")
    with pytest.warns(G3NNWarning, match="the others are 1 repeat$"):
        again = weighed.predict_proba(new, more)
    np.testing.assert_array_equal(again, weighed.predict_proba(new, more[:, 1:]), "what it weighs is not known")
