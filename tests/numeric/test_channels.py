"""Channels against enumeration: every true label of a small graph, and every graph that may be the true one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from number_graph import double_inputs, flags, line, number_model
from scipy import stats
from small_graph import CLASS_LIKELIHOODS, CLASSES, FEATURES, NODES, OBSERVED, make_model

from g3nn.model.channels.edges import DoubtfulEdges, EdgeOptions
from g3nn.model.channels.flips import FlipOptions, Flips
from g3nn.model.channels.outliers import Outliers
from g3nn.model.generative import GenerativeModel
from g3nn.model.likelihoods import Pairs
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes

EXACT = Objective.elbo(reduction="sum", pairs="all")
LABELLINGS = torch.tensor(list(itertools.product(range(CLASSES), repeat=NODES)))


class Table(LabelPosterior):
    """q given directly."""

    uses_graph = True

    def __init__(self, log_q: torch.Tensor, sizes: Sizes, seeds: tuple[int, ...]) -> None:
        super().__init__(sizes, Replicas(seeds))
        self.log_q = torch.nn.Parameter(log_q)

    def log_prob(self, inputs, noise):
        return self.log_q


def doubted(model: GenerativeModel, sizes: Sizes, seeds: tuple[int, ...]) -> GenerativeModel:
    """The same model, with labels and edges that may be wrong."""
    replicas = Replicas(seeds)
    each = slice(len(seeds))
    channels = [
        Flips(sizes, replicas, FlipOptions(wrong=(0.15, 0.3)[each], strength=(2.0, 5.0)[each])),
        DoubtfulEdges(sizes, replicas, EdgeOptions(false=(0.2, 0.05)[each], miss=(0.1, 0.3)[each])),
    ]
    made = GenerativeModel(model.posterior, model.likelihood, model.prior, channels=channels).double()
    with torch.no_grad():
        change = made.label_channel.change
        change += 0.5 * torch.randn(change.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return made


def with_classes(name: str) -> GenerativeModel:
    return doubted(make_model(name), Sizes(FEATURES, CLASSES), (0, 1))


def both_kinds(source: PairSource) -> tuple[Pairs, Pairs]:
    return source.edges, source.all_non_edges


def emitted(channel: DoubtfulEdges, present: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(R,) each: p(A | A* = 1) and p(A | A* = 0)."""
    false, miss = channel.odds.detach().sigmoid().unbind(1)
    return (1 - miss, false) if present else (miss, 1 - false)


def chances(channel: DoubtfulEdges, p: torch.Tensor, present: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """p(A, A* = 1) and p(A, A* = 0), from p(A* = 1) (R, ...)."""
    edge, none = (part.view(-1, *[1] * (p.dim() - 1)) for part in emitted(channel, present))
    return edge * p, none * (1 - p)


def probabilities(model: GenerativeModel, inputs, pairs: Pairs) -> torch.Tensor:
    """(R, P, K, K): p(A* = 1 | k, l)."""
    state = model.likelihood.node_state(inputs, None)
    return model.likelihood.logits(state, pairs).detach().sigmoid().expand(-1, pairs.i.numel(), -1, -1)


def log_joint(model: GenerativeModel, inputs, source: PairSource) -> torch.Tensor:
    """(R, labellings): log p(A, s, Y = y | X), true edges summed out pair by pair."""
    log_p = model.prior.log_prob(inputs, None).detach()
    table, y = model.label_channel.table().detach(), LABELLINGS
    total = sum(log_p[:, i, y[:, i]] for i in range(NODES))
    total = total + sum(table[:, y[:, i], int(inputs.labels[i])].log() for i in OBSERVED)
    for pairs in both_kinds(source):
        seen = sum(chances(model.edge_channel, probabilities(model, inputs, pairs), pairs.present)).log()
        weight = torch.ones(pairs.i.numel()) if pairs.weight is None else pairs.weight
        for p, (i, j) in enumerate(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)):
            total = total + weight[p] * seen[:, p, y[:, i], y[:, j]]
    return total


def believed(model: GenerativeModel, inputs) -> torch.Tensor:
    """(R, n, K): q where nothing was seen, else q times T of what was seen, normalised."""
    b = model.posterior.log_prob(inputs, None).detach().exp()
    for i in OBSERVED:
        b[:, i] *= model.label_channel.table().detach()[:, :, int(inputs.labels[i])]
    return b / b.sum(2, keepdim=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["inputs", "weighted"])
