"""The bound against the evidence, by enumerating every labelling of a small graph."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from small_graph import CLASS_LIKELIHOODS, CLASSES, EDGES, HIDDEN, NODES, OBSERVED, labellings, log_graph, make_model

from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes

EXACT = Objective.elbo(reduction="sum", pairs="all")


class TablePosterior(LabelPosterior):
    """q given directly as a table of log-probabilities."""

    uses_graph = True

    def __init__(self, log_q: torch.Tensor) -> None:
        super().__init__(Sizes(1, CLASSES), Replicas((0, 1)))
        self.log_q = torch.nn.Parameter(log_q)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> torch.Tensor:
        return self.log_q


def log_joint(model: GenerativeModel, inputs: Inputs, source: PairSource) -> torch.Tensor:
    """(labellings, R): log p(G, Y_L, Y_U = y | X) for every labelling y of U."""
    log_p = model.prior.log_prob(inputs, None)
    rows = []
    for y in labellings():
        prior = sum(log_p[:, i, y[i]] for i in range(NODES))
        rows.append(log_graph(model, inputs, source, y) + prior)
    return torch.stack(rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASS_LIKELIHOODS)
@pytest.mark.parametrize("kind", ["inputs", "weighted"])
def test_bound_is_below_log_evidence_and_the_gap_is_the_kl(name, kind, noise, request):
    model, inputs = make_model(name), request.getfixturevalue(kind)
    source = PairSource(inputs)
    joint = log_joint(model, inputs, source)
    evidence = joint.logsumexp(0)
    bound = EXACT.terms(model, inputs, source, noise).bound
    assert (bound < evidence).all()

    log_q = model.posterior.log_prob(inputs, None)
    q = torch.stack([sum(log_q[:, i, y[i]] for i in HIDDEN) for y in labellings()])
    kl_to_true_posterior = (q.exp() * (q - (joint - evidence))).sum(0)
    torch.testing.assert_close(evidence - bound, kl_to_true_posterior)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lsm", "sbm", "nlsm"])
def test_where_edges_of_a_node_are_missing_the_bound_is_that_of_all_they_could_have_been(name, task, noise):
    """Node 5 has lost its edges: the evidence is a sum over every way to give it some."""
    model = make_model(name)
    seen = task.with_edges(EDGES[:, EDGES[1] < NODES - 1])
    inputs = Inputs.of(seen, dtype=torch.float64)
    source = PairSource(inputs, "missing")
    joint = log_joint(model, inputs, source)
    completed = []
    for chosen in itertools.product([False, True], repeat=NODES - 1):
        own = np.array([[i, NODES - 1] for i, taken in enumerate(chosen) if taken], dtype=np.int64).reshape(-1, 2).T
        every = Inputs.of(task.with_edges(np.concatenate([seen.edges, own], axis=1)), dtype=torch.float64)
        completed.append(log_joint(model, every, PairSource(every)).logsumexp(0))
    evidence = torch.stack(completed).logsumexp(0)
    torch.testing.assert_close(joint.logsumexp(0), evidence)

    log_q = model.posterior.log_prob(inputs, None)
    q = torch.stack([sum(log_q[:, i, y[i]] for i in HIDDEN) for y in labellings()])
    gap = (q.exp() * (q - (joint - evidence))).sum(0)
    torch.testing.assert_close(evidence - EXACT.terms(model, inputs, source, noise).bound, gap)


def test_bound_is_tight_when_the_posterior_factorises_and_q_is_it(inputs, source, noise):
    """With p0 = p1 the graph says nothing about labels, so the true posterior of U is the prior."""
    model = make_model("sbm")
    with torch.no_grad():
        model.likelihood.odds[:] = torch.tensor([[0.3, 0.3], [-0.8, -0.8]], dtype=torch.float64)
    model.posterior = TablePosterior(model.prior.log_prob(inputs, None).detach())
    bound = EXACT.terms(model, inputs, source, noise).bound
    torch.testing.assert_close(bound, log_joint(model, inputs, source).logsumexp(0))


def test_both_forms_of_the_loss_in_the_paper_are_equal(inputs, source, noise):
    """E_q[log q - log p(Y_U, Y_L, G)] - eta log q(Y_L), and graph + KL + prior + supervised."""
    eta = 2.5
    objective = Objective.elbo(reduction="sum", pairs="all", eta=eta)
    model = make_model("lsm")
    terms = objective.terms(model, inputs, source, noise)
    split = objective.weights(Replicas((0, 1))).total(terms)

    log_q = model.posterior.log_prob(inputs, None)
    joint = log_joint(model, inputs, source)
    q = torch.stack([sum(log_q[:, i, y[i]] for i in HIDDEN) for y in labellings()])
    negative_elbo = (q.exp() * (q - joint)).sum(0)
    supervised = -sum(log_q[:, i, inputs.labels[i]] for i in OBSERVED)
    torch.testing.assert_close(split, negative_elbo + eta * supervised)


def test_weights_scale_their_terms(inputs, source, noise):
    model = make_model("sbm")
    weights = {"graph_weight": 0.3, "kl_weight": 0.7, "entropy_weight": 0.2, "prior_weight": 1.5, "eta": 4.0}
    objective = Objective.elbo(**weights, laplacian_weight=0.9)
    t = objective.terms(model, inputs, source, noise)
    expected = (
        0.3 * t.graph
        + 0.7 * (t.cross_entropy - 0.2 * t.entropy)
        + 1.5 * t.prior
        + 4.0 * t.supervised
        + 0.9 * t.laplacian
    )
    torch.testing.assert_close(objective.weights(Replicas((0, 1))).total(t), expected)
    assert (t.laplacian > 0).all()


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_evenness_is_how_far_the_mean_of_q_is_from_classes_that_are_all_alike(inputs, source, noise, reduction):
    model = make_model("sbm")
    found = Objective.elbo(evenness_weight=(0.5, 2.0), reduction=reduction).terms(model, inputs, source, noise).evenness
    share = model.posterior.log_prob(inputs, None).exp().mean(1)
    alike = torch.full_like(share, 1 / share.shape[1])
    torch.testing.assert_close(
        found, torch.distributions.kl_divergence(*map(torch.distributions.Categorical, (share, alike)))
    )
    assert (found > 0).all()
    assert not Objective.elbo().terms(model, inputs, source, noise).evenness.any()


def test_means_are_sums_divided_by_what_they_are_over(task, noise):
    """Two nodes are hidden and four observed, so that one number cannot stand for the other."""
    inputs = Inputs.of(task.with_split(np.array([0, 1, 2, 4]), np.array([3]), np.array([5])), dtype=torch.float64)
    source, model = PairSource(inputs), make_model("sbm")
    mean, total = (
        Objective.elbo(reduction=how, pairs="all").terms(model, inputs, source, noise) for how in ("mean", "sum")
    )
    for name, count in {"prior": 4, "supervised": 4, "cross_entropy": 2, "entropy": 2}.items():
        torch.testing.assert_close(getattr(mean, name), getattr(total, name) / count, msg=name)
    labels = torch.where(inputs.labelled, inputs.observed, model.posterior.log_prob(inputs, None).exp())
    scores = [model.likelihood.expected_log_prob(None, labels, one) for one in (source.edges, source.all_non_edges)]
    torch.testing.assert_close(mean.graph, -sum(score.mean(1) for score in scores))
    torch.testing.assert_close(total.graph, -sum(score.sum(1) for score in scores))


def test_a_mean_over_weighted_edges_is_over_their_number(task, weighted, noise):
    """Weights have mean 1, unless they are meant to add up to fewer or more edges than there are."""
    model, source = make_model("sbm"), PairSource(weighted)
    mean, total = (
        Objective.elbo(reduction=how, pairs="all").terms(model, weighted, source, noise) for how in ("mean", "sum")
    )
    labels = torch.where(weighted.labelled, weighted.observed, model.posterior.log_prob(weighted, None).exp())
    edges, others = (
        model.likelihood.expected_log_prob(None, labels, one) for one in (source.edges, source.all_non_edges)
    )
    weights = torch.from_numpy(weighted.task.weights)
    torch.testing.assert_close(total.graph, -(edges * weights).sum(1) - others.sum(1))
    torch.testing.assert_close(mean.graph, -(edges * weights).sum(1) / 6 - others.mean(1))


def test_sampled_edges_carry_their_weights(weighted):
    """So that the graph term of a step is on average that of all edges."""
    source = PairSource(weighted)
    drawn = source.sample_edges(Noise(torch.tensor([5, 6]), 0), 500)
    weight = torch.zeros(NODES, NODES, dtype=torch.float64)
    weight[weighted.edges[0], weighted.edges[1]] = torch.from_numpy(weighted.task.weights)
    assert torch.equal(drawn.weight, weight[drawn.i, drawn.j])
    assert drawn.weight.unique().tolist() == [1, 2, 3, 4]


def test_weights_find_their_edges_in_any_order(weighted):
    order = np.array([4, 0, 5, 2, 1, 3])
    moved = Inputs.of(weighted.task.with_edges(order), dtype=torch.float64)
    one, other = PairSource(weighted).edges, PairSource(moved).edges
    for name in ("i", "j", "weight"):
        assert torch.equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("kind", ["inputs", "weighted"])
def test_laplacian_term_is_the_quadratic_form_of_the_graph_laplacian(kind, noise, request):
    model, inputs = make_model("sbm"), request.getfixturevalue(kind)
    source = PairSource(inputs)
    objective = Objective.laplacian(reduction="sum")
    q = model.posterior.log_prob(inputs, None).exp()
    adjacency = torch.zeros(NODES, NODES, dtype=torch.float64)
    adjacency[inputs.edges[0], inputs.edges[1]] = 1 if kind == "inputs" else torch.from_numpy(inputs.task.weights)
    adjacency = adjacency + adjacency.T
    laplacian = torch.diag(adjacency.sum(1)) - adjacency
    expected = torch.einsum("rik,ij,rjk->r", q, laplacian, q)
    torch.testing.assert_close(objective.terms(model, inputs, source, noise).laplacian, expected)
