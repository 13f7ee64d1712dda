"""A graph of six nodes on which everything can be enumerated, and models with random parameters for it."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from g3nn.base.options import pick
from g3nn.model.generative import GenerativeModel, serves
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import LIKELIHOODS
from g3nn.model.networks import PerceptronOptions
from g3nn.model.pairs import PairSource
from g3nn.model.posteriors.gcn import GCN, GCNOptions
from g3nn.model.priors.mlp import MLPPrior
from g3nn.model.replicas import Replicas, Sizes

CLASS_LIKELIHOODS = [name for name, likelihood in LIKELIHOODS.items() if serves(likelihood, "classes")]
NODES, CLASSES, FEATURES = 6, 3, 4
EDGES = np.array([[0, 0, 1, 2, 3, 4], [1, 2, 2, 3, 4, 5]])
OBSERVED = (0, 1, 2)
HIDDEN = tuple(range(3, NODES))
UNITS, LATENT = 4, 3
"""Of the networks and of a latent space: few, since gradients are checked number by number."""


def make_model(likelihood: str, seeds: tuple[int, ...] = (0, 1)) -> GenerativeModel:
    """Two replicas with random parameters everywhere and no dropout, so that a loss is a number, not a draw."""
    sizes, replicas = Sizes(FEATURES, CLASSES), Replicas(seeds)
    component = LIKELIHOODS[likelihood]
    parts = (
        GCN(sizes, replicas.within("q"), GCNOptions(dropout=0.0, hidden=UNITS)),
        component(sizes, replicas.within("g"), pick({"latent": LATENT}, component.Options)),
        MLPPrior(sizes, replicas.within("p"), PerceptronOptions(dropout=0.0, hidden=UNITS)),
    )
    model = GenerativeModel(*parts).double()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.7 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def labellings() -> list[tuple[int, ...]]:
    """Every labelling of all nodes that agrees with the observed labels."""
    return [(0, 1, 2, *hidden) for hidden in itertools.product(range(CLASSES), repeat=len(HIDDEN))]


def log_graph(model: GenerativeModel, inputs: Inputs, source: PairSource, y: tuple[int, ...]) -> torch.Tensor:
    """(R,): log p(G | X, Y = y), pair by pair from the K x K tables. An edge of weight 3 is there three times."""
    times = np.zeros((NODES, NODES), dtype=int)
    times[tuple(inputs.task.edges)] = 1 if inputs.task.weights is None else inputs.task.weights
    state = model.likelihood.node_state(inputs, None)
    total = torch.zeros(2, dtype=torch.float64)
    for pairs in (source.edges, source.all_non_edges):
        tables = model.likelihood.log_prob(state, pairs)
        tables = tables.expand(-1, pairs.i.numel(), -1, -1)
        for p, (i, j) in enumerate(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)):
            for _ in range(times[i, j] if pairs.present else 1):
                total = total + tables[:, p, y[i], y[j]]
    return total
