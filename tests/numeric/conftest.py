"""Small graphs in float64 on which everything can be enumerated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_graph import EDGES, FEATURES, NODES, OBSERVED

from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs
from g3nn.model.pairs import PairSource
from g3nn.model.replicas import Noise


@pytest.fixture
def task() -> NodeTask:
    """6 nodes, 3 classes, nodes 0 to 2 labelled."""
    features = np.random.default_rng(0).normal(size=(NODES, FEATURES))
    return NodeTask.build(features, EDGES, [0, 1, 2, 0, 1, 2], OBSERVED, [3], [4, 5])


@pytest.fixture
def inputs(task: NodeTask) -> Inputs:
    return Inputs.of(task, dtype=torch.float64)


@pytest.fixture
def weighted(task: NodeTask) -> Inputs:
    return Inputs.of(replace(task, weights=np.array([1.0, 3.0, 2.0, 1.0, 4.0, 2.0])), dtype=torch.float64)


@pytest.fixture
def source(inputs: Inputs) -> PairSource:
    return PairSource(inputs)


@pytest.fixture
def noise() -> Noise:
    return Noise(torch.tensor([5, 6]), 0)
