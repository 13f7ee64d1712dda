"""Graphs small enough to enumerate tags or to integrate over real values, and models for them."""

from __future__ import annotations

import numpy as np
import torch

from g3nn.base.options import pick
from g3nn.graph.task import NodeTask
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import LIKELIHOODS
from g3nn.model.networks import PerceptronOptions
from g3nn.model.posteriors.gcn import GCN, GCNOptions
from g3nn.model.priors.mlp import MLPPrior
from g3nn.model.replicas import Replicas, Sizes

FEATURES, UNITS = 3, 4
FLAG_EDGES = np.array([[0, 0, 1, 2, 3], [1, 2, 3, 3, 4]])
LINE = np.array([[0, 1], [1, 2]])
"""Three nodes in a row; the first is not observed."""


def flags(columns: int) -> NodeTask:
    """Five nodes with tags, three of them observed; one node is told only some of its tags."""
    labels = np.array([[1, 0], [0, 1], [1, np.nan], [0, 0], [1, 1]])[:, :columns]
    features = np.random.default_rng(0).normal(size=(5, FEATURES))
    return NodeTask.build(features, FLAG_EDGES, labels, [0, 1, 2], [3], [4], outcome="tags")


def line(outcome: str) -> NodeTask:
    """Three nodes, the last two observed."""
    labels = {"real": [1.0, 12.0, 9.0], "counts": [2, 4, 1]}[outcome]
    features = np.random.default_rng(1).normal(size=(3, FEATURES))
    return NodeTask.build(features, LINE, labels, [1, 2], [0], outcome=outcome)


def number_model(likelihood: str, task: NodeTask, options: dict | None = None) -> GenerativeModel:
    """One replica with random parameters everywhere and no dropout."""
    sizes, replicas, options = Sizes.of(task, options), Replicas((0,)), options or {}
    component = LIKELIHOODS[likelihood]
    chosen = pick(options, component.Options)
    parts = (
        GCN(sizes, replicas.within("q"), GCNOptions(dropout=0.0, hidden=UNITS)),
        component(sizes, replicas.within("g"), chosen),
        MLPPrior(sizes, replicas.within("p"), PerceptronOptions(dropout=0.0, hidden=UNITS)),
    )
    model = GenerativeModel(*parts).double()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad and not name.endswith("nodes.own"):
                parameter += 0.4 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def double_inputs(task: NodeTask) -> Inputs:
    return Inputs.of(task, dtype=torch.float64)


def known_numbers(task: NodeTask) -> np.ndarray:
    """(n, T): the labels that a fit may see, NaN elsewhere."""
    y = np.full(task.labels.shape, np.nan)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    return y
