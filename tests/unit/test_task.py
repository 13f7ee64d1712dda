from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.base.errors import G3NNWarning, InputError
from g3nn.base.parse import distinct
from g3nn.graph.task import NodeTask

N = 8
X = np.arange(24.0).reshape(N, 3) % 5
EDGES = np.array([[0, 2, 1, 6], [1, 1, 3, 5]])
LABELS = np.array([0, 1, 0, 1, 0, 1, -1, 0])


def parts(**changes: Any) -> dict[str, Any]:
    """Sound raw parts of a task, but for the changes."""
    given = {"features": X, "edges": EDGES, "labels": LABELS, "train": [0, 1, 2], "val": [3, 4], "test": [5]}
    return {**given, **changes}


def build(**changes: Any) -> NodeTask:
    return NodeTask.build(**parts(**changes))


def mask(*nodes: int) -> np.ndarray:
    return np.isin(np.arange(N), nodes)


def spoiled(array: np.ndarray, where: Any, value: float) -> np.ndarray:
    copy = array.copy()
    copy[where] = value
    return copy


BELIEFS = np.log([[0.3, 0.7]] * N)

BAD = {
    "beliefs of wrong width": ({"beliefs": BELIEFS[:, :1]}, "beliefs", r"shape \(8, 1\)"),
    "beliefs that are infinite": ({"beliefs": spoiled(BELIEFS, 0, -np.inf)}, "beliefs", "infinite"),
    "label too high": ({"labels": spoiled(LABELS, 7, 5), "num_classes": 2}, "labels", "1 values outside .* 5"),
    "label below -1": ({"labels": spoiled(LABELS, 7, -2)}, "labels", "1 values outside .* -2"),
    "fractional label": ({"labels": LABELS + 0.5}, "labels", "whole numbers"),
    "label NaN": ({"labels": spoiled(LABELS.astype(float), 0, np.nan)}, "labels", "whole numbers"),
    "label beyond 64 bits": ({"labels": spoiled(LABELS.astype(np.uint64), 7, 2**64 - 1)}, "labels", f"{2**64 - 1}"),
    "huge label": ({"labels": spoiled(LABELS.astype(float), 7, 1e300)}, "labels", r"1e\+300; .*whole numbers"),
    "a gap of 10^18": ({"labels": spoiled(LABELS, 7, 10**18)}, "train", "no training label of class 2, 3"),
    "lists of several lengths": ({"labels": [[1]] * (N - 1) + [[1, 2]]}, "labels", "whole numbers"),
    "labels as text": ({"labels": LABELS.astype(str)}, "labels", "whole numbers"),
    "labels of wrong length": ({"labels": LABELS[:-1]}, "labels", r"shape \(7,\)"),
    "one class": ({"labels": np.zeros(N, int)}, "labels", "1 classes"),
    "class without training label": ({"labels": spoiled(LABELS, 5, 2)}, "train", "no training label of class 2"),
    "class that nobody has": ({"num_classes": 3}, "train", "no training label of class 2"),
    "no labelled node": ({"train": []}, "train", "no labelled node"),
    "no validation node": ({"val": []}, "val", "no validation node"),
    "training node of unknown label": ({"train": [0, 1, 6]}, "train", "1 nodes without a label"),
    "edge end too high": ({"edges": [[0, 1], [1, 8]]}, "edges", "1 ends outside the graph, e.g. 8"),
    "edge end negative": ({"edges": [[0, -1], [1, 2]]}, "edges", "1 ends outside the graph, e.g. -1"),
    "edges of one dimension": ({"edges": EDGES[0]}, "edges", r"shape \(4,\)"),
    "edges not whole": ({"edges": EDGES + 0.5}, "edges", "values of type float64"),
    "weights of wrong length": ({"weights": [1.0, 2.0]}, "weights", r"shape \(2,\).* expected shape \(4,\)"),
    "weights as text": ({"weights": list("abcd")}, "weights", "values of type <U1"),
    "a single weight": ({"weights": True}, "weights", r"shape \(\)"),
    "weight negative": ({"weights": [1, 2, -3, 4]}, "weights", r"1 negative values, e\.g\. -3\.0.*weights=False"),
    "weight NaN": ({"weights": [1, np.nan, 3, 4]}, "weights", "1 NaN or infinite values"),
    "weight infinite": ({"weights": [1, np.inf, 3, np.inf]}, "weights", "2 NaN or infinite values"),
    "features NaN": ({"features": spoiled(X, (0, 0), np.nan)}, "features", "1 NaN or infinite"),
    "sparse features NaN": ({"features": sp.csr_array(spoiled(X, (0, 1), np.nan))}, "features", "1 NaN or infinite"),
    "features too large for float32": ({"features": spoiled(X, (0, 0), 1e300)}, "features", "1 NaN or infinite"),
    "empty graph": ({"features": np.zeros((0, 3)), "labels": []}, "features", r"shape \(0, 3\)"),
    "no features": ({"features": np.zeros((N, 0))}, "features", r"shape \(8, 0\)"),
    "features of one dimension": ({"features": X[:, 0]}, "features", r"shape \(8,\)"),
    "features as text": ({"features": np.full((N, 3), "a")}, "features", "numbers"),
    "mask of wrong length": ({"train": mask(0, 1, 2)[:-1]}, "train", "a mask of shape"),
    "split not whole": ({"test": [5.0]}, "test", "type float64"),
    "split node too high": ({"test": [5, 8]}, "test", r"node numbers 5\.\.8"),
    "split node negative": ({"test": [-1]}, "test", r"node numbers -1\.\.-1"),
    "train and val overlap": ({"val": [2, 3]}, "train and val", "1 nodes in both"),
}


