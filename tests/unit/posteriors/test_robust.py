"""Networks made for graphs with wrong edges, against their formulas on dense matrices in plain numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import log_softmax

import g3nn
from g3nn.graph.task import NodeTask
from g3nn.kernels.sparse import cosine_similarity, is_binary, jaccard_similarity
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors import POSTERIORS
from g3nn.model.posteriors.gcn_svd import leading
from g3nn.model.replicas import Noise, Replicas, Sizes

n, d, K, R = 12, 6, 3, 2
EXACT = {"rtol": 0, "atol": 1e-12}
NAMES = ("gcn-jaccard", "gcn-svd", "gnnguard", "rgcn")


def the_task(binary: bool = True, weighted: bool = True) -> NodeTask:
    """Edges of different weights; the last node has none, and node 0 has no feature."""
    rng = np.random.default_rng(0)
    x = (rng.random((n, d)) < 0.4) * (1.0 if binary else rng.standard_normal((n, d)))
    x[0] = 0
    i, j = np.triu_indices(n - 1, 1)
    kept = rng.random(i.size) < 0.4
    weights = rng.gamma(2.0, size=kept.sum()) if weighted else None
    split = {"train": [0, 1, 2, 3], "val": [4, 5], "test": [6, 7]}
    return NodeTask.build(sp.csr_array(x), np.stack([i, j])[:, kept], np.arange(n) % K, **split, weights=weights)


def made(name: str, task: NodeTask, **options: float) -> tuple[torch.nn.Module, Inputs]:
    """Two replicas, with parameters that are not zero."""
    component = POSTERIORS[name]
    model = component(Sizes.of(task), Replicas((0, 1)), component.Options(**options)).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return model, Inputs.of(task, dtype=torch.float64)


def adjacency(task: NodeTask) -> np.ndarray:
    A = np.zeros((task.num_nodes, task.num_nodes))
    A[tuple(task.edges)] = 1.0 if task.weights is None else task.weights
    return A + A.T


def normalised(A: np.ndarray) -> np.ndarray:
    degrees = np.maximum(1.0, 1.0 + A.sum(1))
    return (A + np.eye(len(A))) / np.sqrt(np.outer(degrees, degrees))


def convolved(A: np.ndarray, x: np.ndarray, parts: dict[str, np.ndarray], r: int) -> np.ndarray:
    hidden = np.maximum(A @ x @ parts["network.weight1"][r] + parts["network.bias1"][r], 0)
    return log_softmax(A @ hidden @ parts["network.weight2"][r] + parts["network.bias2"][r], axis=1)


def numbers(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


def check(name: str, task: NodeTask, expected, **options: float) -> None:
    """expected: of the dense features, the parameters and the number of a replica."""
    model, inputs = made(name, task, **options)
    found = model.log_prob(inputs, None).detach().numpy()
    for r in range(R):
        np.testing.assert_allclose(found[r], expected(task.features.toarray(), numbers(model), r), **EXACT)


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    lengths = np.linalg.norm(one) * np.linalg.norm(other)
    return float(one @ other / lengths) if lengths else 0.0


def jaccard(one: np.ndarray, other: np.ndarray) -> float:
    both, either = ((one != 0) & (other != 0)).sum(), ((one != 0) | (other != 0)).sum()
    return both / either if either else 0.0


def pairwise(measure, x: np.ndarray) -> np.ndarray:
    return np.array([[measure(one, other) for other in x] for one in x])


@pytest.mark.parametrize(("binary", "measure"), [(True, jaccard), (False, cosine)])
def test_gcn_jaccard(binary, measure):
    task = the_task(binary)
    A = adjacency(task)
    alike = pairwise(measure, task.features.toarray().astype(np.float64)) >= 0.3
    assert 0 < (A * alike > 0).sum() < (A > 0).sum(), "some edges go and some stay"
    check("gcn-jaccard", task, lambda x, p, r: convolved(normalised(A * alike), x, p, r), threshold=0.3)


@pytest.mark.parametrize("rank", [1, 4, 50])
def test_gcn_svd(rank):
    task = the_task()
    U, s, V = np.linalg.svd(adjacency(task))
    low = (U[:, :rank] * s[:rank]) @ V[:rank]
    check("gcn-svd", task, lambda x, p, r: convolved(normalised(low), x, p, r), rank=rank)


def guard(A: np.ndarray, similarity: np.ndarray, threshold: float) -> np.ndarray:
    S = np.zeros_like(A)
    for i in range(len(A)):
        heard = [j for j in range(len(A)) if A[i, j] > 0 and similarity[i, j] >= threshold]
        count, total = sum(A[i, j] for j in heard), sum(A[i, j] * similarity[i, j] for j in heard)
        S[i, i] = 1 / (count + 1)
        for j in heard:
            S[i, j] = count / (count + 1) * A[i, j] * similarity[i, j] / total
    return S


def guarded(A: np.ndarray, first: np.ndarray, threshold: float):
    def expected(x: np.ndarray, p: dict[str, np.ndarray], r: int) -> np.ndarray:
        hidden = np.maximum(first @ x @ p["weight1"][r] + p["bias1"][r], 0)
        kept = 1 / (1 + np.exp(-p["memory"][r]))
        second = kept * first + (1 - kept) * guard(A, pairwise(cosine, hidden), threshold)
        return log_softmax(second @ hidden @ p["weight2"][r] + p["bias2"][r], axis=1)

    return expected


@pytest.mark.parametrize("weighted", [False, True])
def test_gnnguard(weighted):
    task = the_task(binary=False, weighted=weighted)
    A = adjacency(task)
    first = guard(A, pairwise(cosine, task.features.toarray().astype(np.float64)), 0.3)
    assert (first[A > 0] == 0).any()
    check("gnnguard", task, guarded(A, first, 0.3), threshold=0.3)


def elu(x: np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))


def test_rgcn():
    task = the_task(weighted=False)
    looped = adjacency(task) + np.eye(n)
    D = np.diag(1 / looped.sum(1))
    A, B = np.sqrt(D) @ looped @ np.sqrt(D), D @ looped @ D

    def expected(x, p, r):
        mean, variance = elu(x @ p["mean1"][r]), np.maximum(x @ p["variance1"][r], 0) + 1e-8
        mean, variance = A @ (mean * np.exp(-2 * variance)), B @ (variance * np.exp(-4 * variance))
        mean, variance = elu(mean @ p["mean2"][r]), np.maximum(variance @ p["variance2"][r], 0) + 1e-8
        return log_softmax(A @ (mean * np.exp(-2 * variance)), axis=1)

    check("rgcn", task, expected, attention=2)


def test_rgcn_adds_the_divergence_of_its_hidden_units():
    model, inputs = made("rgcn", the_task(), regularisation=0.25)
    normal = torch.distributions.Normal
    x = inputs.x.dense()
    mean, variance = torch.nn.functional.elu(x @ model.mean1), torch.relu(x @ model.variance1) + 1e-8
    divergence = torch.distributions.kl_divergence(normal(mean, variance.sqrt()), normal(0.0, 1.0))
    found = model.own_loss(torch.zeros(0), inputs, Noise(torch.tensor([0, 1]), 0))
    torch.testing.assert_close(found, 0.25 * divergence.mean(2).sum(1))


def test_rgcn_draws_its_scores_in_training_alone():
    model, inputs = made("rgcn", the_task(), dropout=0)
    answer = model.log_prob(inputs, None)
    drawn = [model.log_prob(inputs, Noise(torch.tensor([0, 1]), step)) for step in (0, 1)]
    assert torch.equal(answer, model.log_prob(inputs, None))
    assert not torch.allclose(drawn[0], drawn[1])
    assert not torch.allclose(drawn[0], answer)


def test_without_features_no_edge_is_left_out():
    """The identity matrix says nothing about who is alike."""
    task = replace(the_task(), features=sp.csr_array(np.eye(n, dtype=np.float32)))
    A = adjacency(task)
    check("gcn-jaccard", task, lambda x, p, r: convolved(normalised(A), x, p, r))
    check("gnnguard", task, guarded(A, guard(A, np.ones((n, n)), 0.1), 0.1))


def test_similarities_are_those_of_their_definitions():
    for binary in (True, False):
        task = the_task(binary)
        x, (i, j) = task.features.toarray().astype(np.float64), task.edges
        np.testing.assert_allclose(cosine_similarity(task.features, task.edges), pairwise(cosine, x)[i, j], **EXACT)
        np.testing.assert_allclose(jaccard_similarity(task.features, task.edges), pairwise(jaccard, x)[i, j], **EXACT)
        np.testing.assert_array_equal(cosine_similarity(x, task.edges), cosine_similarity(sp.csr_array(x), task.edges))


def test_binary_features_may_be_scaled_row_by_row():
    assert is_binary(np.array([[0, 1, 1], [0, 0, 0], [0.25, 0, 0.25]]))
    assert not is_binary(np.array([[0, 1, 1], [0.25, 0, 0.5]]))
    assert not is_binary(np.array([[0, -1, -1]]))


def test_many_nodes_are_decomposed_as_few(monkeypatch):
    rng = np.random.default_rng(1)
    half = sp.random_array((60, 60), density=0.1, rng=rng)
    matrix = sp.csr_array(half + half.T)
    dense = leading(matrix, 7)
    monkeypatch.setattr("g3nn.model.posteriors.gcn_svd._SMALL", 10)
    sparse = leading(matrix, 7)
    for values, vectors in (dense, sparse):
        assert values.shape == (7,)
        assert (np.diff(np.abs(values)) <= 1e-9).all()
        np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(dense[0], sparse[0], atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_trained_by_name(name, learnable):
    result = g3nn.fit(learnable, name, trials=2, epochs=40, progress=False)
    assert result.test_accuracy.mean() > 0.5
    assert name in g3nn.available()["models"]


@pytest.mark.parametrize("name", NAMES)
def test_it_needs_no_edge(name):
    task = the_task().with_edges(np.zeros(the_task().num_edges, dtype=bool))
    model, inputs = made(name, task)
    assert torch.isfinite(model.log_prob(inputs, None)).all()