@pytest.mark.parametrize("name", CLASS_LIKELIHOODS)
def test_bound_is_the_expectation_and_the_gap_is_the_kl(name, kind, noise, request):
    model, inputs = with_classes(name), request.getfixturevalue(kind)
    source = PairSource(inputs)
    terms = EXACT.terms(model, inputs, source, noise)
    joint = log_joint(model, inputs, source)
    log_b = sum(believed(model, inputs).log()[:, i, LABELLINGS[:, i]] for i in range(NODES))
    expected = (log_b.exp() * (joint - log_b)).sum(1)
    torch.testing.assert_close(terms.bound + terms.channels, expected, atol=1e-8, rtol=0)
    evidence = joint.logsumexp(1)
    assert (terms.bound < evidence).all()
    kl_to_true_posterior = (log_b.exp() * (log_b - (joint - evidence[:, None]))).sum(1)
    torch.testing.assert_close(evidence - terms.bound, kl_to_true_posterior + terms.channels, atol=1e-8, rtol=0)
    assert (terms.channels > 0).all()


def test_summing_out_true_edges_is_the_sum_over_all_true_graphs(inputs, source):
    model = with_classes("gsbm")
    every = torch.tensor(list(itertools.product([False, True], repeat=NODES * (NODES - 1) // 2)))
    joint = log_joint(model, inputs, source)
    log_p, table = model.prior.log_prob(inputs, None), model.label_channel.table()
    for number in (0, 17, 404, 728):
        y = LABELLINGS[number].tolist()
        edge, none = [], []
        for pairs in both_kinds(source):
            both = chances(model.edge_channel, probabilities(model, inputs, pairs), pairs.present)
            for p, (i, j) in enumerate(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)):
                edge.append(both[0][:, p, y[i], y[j]].log())
                none.append(both[1][:, p, y[i], y[j]].log())
        each = torch.where(every, torch.stack(edge, 1)[:, None], torch.stack(none, 1)[:, None]).sum(2)
        labels = sum(log_p[:, i, y[i]] for i in range(NODES)) + sum(
            table[:, y[i], int(inputs.labels[i])].log() for i in OBSERVED
        )
        torch.testing.assert_close(each.logsumexp(1) + labels, joint[:, number])


@pytest.mark.parametrize("name", CLASS_LIKELIHOODS)
def test_an_edge_is_as_probable_as_enumeration_says(name, inputs, source):
    model = with_classes(name)
    q = torch.randn(2, NODES, CLASSES, generator=torch.Generator().manual_seed(0), dtype=torch.float64).softmax(2)
    state = model.likelihood.node_state(inputs, None)
    for pairs in both_kinds(source):
        edge, none = chances(model.edge_channel, probabilities(model, inputs, pairs), pairs.present)
        expected = torch.zeros(2, pairs.i.numel(), dtype=torch.float64)
        for p, (i, j) in enumerate(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)):
            for k, m in itertools.product(range(CLASSES), repeat=2):
                expected[:, p] += q[:, i, k] * q[:, j, m] * (edge / (edge + none))[:, p, k, m]
        found = model.edge_channel.expected_edge(model.likelihood, state, q, pairs)
        torch.testing.assert_close(found, expected, atol=1e-8, rtol=0)


# Tags and numbers


def tag_joint(model: GenerativeModel, inputs, source: PairSource, labellings: torch.Tensor) -> torch.Tensor:
    """(labellings,): log p(A, s, Y = y | X), for y (labellings, n, T)."""
    prior = model.prior.log_prob(inputs, None).detach()[0].sigmoid()
    total = torch.where(labellings > 0, prior, 1 - prior).log().sum((1, 2))
    table, seen = model.label_channel.table().detach()[0], inputs.targets.values.long()
    for i, t in inputs.targets.observed.nonzero().tolist():
        total = total + table[t, labellings[:, i, t].long(), seen[i, t]].log()
    state = model.likelihood.node_state(inputs, None)
    for pairs in both_kinds(source):
        odds = torch.stack([model.likelihood.log_odds(state, y[None], pairs)[0].detach() for y in labellings])
        total = total + sum(chances(model.edge_channel, odds.sigmoid()[None], pairs.present))[0].log().sum(1)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("name", ["sbm", "tags"])
def test_bound_of_tags_is_the_expectation_of_one_and_below_it_of_several(name, columns):
    task = flags(columns)
    inputs = double_inputs(task)
    model = doubted(number_model(name, task), Sizes.of(task), (0,))
    source = PairSource(inputs)
    terms = EXACT.terms(model, inputs, source, Noise(torch.tensor([5]), 0))
    flat = list(itertools.product([0.0, 1.0], repeat=5 * columns))
    labellings = torch.tensor(flat, dtype=torch.float64).view(-1, 5, columns)
    joint = tag_joint(model, inputs, source, labellings)
    q = model.posterior.log_prob(inputs, None).detach()[0].sigmoid()
    table, b = model.label_channel.table().detach()[0], q.clone()
    for i, t in inputs.targets.observed.nonzero().tolist():
        seen = int(inputs.targets.values[i, t])
        has, has_not = q[i, t] * table[t, 1, seen], (1 - q[i, t]) * table[t, 0, seen]
        b[i, t] = has / (has + has_not)
    log_b = torch.where(labellings > 0, b, 1 - b).log().sum((1, 2))
    expected = (log_b.exp() * (joint - log_b)).sum()
    found = (terms.bound + terms.channels).squeeze()
    assert found < joint.logsumexp(0)
    if columns == 1:
        torch.testing.assert_close(found, expected, atol=1e-8, rtol=0)
    else:
        assert expected - 3 < found < expected


def test_with_one_tag_rates_are_exact_too():
    """A Poisson edge has p(1) = rate exp(- rate) and p(0) = exp(- rate)."""
    task = flags(1)
    inputs = double_inputs(task)
    model = doubted(number_model("tags", task, {"edges": "poisson"}), Sizes.of(task), (0,))
    q = torch.tensor([0.2, 0.9, 0.5, 0.0, 0.7], dtype=torch.float64).view(1, 5, 1)
    for pairs in both_kinds(PairSource(inputs)):
        expected = torch.zeros(1, pairs.i.numel(), dtype=torch.float64)
        for u, v in itertools.product((0.0, 1.0), repeat=2):
            for p, (i, j) in enumerate(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)):
                values = torch.zeros_like(q)
                values[0, i], values[0, j] = u, v
                one = Pairs(pairs.i[p : p + 1], pairs.j[p : p + 1], pairs.present)
                rate = model.likelihood.log_odds(None, values, one).exp()
                edge, none = emitted(model.edge_channel, pairs.present)
                share = (q[0, i, 0] if u else 1 - q[0, i, 0]) * (q[0, j, 0] if v else 1 - q[0, j, 0])
                expected[:, p] += share * ((edge * rate + none) * (-rate).exp()).log()[0]
        found = model.edge_channel.expected_log_prob(model.likelihood, None, q, pairs)
        torch.testing.assert_close(found, expected, atol=1e-8, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["samples", "bound"])