class TestBadInput:
    @pytest.mark.parametrize(("changes", "argument", "message"), BAD.values(), ids=BAD.keys())
    def test_is_named(self, changes, argument, message):
        with pytest.raises(InputError, match=message) as caught:
            build(**changes)
        assert [problem.argument for problem in caught.value.problems] == [argument]

    def test_no_unlabelled_node_leaves_none_for_validation_either(self):
        with pytest.raises(InputError, match="all 8 nodes") as caught:
            build(labels=np.arange(N) % 2, train=range(N), val=[], test=[])
        assert sorted(problem.argument for problem in caught.value.problems) == ["train", "val"]

    def test_several_problems_are_listed_together(self):
        changes = {
            "features": spoiled(X, (0, 0), np.nan),
            "edges": [[0], [99]],
            "labels": spoiled(LABELS, 7, -5),
            "train": [0, 1, 6],
            "val": [],
            "test": [0, 77],
        }
        with pytest.raises(InputError) as caught:
            build(**changes)
        found = [problem.argument for problem in caught.value.problems]
        assert sorted(found) == ["edges", "features", "labels", "test", "train", "val"]

    def test_labels_of_wrong_length_do_not_hide_the_other_problems(self):
        with pytest.raises(InputError) as caught:
            build(labels=LABELS[:-1], features=spoiled(X, (0, 0), np.nan), edges=EDGES[0])
        assert [problem.argument for problem in caught.value.problems] == ["features", "edges", "labels"]

    def test_wrong_weights_are_listed_together_and_with_wrong_edges(self):
        with pytest.raises(InputError) as caught:
            build(edges=EDGES + 9, weights=[np.nan, -1.0])
        assert [problem.argument for problem in caught.value.problems] == ["weights"] * 3 + ["edges"]


class TestEdges:
    def test_each_undirected_pair_once_with_the_lower_end_first(self):
        assert build().edges.tolist() == [[0, 1, 1, 5], [1, 2, 3, 6]]

    def test_directed_edges_keep_their_direction(self):
        edges = build(directed=True).edges
        assert sorted(map(tuple, edges.T.tolist())) == sorted(map(tuple, EDGES.T.tolist()))

    def test_both_arcs_of_an_undirected_edge_are_no_reason_to_warn(self, assert_same_task):
        assert_same_task(build(edges=np.concatenate([EDGES, EDGES[::-1]], axis=1)), build())

    def test_both_arcs_of_a_directed_graph_are_two_edges(self):
        assert build(edges=[[0, 1], [1, 0]], directed=True).num_edges == 2

    def test_may_be_pairs(self, assert_same_task):
        pairs = list(map(tuple, EDGES.T.tolist()))
        assert_same_task(build(edges=pairs), build())
        assert_same_task(build(edges=EDGES.T), build())
        assert_same_task(build(edges=pairs[:2]), build(edges=EDGES[:, :2]))

    @pytest.mark.parametrize(
        ("how", "weights", "done"),
        [
            ({}, [1.6, 0.8, 0.8, 0.8], ". An edge weighs as much as it was repeated; weights=False counts each once."),
            ({"weights": False}, None, ""),
            ({"directed": True}, None, ""),
        ],
        ids=["repeats", "alike", "directed"],
    )
    def test_one_warning_says_what_became_of_every_pair(self, how, weights, done, assert_same_task):
        extra = [[4, 4, 7, 0], [4, 4, 7, 1]]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            task = build(edges=np.concatenate([EDGES, extra], axis=1), **how)
        (warning,) = caught
        assert warning.category is G3NNWarning
        assert str(warning.message) == f"edges: 4 edges in 8 pairs; the others are 3 self-loops, 1 repeat{done}"
        assert_same_task(replace(task, weights=None), build(**how))
        np.testing.assert_allclose(weights or [], [] if task.weights is None else task.weights, rtol=1e-15)

    def test_the_warning_points_at_the_caller(self):
        with pytest.warns(G3NNWarning) as caught:
            NodeTask.build(**parts(edges=[[0, 1], [1, 1]]))
        assert caught[0].filename == __file__

    @pytest.mark.parametrize("empty", [[], np.zeros((0, 2))])
    def test_no_edges(self, empty):
        edges = build(edges=empty).edges
        assert edges.shape == (2, 0)
        assert edges.dtype == np.int64

    @pytest.mark.parametrize("kind", [np.uint8, torch.tensor])
    def test_any_whole_numbers(self, kind, assert_same_task):
        given = kind(EDGES.tolist()) if kind is torch.tensor else EDGES.astype(kind)
        assert_same_task(build(edges=given), build())


