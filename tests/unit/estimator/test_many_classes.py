"""Many classes: models that look at all pairs of classes are left out, and edges are judged by groups of classes."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn import G3NNClassifier
from g3nn.base.errors import Problems
from g3nn.estimator.problem import read_problem
from g3nn.graph.given import Given, take_apart
from g3nn.graph.outcomes import Classes
from g3nn.queries.messages import MOST_GROUPS

K, EACH = 24, 6


@pytest.fixture(scope="module")
def graph():
    """(features, labels with every third unknown, edges): a ring of nodes of each class."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(K), EACH)
    nodes = np.arange(classes.size)
    edges = np.stack([nodes, classes * EACH + (nodes + 1) % EACH])
    features = np.eye(K)[classes] + 0.3 * rng.normal(size=(classes.size, K))
    return features, np.where(nodes % 3 == 0, -1, classes), edges


def request(graph, **parameters):
    problems = Problems()
    given = take_apart(Given(*graph, None, False), problems)
    return read_problem(G3NNClassifier(**parameters).get_params(deep=False), Classes, given, problems, [])


def test_the_panel_leaves_out_models_that_look_at_all_pairs_of_classes(graph):
    names = [one.name for one in request(graph).candidates]
    assert not [name for name in names if name.startswith("blsm")]
    assert {"appnp", "sage", "sbm-appnp"} <= set(names)


def test_a_model_that_was_named_is_trained(graph):
    assert [one.name for one in request(graph, model="blsm-gcn").candidates] == ["blsm-gcn"]


@pytest.mark.slow
def test_edges_are_judged_by_groups_and_sampled_labels_are_classes(graph, tmp_path):
    classifier = G3NNClassifier("mlp", ensemble=1, epochs=30).fit(*graph)
    task, beliefs = classifier.fitted_.groups()
    assert task.num_classes == beliefs.shape[1] <= MOST_GROUPS
    np.testing.assert_allclose(beliefs.sum(1), 1)
    known = task.labels >= 0
    assert (beliefs[known].argmax(1) == task.labels[known]).all()
    before = classifier.edge_proba(graph[2])
    drawn = classifier.sample_graph(1)
    assert drawn.labels.max() >= MOST_GROUPS
    seen = graph[1] >= 0
    assert (drawn.labels[seen] == graph[1][seen]).all()
    classifier.save(tmp_path / "model")
    from g3nn import load_model

    np.testing.assert_array_equal(load_model(tmp_path / "model").edge_proba(graph[2]), before)
