"""Marks of edges: read, checked, and kept with the edges that they stand on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import g3nn
from g3nn.base.errors import InputError
from g3nn.graph.datasets.synthetic import synthetic
from g3nn.graph.marks import Marks
from g3nn.graph.task import NodeTask

PAIRS = np.array([[0, 1, 2, 0, 3], [1, 2, 3, 1, 3]])
VALUES = np.array([[1.5, 0], [2.5, 1], [np.nan, 1], [4.0, np.nan], [9.0, 0]])


@pytest.fixture
def marks():
    return Marks.of(PAIRS, VALUES, (0, 2), ["a", "a", "b", "b", "a"])


def test_rows_follow_the_edges(marks):
    task = NodeTask.build(np.eye(4), PAIRS[:, :3], [0, 1, 0, 1], [0, 1], [2], marks=marks)
    assert task.marks.pairs.T.tolist() == [[0, 1], [1, 2], [2, 3], [0, 1]]
    assert task.with_edges(np.array([True, False, False])).marks.values[:, 0].tolist() == [1.5, 4.0]
    assert task.without_edges_of(np.array([3])).marks.pairs.T.tolist() == [[0, 1], [1, 2], [0, 1]]
    assert task.among(np.array([0, 1])).marks is None
    assert task.with_split([0, 1], [3], [2]).marks.pairs.shape == (2, 4)
    assert marks.without(["a"]).pairs.T.tolist() == [[2, 3], [0, 1]]
    assert marks.within(np.array([1, 2])).pairs.tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("values", "categories", "given"),
    [
        (VALUES[:3], (0, 2), "shapes"),
        (VALUES, (0,), "categories for 1 columns"),
        (VALUES, (0, 1), "codes that are not among"),
        (np.full((5, 1), np.inf), (), "infinite"),
    ],
)
def test_what_is_no_mark_is_said_once(values, categories, given):
    with pytest.raises(InputError, match=given):
        Marks.of(PAIRS, values, categories)


def test_nodes_must_be_in_the_graph(marks):
    with pytest.raises(InputError, match="outside the graph"):
        NodeTask.build(np.eye(3), [(0, 1)], [0, 1, 0], [0, 1], [2], marks=marks)


def drawn(seed, sep):
    """A graph on which the logarithm of an amount on each edge depends on the classes of its ends, unless sep is 0."""
    how = {"nodes": 300, "classes": 3, "degree": 6.0, "homophily": 0.4, "signal": 1.5}
    task = synthetic(**how, labels_per_class=5, val=30, seed=seed)
    rng = np.random.default_rng(seed)
    of_pair = sep * np.array([[-2, 0, 1], [0, 2, -1], [1, -1, 0]])
    amount = np.exp(of_pair[tuple(task.labels[task.edges])] + rng.normal(size=task.num_edges))
    return task, replace(task, marks=Marks.of(task.edges, amount))


def accuracy(task, model):
    return g3nn.fit(task, model, trials=2, epochs=100, progress=False).test_accuracy


def tables(task, amount):
    """With the label of 15 nodes; amounts in a column of the edges, and where they are large in another."""
    known = {int(node): f"class {task.labels[node]}" for node in task.train}
    columns = {f"x{place}": task.features[:, place] for place in range(4)}
    label = [known.get(i) for i in range(task.num_nodes)]
    nodes = pd.DataFrame({"id": range(task.num_nodes), **columns, "label": label})
    source, target = task.edges
    return nodes, pd.DataFrame({"source": source, "target": target, "amount": amount, "size": amount > 1})


@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
def test_columns_of_an_edge_table_are_marks_that_are_saved(tmp_path):
    task, marked = drawn(1, 1.0)
    nodes, edges = tables(task, marked.marks.values[:, 0])
    clf = g3nn.G3NNClassifier(model="sbm-gcn", epochs=30, ensemble=2, random_state=0, verbose=False)
    clf.fit(nodes, "label", edges, id="id")
    again = g3nn.load_model(clf.save(tmp_path / "model") or tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(), clf.predict_proba(), atol=1e-5)
    graph = g3nn.read_tables(nodes, edges, id="id", label="label")
    assert graph.marks.categories == (0, 0)
    plain = g3nn.G3NNClassifier(model="sbm-gcn", epochs=30, ensemble=2, random_state=0, verbose=False)
    plain.fit(replace(graph, marks=None))
    assert np.abs(plain.predict_proba() - clf.predict_proba()).max() > 1e-3


def test_amounts_that_depend_on_classes_help_and_others_do_no_harm():
    without, marked = drawn(0, 1.0)
    assert accuracy(marked, "sbm-gcn").mean() > accuracy(without, "sbm-gcn").mean() + 0.03
    np.testing.assert_array_equal(accuracy(marked, "gcn"), accuracy(without, "gcn"))
    without, noise = drawn(0, 0.0)
    assert accuracy(noise, "sbm-gcn").mean() > accuracy(without, "sbm-gcn").mean() - 0.02