WEIGHTS = np.array([2.0, 1.0, 4.0, 5.0])
"""Of `EDGES`; in the order of a task 2, 1, 4, 5, since it turns round 2 - 1 and 6 - 5. Their mean is 3."""


class TestWeights:
    def test_are_divided_by_their_mean_and_ordered_like_the_edges(self):
        order = np.array([3, 1, 0, 2])
        for task in (build(weights=WEIGHTS), build(edges=EDGES[:, order], weights=WEIGHTS[order])):
            np.testing.assert_allclose(task.weights, WEIGHTS / 3, rtol=1e-15)
        assert task.weights.dtype == np.float64
        assert "4 weighted edges" in repr(task)
        found = build(edges=EDGES[:, order], weights=WEIGHTS[order], directed=True)
        given = dict(zip(map(tuple, EDGES.T), WEIGHTS / 3, strict=True))
        np.testing.assert_allclose(found.weights, [given[tuple(arc)] for arc in found.edges.T], rtol=1e-15)

    @pytest.mark.parametrize("weights", [None, False, np.full(4, 2.0), [0.1] * 4, torch.ones(4)])
    def test_equal_ones_are_none(self, weights, assert_same_task):
        task = build(weights=weights)
        assert task.weights is None
        assert_same_task(task, build())

    def test_no_weight_means_no_edge(self, assert_same_task):
        task = build(weights=[2.0, 0.0, 4.0, 6.0])
        assert_same_task(task, build(edges=EDGES[:, [0, 2, 3]], weights=[2.0, 4.0, 6.0]))
        np.testing.assert_allclose(task.weights, [0.5, 1.0, 1.5])
        assert build(weights=np.zeros(4)).num_edges == 0

    def test_both_directions_of_an_undirected_edge_add_up(self):
        both = np.concatenate([EDGES, EDGES[::-1]], axis=1)
        np.testing.assert_array_equal(
            build(edges=both, weights=np.tile(WEIGHTS, 2)).weights, build(weights=WEIGHTS).weights
        )
        uneven = build(edges=both, weights=[*(WEIGHTS - 0.5), 0.5, 0.5, 0.5, 0.5])
        np.testing.assert_allclose(uneven.weights, WEIGHTS / 3)

    @pytest.mark.parametrize("directed", [False, True])
    def test_repeated_edges_add_up_and_those_of_self_loops_are_left_out(self, directed):
        edges, weights = np.concatenate([EDGES, EDGES[:, :1], [[7], [7]]], axis=1), [1.5, *WEIGHTS[1:], 0.5, 99.0]
        with pytest.warns(G3NNWarning, match="4 edges in 6 pairs; the others are 1 self-loop, 1 repeat$"):
            task = build(edges=edges, weights=weights, directed=directed)
        np.testing.assert_array_equal(task.weights, build(weights=WEIGHTS, directed=directed).weights)

    @pytest.mark.parametrize("directed", [False, True])
    def test_come_with_a_matrix_or_a_graph(self, directed, assert_same_task):
        matrix = sp.coo_array((WEIGHTS, tuple(EDGES)), shape=(N, N))
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(zip(*EDGES.tolist(), WEIGHTS, strict=True))
        for edges in (matrix, graph) if directed else (matrix, matrix + matrix.T, graph, graph.to_undirected()):
            task = build(edges=edges, directed=directed)
            assert_same_task(task, build(weights=WEIGHTS, directed=directed))
            assert build(edges=edges, directed=directed, weights=False).weights is None
        assert build(edges=matrix.astype(bool), directed=directed).weights is None

    def test_follow_their_edges(self):
        task = build(weights=WEIGHTS)
        kept = np.array([False, True, True, False])
        for part in (task.with_edges(kept), task.with_edges(np.array([1, 2])), task.without_edges_of(np.array([0, 6]))):
            np.testing.assert_array_equal(part.edges, task.edges[:, kept])
            np.testing.assert_array_equal(part.weights, task.weights[kept])
        moved = task.with_split(np.array([3, 4]), np.array([0]), np.array([1, 2]))
        np.testing.assert_array_equal(moved.weights, task.weights)
        assert build().with_edges(kept).weights is None

    def test_that_are_not_relative_survive_another_split(self):
        task = replace(build(), weights=np.full(4, 0.5))
        moved = task.with_split(np.array([3, 4]), np.array([0]), np.array([1, 2]))
        np.testing.assert_array_equal(moved.weights, task.weights)

    def test_cannot_be_forgotten(self):
        task = build(weights=WEIGHTS)
        with pytest.raises(InputError, match="weights: got none"):
            task.with_edges(task.edges[:, ::-1])
        with pytest.raises(InputError, match=r"weights: got shape \(4,\)"):
            replace(task, edges=task.edges[:, :2])
        found = task.with_edges(task.edges[:, :2], np.array([1.0, 3.0]))
        np.testing.assert_array_equal(found.weights, [1.0, 3.0])


