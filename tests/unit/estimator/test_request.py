from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression

from g3nn.base.errors import G3NNWarning, InputError, Problems
from g3nn.estimator import G3NNClassifier, Nodes
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.fitting import _search
from g3nn.estimator.problem import fingerprint, read_problem
from g3nn.graph.features import FeatureTable
from g3nn.graph.given import Given, take_apart
from g3nn.training.progress import Course

X = np.eye(8)
Y = np.array([0, 0, 0, 1, 1, 1, -1, -1])
EDGES = np.array([[0, 1, 6], [1, 2, 7]])


def request(X=X, y=Y, edges=EDGES, val=None, **parameters):
    classifier, problems = G3NNClassifier(**parameters), Problems()
    given = take_apart(Given(X, y, edges, val, bool(classifier.directed)), problems)
    return read_problem(classifier.get_params(), classifier.outcome_for(given.y, problems), given, problems, [])


def problems_of(**given):
    with pytest.raises(InputError) as caught:
        request(**given)
    return {problem.argument: str(problem) for problem in caught.value.problems}


def test_labelled_nodes_are_split():
    found = request()
    assert np.sort(np.concatenate([found.train, found.val])).tolist() == [0, 1, 2, 3, 4, 5]
    assert sorted(Y[found.val].tolist()) == [0, 1]
    assert len(found.seeds) == 5
    assert len(found.candidates) > 5


def test_everything_random_follows_from_the_random_state():
    one, same, other = (request(random_state=state) for state in (1, 1, 2))
    assert one.seeds == same.seeds != other.seeds
    np.testing.assert_array_equal(one.val, same.val)
    # A generator moves on, None is never the same twice.
    generator = np.random.RandomState(0)
    assert request(random_state=generator).seeds != request(random_state=generator).seeds


def test_two_edges_in_an_array_work_and_a_note_says_how_they_are_read():
    for two in (EDGES[:, :2], EDGES[:, :2].tolist(), torch.tensor(EDGES[:, :2])):
        with pytest.warns(
            G3NNWarning, match=r"^edges: a 2 x 2 array is read as \(2, E\): \(0, 1\) and \(1, 2\); a list of"
        ):
            np.testing.assert_array_equal(request(edges=two).edges, [[0, 1], [1, 2]])
    for clear in ([(0, 1), (1, 2)], tuple(EDGES[:, :2])):
        np.testing.assert_array_equal(request(edges=clear).edges, [[0, 1], [1, 2]])
    with pytest.warns(G3NNWarning, match=r"\(0, 2\) and \(1, 3\); a list of tuples"):
        np.testing.assert_array_equal(request(edges=[[0, 1], [2, 3]]).edges, [[0, 1], [2, 3]])
    with pytest.warns(G3NNWarning, match=r"\(0, 2\) and \(1, 3\)"):
        np.testing.assert_array_equal(request(edges=((0, 1), (2, 3))).edges, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(request(edges=[(0, 1), (2, 3)]).edges, [[0, 2], [1, 3]])


def test_validation_nodes_may_be_given():
    for val in ([0, 3], np.isin(np.arange(8), [0, 3])):
        found = request(val=val, model="gcn")
        assert (found.val.tolist(), found.train.tolist()) == ([0, 3], [1, 2, 4, 5])


def test_few_validation_nodes_choose_with_folds_of_training_labels_but_are_not_trained_on():
    found = request(val=[0, 3])
    assert {0, 3} < set(found.val.tolist())
    assert found.given.tolist() == [0, 3]
    assert all(not {0, 3} & set(fold.tolist()) for fold in found.folds[1:])
    assert sorted(np.concatenate(found.folds).tolist()) == [0, 1, 2, 3, 4, 5]


def test_replicas_have_folds_of_their_own_unless_there_are_many_labels_or_an_estimator_as_prior():
    n = 2400
    pairs = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    X, y = np.eye(2)[np.arange(n) % 2], np.arange(n) % 2
    some = np.where(np.arange(n) < 600, y, -1)
    assert request(X, some, pairs).folds
    assert not request(X, y, pairs).folds
    assert not request(X, some, pairs, prior=LogisticRegression()).folds
    assert "trees-neighbours" in [one.name for one in request(X, some, pairs).simple]
    assert request(X, some, pairs, model="gcn").simple == ()


@pytest.mark.parametrize("effort", EFFORTS)
def test_no_fold_chooses_alone(effort):
    pairs = np.stack([np.arange(600), (np.arange(600) + 1) % 600])
    folded = request(np.eye(2)[np.arange(600) % 2], np.arange(600) % 2, pairs, effort=effort)
    assert folded.folds
    assert _search(folded, Course(), []).effort.replicas == max(2, EFFORTS[effort].replicas)


def test_every_problem_is_in_one_message():
    found = problems_of(
        X=np.full((8, 8), np.nan),
        y=["a"] * 8,
        edges=np.array([[0], [99]]),
        model="smb-gcn",
        ensemble=0,
        validation=1.5,
        missing="drop",
        refit="yes",
        lr=-1,
        random_state="x",
    )
    assert set(found) == {
        "X", "y", "edges", "model", "ensemble", "validation", "missing", "refit", "lr", "random_state",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "argument", "said"),
    [
        ({"y": None}, "y", "nothing"),
        ({"y": Y[:3]}, "y", "8 nodes"),
        ({"val": [6]}, "val", "1 nodes without a label"),
        ({"val": [0, 1, 2]}, "val", "every label of class 0"),
        ({"val": [99]}, "val", "node numbers 99..99"),
        ({"options": {"lr": 0.1}}, "options['lr']", "a parameter of its own"),
        ({"options": {"eta": [0.1, 1.0]}}, "options['eta']", "one value"),
        ({"options": {"isolated_answer": "both"}}, "options['isolated_answer']", "Validation chooses"),
        ({"options": 3}, "options", "mapping"),
        ({"ensemble": True}, "ensemble", "whole number"),
        ({"validation": "half"}, "validation", "strictly between 0 and 1"),
        ({"device": "tpu"}, "device", "auto, cpu or cuda"),
    ],
)
def test_what_cannot_be_used_is_named(given, argument, said):
    assert said in problems_of(**given)[argument]


