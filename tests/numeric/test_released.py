"""The authors' code on four nodes, each of its differences from the paper computed by hand.

Nodes 0 and 1 are labelled (classes 0 and 1), 2 and 3 are not; edges 0-1, 0-2, 2-3; K = 2. The prior says (0.8, 0.2) for
node 2 and (0.3, 0.7) for node 3; q says (0.6, 0.4) and (0.1, 0.9).
"""

from __future__ import annotations

from math import exp, log, log1p

import numpy as np
import pytest
import torch

from g3nn.graph.task import NodeTask
from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import Pairs
from g3nn.model.likelihoods.lsm import AdditiveLatentSpace, LatentSpaceOptions
from g3nn.model.likelihoods.sbm import PlantedPartition
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.priors.base import LabelPrior
from g3nn.model.replicas import Noise, Replicas, Sizes

PRIOR = [[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]
Q = [[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.1, 0.9]]
SOFT = [[1.0, 0.0], [0.0, 1.0], [0.8, 0.2], [0.3, 0.7]]
"""What the graph term of the authors' code sees: observed labels, and the prior for the rest."""
EDGES = [(0, 1), (0, 2), (2, 3)]
NON_EDGES = [(0, 3), (1, 2), (1, 3)]
SIZES, ONE = Sizes(2, 2), Replicas((0,))


class Fixed:
    def __init__(self, table: list[list[float]]) -> None:
        super().__init__(SIZES, ONE)
        self.table = torch.nn.Parameter(torch.tensor([table], dtype=torch.float64).log())

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> torch.Tensor:
        return self.table


class FixedPrior(Fixed, LabelPrior):
    pass


class FixedPosterior(Fixed, LabelPosterior):
    pass


@pytest.fixture
def inputs() -> Inputs:
    features = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 2.0]])
    task = NodeTask.build(features, np.array(EDGES).T, [0, 1, 0, 1], [0, 1], [2], [3])
    return Inputs.of(task, dtype=torch.float64)


def released(inputs: Inputs, likelihood: torch.nn.Module):
    model = GenerativeModel(FixedPosterior(Q), likelihood.double(), FixedPrior(PRIOR))
    terms = Objective.released(pairs="all").terms(model, inputs, PairSource(inputs), Noise(torch.tensor([0]), 0))
    return model, terms


def planted_partition() -> PlantedPartition:
    """p0 = 0.9 and p1 = 0.1 in float64; the component itself starts in float32."""
    likelihood = PlantedPartition(SIZES, ONE).double()
    with torch.no_grad():
        likelihood.odds[:] = torch.tensor([0.9, 0.1], dtype=torch.float64).logit()
    return likelihood


def dot(i: int, j: int) -> float:
    return SOFT[i][0] * SOFT[j][0] + SOFT[i][1] * SOFT[j][1]


def test_graph_term_uses_the_priors_soft_labels_drops_constants_and_divides_by_classes(inputs):
    _, terms = released(inputs, planted_partition())
    edges = sum(dot(i, j) for i, j in EDGES) / 3 / 2 * log(0.9 / 0.1)
    non_edges = sum(dot(i, j) for i, j in NON_EDGES) / 3 / 2 * log((1 - 0.9) / (1 - 0.1))
    assert terms.graph.item() == pytest.approx(-edges - non_edges)


@pytest.mark.slow
def test_posterior_gets_no_gradient_from_the_graph_term_and_the_prior_does(inputs):
    model, terms = released(inputs, planted_partition())
    q_gradient, p_gradient = torch.autograd.grad(terms.graph, (model.posterior.table, model.prior.table))
    assert not q_gradient.any()
    assert p_gradient[0, 2:].abs().min() > 0
    assert (p_gradient[0, :2] == 0).all(), "observed labels replace the prior at labelled nodes"


def test_entropy_is_minimised_and_node_terms_are_means_over_classes_too(inputs):
    _, terms = released(inputs, planted_partition())
    cross_entropy = -(0.6 * log(0.8) + 0.4 * log(0.2) + 0.1 * log(0.3) + 0.9 * log(0.7)) / 2 / 2
    entropy = -(0.6 * log(0.6) + 0.4 * log(0.4) + 0.1 * log(0.1) + 0.9 * log(0.9)) / 2 / 2
    assert terms.cross_entropy.item() == pytest.approx(cross_entropy)
    assert terms.entropy.item() == pytest.approx(entropy)
    prior = -(log(0.9) + log(0.6)) / 2
    supervised = -(log(0.7) + log(0.8)) / 2
    total = Objective.released(eta=10.0).weights(ONE).total(terms).item()
    expected = terms.graph.item() + cross_entropy + entropy + prior + 10 * supervised
    assert total == pytest.approx(expected)


def test_latent_space_puts_soft_labels_into_the_logit_after_relu(inputs):
    likelihood = AdditiveLatentSpace(SIZES, ONE, LatentSpaceOptions(latent=1, encoder="relu"))
    with torch.no_grad():
        likelihood.U[:] = torch.tensor([[[0.5], [1.0]]])
        likelihood.bias[:] = 0.25
        likelihood.w_x[:] = 2.0
        likelihood.w_y[:] = torch.tensor([[[1.0], [-1.0]]])
    _, terms = released(inputs, likelihood)
    # relu(U x + b) = 0.75, 1.25, 1.75, 1.75 for the four nodes; each end adds 2 * that + (s_0 - s_1).
    end = [2 * latent + s[0] - s[1] for latent, s in zip([0.75, 1.25, 1.75, 1.75], SOFT, strict=True)]
    edges = sum(-log1p(exp(-(end[i] + end[j]))) for i, j in EDGES) / 3
    non_edges = sum(-log1p(exp(end[i] + end[j])) for i, j in NON_EDGES) / 3
    assert terms.graph.item() == pytest.approx(-edges - non_edges)


def test_relu_encoder_cuts_negative_latents(inputs):
    likelihood = AdditiveLatentSpace(SIZES, ONE, LatentSpaceOptions(latent=1, encoder="relu")).double()
    with torch.no_grad():
        likelihood.U[:] = torch.tensor([[[1.0], [0.0]]])
        likelihood.w_x[:] = 1.0
    state = likelihood.node_state(inputs, None)
    assert state.flatten().tolist() == [1.0, 0.0, 1.0, 0.0]


def test_non_edges_are_uniform_pairs_that_may_hit_an_edge_or_a_self_pair(inputs):
    source = PairSource(inputs)
    drawn: Pairs = source.sample_uniform(Noise(torch.tensor([0]), 0), 4000)
    codes = (drawn.i * 4 + drawn.j).flatten()
    counts = torch.bincount(codes, minlength=16)
    # 16 ordered pairs, 250 expected of each: the 0.999 quantile of chi-square with 15 degrees of freedom is 37.7.
    assert ((counts - 250.0) ** 2 / 250).sum() < 37.7
    assert Objective.released().negatives == "uniform"
    assert Objective.elbo().negatives == "non-edges"
