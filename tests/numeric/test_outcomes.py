"""The bound of other outcomes than classes against the evidence: enumeration for tags, integration for numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from number_graph import double_inputs, flags, line, number_model
from torch.nn.functional import logsigmoid

from g3nn.model.generative import GenerativeModel
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import Pairs
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.replicas import Noise, Replicas

EXACT = Objective.elbo(reduction="sum", pairs="all")
ONE = torch.tensor([0])
STANDARD_ERRORS = 4.0
TIGHT = {"rtol": 0.0, "atol": 1e-9}
TAG_LIKELIHOODS: dict[str, tuple[str, dict]] = {
    "sbm": ("sbm", {}),
    "tags": ("tags", {}),
    "tags with degrees": ("tags", {"degrees": True}),
    "counts by tags": ("tags", {"edges": "poisson", "degrees": True}),
}
TAG_MODELS = [(likelihood, columns) for likelihood in TAG_LIKELIHOODS for columns in (1, 2)]


def bound_of(model: GenerativeModel, inputs: Inputs, objective: Objective = EXACT) -> torch.Tensor:
    return objective.terms(model, inputs, PairSource(inputs), Noise(ONE, 0)).bound


def draws_of_the_bound(model: GenerativeModel, inputs: Inputs, count: int) -> torch.Tensor:
    """(count,): from copies of the replica with seeds of their own. The model keeps all of them."""
    model.select(torch.zeros(count, dtype=torch.int64))
    return EXACT.terms(model, inputs, PairSource(inputs), Noise(torch.arange(count), 0)).bound


def tag_model(likelihood: str, inputs: Inputs) -> GenerativeModel:
    name, options = TAG_LIKELIHOODS[likelihood]
    return number_model(name, inputs.task, options)


def log_graph(model: GenerativeModel, inputs: Inputs, values: torch.Tensor) -> torch.Tensor:
    """(m,): log p(G | X, Y) for each of m settings (m, n, T) of everything, from the log-odds alone."""
    source, total, state = PairSource(inputs), 0.0, model.likelihood.node_state(inputs, None)
    for pairs in (source.edges, source.all_non_edges):
        rows = [model.likelihood.log_odds(state, one.unsqueeze(0), pairs).squeeze(0) for one in values]
        total = total + observed_log_prob(model, torch.stack(rows), pairs.present).sum(1)
    return total


def observed_log_prob(model: GenerativeModel, odds: torch.Tensor, present: bool) -> torch.Tensor:
    """log p of an edge or non-edge from its log-odds, which of counts are the logarithm of their rate."""
    if getattr(model.likelihood, "counts", False):
        return torch.distributions.Poisson(odds.exp()).log_prob(torch.tensor(float(present), dtype=odds.dtype))
    return logsigmoid(odds if present else -odds)


# Tags: every setting of what is hidden.


def settings_of(inputs: Inputs) -> torch.Tensor:
    """(m, n, T): every setting of the tags that agrees with the observed ones."""
    hidden = (~inputs.targets.observed).nonzero()
    rows = []
    for guess in itertools.product((0.0, 1.0), repeat=len(hidden)):
        values = inputs.targets.values.clone()
        values[hidden[:, 0], hidden[:, 1]] = torch.tensor(guess, dtype=torch.float64)
        rows.append(values)
    return torch.stack(rows)


def log_tags(answer: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """(m, n, T) from log-odds (1, n, T), by the definition of a Bernoulli."""
    p = answer.sigmoid()
    return torch.where(values > 0, p, 1 - p).log()


@pytest.mark.parametrize(("likelihood", "columns"), TAG_MODELS)
def test_the_bound_of_tags_is_below_the_evidence(likelihood, columns):
    inputs = double_inputs(flags(columns))
    model = tag_model(likelihood, inputs)
    values, hidden = settings_of(inputs), ~inputs.targets.observed
    log_p = log_tags(model.prior.log_prob(inputs, None), values).sum((1, 2))
    joint = log_graph(model, inputs, values) + log_p
    evidence = joint.logsumexp(0)
    bound = bound_of(model, inputs).squeeze()
    assert bound < evidence

    log_q = (log_tags(model.posterior.log_prob(inputs, None), values) * hidden).sum((1, 2))
    gap = (log_q.exp() * (log_q - (joint - evidence))).sum()
    if model.likelihood.expectation == "exact":
        torch.testing.assert_close(evidence - bound, gap, **TIGHT)
    else:
        assert evidence - bound > gap, "a bound on the expectation adds to the distance of q from the posterior"


@pytest.mark.parametrize(("likelihood", "columns"), TAG_MODELS)
def test_the_bound_is_the_evidence_when_tags_say_nothing_about_the_graph(likelihood, columns):
    inputs = double_inputs(flags(columns))
    model = tag_model(likelihood, inputs)
    with torch.no_grad():
        if likelihood == "sbm":
            model.likelihood.odds[:] = 0.4
        else:
            model.likelihood.one.zero_()
            model.likelihood.both.zero_()
    answer = model.prior.log_prob(inputs, None).detach()
    model.posterior.log_prob = lambda inputs, noise: answer
    values = settings_of(inputs)
    joint = log_graph(model, inputs, values) + log_tags(answer, values).sum((1, 2))
    torch.testing.assert_close(bound_of(model, inputs).squeeze(), joint.logsumexp(0), **TIGHT)


@pytest.mark.slow
@pytest.mark.parametrize(("likelihood", "columns"), TAG_MODELS)
def test_the_expectation_over_tags_against_enumeration(likelihood, columns):
    inputs = double_inputs(flags(columns))
    model = tag_model(likelihood, inputs)
    state = model.likelihood.node_state(inputs, None)
    q = torch.rand(1, 5, columns, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    everything = [torch.tensor(one).view(1, 5, columns) for one in itertools.product((0.0, 1.0), repeat=5 * columns)]
    for present in (True, False):
        pairs = Pairs(torch.tensor([0, 1]), torch.tensor([3, 4]), present=present)
        expected = torch.zeros(2, dtype=torch.float64)
        for values in everything:
            weight = torch.where(values > 0, q, 1 - q).prod()
            odds = model.likelihood.log_odds(state, values.double(), pairs).squeeze(0)
            expected += weight * observed_log_prob(model, odds, present).detach()
        found = model.likelihood.expected_log_prob(state, q, pairs).squeeze(0)
        if model.likelihood.expectation == "exact":
            torch.testing.assert_close(found, expected, **TIGHT)
        else:
            assert (found < expected).all()
            assert (found > expected - 0.2).all(), "the bound is not far from the expectation"


def test_counts_have_an_exact_expectation_whatever_the_number_of_tags():
    inputs = double_inputs(flags(2))
    assert tag_model("counts by tags", inputs).likelihood.expectation == "exact"
    assert tag_model("tags", inputs).likelihood.expectation == "bound"


@pytest.mark.parametrize("present", [True, False])
def test_the_plug_in_score_of_counts_is_their_log_probability_at_soft_tags(present):
    inputs = double_inputs(flags(2))
    model = tag_model("counts by tags", inputs)
    state, pairs = model.likelihood.node_state(inputs, None), Pairs(torch.tensor([0]), torch.tensor([3]), present)
    certain = inputs.targets.values.unsqueeze(0)
    found = model.likelihood.plug_in_score(state, certain, pairs)
    expected = observed_log_prob(model, model.likelihood.log_odds(state, certain, pairs), present)
    torch.testing.assert_close(found, expected, **TIGHT)
    torch.testing.assert_close(found, model.likelihood.expected_log_prob(state, certain, pairs), **TIGHT)


# Numbers: integrals on a grid.


def log_normal(answer: torch.Tensor, grid: torch.Tensor, node: int) -> torch.Tensor:
    mean, log_variance = answer[0, node]
    return -0.5 * (np.log(2 * np.pi) + log_variance + (grid - mean) ** 2 / log_variance.exp())


def grid_of(*answers: torch.Tensor, points: int = 1001) -> tuple[torch.Tensor, float]:
    """Points that hold all the mass of some normals, and their distance."""
    means = torch.cat([answer[0, :, 0] for answer in answers])
    reach = 9 * torch.cat([(answer[0, :, 1] / 2).exp() for answer in answers]).max()
    grid = torch.linspace(float(means.min() - reach), float(means.max() + reach), points, dtype=torch.float64)
    return grid, float(grid[1] - grid[0])


@pytest.mark.parametrize("noise", ["shared", "node"])
def test_the_bound_of_real_values_is_below_the_evidence_and_unbiased(noise):
    """One hidden value of three: the evidence and the bound are integrals over a line."""
    inputs = double_inputs(line("real"))
    model = number_model("near", inputs.task, {"noise": noise})
    q, p = (part.log_prob(inputs, None).detach() for part in (model.posterior, model.prior))
    grid, width = grid_of(q, p)
    values = inputs.targets.values.expand(len(grid), 3, 1).clone()
    values[:, 0, 0] = grid
    with torch.no_grad():
        graph = log_graph(model, inputs, values)
        observed = sum(log_normal(p, inputs.targets.values[i, 0], i) for i in (1, 2))
        evidence = observed + (graph + log_normal(p, grid, 0)).logsumexp(0) + np.log(width)
        log_q = log_normal(q, grid, 0)
        bound = observed + (log_q.exp() * (graph + log_normal(p, grid, 0) - log_q)).sum() * width
        draws = draws_of_the_bound(model, inputs, 1500)
    assert bound < evidence
    error = draws.std() / len(draws) ** 0.5
    assert error > 0
    assert (draws.mean() - bound).abs() < STANDARD_ERRORS * error


def test_the_closed_bound_of_real_values_is_below_the_expectation():
    inputs = double_inputs(line("real"))
    model = number_model("near", inputs.task, {"expectation": "bound"})
    sampled = number_model("near", inputs.task)
    q = model.posterior.log_prob(inputs, None).detach()
    grid, width = grid_of(q)
    beliefs = inputs.outcome.beliefs(q, inputs.targets)
    for present in (True, False):
        pairs = Pairs(torch.tensor([0]), torch.tensor([1]), present=present)
        values = inputs.targets.values.expand(len(grid), 3, 1).clone()
        values[:, 0, 0] = grid
        with torch.no_grad():
            odds = torch.cat([sampled.likelihood.log_odds(None, one.unsqueeze(0), pairs) for one in values]).squeeze(1)
            exact = (log_normal(q, grid, 0).exp() * logsigmoid(odds if present else -odds)).sum() * width
            moments = [(log_normal(q, grid, 0).exp() * odds**power).sum() * width for power in (1, 2)]
            found = model.likelihood.expected_log_prob(None, beliefs, pairs).squeeze()
        sign = 1 if present else -1
        size = moments[1].sqrt()
        by_hand = logsigmoid(size) + (sign * moments[0] - size) / 2
        torch.testing.assert_close(found, by_hand, rtol=0.0, atol=1e-7)
        assert found < exact


def test_the_bound_of_counts_is_below_the_evidence_and_unbiased():
    """Three log-rates are hidden; a cube of points holds them all."""
    inputs = double_inputs(line("counts"))
    model = number_model("near", inputs.task)
    q, p = (part.log_prob(inputs, None).detach() for part in (model.posterior, model.prior))
    grid, width = grid_of(q, p, points=61)
    counts = inputs.targets.values
    with torch.no_grad():
        log_p, log_q = (torch.stack([log_normal(one, grid, node) for node in range(3)]) for one in (p, q))
        seen = torch.stack([torch.distributions.Poisson(grid.exp()).log_prob(counts[node]) for node in (1, 2)])
        cube = torch.stack(torch.meshgrid(grid, grid, grid, indexing="ij"), dim=-1).view(-1, 3, 1)
        graph = torch.cat([_graph_of_many(model, inputs, part) for part in cube.split(50_000)])
        each = torch.cartesian_prod(*(torch.arange(61) for _ in range(3)))
        prior, posterior = (sum(one[node, each[:, node]] for node in range(3)) for one in (log_p, log_q))
        data = seen[0, each[:, 1]] + seen[1, each[:, 2]]
        evidence = (graph + prior + data).logsumexp(0) + 3 * np.log(width)
        bound = (posterior.exp() * (graph + prior + data - posterior)).sum() * width**3
        draws = draws_of_the_bound(model, inputs, 1500)
    assert bound < evidence
    error = draws.std() / len(draws) ** 0.5
    assert (draws.mean() - bound).abs() < STANDARD_ERRORS * error


def _graph_of_many(model: GenerativeModel, inputs: Inputs, values: torch.Tensor) -> torch.Tensor:
    """(m,): log p(G | h) of many settings at once, from the formula of the model."""
    weight = (model.likelihood.log_w.exp() / model.likelihood.spread**2).squeeze()
    total = torch.zeros(len(values), dtype=torch.float64)
    edges = {tuple(pair) for pair in inputs.edges.T.tolist()}
    for i, j in itertools.combinations(range(3), 2):
        odds = model.likelihood.b.squeeze() - weight * (values[:, i, 0] - values[:, j, 0]) ** 2
        total = total + logsigmoid(odds if (i, j) in edges else -odds)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(("likelihood", "outcome"), [("near", "real"), ("near", "counts")])
def test_gradcheck_of_the_whole_loss_of_numbers(likelihood, outcome):
    inputs = double_inputs(line(outcome))
    _gradcheck(number_model(likelihood, inputs.task), inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("likelihood", "columns"), TAG_MODELS)
def test_gradcheck_of_the_whole_loss_of_tags(likelihood, columns):
    inputs = double_inputs(flags(columns))
    _gradcheck(tag_model(likelihood, inputs), inputs)


def _gradcheck(model: GenerativeModel, inputs: Inputs) -> None:
    objective = Objective.elbo(laplacian_weight=0.5, samples=2)
    weights, source = objective.weights(Replicas((0,)), dtype=torch.float64), PairSource(inputs)
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    values = tuple(model.get_parameter(name).detach().clone().requires_grad_() for name in names)

    def loss(*values: torch.Tensor) -> torch.Tensor:
        def total(*_: object) -> torch.Tensor:
            return weights.total(objective.terms(model, inputs, source, Noise(ONE, 3)))

        model.forward = total
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), ())

    assert torch.autograd.gradcheck(loss, values)


@pytest.mark.parametrize("options", [{}, {"edges": "poisson", "degrees": True}], ids=["bernoulli", "poisson"])
@pytest.mark.parametrize("present", [True, False])
def test_a_damped_pair_counts_by_the_neighbours_of_its_ends(options, present):
    inputs = double_inputs(flags(2))
    plain, damped = (number_model("tags", inputs.task, {**options, "damping": power}) for power in (0.0, 0.4))
    damped.load_state_dict(plain.state_dict())
    source = PairSource(inputs)
    pairs = source.edges if present else source.all_non_edges
    q = torch.rand(1, inputs.n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    scores = [
        model.likelihood.expected_log_prob(model.likelihood.node_state(inputs, None), q, pairs)
        for model in (plain, damped)
    ]
    neighbours = torch.bincount(inputs.edges.flatten(), minlength=inputs.n).double() + 1
    typical = neighbours.log().mean().exp()
    weight = (neighbours[pairs.i] * neighbours[pairs.j] / typical**2) ** -0.4
    torch.testing.assert_close(scores[1], scores[0] * weight)
    assert weight.min() < weight.max()
