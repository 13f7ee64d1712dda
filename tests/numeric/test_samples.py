"""Several noisy passes through q: their terms are averaged, and a term pulls them together."""

from __future__ import annotations

import pytest
import torch
from small_graph import CLASSES, NODES, UNITS, make_model

import g3nn
from g3nn.graph.outcomes import Classes
from g3nn.model.objective import Objective
from g3nn.model.posteriors.gcn import GCN, GCNOptions
from g3nn.model.replicas import Noise, Replicas, Sizes

SEEDS = torch.tensor([0, 1])


@pytest.fixture
def noisy():
    """The small model with a posterior that drops half of its units."""
    model = make_model("sbm")
    dropping = GCN(Sizes(4, CLASSES), Replicas((0, 1)).within("q"), GCNOptions(dropout=0.5, hidden=UNITS)).double()
    dropping.load_state_dict(model.posterior.state_dict())
    model.posterior = dropping
    return model


def passes(model, inputs, count: int) -> list[torch.Tensor]:
    """What q answers in the first passes of a step."""
    noise = Noise(SEEDS, 7)
    return [model.posterior.log_prob(inputs, noise).exp().detach() for _ in range(count)]


def test_one_sample_is_the_plain_objective(noisy, inputs, source):
    one, plain = (
        objective.terms(noisy, inputs, source, Noise(SEEDS, 7)).stacked
        for objective in (Objective.elbo(samples=1), Objective.elbo())
    )
    assert torch.equal(one, plain)


def test_terms_are_means_over_the_samples(noisy, inputs, source):
    terms = Objective.elbo(samples=3, reduction="sum").terms(noisy, inputs, source, Noise(SEEDS, 7))
    samples = passes(noisy, inputs, 3)
    assert not torch.equal(samples[0], samples[1])
    entropy = -sum((q * q.log())[:, inputs.unlabelled].sum((1, 2)) for q in samples) / 3
    torch.testing.assert_close(terms.entropy.detach(), entropy)
    labels = inputs.labels[inputs.train]
    supervised = -sum(q[:, inputs.train, labels].log().sum(1) for q in samples) / 3
    torch.testing.assert_close(terms.supervised.detach(), supervised)


def test_the_graph_is_explained_by_the_mean_of_the_samples(noisy, inputs, source):
    objective = Objective.elbo(samples=2, reduction="sum", pairs="all")
    found = objective.terms(noisy, inputs, source, Noise(SEEDS, 7)).graph.detach()
    mean = sum(passes(noisy, inputs, 2)) / 2
    labels = torch.where(inputs.labelled, inputs.observed, mean)
    likelihood = noisy.likelihood
    scores = [likelihood.expected_log_prob(None, labels, pairs) for pairs in (source.edges, source.all_non_edges)]
    torch.testing.assert_close(found, -sum(score.sum(1) for score in scores))


@pytest.mark.parametrize("temperature", [0.2, 1.0])
def test_consistency_is_the_distance_from_the_sharpened_mean(noisy, inputs, source, temperature):
    objective = Objective.elbo(samples=2, consistency_weight=1.0, sharpening=temperature)
    found = objective.terms(noisy, inputs, source, Noise(SEEDS, 7)).consistency
    first, second = passes(noisy, inputs, 2)
    expected = torch.zeros(2, dtype=torch.float64)
    for r in range(2):
        for i in range(NODES):
            powered = ((first[r, i] + second[r, i]) / 2) ** (1 / temperature)
            target = powered / powered.sum()
            expected[r] += sum(((q[r, i] - target) ** 2).sum() for q in (first, second)) / 2 / NODES
    torch.testing.assert_close(found.detach(), expected)
    assert found.requires_grad


def test_balanced_sharpening_multiplies_by_how_much_rarer_a_class_became(noisy, inputs, source):
    objective = Objective.elbo(samples=2, consistency_weight=1.0, sharpening=0.2, balanced=True)
    found = objective.terms(noisy, inputs, source, Noise(SEEDS, 7)).consistency
    first, second = passes(noisy, inputs, 2)
    mean = (first + second) / 2
    for r in range(2):
        powered = [row**5 / (row**5).sum() for row in mean[r]]
        rarer = [mean[r][:, k].mean() / sum(row[k] for row in powered) * NODES for k in range(mean.shape[2])]
        expected = 0.0
        for i in range(NODES):
            target = torch.stack([powered[i][k] * rarer[k] for k in range(mean.shape[2])])
            target = target / target.sum()
            expected += sum(((q[r, i] - target) ** 2).sum() for q in (first, second)) / 2 / NODES
        torch.testing.assert_close(found[r].detach(), expected)


