"""Weights of labels: how they are read, and that a weight of two counts a node twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from g3nn.base.errors import InputError, Problems
from g3nn.estimator import G3NNClassifier, load_model
from g3nn.graph.outcomes import OUTCOMES, Classes, Labels
from g3nn.graph.weights import label_weights, repeated, without_weightless
from g3nn.model.generative import ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.replicas import Noise, Replicas, Sizes

Y = np.array([0, 0, 0, 1, -1, 1])
LABELS = Labels(np.array(["a", "b"]), Y)


def read(class_weight=None, sample_weight=None, nodes=None, val=(5,)):
    problems = Problems()
    found = label_weights(class_weight, sample_weight, nodes, LABELS, np.array(val), Classes, problems)
    problems.raise_if_any()
    return found


def test_weights_of_classes_and_of_nodes_are_multiplied():
    np.testing.assert_allclose(read("balanced"), [2 / 3, 2 / 3, 2 / 3, 2, 1, 2])
    np.testing.assert_allclose(read({"b": 3}, np.arange(6)), [0, 1, 2, 9, 4, 15])
    np.testing.assert_allclose(read(None, [5, 7], np.array([0, 3])), [5, 1, 1, 7, 1, 1])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"class_weight": "balance"}, "class_weight"),
        ({"class_weight": {"c": 1}}, "weights of 'c'"),
        ({"class_weight": {"a": 0}}, "weights above 0"),
        ({"sample_weight": [1, 2]}, "6 numbers"),
        ({"sample_weight": [1, 1, 1, 1, 1, -1]}, "from 0 on"),
        ({"sample_weight": [0, 0, 0, 0, 1, 1]}, "zero for every training node"),
    ],
)
def test_wrong_weights_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        read(**given)


def test_nodes_are_repeated_by_their_weights():
    nodes = np.array([1, 4, 6])
    assert repeated(nodes, np.zeros(7)) is nodes
    assert repeated(nodes, np.full(7, 3.0)).tolist() == [1, 4, 6]
    assert repeated(nodes, np.array([0, 2, 0, 0, 6, 0, 0.0])).tolist() == [1, 4, 4, 4]


def terms(task, model, weight=None, train=None, **objective):
    inputs = Inputs.of(task)
    targets = inputs.outcome.targets(
        task.labels, task.train if train is None else np.array(train), "cpu", torch.float32
    )
    inputs = replace(inputs, targets=replace(targets, weight=None if weight is None else torch.tensor(weight)))
    replicas = Replicas((0, 1))
    built = ModelSpec.parse(model).build(Sizes.of(task, {}), replicas, {})
    noise = Noise(torch.tensor(replicas.seeds), 0)
    found = Objective(**objective).terms(built, inputs, PairSource(inputs, "observed"), noise)
    return {name: getattr(found, name).detach() for name in ("supervised", "prior", "graph", "entropy")}


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_weight_of_two_counts_a_node_twice(make_task, reduction):
    task = make_task()
    weighted = terms(task, "gcn", [1.0, 2.0, 1.0], reduction=reduction)
    twice = terms(task, "gcn", train=[0, 1, 1, 2], reduction=reduction)
    torch.testing.assert_close(weighted["supervised"], twice["supervised"])


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_only_the_terms_of_labels_are_weighted(make_task, outcome):
    task = make_task()
    model = {"classes": "sbm-gcn", "tags": "tags-gcn"}.get(outcome, "near-gcn")
    if outcome != "classes":
        values = (np.arange(task.num_nodes) % 2).astype(float)[:, None]
        task = replace(task, labels=values, num_classes=1, outcome=outcome)
    plain, ones, some = (terms(task, model, weight) for weight in (None, [1.0] * 3, [1.0, 3.0, 1.0]))
    for name, value in plain.items():
        torch.testing.assert_close(ones[name], value)
        assert torch.allclose(some[name], value) == (name in ("graph", "entropy"))


def test_balanced_weights_find_a_rare_class(make_graph, quick, tmp_path):
    graph = make_graph(nodes=300, signal=0.7, val=60, labels_per_class=20)
    rare = np.where(graph.truth == 0, np.where(np.arange(300) % 5 == 0, 0, -1), graph.truth)
    y = np.where(graph.y >= 0, rare, -1)
    plain, balanced = (
        quick(model="mlp", class_weight=weight).fit(graph.X, y, graph.edges) for weight in (None, {0: 8.0})
    )
    test = np.flatnonzero((graph.y < 0) & (graph.truth == 0))
    recall = [(one.predict()[test] == 0).mean() for one in (plain, balanced)]
    assert recall[1] > recall[0] + 0.2
    balanced.save(tmp_path / "model")
    assert load_model(tmp_path / "model").class_weight == {0: 8.0}


def test_labels_that_do_not_count_are_not_known():
    """Unless they validate, or are all that there are of a class."""
    labels = Classes.read(np.array([0, 0, 1, 1, 2, 2, -1]), 7, Problems())
    weights = np.array([1.0, 0, 0, 1, 0, 0, 1])
    assert without_weightless(labels, weights, np.array([1])).labelled.tolist() == [0, 1, 3, 4, 5]
    assert without_weightless(labels, None, np.array([1])) is labels


@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
def test_a_label_without_weight_makes_no_difference(graph):
    weights = np.ones(len(graph.y))
    labelled = np.flatnonzero(graph.y >= 0)
    weights[labelled[::2]] = 0
    wrong = np.where(weights == 0, (graph.truth + 1) % 3, graph.y)
    answers = [
        G3NNClassifier(effort="quick", epochs=5, ensemble=3, device="cpu", label_noise=False)
        .fit(graph.X, y, graph.edges, sample_weight=weights)
        .predict_proba()
        for y in (graph.y, np.where(graph.y < 0, -1, wrong))
    ]
    np.testing.assert_array_equal(*answers)