FEATURES = {
    "lists": X.tolist(),
    "csr array": sp.csr_array(X),
    "coo with split entries": sp.coo_array(
        (np.concatenate([X.ravel() / 2] * 2), np.tile(np.unravel_index(np.arange(24), X.shape), 2)), shape=X.shape
    ),
    "torch with gradient": torch.from_numpy(X.copy()).requires_grad_(),
    "torch sparse coo": torch.from_numpy(X).to_sparse(),
}


class TestForms:
    @pytest.mark.parametrize("given", FEATURES.values(), ids=FEATURES.keys())
    def test_features(self, given, assert_same_task):
        task = build(features=given)
        assert_same_task(task, build())
        assert task.features.dtype == np.float32
        assert sp.issparse(task.features) == (sp.issparse(given) or getattr(given, "is_sparse", False))

    @pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning")
    def test_compressed_torch_features(self, assert_same_task):
        task = build(features=torch.from_numpy(X).to_sparse_csr())
        assert sp.issparse(task.features)
        assert_same_task(task, build())

    @pytest.mark.parametrize("form", [mask, lambda *nodes: torch.from_numpy(mask(*nodes).astype(np.uint8))])
    def test_masks(self, form, assert_same_task):
        assert_same_task(build(train=form(0, 1, 2), val=form(3, 4), test=form(5)), build())

    @pytest.mark.parametrize("form", [list, torch.tensor])
    def test_lists_in_any_order(self, form, assert_same_task):
        assert_same_task(build(train=form([2, 0, 1, 1]), val=form([4, 3]), test=form([5])), build())

    @pytest.mark.parametrize("form", [list, lambda labels: torch.tensor(labels, dtype=torch.float64)])
    def test_labels(self, form, assert_same_task):
        assert_same_task(build(labels=form(LABELS.tolist())), build())

    def test_a_test_set_is_not_needed(self):
        task = NodeTask.build(**{key: value for key, value in parts().items() if key != "test"})
        assert task.test.size == 0

    def test_the_callers_arrays_are_not_changed(self):
        given = parts(features=sp.csr_array(X), edges=EDGES.copy(), labels=LABELS.copy())
        copies = {key: value.copy() for key, value in given.items() if hasattr(value, "copy")}
        NodeTask.build(**given)
        np.testing.assert_array_equal(given["features"].toarray(), copies["features"].toarray())
        np.testing.assert_array_equal(given["edges"], copies["edges"])
        np.testing.assert_array_equal(given["labels"], copies["labels"])