def test_expectation_over_numbers_is_exact_for_a_sample_and_else_below(how):
    task = line("real")
    likelihood = number_model("near", task, {"expectation": how}).likelihood
    channel = DoubtfulEdges(Sizes.of(task), Replicas((0,)), EdgeOptions(false=0.2, miss=0.1)).double()
    mean, variance = torch.tensor([[0.3, -1.0, 2.0], [0.5, 0.0, 0.2]], dtype=torch.float64)
    variance = variance * (how == "bound")
    q = torch.stack([mean, variance], dim=1)[None]
    points, shares = np.polynomial.hermite_e.hermegauss(80)
    for present in (True, False):
        pairs = Pairs(torch.tensor([0, 0, 1]), torch.tensor([1, 2, 2]), present)
        apart = mean[pairs.i] - mean[pairs.j]
        wide = (variance[pairs.i] + variance[pairs.j]).sqrt()
        d = apart + wide * torch.from_numpy(points)[:, None]
        p = (likelihood.b - likelihood._weights().squeeze() * d.square()).sigmoid()
        exact = (
            torch.from_numpy(shares / shares.sum())[:, None] * sum(chances(channel, p[None], present))[0].log()
        ).sum(0)
        found = channel.expected_log_prob(likelihood, None, q, pairs)[0]
        if how == "samples":
            torch.testing.assert_close(found, exact, atol=1e-8, rtol=0)
        else:
            assert (found < exact).all()


# Steps that can only help


def set_table(channel: Flips, table: torch.Tensor) -> None:
    with torch.no_grad():
        channel.change.copy_(table.log().unsqueeze(1) - channel.start)


