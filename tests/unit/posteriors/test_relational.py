"""R-GCN against its formula, node by node and type by type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from g3nn.base.errors import Problems
from g3nn.graph.relations import read_relations
from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors.relational import Relational, RelationalOptions
from g3nn.model.replicas import Replicas, Sizes

PAIRS = np.array([[0, 1, 2, 0, 1], [3, 3, 4, 1, 2]])
TYPES = ["by", "by", "by", "like", "like"]
KINDS = ["film"] * 3 + ["person"] * 2


@pytest.fixture
def task():
    relations = read_relations(tuple(PAIRS), 5, False, Problems(), types=TYPES, kinds=KINDS)
    features = np.random.default_rng(0).normal(size=(5, 3))
    return NodeTask.build(features, PAIRS, [0, 1, 1, -1, -1], [0, 1], [2], relations=relations)


def network(task, **options):
    return Relational(Sizes.of(task), Replicas((0, 1)), RelationalOptions(hidden=4, bases=2, **options)).double()


def by_hand(layer, x, relations):
    """(R, n, h): the sum over arcs of a node, each as often as one of the others of its type."""
    heard = [[dict[str, torch.Tensor]() for _ in range(len(x[0]))] for _ in x]
    out = torch.einsum("rnd,rdh->rnh", x, layer.own) + layer.bias[:, None]
    for r in range(len(x)):
        for type, (name, matrix) in enumerate(relations.arcs):
            weight = sum(layer.shares[r, type, b] * layer.bases[r, b] for b in range(layer.bases.shape[1]))
            for i in range(len(x[0])):
                ends = matrix.indices[matrix.indptr[i] : matrix.indptr[i + 1]]
                if len(ends):
                    heard[r][i][name] = x[r, ends].mean(0) @ weight
        for i, said in enumerate(heard[r]):
            if layer.towards is None or not said:
                out[r, i] += sum(said.values(), start=torch.zeros_like(out[r, i]))
                continue
            rows = torch.stack(list(said.values()))
            shares = (rows.tanh() @ layer.towards[r]).softmax(0) * len(rows)
            out[r, i] += (shares * rows).sum(0)
    return out


@pytest.mark.parametrize("attention", [False, True])
def test_scores_are_those_of_the_formula(task, attention):
    network_ = network(task, type_attention=attention)
    inputs = Inputs.of(task, dtype=torch.float64)
    x = torch.from_numpy(task.features).double().expand(2, -1, -1)
    with torch.no_grad():
        hidden = by_hand(network_.first, x, task.relations).relu()
        wanted = by_hand(network_.second, hidden, task.relations).log_softmax(2)
        torch.testing.assert_close(network_.log_prob(inputs, None), wanted)


def test_types_that_are_exchanged_say_something_else(task):
    """Which type an edge has matters, and not only whether there is one."""
    network_ = network(task)
    others = replace(task.relations, types=1 - task.relations.types, directed=task.relations.directed[::-1])
    with torch.no_grad():
        one, other = (
            network_.log_prob(Inputs.of(replace(task, relations=r), dtype=torch.float64), None)
            for r in (task.relations, others)
        )
    assert not torch.allclose(one, other)


def test_a_graph_without_types_has_one(task):
    plain = replace(task, relations=None)
    network_ = network(plain)
    assert network_.first.shares.shape[1:] == (1, 1)
    assert network_.log_prob(Inputs.of(plain, dtype=torch.float64), None).shape == (2, 5, 2)
