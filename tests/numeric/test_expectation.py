"""The K x K expectation against brute force and Monte Carlo; the sampled non-edges against the full sum."""

from __future__ import annotations

import pytest
import torch
from small_graph import CLASS_LIKELIHOODS, CLASSES, make_model

from g3nn.model.objective import Objective
from g3nn.model.replicas import Noise

STANDARD_ERRORS = 5


def random_q(seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, 6, CLASSES, generator=generator, dtype=torch.float64).softmax(2)


@pytest.mark.parametrize("name", CLASS_LIKELIHOODS)
def test_expectation_equals_brute_force_over_both_labels(name, inputs, source):
    model, q = make_model(name), random_q()
    state = model.likelihood.node_state(inputs, None)
    for pairs in (source.edges, source.all_non_edges):
        probability = torch.sigmoid(model.likelihood.logits(state, pairs)).expand(-1, pairs.i.numel(), -1, -1)
        chance = probability if pairs.present else 1 - probability
        expected = torch.zeros(2, pairs.i.numel(), dtype=torch.float64)
        for p, (i, j) in enumerate(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)):
            for k in range(CLASSES):
                for m in range(CLASSES):
                    expected[:, p] += q[:, i, k] * q[:, j, m] * chance[:, p, k, m].log()
        torch.testing.assert_close(model.likelihood.expected_log_prob(state, q, pairs), expected)


@pytest.mark.parametrize("name", ["lsm", "gsbm"])
def test_expectation_equals_monte_carlo_within_error(name, inputs, source):
    model, q = make_model(name), random_q()
    pairs, draws = source.edges, 20_000
    state = model.likelihood.node_state(inputs, None)
    tables = model.likelihood.log_prob(state, pairs).expand(-1, pairs.i.numel(), -1, -1)
    generator = torch.Generator().manual_seed(1)
    y = torch.multinomial(q[0], draws, replacement=True, generator=generator)
    rows = torch.arange(pairs.i.numel()).unsqueeze(1)
    sampled = tables[0][rows, y[pairs.i], y[pairs.j]].sum(0)
    exact = model.likelihood.expected_log_prob(state, q, pairs)[0].sum()
    error = sampled.std() / draws**0.5
    assert (sampled.mean() - exact).abs() < STANDARD_ERRORS * error


SAMPLED = [
    ("lsm", {}),
    ("nlsm", {}),
    ("sbm", {"edges_per_step": 2}),
    ("sbm", {"negatives": "degrees"}),
    ("sbm", {"negatives": "degrees", "reduction": "mean"}),
]


@pytest.mark.parametrize(("name", "how"), SAMPLED)
def test_sampled_pairs_estimate_the_full_sum_without_bias(name, how, inputs, source):
    model, copies = make_model(name), 100
    how = {"reduction": "sum", **how}
    exact = Objective.elbo(reduction=how["reduction"], pairs="all")
    sampled = Objective.elbo(pairs="sampled", **how)
    with torch.no_grad():
        truth = exact.terms(model, inputs, source, Noise(torch.tensor([5, 6]), 0)).graph
        # Copies of both replicas with seeds of their own draw many samples in one step.
        model.select(torch.tensor([0, 1]).repeat(copies))
        seeds = torch.arange(2 * copies)
        each = [sampled.terms(model, inputs, source, Noise(seeds, step)).graph for step in range(40)]
    draws = torch.cat(each).view(-1, 2)
    error = draws.std(0) / len(draws) ** 0.5
    assert (error > 0).all()
    assert ((draws.mean(0) - truth).abs() < STANDARD_ERRORS * error).all()


def test_more_edges_in_a_step_than_there_are_means_all(inputs, source):
    model, seeds = make_model("sbm"), torch.tensor([5, 6])
    every, more = (
        Objective.elbo(edges_per_step=count).terms(model, inputs, source, Noise(seeds, 0)).stacked
        for count in (0, 10_000)
    )
    assert torch.equal(every, more)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lsm", "nlsm", "sbm", "dcsbm", "mix"])
@pytest.mark.parametrize("label_use", ["expected", "plug-in"])
def test_nodes_that_no_drawn_pair_has_make_no_difference(name, label_use, inputs, source, monkeypatch):
    model, found = make_model(name), []
    for spared in (10**9, 1e-9):
        monkeypatch.setattr("g3nn.model.objective._SPARED", spared)
        asked = Objective.elbo(edges_per_step=3, label_use=label_use)
        terms = asked.terms(model, inputs, source, Noise(torch.tensor([5, 6]), 0))
        learned = [one for one in model.likelihood.parameters() if one.requires_grad]
        found.append([terms.graph, *(torch.autograd.grad(terms.graph.sum(), learned) if learned else ())])
    for every, few in zip(*found, strict=True):
        torch.testing.assert_close(few, every)


def test_soft_labels_in_the_log_odds_are_not_the_expectation(inputs, source):
    """The shortcut of the authors' code is a different number; the exact form must not fall back to it."""
    model, q = make_model("lsm"), random_q()
    state = model.likelihood.node_state(inputs, None)
    exact = model.likelihood.expected_log_prob(state, q, source.edges)
    shortcut = model.likelihood.plug_in_score(state, q, source.edges)
    assert (shortcut > exact).all(), "Jensen: log sigmoid of the mean exceeds the mean of log sigmoid"
