from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.kernels import reference
from g3nn.kernels.sparse import SparseMatrix
from g3nn.model.inputs import Features, Inputs
from g3nn.model.replicas import Noise

SEEDS = torch.tensor([4, 5])
RATE = 0.4


@pytest.fixture(params=["sparse", "dense"])
def task(request, make_task):
    return make_task(sparse=request.param == "sparse")


@pytest.fixture
def inputs(task) -> Inputs:
    return Inputs.of(task, dtype=torch.float64)


def toarray(task) -> np.ndarray:
    return task.features.toarray() if sp.issparse(task.features) else task.features


class TestFeatures:
    def test_are_stored_as_they_came(self, task, inputs):
        assert isinstance(inputs.x.matrix, SparseMatrix) == sp.issparse(task.features)
        np.testing.assert_array_equal(inputs.x.dense().numpy(), toarray(task))

    @pytest.mark.parametrize(("noise", "rate"), [(None, 0.0), (None, RATE), (Noise(SEEDS, 0), 0.0)])
    def test_product_without_dropout(self, inputs, noise, rate):
        weight = torch.randn(2, 5, 3, dtype=torch.float64)
        expected = inputs.x.dense() @ weight
        torch.testing.assert_close(inputs.x.matmul(weight, noise, rate), expected, rtol=0, atol=1e-14)

    def test_dropout_acts_on_stored_values_with_noise_of_its_own_for_each_replica(self, inputs):
        weight = torch.randn(2, 5, 3, dtype=torch.float64)
        dense = inputs.x.dense()
        stored = dense != 0 if isinstance(inputs.x.matrix, SparseMatrix) else torch.ones_like(dense, dtype=torch.bool)
        draw = Noise(SEEDS, 3).draw(RATE)
        keep = reference.keep_mask(draw.seeds, draw.counter, int(stored.sum()), draw.threshold)
        dropped = torch.zeros(2, *dense.shape, dtype=torch.float64)
        dropped[:, stored] = dense[stored] * keep / (1 - RATE)
        found = inputs.x.matmul(weight, Noise(SEEDS, 3), RATE)
        torch.testing.assert_close(found, dropped @ weight, rtol=0, atol=1e-14)

    def test_weights_get_a_gradient_through_dropout(self, inputs):
        weight = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda weight: inputs.x.matmul(weight, Noise(SEEDS, 3), RATE), weight)

    def test_explicit_zeros_and_empty_rows(self):
        matrix = sp.csr_array((np.array([0.0, 2.0]), np.array([1, 0]), np.array([0, 2, 2])), shape=(2, 3))
        features = Features(SparseMatrix.from_scipy(matrix))
        np.testing.assert_array_equal(features.dense().numpy(), matrix.toarray())


class TestInputs:
    def test_only_training_labels_are_observed(self, task, inputs):
        expected = np.zeros((task.num_nodes, task.num_classes))
        expected[task.train, task.labels[task.train]] = 1
        np.testing.assert_array_equal(inputs.observed.numpy(), expected)
        assert inputs.labelled.squeeze(1).nonzero().squeeze(1).tolist() == task.train.tolist()

    def test_every_node_is_labelled_or_unlabelled(self, task, inputs):
        assert sorted([*inputs.train.tolist(), *inputs.unlabelled.tolist()]) == list(range(inputs.n))
        assert set(task.val) <= set(inputs.unlabelled.tolist())

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_everything_has_the_asked_type(self, task, dtype):
        inputs = Inputs.of(task, dtype=dtype)
        weight = torch.ones(1, 5, 1, dtype=dtype)
        assert inputs.dtype == dtype
        assert inputs.x.matmul(weight).dtype == dtype
        assert inputs.adjacency.values.dtype == dtype

    @pytest.mark.parametrize("directed", [False, True])
    def test_log_degrees(self, make_task, directed):
        task = make_task(directed=directed)
        neighbours = np.zeros((task.num_nodes, 2))
        for i, j in task.edges.T:
            neighbours[i, 0] += 1
            neighbours[j, 1] += 1
        counts = neighbours if directed else neighbours.sum(1, keepdims=True)
        expected = np.log(1 + counts) - np.log(1 + counts).mean(0)
        np.testing.assert_allclose(Inputs.of(task, dtype=torch.float64).log_degrees.numpy(), expected, atol=1e-12)

    @pytest.mark.parametrize("directed", [False, True])
    def test_arcs(self, make_task, directed):
        task = make_task(directed=directed)
        arcs = Inputs.of(task).arcs.numpy()
        expected = task.edges if directed else np.concatenate([task.edges, task.edges[::-1]], axis=1)
        assert sorted(map(tuple, arcs.T)) == sorted(map(tuple, expected.T))

    @pytest.mark.parametrize("directed", [False, True])
    def test_adjacency_and_neighbours(self, make_task, directed):
        task = make_task(directed=directed)
        inputs = Inputs.of(task, dtype=torch.float64)
        A = np.eye(task.num_nodes)
        A[task.edges[0], task.edges[1]] = A[task.edges[1], task.edges[0]] = 1
        root = np.diag(A.sum(1) ** -0.5)
        found = inputs.adjacency.matmul(torch.eye(inputs.n, dtype=torch.float64).unsqueeze(0))[0]
        np.testing.assert_allclose(found.numpy(), root @ A @ root, rtol=1e-14)
        pattern = inputs.neighbours
        np.testing.assert_array_equal(np.argwhere(A), np.stack([pattern.row.numpy(), pattern.col.numpy()], axis=1))

    @pytest.mark.parametrize("directed", [False, True])
    def test_weighted_edges_are_so_many_edges(self, make_task, directed):
        task = make_task(directed=directed)
        times = np.arange(task.num_edges) % 4 + 1
        inputs = Inputs.of(replace(task, weights=times.astype(float)), dtype=torch.float64)
        repeated = Inputs.of(replace(task, edges=np.repeat(task.edges, times, axis=1)), dtype=torch.float64)
        torch.testing.assert_close(inputs.degrees, repeated.degrees)
        torch.testing.assert_close(inputs.log_degrees, repeated.log_degrees)
        assert inputs.edge_weight.tolist() == times.tolist()
        assert inputs.arc_weight.tolist() == np.tile(times, 1 if directed else 2).tolist()
        bare = inputs.without_edges_of(np.array([0, 1]))
        assert bare.edge_weight.tolist() == times[~np.isin(task.edges, [0, 1]).any(0)].tolist()
        assert Inputs.of(task).edge_weight is Inputs.of(task).arc_weight is Inputs.of(task).log_weights is None
