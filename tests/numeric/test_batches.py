"""Batches against the whole graph: the same answers where every neighbour is drawn, elsewhere the same on average."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import g3nn
from g3nn.graph.task import NodeTask
from g3nn.kernels import Pattern
from g3nn.model.generative import ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.replicas import Noise, Replicas, Sizes
from g3nn.training.batches import sampling
from g3nn.training.batches.sampled import SampledHop
from g3nn.training.batches.sampling import GraphRows, Sampler
from g3nn.training.batches.source import BatchSource

CPU = torch.device("cpu")
STEPS = {"gcn": 2, "sage": 2, "gat": 2, "hops": 2, "mlp": 0, "gcnii": 3, "appnp": 3}
OPTIONS = {"gcnii": {"layers": 3}, "appnp": {"steps": 3}}


def noise(step: int = 0) -> Noise:
    return Noise(torch.tensor([7]), step)


@pytest.fixture(scope="module", params=["plain", "weighted", "directed"])
def task(request) -> NodeTask:
    drawn = g3nn.synthetic(nodes=60, classes=3, degree=5, features=6, labels_per_class=4, val=10, seed=3)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.2, 3.0, drawn.num_edges) if request.param == "weighted" else None
    parts = (drawn.features, drawn.edges, drawn.labels, drawn.train, drawn.val, drawn.test)
    return NodeTask.build(*parts, weights=weights, directed=request.param == "directed")


def model_of(task: NodeTask, name: str, channels: tuple[str, ...] = (), **options):
    built = replace(ModelSpec.parse(name), channels=channels).build(
        Sizes.of(task), Replicas((0,)), {"dropout": 0.0, **options}
    )
    return built.double()


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_nodes_with_all_their_neighbours_are_answered_as_in_the_whole_graph(task, name):
    model = model_of(task, name, **OPTIONS.get(name, {}))
    source = BatchSource(task, task.outcome_model(), (0,) * STEPS[name], CPU, dtype=torch.float64)
    whole = model.predict_log_prob(Inputs.of(task, dtype=torch.float64))
    nodes = torch.tensor([5, 0, 41, 17])
    torch.testing.assert_close(model.predict_log_prob(source.around(nodes, noise()))[:, :4], whole[:, nodes])


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_a_third_layer_works_in_batches_too(task, name):
    model = model_of(task, name, layers=3)
    source = BatchSource(task, task.outcome_model(), (0, 0, 0), CPU, dtype=torch.float64)
    whole = model.predict_log_prob(Inputs.of(task, dtype=torch.float64))
    nodes = torch.tensor([5, 0, 41, 17])
    torch.testing.assert_close(model.predict_log_prob(source.around(nodes, noise()))[:, :4], whole[:, nodes])


def gradient(model, losses: torch.Tensor) -> torch.Tensor:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = torch.autograd.grad(losses.sum(), parameters, allow_unused=True)
    zipped = zip(parameters, found, strict=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in zipped])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reduction", "isolated", "channels"),
    [("mean", "observed", ()), ("sum", "missing", ()), ("mean", "observed", ("flips", "edges"))],
)
def test_the_mean_over_batches_is_the_gradient_of_the_whole_graph(task, reduction, isolated, channels):
    """Within five standard errors in every coordinate."""
    model = model_of(task, "dcsbm-sage", channels)
    if model.label_channel is not None:  # At its start the prior of a table has no gradient.
        torch.nn.init.normal_(model.label_channel.change, generator=torch.Generator().manual_seed(0))
    replicas = Replicas((0,))
    objective = Objective.elbo(pairs="all", reduction=reduction, isolated_nodes=isolated)
    weights = objective.weights(replicas, dtype=torch.float64)
    inputs = Inputs.of(task, dtype=torch.float64)
    whole = objective.terms(model, inputs, PairSource(inputs, isolated), noise())
    expected = gradient(model, weights.total(whole))
    source = BatchSource(task, task.outcome_model(), (0, 0), CPU, isolated_nodes=isolated, dtype=torch.float64)
    found = []
    for epoch in range(120):
        order = torch.from_numpy(np.random.default_rng(epoch).permutation(task.train))
        for turn, labelled in enumerate(order.split(6)):
            batch, pairs = source.batch(labelled, 6, noise(2 * epoch + turn), "non-edges")
            found.append(gradient(model, weights.total(objective.terms(model, batch, pairs, noise()))))
    values = torch.stack(found)
    error = values.std(0) / len(values) ** 0.5
    assert bool(((values.mean(0) - expected).abs() <= 5 * error + 1e-9).all())
    assert float(error.max()) < 0.1 * float(expected.abs().max()), "too few batches to tell"


@pytest.mark.slow
@pytest.mark.parametrize("matrix", ["adjacency", "neighbour_mean"])
def test_drawn_neighbours_stand_for_all_of_them(task, matrix):
    rows = GraphRows.of(task.edges, task.num_nodes, task.weights)
    sampler = Sampler(rows.pattern)
    x = torch.randn(1, task.num_nodes, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    nodes = torch.arange(task.num_nodes)
    whole = getattr(Inputs.of(task, dtype=torch.float64), matrix).matmul(x)
    found = []
    for step in range(500):
        near = sampler.around(nodes, nodes[:0], (2,), noise(step))
        (hop,) = SampledHop.steps(near, rows, CPU, torch.float64)
        found.append(getattr(hop, matrix).matmul(x[:, near.nodes])[:, nodes])
    values = torch.stack(found)
    error = values.std(0) / len(values) ** 0.5
    assert bool(((values.mean(0) - whole).abs() <= 5 * error + 1e-9).all())


@pytest.mark.parametrize("fan_out", [(0, 0), (2, 1), (3, 0, 2), ()])
def test_loops_and_tensor_operations_draw_the_same(task, fan_out):
    rows = GraphRows.of(task.edges, task.num_nodes, task.weights).pattern
    targets, more = torch.tensor([4, 9, 4, 30]), torch.tensor([9, 2, 2, 58])
    one, two = (Sampler(rows, compiled).around(targets, more, fan_out, noise()) for compiled in (True, False))
    assert one.sizes == two.sizes
    assert all(size % 16 == 0 for size in one.sizes)
    assert one.nodes[:6].tolist() == [4, 9, 4, 30, 2, 58]
    for part in ("nodes", "rowptr", "col", "entry"):
        assert torch.equal(getattr(one, part), getattr(two, part))


def test_no_neighbour_is_drawn_twice_and_none_that_is_not_one(task):
    rows = GraphRows.of(task.edges, task.num_nodes, task.weights).pattern
    near = Sampler(rows).around(torch.arange(task.num_nodes), torch.zeros(0, dtype=torch.int64), (3,), noise())
    degree = rows.rowptr.diff()
    assert torch.equal(near.rowptr.diff()[: task.num_nodes], degree.clamp_max(3))
    for node in range(task.num_nodes):
        drawn = near.nodes[near.col[near.rowptr[node] : near.rowptr[node + 1]]]
        assert len(set(drawn.tolist())) == len(drawn)
        assert set(drawn.tolist()) <= set(rows.col[rows.rowptr[node] : rows.rowptr[node + 1]].tolist())


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
def test_the_last_of_very_many_neighbours_is_one(monkeypatch, compiled):
    """The largest random number, and sizes for which its product with g / k rounds to g."""
    drawn, degree = 3_000_000, 3_000_001
    monkeypatch.setattr(sampling, "uniform_bits", lambda _seeds, _counter, size: torch.full((1, size), 2**32 - 1))
    rowptr = torch.cat([torch.tensor([0]), torch.arange(degree, 2 * degree + 1)])
    col = torch.cat([torch.arange(1, degree + 1), torch.zeros(degree, dtype=torch.int64)])
    rows = Pattern.from_rows(rowptr, col, degree + 1)
    near = Sampler(rows, compiled).around(torch.tensor([0]), torch.tensor([], dtype=torch.int64), (drawn,), noise())
    entry = near.entry[: near.rowptr[1]]
    assert entry.numel() == entry.unique().numel() == drawn
    assert int(entry.max()) < degree