def test_the_best_answer_of_a_node_without_its_label_makes_the_belief_the_best(inputs, source, noise):
    """q_i proportional to p_i exp(what its neighbours say): no other belief about the node has a higher bound."""
    model = with_classes("gsbm")
    log_q = torch.randn(2, NODES, CLASSES, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    model.posterior = Table(log_q.log_softmax(2), Sizes(FEATURES, CLASSES), (0, 1))
    log_p = model.prior.log_prob(inputs, None).detach()
    bounds = [EXACT.terms(model, inputs, source, noise).bound.detach()]
    for i in (0, 3, 1, 5, 2, 4):
        b, message = believed(model, inputs), log_p[:, i].clone()
        for pairs in both_kinds(source):
            seen = sum(chances(model.edge_channel, probabilities(model, inputs, pairs), pairs.present)).log()
            for p, (left, right) in enumerate(zip(pairs.i.tolist(), pairs.j.tolist(), strict=True)):
                if left == i:
                    message += torch.einsum("rkl,rl->rk", seen[:, p], b[:, right])
                elif right == i:
                    message += torch.einsum("rlk,rl->rk", seen[:, p], b[:, left])
        with torch.no_grad():
            model.posterior.log_q[:, i] = message.log_softmax(1)
        bounds.append(EXACT.terms(model, inputs, source, noise).bound.detach())
        kept = model.posterior.log_q[:, i].clone()
        for turn in range(3):
            other = kept + 0.3 * torch.randn(kept.shape, generator=torch.Generator().manual_seed(turn)).double()
            with torch.no_grad():
                model.posterior.log_q[:, i] = other.log_softmax(1)
            assert (EXACT.terms(model, inputs, source, noise).bound < bounds[-1]).all()
        with torch.no_grad():
            model.posterior.log_q[:, i] = kept
    assert all((after > before).all() for before, after in itertools.pairwise(bounds))


def test_the_best_table_for_given_beliefs_is_the_closed_form(inputs, source, noise):
    model = with_classes("sbm")
    channel, b = model.label_channel, believed(model, inputs)
    model.posterior = Table(b.log(), Sizes(FEATURES, CLASSES), (0, 1))

    def bound(table: torch.Tensor) -> torch.Tensor:
        """That of the beliefs b: the answer q is b without what T says of the label."""
        set_table(channel, table)
        q = b.clone()
        for i in OBSERVED:
            q[:, i] = b[:, i] / table[:, :, int(inputs.labels[i])]
        with torch.no_grad():
            model.posterior.log_q.copy_((q / q.sum(2, keepdim=True)).log())
        torch.testing.assert_close(believed(model, inputs), b)
        return EXACT.terms(model, inputs, source, noise).bound.detach()

    before = bound(channel.table().detach())
    counts = channel.strength.detach().unsqueeze(2) * channel.start.squeeze(1).exp()
    for i in OBSERVED:
        counts[:, :, int(inputs.labels[i])] += b[:, i]
    best = counts / counts.sum(2, keepdim=True)
    after = bound(best)
    assert (after > before).all()
    for turn in range(5):
        other = best * torch.randn(best.shape, generator=torch.Generator().manual_seed(turn)).double().mul(0.1).exp()
        assert (bound(other / other.sum(2, keepdim=True)) < after).all()


def test_the_best_belief_about_an_edge_beside_those_about_labels_gives_the_lower_bound():
    task = flags(2)
    inputs = double_inputs(task)
    model = doubted(number_model("tags", task), Sizes.of(task), (0,))
    q = torch.rand(1, 5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for pairs in both_kinds(PairSource(inputs)):
        there, absent = (
            model.likelihood.expected_log_prob(None, q, replace(pairs, present=present)).detach()
            for present in (True, False)
        )
        of_edge, of_none = (part.log() for part in emitted(model.edge_channel, pairs.present))
        edge, none = of_edge + there, of_none + absent

        def bound(g, edge=edge, none=none):
            return g * (edge - g.log()) + (1 - g) * (none - (1 - g).log())

        best = model.edge_channel.expected_edge(model.likelihood, None, q, pairs).detach()
        found = model.edge_channel.expected_log_prob(model.likelihood, None, q, pairs).detach()
        torch.testing.assert_close(bound(best), found)
        for step in (-0.02, 0.02):
            assert (bound((best + step * best * (1 - best)).clamp(1e-9, 1 - 1e-9)) < found).all()


# Outliers


@pytest.fixture
def reals():
    task = line("real")
    model = number_model("near", task)
    return double_inputs(task), model, Outliers(Sizes.of(task), Replicas((0,))).double()


def test_real_values_that_may_be_wrong(reals):
    """Densities by scipy; the value is the seen one or, if that is wrong, as q says."""
    inputs, model, channel = reals
    q, p = (part.log_prob(inputs, None).detach() for part in (model.posterior, model.prior))
    s, train = inputs.targets.values.numpy(), inputs.train.numpy()
    wrong = float(channel.odds.sigmoid())
    normal = [stats.norm(part[0, :, :1].numpy(), np.exp(part[0, :, 1:].numpy() / 2)) for part in (q, p)]
    h, of_q, of_p = stats.cauchy.pdf(s), normal[0].pdf(s), normal[1].pdf(s)
    z = (1 - wrong) * of_q + wrong * h
    np.testing.assert_allclose(channel.supervised(q, inputs.targets).numpy()[0], np.log(z[train, 0]))
    rho, kl = (
        wrong * h / z,
        (model.posterior.sizes.outcome.cross_entropy(q, p) - model.posterior.sizes.outcome.entropy(q)),
    )
    entropy = -rho * np.log(rho) - (1 - rho) * np.log(1 - rho)
    bound = (1 - rho) * (np.log(1 - wrong) + np.log(of_p)) + rho * (np.log(wrong * h) - kl[0].numpy()) + entropy
    found = channel.observed_prior(q, p, inputs.targets).detach().numpy()[0]
    np.testing.assert_allclose(found, bound[train, 0])
    mean, variance = channel.beliefs(q, inputs.targets).detach().numpy()[0].T
    m, v = normal[0].mean()[:, 0], normal[0].var()[:, 0]
    first = (1 - rho[:, 0]) * s[:, 0] + rho[:, 0] * m
    second = (1 - rho[:, 0]) * s[:, 0] ** 2 + rho[:, 0] * (m**2 + v)
    np.testing.assert_allclose(mean[train], first[train])
    np.testing.assert_allclose(variance[train], (second - first**2)[train])
    np.testing.assert_allclose([mean[0], variance[0]], [m[0], v[0]])


def test_what_is_seen_of_a_number_has_a_density(reals):
    """The integral over tan(angle), in which a Cauchy distribution is flat; for counts the sum, less its tail."""
    inputs, model, channel = reals
    q = model.posterior.log_prob(inputs, None).detach()
    angles = torch.linspace(-np.pi / 2, np.pi / 2, 20_001, dtype=torch.float64)[1:-1]
    s = angles.tan()[:, None]
    rows = q[:, :1].expand(-1, len(s), -1)
    density = channel.log_prob(rows, s).exp().squeeze() / angles.cos().square()
    assert float(density.sum() * (angles[1] - angles[0])) == pytest.approx(1.0, abs=1e-3)

    task = line("counts")
    counted = Outliers(Sizes.of(task), Replicas((0,))).double()
    answer = number_model("near", task).posterior.log_prob(double_inputs(task), None).detach()
    s = torch.arange(5000, dtype=torch.float64)[:, None]
    total = counted.log_prob(answer[:, :1].expand(-1, len(s), -1), s).exp().sum() + 0.05 / 5001
    assert float(total) == pytest.approx(1.0, abs=1e-4)


def test_a_wrong_value_hardly_moves_anything(reals):
    """The gradient of log Z by the mean falls with the distance, where without the channel it grows."""
    channel = reals[2]
    answer = torch.tensor([[[0.0, 0.0]]], dtype=torch.float64).requires_grad_()
    pulls = []
    for s in (1.0, 8.0, 30.0):
        (gradient,) = torch.autograd.grad(channel.log_prob(answer, torch.tensor([[s]]).double()).sum(), answer)
        pulls.append(float(gradient[0, 0, 0]))
    assert pulls[0] > 0.5 > pulls[1] >= pulls[2] >= 0


# Labels that count more or less


def test_weights_of_labels_repeat_them(inputs, source, noise):
    model = with_classes("sbm")
    weight = torch.tensor([2.0, 1.0, 0.5], dtype=torch.float64)
    weighed = replace(inputs, targets=replace(inputs.targets, weight=weight))
    terms = EXACT.terms(model, weighed, source, noise)
    q, p = model.posterior.log_prob(inputs, None), model.prior.log_prob(inputs, None)
    channel = model.label_channel
    torch.testing.assert_close(terms.supervised, -(weight * channel.supervised(q, inputs.targets)).sum(1))
    torch.testing.assert_close(terms.prior, -(weight * channel.observed_prior(q, p, inputs.targets)).sum(1))


def test_in_means_what_is_learned_counts_once_among_the_labels(inputs, source, noise):
    model = with_classes("sbm")
    mean = Objective.elbo(pairs="all").terms(model, inputs, source, noise)
    total = EXACT.terms(model, inputs, source, noise)
    for name in ("channels", "prior", "supervised"):
        torch.testing.assert_close(getattr(mean, name), getattr(total, name) / len(OBSERVED))
