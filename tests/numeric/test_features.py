"""Generative features p(X | Y), and a prior that learns from q: against brute force."""

from __future__ import annotations

import math

import pytest
import torch
from small_graph import CLASSES, FEATURES, HIDDEN, NODES, labellings, log_graph, make_model
from torch.distributions import Bernoulli, Normal

from g3nn.model.objective import Objective
from g3nn.model.priors.base import FeatureOptions
from g3nn.model.priors.bernoulli import BernoulliFeatures
from g3nn.model.priors.gaussian import GaussianFeatures
from g3nn.model.replicas import Replicas, Sizes

EXACT = Objective.elbo(reduction="sum", pairs="all")


def feature_prior(kind: type, temper: float = 1.0):
    prior = kind(Sizes(FEATURES, CLASSES), Replicas((0, 1)), FeatureOptions(temper)).double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return prior


def log_likelihood(prior, x: torch.Tensor) -> torch.Tensor:
    """(R, n, K): log p(x_i | k), feature by feature with torch's distributions."""
    rows = torch.empty(2, len(x), CLASSES, dtype=torch.float64)
    for r in range(2):
        for k in range(CLASSES):
            if isinstance(prior, BernoulliFeatures):
                each = Bernoulli(logits=prior.base[r] + prior.theta[r, :, k]).log_prob((x > 0).double())
            else:
                scale = prior.log_scale[r].exp()
                each = Normal(prior.mean[r, :, k] * scale, scale).log_prob(x)
            rows[r, :, k] = each.sum(1)
    return rows


@pytest.mark.parametrize("kind", [BernoulliFeatures, GaussianFeatures])
def test_features_have_the_likelihood_that_the_model_says(kind, inputs):
    prior = feature_prior(kind)
    torch.testing.assert_close(prior.log_likelihood(inputs), log_likelihood(prior, inputs.x.dense()))


@pytest.mark.parametrize("kind", [BernoulliFeatures, GaussianFeatures])
@pytest.mark.parametrize("temper", [1.0, 0.3])
def test_joint_of_label_and_features_is_answer_times_evidence(kind, temper, inputs):
    prior = feature_prior(kind, temper)
    log_prob, evidence = prior.log_joint(inputs, None)
    joint = temper * log_likelihood(prior, inputs.x.dense()) + prior.share.log_softmax(1).unsqueeze(1)
    torch.testing.assert_close(log_prob + evidence.unsqueeze(2), joint)
    torch.testing.assert_close(log_prob, prior.log_prob(inputs, None))


@pytest.mark.parametrize("kind", [BernoulliFeatures, GaussianFeatures])
def test_bound_with_features_is_below_the_evidence_of_graph_labels_and_features(kind, inputs, source, noise):
    model = make_model("sbm")
    model.prior = feature_prior(kind)
    with torch.no_grad():
        share = model.prior.share.log_softmax(1)
        each = log_likelihood(model.prior, inputs.x.dense()) + share.unsqueeze(1)
        joint = torch.stack(
            [log_graph(model, inputs, source, y) + sum(each[:, i, y[i]] for i in range(NODES)) for y in labellings()]
        )
        evidence = joint.logsumexp(0)
        bound = EXACT.terms(model, inputs, source, noise).bound
        log_q = model.posterior.log_prob(inputs, None)
    q = torch.stack([sum(log_q[:, i, y[i]] for i in HIDDEN) for y in labellings()])
    assert (bound < evidence).all()
    torch.testing.assert_close(evidence - bound, (q.exp() * (q - (joint - evidence))).sum(0))


def test_a_gaussian_is_normalised():
    prior = feature_prior(GaussianFeatures)
    grid = torch.linspace(-40, 40, 8001, dtype=torch.float64)
    scale = prior.log_scale[0, 0].exp()
    density = Normal(prior.mean[0, 0, 0] * scale, scale).log_prob(grid).exp()
    assert math.isclose(torch.trapezoid(density, grid).item(), 1.0, rel_tol=1e-9)


@pytest.mark.slow
def test_a_distilled_prior_learns_from_q_and_q_not_from_it(inputs, source, noise):
    model = make_model("sbm")
    lesson = Objective.elbo(distillation_weight=1.0, reduction="sum").terms(model, inputs, source, noise).distillation
    q, log_p = model.posterior.log_prob(inputs, None).exp(), model.prior.log_prob(inputs, None)
    torch.testing.assert_close(lesson, -(q * log_p)[:, inputs.unlabelled].sum((1, 2)))
    lesson.sum().backward()
    assert all(parameter.grad is None for parameter in model.posterior.parameters())
    assert all(parameter.grad.any() for parameter in model.prior.parameters())


def test_without_a_weight_nothing_is_distilled(inputs, source, noise):
    assert not Objective.elbo().terms(make_model("sbm"), inputs, source, noise).distillation.any()
