"""Networks on a graph with weights, against their formulas on dense matrices."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GraphSAGE, SAGEConv

import g3nn
from g3nn.base.errors import G3NNWarning
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors import POSTERIORS, ModulePosterior
from g3nn.model.replicas import Replicas, Sizes

R = 2


@pytest.fixture(scope="module")
def inputs(make_task) -> Inputs:
    task = make_task()
    return Inputs.of(replace(task, weights=np.arange(task.num_edges) % 4 + 1.0), dtype=torch.float64)


@pytest.fixture(scope="module")
def adjacency(inputs) -> Tensor:
    """(n, n): the weights of the edges."""
    half = torch.zeros(inputs.n, inputs.n, dtype=torch.float64)
    half[inputs.edges[0], inputs.edges[1]] = torch.from_numpy(inputs.task.weights)
    return half + half.T


def make(name: str, inputs: Inputs, known: int = 14) -> nn.Module:
    """Two replicas, with biases that are not zero, trained on the first nodes."""
    sizes = replace(Sizes.of(inputs.task), nodes=known)
    posterior = POSTERIORS[name](sizes, Replicas((0, 1))).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in posterior.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return posterior


def looped(adjacency: Tensor) -> Tensor:
    return adjacency + torch.eye(len(adjacency), dtype=torch.float64)


def normalised(matrix: Tensor) -> Tensor:
    root = matrix.sum(1).rsqrt()
    return root[:, None] * matrix * root


def test_gcn(inputs, adjacency):
    q, x = make("gcn", inputs), inputs.x.dense()
    S = normalised(looped(adjacency))
    hidden = (S @ x @ q.weight1 + q.bias1.unsqueeze(1)).relu()
    expected = (S @ hidden @ q.weight2 + q.bias2.unsqueeze(1)).log_softmax(2)
    torch.testing.assert_close(q.log_prob(inputs, None), expected, rtol=0, atol=1e-12)


def test_sage(inputs, adjacency):
    q, x = make("sage", inputs), inputs.x.dense()
    mean = adjacency / adjacency.sum(1, keepdim=True).clamp_min(1e-300)
    hidden = (x @ q.own1 + mean @ x @ q.neighbours1 + q.bias1.unsqueeze(1)).relu()
    expected = (hidden @ q.own2 + mean @ hidden @ q.neighbours2 + q.bias2.unsqueeze(1)).log_softmax(2)
    torch.testing.assert_close(q.log_prob(inputs, None), expected, rtol=0, atol=1e-12)


def test_hops(inputs, adjacency):
    q, x = make("hops", inputs), inputs.x.dense()
    mean = adjacency / adjacency.sum(1, keepdim=True).clamp_min(1e-300)
    parts = [x @ q.weight0, mean @ x @ q.weight1, mean @ mean @ x @ q.weight2]
    hidden = (torch.cat(parts, dim=2) + q.bias.unsqueeze(1)).relu()
    expected = (hidden @ q.out + q.out_bias.unsqueeze(1)).log_softmax(2)
    torch.testing.assert_close(q.log_prob(inputs, None), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("known", [14, 9], ids=["all nodes", "new nodes"])
def test_linkx(inputs, adjacency, known):
    """Nodes beyond those of training are heard as zeros, and hear their neighbours."""
    x = inputs.x.dense()
    q = make("linkx", inputs, known)
    vectors = torch.zeros(R, inputs.n, 16, dtype=torch.float64)
    vectors[:, :known] = q.vectors.own
    mean = adjacency / adjacency.sum(1, keepdim=True).clamp_min(1e-300)
    hidden = (torch.cat([x @ q.features, mean @ vectors], dim=2) + q.bias.unsqueeze(1)).relu()
    hidden = (hidden @ q.middle + q.middle_bias.unsqueeze(1)).relu()
    expected = (hidden @ q.out + q.out_bias.unsqueeze(1)).log_softmax(2)
    torch.testing.assert_close(q.log_prob(inputs, None), expected, rtol=0, atol=1e-12)


def test_gat(inputs, adjacency):
    q, x = make("gat", inputs), inputs.x.dense()

    def layer(x: Tensor, left: Tensor, right: Tensor) -> Tensor:
        heads = x.unflatten(2, left.shape[1:])
        one, other = ((heads * half.unsqueeze(1)).sum(3) for half in (left, right))
        score = nn.functional.leaky_relu(one.unsqueeze(2) + other.unsqueeze(1), 0.2).exp()
        share = score * looped(adjacency).unsqueeze(2)
        share = share / share.sum(2, keepdim=True)
        return torch.einsum("rijh,rjhf->rihf", share, heads).flatten(2)

    hidden = nn.functional.elu(layer(x @ q.weight1, q.left1, q.right1) + q.bias1.unsqueeze(1))
    expected = (layer(hidden @ q.weight2, q.left2, q.right2) + q.bias2.unsqueeze(1)).log_softmax(2)
    torch.testing.assert_close(q.log_prob(inputs, None), expected, rtol=0, atol=1e-12)


def test_label_propagation(inputs, adjacency):
    start, S = inputs.observed, normalised(adjacency)
    mass = start
    for _ in range(50):
        mass = (0.9 * S @ mass + 0.1 * start).clamp(0, 1)
    expected = (mass + 1e-9) / (mass + 1e-9).sum(1, keepdim=True)
    found = make("label-propagation", inputs).log_prob(inputs, None).exp()
    torch.testing.assert_close(found, expected.expand(R, -1, -1), rtol=0, atol=1e-12)


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = GCNConv(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.layer(x, edge_index, edge_weight)


class Blind(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = SAGEConv(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index)


def test_a_module_that_takes_weights_gets_them(inputs, adjacency):
    q = ModulePosterior(Sizes.of(inputs.task), Replicas((0, 1)), Convolution).double()
    parameters = dict(zip(q.names, q.stacked, strict=True))
    S = normalised(looped(adjacency))
    scores = S @ inputs.x.dense() @ parameters["layer.lin.weight"].mT + parameters["layer.bias"].unsqueeze(1)
    torch.testing.assert_close(q.log_prob(inputs, None), scores.log_softmax(2), rtol=0, atol=1e-12)


@pytest.mark.parametrize("source", [Blind, lambda: GraphSAGE(5, 4, 2, 3)], ids=["own", "pyg"])
def test_one_that_does_not_is_told_of_once(inputs, source):
    q = ModulePosterior(Sizes.of(inputs.task), Replicas((0, 1)), source).double()
    with pytest.warns(G3NNWarning, match="takes no edge_weight: to it, all edges are alike"):
        blind = q.log_prob(inputs, None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = q.log_prob(inputs, None)
        plain = q.log_prob(Inputs.of(replace(inputs.task, weights=None), dtype=torch.float64), None)
    assert torch.equal(blind, again)
    assert torch.equal(blind, plain)


@pytest.mark.slow
def test_weights_that_tell_true_edges_from_false_ones_help():
    """Half of the edges are false, and their weights are lower on average."""
    task = noisy_task(seed=0)
    for model in ("gcn", "sbm-gcn"):
        how = {"trials": 3, "epochs": 100, "device": "cpu", "progress": False}
        blind, seeing = (
            g3nn.fit(one, model, **how).test_accuracy.mean() for one in (replace(task, weights=None), task)
        )
        assert seeing > blind + 0.03, model


def noisy_task(seed: int) -> g3nn.NodeTask:
    """The edges of a block model and as many others between any nodes."""
    task = g3nn.synthetic(nodes=400, classes=4, degree=5, features=16, labels_per_class=10, val=60, test=240, seed=seed)
    rng = np.random.default_rng(seed)
    false = rng.integers(400, size=(2, task.num_edges))
    false = false[:, false[0] != false[1]]
    weights = np.concatenate([rng.gamma(4.0, 1.0, task.num_edges), rng.gamma(4.0, 0.25, false.shape[1])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        return g3nn.NodeTask.build(
            task.features,
            np.concatenate([task.edges, false], axis=1),
            task.labels,
            task.train,
            task.val,
            task.test,
            weights=weights,
        )
