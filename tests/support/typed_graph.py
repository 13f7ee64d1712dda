"""A small graph with two types of edges between two kinds of nodes, on which everything can be enumerated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from small_graph import CLASSES, NODES

from g3nn.base.errors import Problems
from g3nn.graph.relations import read_relations
from g3nn.model.generative import ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.replicas import Replicas, Sizes

EXACT = Objective.elbo(reduction="sum", pairs="all")
PAIRS = np.array([[0, 1, 3, 0, 1, 2, 3], [1, 2, 0, 4, 4, 5, 5]])
TYPES = ["cites", "cites", "cites", "in", "in", "in", "in"]
KINDS = ["paper"] * 4 + ["venue"] * 2


def with_types(task):
    """Papers 0 to 3, which cite each other, and venues 4 and 5, which they appear in."""
    relations = read_relations(tuple(PAIRS), NODES, False, Problems(), types=TYPES, kinds=KINDS)
    return replace(task, edges=np.sort(PAIRS, axis=0), relations=relations)


def made(name, task):
    model = ModelSpec.parse(name).build(Sizes.of(task), Replicas((3, 4)), {"latent": 2} if "lsm" in name else {})
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.7)
    return model.double()


def log_graph(model, inputs, y):
    """(R,): log p(G | X, y), pair by pair: of papers unordered pairs cite, and every paper may be in every venue."""
    hot = torch.nn.functional.one_hot(torch.tensor(y), CLASSES).double().expand(2, -1, -1)
    total = 0.0
    tasks = [source.inputs.task for source in PairSource(inputs).by_type]
    cites, within = zip(model.likelihood.parts, tasks, strict=True)
    for (part, task), possible in (
        (cites, [(i, j) for i in range(4) for j in range(i + 1, 4)]),
        (within, [(i, j) for i in range(4) for j in (4, 5)]),
    ):
        own = Inputs.of(task, dtype=torch.float64)
        source, state = PairSource(own), part.node_state(own, None)
        there = set(map(tuple, task.edges.T.tolist()))
        for pair in possible:
            i, j = (torch.tensor([end]) for end in pair)
            one = replace(source.edges, i=i, j=j, pattern=None, present=pair in there)
            total = total + part.expected_log_prob(state, hot, one)[:, 0]
    return total
