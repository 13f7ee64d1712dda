"""The likelihood that judges an edge by the rest of the graph, against its formula and against that very graph."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

import g3nn
from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import Pairs
from g3nn.model.likelihoods.nlsm import NeighbourLatentSpace, NeighbourOptions
from g3nn.model.replicas import Noise, Replicas, Sizes

TIGHT = {"rtol": 0.0, "atol": 1e-11}
NODES, FEATURES, CLASSES, LATENT = 9, 4, 3, 5
UNDIRECTED = np.array([[0, 0, 0, 1, 1, 2, 3, 4, 5], [1, 2, 3, 2, 4, 5, 4, 6, 6]])
"""Triangles, a longer cycle and node 8 without edges; 7 hangs on nothing but 0 in `HANGING`."""
HANGING = np.array([[0], [7]])
DIRECTED = np.array([[0, 1, 0, 2, 1, 3, 4, 2, 6, 7], [1, 0, 2, 1, 3, 0, 1, 5, 5, 0]])
"""With arcs in both directions between 0 and 1."""
GRAPHS = {"undirected": (np.concatenate([UNDIRECTED, HANGING], axis=1), False), "directed": (DIRECTED, True)}
WEIGHTS = np.array([0.3, 1.0, 2.5, 0.7, 4.0, 0.2, 1.0, 3.0, 0.01, 0.6])


def make_inputs(
    edges: np.ndarray, directed: bool, order: np.ndarray | None = None, weights: np.ndarray | None = None
) -> Inputs:
    """order: node v of the new task is node order[v] of the usual one."""
    order = np.arange(NODES) if order is None else order
    x = np.random.default_rng(0).normal(size=(NODES, FEATURES))[order]
    labels = (np.arange(NODES) % CLASSES)[order]
    place = np.argsort(order)
    split = (place[:3], place[3:4], place[4:5])
    task = NodeTask.build(x, place[edges], labels, *split, directed=directed, weights=weights)
    if weights is not None:
        task = replace(task, weights=task.weights * weights.mean())
    return Inputs.of(task, dtype=torch.float64)


def make_likelihood(directed: bool, **options) -> NeighbourLatentSpace:
    chosen = NeighbourOptions(**{"latent": LATENT, "hops": 2, "degrees": True, **options})
    likelihood = NeighbourLatentSpace(Sizes(FEATURES, CLASSES, directed), Replicas((0, 1)), chosen).double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in likelihood.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return likelihood


def logits(
    likelihood: NeighbourLatentSpace,
    inputs: Inputs,
    pairs: np.ndarray,
    present: bool,
    weights: np.ndarray | None = None,
) -> torch.Tensor:
    i, j = torch.from_numpy(pairs)
    weight = None if weights is None else torch.from_numpy(weights)
    return likelihood.logits(likelihood.node_state(inputs, None), Pairs(i, j, present, weight=weight)).detach()


@pytest.fixture(params=GRAPHS.values(), ids=GRAPHS)
def graph(request) -> tuple[np.ndarray, bool]:
    return request.param


@pytest.mark.parametrize(("hops", "degrees"), [(0, True), (1, False), (2, True)])
def test_an_edge_does_not_speak_for_itself(graph, hops, degrees):
    """What is said of an edge is what would be said of the same pair if the edge had never been there."""
    edges, directed = graph
    likelihood = make_likelihood(directed, hops=hops, degrees=degrees)
    inputs = make_inputs(edges, directed)
    for e in range(edges.shape[1]):
        judged = edges[:, e : e + 1]
        without = make_inputs(np.delete(edges, e, axis=1), directed)
        here, there = logits(likelihood, inputs, judged, True), logits(likelihood, without, judged, False)
        torch.testing.assert_close(here, there, **TIGHT)


@pytest.mark.parametrize(("hops", "degrees"), [(0, True), (1, False), (2, True)])
def test_nor_does_an_edge_of_some_weight(graph, hops, degrees):
    edges, directed = graph
    likelihood = make_likelihood(directed, hops=hops, degrees=degrees)
    inputs = make_inputs(edges, directed, weights=WEIGHTS)
    for e in range(edges.shape[1]):
        judged = edges[:, e : e + 1]
        without = make_inputs(np.delete(edges, e, axis=1), directed, weights=np.delete(WEIGHTS, e))
        here = logits(likelihood, inputs, judged, True, WEIGHTS[e : e + 1])
        torch.testing.assert_close(here, logits(likelihood, without, judged, False), rtol=0.0, atol=1e-10)


def test_edges_of_weight_one_are_edges(graph):
    edges, directed = graph
    likelihood, ones = make_likelihood(directed), np.ones(edges.shape[1])
    plain = make_inputs(edges, directed)
    inputs = Inputs.of(replace(plain.task, weights=ones), dtype=torch.float64)
    expected = logits(likelihood, plain, edges, True)
    torch.testing.assert_close(logits(likelihood, inputs, edges, True, ones), expected, **TIGHT)


def test_neighbours_that_hardly_count_leave_no_rounding_errors():
    """In single precision all but the heaviest neighbour may be lost; what is left is a node without any, not noise."""
    edges, directed = GRAPHS["undirected"]
    weights = np.where(np.arange(edges.shape[1]) == 0, 1e9, WEIGHTS)
    task, pair = make_inputs(edges, directed, weights=weights).task, np.array([[0], [1]])
    likelihood = make_likelihood(directed, hops=1, degrees=False).float()
    bare = Inputs.of(task.without_edges_of(np.array([0, 1])))
    found = logits(likelihood, Inputs.of(task), pair, True, weights[:1].astype(np.float32))
    torch.testing.assert_close(found, logits(likelihood, bare, pair, False))


@pytest.mark.parametrize(("hops", "degrees"), [(0, True), (1, False), (2, False)])
def test_the_other_edges_do_speak(graph, hops, degrees):
    edges, directed = graph
    likelihood = make_likelihood(directed, hops=hops, degrees=degrees)
    pair = np.array([[0], [1]])
    first, second = (make_inputs(kept, directed) for kept in (edges, edges[:, edges.sum(0) != 2]))
    assert not torch.allclose(logits(likelihood, first, pair, True), logits(likelihood, second, pair, True))


@pytest.mark.slow
@pytest.mark.parametrize(("hops", "weights"), [(0, None), (2, None), (2, WEIGHTS)])
def test_the_log_odds_are_those_of_the_formula(graph, hops, weights):
    """Summed over neighbours by hand, in the graph without the pair."""
    edges, directed = graph
    likelihood, inputs = make_likelihood(directed, hops=hops), make_inputs(edges, directed, weights=weights)
    x = inputs.x.dense().numpy()
    parameters = {name: value.detach().numpy() for name, value in likelihood.named_parameters()}
    arcs = edges if directed else np.concatenate([edges, edges[::-1]], axis=1)
    sizes = np.resize(np.ones(edges.shape[1]) if weights is None else weights, arcs.shape[1])
    for (i, j), r in itertools.product(itertools.permutations(range(NODES), 2), range(2)):
        own = (arcs == [[i], [j]]).all(0) | (not directed) & (arcs == [[j], [i]]).all(0)
        kept = arcs[:, ~own], sizes[~own]
        s, d_i = placed(i, *kept, x, parameters["U"][r], hops)
        t, d_j = placed(j, kept[0][::-1], kept[1], x, parameters["V" if directed else "U"][r], hops)
        a, B = parameters["a"][r], parameters["B"][r]
        table = B if directed else (B + B.T) / 2
        expected = parameters["w"][r] * s @ t + d_i @ a[:, 0] + d_j @ a[:, -1] + table
        given = logits(likelihood, inputs, np.array([[i], [j]]), bool(own.any()), sizes[own][:1])[r, 0]
        np.testing.assert_allclose(given.numpy(), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("hops", [1, 2])
def test_means_that_are_taken_once_are_those_of_every_step(graph, hops, weights, monkeypatch):
    edges, directed = graph
    likelihood, states = make_likelihood(directed, hops=hops), []
    for columns in (0, 10**6):
        monkeypatch.setattr("g3nn.model.likelihoods.nlsm._COLUMNS_PER_EDGE", columns)
        plain = make_inputs(edges, directed, weights=weights).task
        inputs = Inputs.of(plain, dtype=torch.float64)
        states.append(likelihood.node_state(inputs, Noise(torch.arange(2), 3)))
        assert ("mean_features" in vars(inputs)) == (columns > 0)
        some = likelihood.state_of(inputs, Noise(torch.arange(2), 3), torch.tensor([3, 0]))
        torch.testing.assert_close(some, states[-1][:, [3, 0]], **TIGHT)
    torch.testing.assert_close(*states, **TIGHT)


def placed(
    node: int, arcs: np.ndarray, sizes: np.ndarray, x: np.ndarray, U: np.ndarray, hops: int
) -> tuple[np.ndarray, np.ndarray]:
    """s and d of a source; of a target, if the arcs are turned round. sizes: the weights of the arcs."""
    blocks = np.split(U, hops + 1, axis=1)
    leaving = arcs[0] == node
    degree = sizes[leaving].sum()
    z = x[node] @ blocks[0]
    for m, size in zip(arcs[1, leaving], sizes[leaving], strict=True):
        v = x[m] @ blocks[1] if hops else 0.0
        if hops == 2:
            arriving = arcs[1] == m
            v = v + np.average(x[arcs[0, arriving]], axis=0, weights=sizes[arriving]) @ blocks[2]
        z = z + size * v / degree
    mean = sizes.sum() / len(x)
    return z / np.linalg.norm(z), np.array([np.log((1 + degree) / (1 + mean)), degree == 0])


class _Base(torch.nn.Module):
    def __init__(self, likelihood: NeighbourLatentSpace) -> None:
        super().__init__()
        self.likelihood = likelihood

    def forward(self, inputs: Inputs, pairs: Pairs) -> torch.Tensor:
        return self.likelihood.base(self.likelihood.node_state(inputs, None), pairs)


@pytest.mark.slow
def test_the_gradient_of_an_edge_that_is_left_out(graph):
    edges, directed = graph
    inputs, pairs = make_inputs(edges, directed), Pairs(*torch.from_numpy(edges[:, :4]), present=True)
    module = _Base(make_likelihood(directed, latent=2))
    names = [name for name, _ in module.named_parameters() if not name.endswith(".B")]

    def scores(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), (inputs, pairs))

    values = [module.get_parameter(name).detach().clone().requires_grad_() for name in names]
    assert torch.autograd.gradcheck(scores, values)


@pytest.mark.parametrize("hops", [0, 2])
def test_training_with_it(learnable, hops):
    """Any model can be trained with it, reading the rest of the graph or not."""
    result = g3nn.fit(learnable, "nlsm-gcn", hops=hops, degrees=hops > 0, epochs=30, device="cpu", progress=False)
    graph = result.history[:, result.history_names.index("graph"), 0]
    assert np.isfinite(graph).all()
    assert graph[-1] < graph[0]
