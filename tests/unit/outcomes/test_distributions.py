"""Distributions of numbers against scipy, brute force and Monte Carlo, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad

from g3nn.graph.outcomes import OUTCOMES, NumberOutcome

LABELS = {
    "tags": np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [np.nan, 0.0]]),
    "real": np.array([[100.0, 3.0], [130.0, np.nan], [90.0, 4.0], [85.0, 8.0]]),
    "counts": np.array([[0.0, 3.0], [7.0, np.nan], [2.0, 4.0], [1.0, 30.0]]),
}
TIGHT = {"rtol": 0.0, "atol": 1e-10}


def outcome_named(name: str, **options: Any) -> NumberOutcome:
    kind = OUTCOMES[name]
    return kind.of(LABELS[name], 2, kind.Options(**options))


def random_answer(outcome: NumberOutcome, seed: int = 0, nodes: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, nodes, outcome.num_scores, dtype=torch.float64, generator=generator)
    start = torch.tensor(outcome.start, dtype=torch.float64).expand(2, -1)
    return outcome.answer(scores, start)


def normals(answer: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    mean, log_variance = answer.chunk(2, dim=2)
    return mean.numpy(), (log_variance / 2).exp().numpy()


class TestTags:
    outcome = outcome_named("tags")

    def test_an_answer_starts_at_the_share_of_each_tag(self):
        found = self.outcome.answer(torch.zeros(1, 3, 2), torch.tensor([self.outcome.start])).sigmoid()
        torch.testing.assert_close(found, torch.tensor([3 / 5, 2 / 6]).expand(1, 3, 2))

    def test_log_prob(self):
        answer, values = random_answer(self.outcome), torch.tensor([[0.0, 1.0]] * 4, dtype=torch.float64)
        expected = stats.bernoulli.logpmf(values.numpy(), answer.sigmoid().numpy())
        torch.testing.assert_close(self.outcome.log_prob(answer, values), torch.from_numpy(expected), **TIGHT)

    def test_kl_by_enumeration(self):
        q, p = random_answer(self.outcome, 1), random_answer(self.outcome, 2)
        a, b = q.sigmoid(), p.sigmoid()
        expected = a * (a / b).log() + (1 - a) * ((1 - a) / (1 - b)).log()
        torch.testing.assert_close(self.outcome.cross_entropy(q, p) - self.outcome.entropy(q), expected, **TIGHT)


@pytest.mark.parametrize("noise", ["shared", "node"])
class TestReal:
    def test_log_prob(self, noise):
        outcome = outcome_named("real", noise=noise)
        answer, values = random_answer(outcome), torch.randn(4, 2, dtype=torch.float64)
        expected = stats.norm.logpdf(values.numpy(), *normals(answer))
        torch.testing.assert_close(outcome.log_prob(answer, values), torch.from_numpy(expected), **TIGHT)

    def test_kl_by_integration(self, noise):
        outcome = outcome_named("real", noise=noise)
        q, p = (random_answer(outcome, seed)[:1, :2] for seed in (1, 2))
        found = (outcome.cross_entropy(q, p) - outcome.entropy(q)).numpy()
        (m, s), (c, w) = normals(q), normals(p)
        for place in np.ndindex(found.shape):
            one, other = stats.norm(m[place], s[place]), stats.norm(c[place], w[place])
            ends = m[place] - 12 * s[place], m[place] + 12 * s[place]
            exact, _ = quad(lambda y, a, b: a.pdf(y) * (a.logpdf(y) - b.logpdf(y)), *ends, args=(one, other))
            assert abs(found[place] - exact) < 1e-6

    def test_the_unit_is_that_of_the_caller(self, noise):
        """A linear change of the labels changes nothing but the unit of the answer."""
        outcome = outcome_named("real", noise=noise)
        labels = LABELS["real"]
        targets = outcome.targets(labels, np.arange(4), "cpu", torch.float64)
        answer = random_answer(outcome)
        mean, deviation = outcome.in_units(answer)
        loss, _ = outcome.validation(answer, targets, torch.arange(4))
        known = ~np.isnan(labels)
        for r in range(2):
            by_hand = stats.norm.logpdf(labels[known], mean[r][known], deviation[r][known]).mean()
            assert abs(loss[r].item() + by_hand) < 1e-10


class TestCounts:
    outcome = outcome_named("counts")

    def test_log_prob_by_integration(self):
        values = torch.tensor([[0.0, 3.0], [1.0, 40.0]], dtype=torch.float64)
        answer = random_answer(self.outcome)[:, :2]
        found = self.outcome.log_prob(answer, values).numpy()
        mean, deviation = normals(answer)
        for place in np.ndindex(found.shape):
            m, s, y = mean[place], deviation[place], values[place[1], place[2]].item()

            def density(h: float, y: float = y, m: float = m, s: float = s) -> float:
                return float(np.exp(stats.poisson.logpmf(y, np.exp(h)) + stats.norm.logpdf(h, m, s)))

            peak = np.log(y + 1)
            exact, _ = quad(density, min(m, peak) - 12 * s, max(m, peak) + 12 * s, points=[m, peak], limit=500)
            assert abs(found[place] - np.log(exact)) < 1e-5

    def test_counts_are_normalised(self):
        answer = random_answer(self.outcome, nodes=1)
        counts = torch.arange(3000, dtype=torch.float64).view(-1, 1).expand(-1, 2)
        total = self.outcome.log_prob(answer.expand(-1, 3000, -1), counts).exp().sum(1)
        assert ((total - 1).abs() < 1e-4).all()

    def test_mean_and_variance_by_sampling(self):
        answer = random_answer(self.outcome, nodes=1)
        mean, deviation = (part.ravel() for part in normals(answer))
        rng = np.random.default_rng(0)
        draws = rng.poisson(np.exp(mean + deviation * rng.standard_normal((400_000, 4))))
        found = self.outcome.mean(answer).numpy().ravel(), self.outcome.variance(answer).numpy().ravel()
        error = draws.std(0) / len(draws) ** 0.5
        assert (np.abs(draws.mean(0) - found[0]) < 4.5 * error).all()
        np.testing.assert_allclose(draws.var(0), found[1], rtol=0.15)

    def test_without_doubt_about_the_rate_an_interval_is_that_of_a_poisson(self):
        mean = np.array([0.3, 3.0, 50.0])
        low, high = self.outcome.interval(mean, np.sqrt(mean), 0.9)
        np.testing.assert_array_equal(low, stats.poisson.ppf(0.05, mean))
        np.testing.assert_array_equal(high, stats.poisson.ppf(0.95, mean))

    def test_an_interval_holds_its_share_of_the_counts(self):
        answer = random_answer(self.outcome, nodes=1)
        low, high = self.outcome.interval(*self.outcome.in_units(answer), 0.8)
        mean, deviation = (part.ravel() for part in normals(answer))
        rng = np.random.default_rng(1)
        draws = rng.poisson(np.exp(mean + deviation * rng.standard_normal((100_000, 4))))
        assert ((draws < low.ravel()).mean(0) <= 0.105).all()
        assert ((draws > high.ravel()).mean(0) <= 0.105).all()
        assert ((draws < low.ravel() + 1).mean(0) >= 0.095).all()


@pytest.mark.parametrize("name", LABELS)
class TestEvery:
    def test_unknown_values_change_nothing(self, name):
        outcome = outcome_named(name)
        labels = LABELS[name]
        targets = outcome.targets(labels, np.array([0, 1, 3]), "cpu", torch.float64)
        q, p = random_answer(outcome, 1), random_answer(outcome, 2)
        sums, _ = outcome.node_terms(q, p, targets, True, (1.0, 1.0))
        other = outcome.targets(labels, np.array([0, 1, 3]), "cpu", torch.float64)
        other.values[~other.known] = 1.0
        torch.testing.assert_close(outcome.node_terms(q, p, other, True, (1.0, 1.0))[0], sums, **TIGHT)
        assert (targets.observed.sum(), targets.known.sum()) == (5, 7)

    def test_the_sums_are_over_observed_and_hidden_values(self, name):
        outcome = outcome_named(name)
        targets = outcome.targets(LABELS[name], np.array([0, 1, 3]), "cpu", torch.float64)
        q, p = random_answer(outcome, 1), random_answer(outcome, 2)
        sums, beliefs = outcome.node_terms(q, p, targets, False, (0.5, 0.25))
        seen, hidden = targets.observed, ~targets.observed
        supervised = -(outcome.log_prob(q, targets.values) * seen).sum((1, 2))
        kl = ((outcome.cross_entropy(q, p) - outcome.entropy(q)) * hidden).sum((1, 2))
        torch.testing.assert_close(sums[:, 0], 0.5 * supervised, **TIGHT)
        torch.testing.assert_close(sums[:, 2] - sums[:, 3], 0.25 * kl, **TIGHT)
        torch.testing.assert_close(beliefs, outcome.beliefs(p, targets), **TIGHT)

    def test_labels_as_inputs_are_zero_where_nothing_is_observed(self, name):
        outcome = outcome_named(name)
        targets = outcome.targets(LABELS[name], np.array([0, 3]), "cpu", torch.float64)
        inputs = outcome.as_inputs(targets)
        assert not inputs[~targets.observed].any()
        assert inputs[targets.observed].any()

    def test_a_perfect_answer_scores_one_and_the_mean_nothing(self, name):
        outcome = outcome_named(name)
        values = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
        known = torch.ones_like(values, dtype=torch.bool)
        perfect = {
            "tags": 50 * (2 * values - 1),
            "real": torch.cat([values, torch.zeros_like(values)], dim=1),
            "counts": torch.cat([(values + 1e-9).log(), torch.full_like(values, -20.0)], dim=1),
        }[name]
        assert abs(outcome.score(perfect.unsqueeze(0), values, known).item() - 1) < 1e-6