def test_sharpening_leaves_rare_classes_as_frequent_as_they_were():
    mean = torch.tensor([0.4, 0.3, 0.3], dtype=torch.float64).expand(1, 50, 3).clone()
    mean[0, :20] = torch.tensor([0.3, 0.4, 0.3], dtype=torch.float64)
    classes = Classes(3)
    alone, balanced = (classes.sharpened(mean, 0.05, choice).mean(1)[0] for choice in (False, True))
    assert (alone[2] < 0.05, balanced[2] > 0.2) == (True, True)
    assert torch.isfinite(classes.sharpened(torch.tensor([[[1.0, 1e-30]]]), 0.05, balanced=True)).all()


def test_samples_are_pulled_towards_their_sharpened_mean_which_stays(noisy, inputs, source):
    """The mean is a target: it gets no gradient."""
    objective = Objective.elbo(samples=2, consistency_weight=1.0, sharpening=0.5, reduction="sum")
    found = objective.terms(noisy, inputs, source, Noise(SEEDS, 7)).consistency
    noise = Noise(SEEDS, 7)
    first, second = (noisy.posterior.log_prob(inputs, noise).exp() for _ in range(2))
    powered = ((first + second) / 2).detach() ** 2
    target = powered / powered.sum(2, keepdim=True)
    expected = ((first - target).square() + (second - target).square()).sum((1, 2)) / 2
    parameters = list(noisy.posterior.parameters())
    slopes = [torch.autograd.grad(total.sum(), parameters) for total in (found, expected)]
    torch.testing.assert_close(*slopes)


def test_without_a_weight_there_is_no_consistency(noisy, inputs, source):
    terms = Objective.elbo(samples=2).terms(noisy, inputs, source, Noise(SEEDS, 7))
    assert not terms.consistency.any()


def test_warm_up_scales_the_graph_and_kl_terms_alone(inputs, source, noise):
    objective = Objective.elbo(graph_weight=2.0, kl_weight=0.5, eta=3.0)
    terms = objective.terms(make_model("sbm"), inputs, source, noise)
    weights = objective.weights(Replicas((0, 1)), dtype=torch.float64)
    bound = 2.0 * terms.graph + 0.5 * terms.kl
    torch.testing.assert_close(weights.total(terms, 0.25), 0.25 * bound + terms.prior + 3.0 * terms.supervised)
    torch.testing.assert_close(weights.total(terms, torch.tensor(0.25)), weights.total(terms, 0.25))
    torch.testing.assert_close(weights.total(terms), bound + terms.prior + 3.0 * terms.supervised)


def test_warm_up_spares_what_observed_labels_teach(noisy, inputs, source):
    objective = Objective.elbo(samples=2, consistency_weight=2.0, laplacian_weight=3.0)
    terms = objective.terms(noisy, inputs, source, Noise(SEEDS, 7))
    weights = objective.weights(Replicas((0, 1)), dtype=torch.float64)
    rising = terms.graph + terms.kl + 2.0 * terms.consistency + 3.0 * terms.laplacian
    torch.testing.assert_close(weights.total(terms, 0.5), 0.5 * rising + terms.prior + terms.supervised)


def test_warm_up_changes_the_training_and_ends(learnable):
    cold, warm = (g3nn.fit(learnable, "sbm-gcn", epochs=5, warm_up=epochs).history for epochs in (0, 3))
    graph = cold[:, 0, 0]
    assert warm[0, 0, 0] == graph[0], "the first loss is taken before anything was learned"
    assert (warm[1:, 0, 0] != graph[1:]).all()


def test_a_grand_model_learns_with_consistency(learnable):
    options = {"samples": 2, "consistency_weight": 1.0, "order": 2, "epochs": 60, "dropout": 0.2}
    result = g3nn.fit(learnable, "sbm-grand", **options)
    names = dict(zip(result.history_names, result.history[-1, :, 0], strict=True))
    assert names["consistency"] > 0
    assert result.test_accuracy[0] > 0.5