def test_nodes_bring_their_graph_and_say_whose_labels_these_are():
    nodes = Nodes(X, EDGES)[[5, 4, 1, 0]]
    found = request(nodes, y=["b", "b", "a", "a"], edges=None)
    assert found.labels.values.tolist() == [0, 0, -1, -1, 1, 1, -1, -1]
    assert found.features.num_nodes == 8
    np.testing.assert_array_equal(found.edges, EDGES)
    assert "Nodes hold their own" in problems_of(X=Nodes(X, EDGES))["edges"]
    assert request(Nodes(X, EDGES, directed=True), edges=None).directed


def test_pyg_data_brings_everything_and_hides_what_is_not_for_training():
    from torch_geometric.data import Data

    mask = torch.zeros(8, dtype=torch.bool)
    train, val = mask.clone(), mask.clone()
    train[[0, 3]], val[[1, 4]] = True, True
    data = Data(x=torch.tensor(X), y=torch.tensor(Y), edge_index=torch.tensor(EDGES), train_mask=train, val_mask=val)
    found = request(data, y=None, edges=None)
    assert (found.train.tolist(), found.val.tolist()) == ([0, 3], [1, 4])
    assert found.labels.labelled.tolist() == [0, 1, 3, 4]
    assert request(data, y=None, edges=None, val=[0, 4]).val.tolist() == [0, 4]
    del data.train_mask, data.val_mask
    assert request(data, y=None, edges=None).labels.labelled.tolist() == [0, 1, 2, 3, 4, 5]


def test_pyg_data_that_lacks_something():
    from torch_geometric.data import Data

    data = Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES))
    assert set(problems_of(X=data, y=Y)) == {"y", "edges", "data.y"}
    data.y = torch.tensor(Y)
    data.train_mask = torch.ones(8, 3, dtype=torch.bool)
    assert "Choose one split" in problems_of(X=data, y=None, edges=None)["data.train_mask"]


def test_a_fingerprint_tells_features_apart():
    keys = {fingerprint(FeatureTable(matrix)) for matrix in (X, 2 * X, X[::-1], X.reshape(4, 16))}
    assert len(keys) == 4
    for same in (X.copy(), X.astype(np.float32), sp.csr_array(X)):
        assert fingerprint(FeatureTable(same)) in keys