class TestTask:
    def test_sizes(self):
        task = build(name="toy", setting="hard")
        assert (task.num_nodes, task.num_features, task.num_edges, task.num_classes) == (N, 3, 4, 2)
        assert repr(task) == "NodeTask('toy', 'hard': 8 nodes, 4 edges, 3 features, 2 classes, 3/2/1 train/val/test)"

    def test_every_node_outside_train_is_unlabelled(self):
        assert build().unlabelled.tolist() == [3, 4, 5, 6, 7]

    def test_without_edges_of_some_nodes(self):
        task = build(directed=True)
        bare = task.without_edges_of(np.array([1, 3]), setting="missing-edge")
        kept = [pair for pair in task.edges.T.tolist() if not {1, 3} & set(pair)]
        assert bare.edges.T.tolist() == kept
        assert 0 < len(kept) < task.num_edges
        assert bare.setting == "missing-edge"
        assert task.without_edges_of(np.array([1])).setting == task.setting

    def test_with_edges(self):
        task = build(directed=True, name="toy").with_edges(np.array([[3], [0]]), setting="missing-edge")
        assert (task.edges.tolist(), task.directed, task.name, task.setting) == (
            [[3], [0]],
            True,
            "toy",
            "missing-edge",
        )

    def test_with_split(self):
        task = build(name="toy").with_split(np.array([3, 4]), np.array([0]), np.array([1, 2]), setting="other")
        assert (task.train.tolist(), task.val.tolist(), task.test.tolist()) == ([3, 4], [0], [1, 2])
        assert (task.name, task.setting) == ("toy", "other")

    def test_with_split_checks_the_split(self):
        with pytest.raises(InputError, match="train and val"):
            build().with_split(np.array([3, 4]), np.array([3]), np.array([1, 2]))

    def test_distinct_is_unique(self):
        codes = np.random.default_rng(0).integers(50, size=200)
        np.testing.assert_array_equal(distinct(codes), np.unique(codes))
        assert distinct(codes[:0]).size == 0


class TestPyG:
    @pytest.mark.parametrize(("form", "directed"), [(np.array, False), (sp.csr_array, True)], ids=["dense", "sparse"])
    def test_there_and_back(self, directed, form, assert_same_task):
        task = build(features=form(X), directed=directed)
        assert_same_task(NodeTask.from_pyg(task.to_pyg()), task)

    def test_there_and_back_without_edges_or_test(self, assert_same_task):
        task = build(edges=[], test=[])
        assert_same_task(NodeTask.from_pyg(task.to_pyg()), task)

    @pytest.mark.parametrize("directed", [False, True])
    def test_weights_there_and_back(self, directed, assert_same_task):
        task = build(weights=WEIGHTS, directed=directed)
        data = task.to_pyg()
        data.validate()
        assert_same_task(NodeTask.from_pyg(data), task)
        assert NodeTask.from_pyg(data, weights=False).weights is None
        for shape in ((-1,), (-1, 1)):
            data = task.to_pyg()
            data.edge_attr = data.edge_weight.view(shape)
            del data.edge_weight
            assert_same_task(NodeTask.from_pyg(data), task)
        data.edge_attr = torch.ones(data.num_edges, 3)
        assert NodeTask.from_pyg(data).weights is None

    def test_edges_that_differ_by_direction_are_directed(self):
        data = build().to_pyg()
        data.edge_weight = torch.arange(1.0, 9.0)
        task = NodeTask.from_pyg(data)
        assert (task.directed, task.num_edges) == (True, 8)

    def test_data_is_as_pyg_expects(self):
        data = build().to_pyg()
        data.validate()
        assert data.is_undirected()
        assert data.num_edges == 8
        assert data.train_mask.nonzero().squeeze(1).tolist() == [0, 1, 2]

    def test_a_directed_graph_stays_directed(self):
        assert build(directed=True).to_pyg().is_directed()

    def test_everything_missing_is_listed(self):
        from torch_geometric.data import Data

        with pytest.raises(InputError) as caught:
            NodeTask.from_pyg(Data(x=torch.ones(3, 2)))
        names = [problem.argument for problem in caught.value.problems]
        assert names == ["data.edge_index", "data.y", "data.train_mask", "data.val_mask"]
        assert "RandomNodeSplit; or G3NNClassifier().fit(data)" in str(caught.value.problems[-1])

    def test_names_are_kept(self):
        task = NodeTask.from_pyg(build().to_pyg(), name="toy", setting="hard")
        assert (task.name, task.setting) == ("toy", "hard")


def test_beliefs_go_with_the_nodes_and_stay_with_their_split():
    task = build(beliefs=BELIEFS)
    for same in (task, task.with_edges(task.edges[:, :2]), task.without_edges_of([0]), task.without_test()):
        np.testing.assert_array_equal(same.beliefs, BELIEFS)
    assert task.with_split(task.val, task.train, task.test).beliefs is None
    with pytest.raises(InputError, match="beliefs: got 8 rows"):
        replace(task, features=task.features[:5])
    assert build(labels=X[:, :2], outcome="real", beliefs=np.zeros((N, 4))).beliefs.shape == (N, 4)
