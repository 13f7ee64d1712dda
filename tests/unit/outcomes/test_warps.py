"""Scales of real values: densities, means and intervals are those of the value itself, and stay in its range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

import g3nn
from g3nn.base.errors import Problems
from g3nn.estimator.problem import read_problem
from g3nn.graph.calibrate import Scaling
from g3nn.graph.given import Given, take_apart
from g3nn.graph.outcomes import Counts, Real, warps
from g3nn.graph.outcomes.warps import IDENTITY, LOG, RANKS, SIGNED_LOG, Warp, best_warps

RNG = np.random.default_rng(0)
POSITIVE = RNG.lognormal(1.0, 1.2, 200)
SIGNED = np.sinh(2 * RNG.standard_normal(200)) * 3
SCALES = [(LOG, POSITIVE), (SIGNED_LOG, SIGNED), (SIGNED_LOG, POSITIVE), (RANKS, SIGNED), (IDENTITY, POSITIVE)]
NAMES = ["log", "signed-log", "signed-log of positive values", "normal-scores", "identity of positive values"]


def on_scale(name: str, values: np.ndarray) -> Real:
    labels = values[:, None]
    return Real.of(labels, 1).on_scales((Warp.of(name, values),), labels)


def random_answer(nodes: int = 30) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.stack([2 * rng.standard_normal(nodes), rng.normal(-1.0, 1.0, nodes)], axis=1)


@pytest.mark.parametrize(("name", "values"), SCALES, ids=NAMES)
class TestEveryScale:
    def test_it_rises_and_its_inverse_undoes_it(self, name, values):
        warp, y = Warp.of(name, values), torch.from_numpy(np.sort(values))
        made, _ = warp.apply(y)
        assert (made.diff() > 0).all()
        torch.testing.assert_close(warp.inverse(made), y)

    def test_its_slope_is_the_derivative(self, name, values):
        # A knot, at which the slope changes, is one of the values.
        warp, y = Warp.of(name, values), torch.from_numpy(values[:20] * 1.0001)
        steps = 1e-6 * y.abs()
        found = (warp.apply(y + steps)[0] - warp.apply(y - steps)[0]) / (2 * steps)
        torch.testing.assert_close(warp.apply(y)[1], found, rtol=1e-4, atol=1e-6)

    def test_densities_integrate_to_one_in_the_unit_of_the_caller(self, name, values):
        outcome = on_scale(name, values)
        (warp,), (at,), (by,) = outcome.warps, outcome.location, outcome.scale
        anywhere = replace(warp, low=0.0 if name == LOG else -np.inf, high=np.inf)
        outcome = replace(outcome, warps=(anywhere,))
        reach = torch.linspace(0.3 - 6, 0.3 + 6, 20_001, dtype=torch.float64)
        y = anywhere.inverse(at + by * reach).numpy()[:, None]
        answer = np.tile([[0.3, -0.5]], (len(y), 1))
        density = np.exp(outcome.label_log_prob(answer, y)) / outcome.unit_at(y)[:, 0]
        assert abs(np.trapezoid(density, y[:, 0]) - 1) < 1e-3

    def test_the_mean_is_the_expectation(self, name, values):
        outcome, answer = on_scale(name, values), np.array([[0.1, -1.2]])
        mean, deviation = outcome.warped_moments(answer)
        drawn = np.random.default_rng(2).normal(mean[0, 0], deviation[0, 0], 200_000)
        made = outcome.unwarped(drawn[:, None])
        found, spread = outcome.moments(answer)
        if name == IDENTITY:
            made = drawn[:, None]  # It is cut off, so that a mean far from the end stays as it is.
        assert abs(found[0, 0] - made.mean()) < 5 * made.std() / np.sqrt(len(drawn)) + 0.01 * made.std()
        np.testing.assert_allclose(spread[0, 0], made.std(), rtol=0.05)

    def test_answers_stay_in_the_range(self, name, values):
        outcome, answer = on_scale(name, values), random_answer()
        scores = outcome.conformal_scores(random_answer(len(values)), values[:, None])
        low, high = np.moveaxis(outcome.conformal(answer, scores, 0.1), 2, 0)
        mean, _ = outcome.moments(answer)
        claimed = outcome.claimed(answer, 0.9)
        assert (low <= high).all()
        assert np.isfinite(mean).all()
        if values.min() >= 0:
            assert min(part.min() for part in (mean, low, *claimed)) >= 0

    def test_conformal_intervals_hold_as_many_values_on_every_scale(self, name, values):
        outcome, rng = on_scale(name, values), np.random.default_rng(3)
        answer, labels = np.tile([[0.0, 0.0]], (len(values), 1)), values[:, None]
        half = rng.permutation(len(values)) < len(values) // 2
        scores = outcome.conformal_scores(answer[half], labels[half])
        low, high = np.moveaxis(outcome.conformal(answer[~half], scores, 0.2), 2, 0)
        inside = (low <= labels[~half]) & (labels[~half] <= high)
        assert 0.68 < inside.mean() < 0.92

    def test_with_too_few_scores_nothing_is_excluded(self, name, values):
        outcome = on_scale(name, values)
        low, high = outcome.conformal(random_answer(3), np.ones((2, 1)), 0.1)[0, 0]
        assert (low, high) == (0.0 if values.min() >= 0 else -np.inf, np.inf)


ZEROS = np.where(np.arange(200) < 80, 0.0, np.round(POSITIVE) + 1)


@pytest.mark.parametrize("values", [POSITIVE, ZEROS, 60 - ZEROS, SIGNED], ids=["tail", "zeros", "ceiling", "two tails"])
def test_without_knowledge_the_mean_on_normal_scores_is_that_of_the_values(values):
    outcome = on_scale(RANKS, values)
    mean, deviation = outcome.moments(np.zeros((1, 2)))
    assert abs(mean[0, 0] - values.mean()) < 0.08 * values.std()
    assert abs(deviation[0, 0] / values.std() - 1) < 0.2


def test_equal_values_get_the_normal_score_of_the_middle_of_their_ranks():
    warp = Warp.of(RANKS, ZEROS)
    made, _ = warp.apply(torch.tensor([0.0, ZEROS.max()], dtype=torch.float64))
    np.testing.assert_allclose(made, stats.norm.ppf([0.2, 1 - 0.5 / 200]))


def test_a_log_scale_is_a_lognormal():
    outcome, answer = on_scale(LOG, POSITIVE), np.array([[0.4, -1.0]])
    (at,), (by,), labels = outcome.location, outcome.scale, POSITIVE[:50, None]
    m, s = at + by * 0.4, by * np.exp(-0.5)
    expected = stats.lognorm(s, scale=np.exp(m))
    loss = outcome.loss_and_score(np.repeat(answer, 50, axis=0), labels)[0]
    assert abs(loss + expected.logpdf(labels).mean()) < 1e-9
    mean, deviation = outcome.moments(answer)
    free = replace(outcome, warps=(Warp(LOG),)).moments(answer)
    np.testing.assert_allclose(free, [[[expected.mean()]], [[expected.std()]]], rtol=1e-6)
    assert (mean, deviation) <= (free[0], free[1])


def test_without_scales_nothing_changes():
    labels = SIGNED[:, None]
    plain = Real.of(labels, 1)
    assert plain.on_scales((Warp(),), labels).location == plain.location
    assert Counts.of(np.arange(5.0)[:, None], 1).on_scales((Warp(),), labels).location == ()
    answer = random_answer(200)
    mean, deviation = plain.moments(answer)
    np.testing.assert_array_equal(mean, answer[:, :1] * plain.scale + plain.location)
    scores = plain.conformal_scores(answer, labels)
    np.testing.assert_array_equal(scores, np.abs(labels - mean) / deviation)
    width = np.sort(scores[:, 0])[int(np.ceil(201 * 0.9)) - 1]
    ends = np.stack([mean - width * deviation, mean + width * deviation], axis=2)
    np.testing.assert_array_equal(plain.conformal(answer, scores, 0.1), ends)


class TestChoice:
    x, e = RNG.standard_normal((300, 3)), RNG.standard_normal(300)

    def chosen(self, values: np.ndarray) -> tuple[Warp, ...]:
        return best_warps(self.x.astype(np.float32), values[:, None])

    def test_normal_values_stay_as_they_are(self):
        assert self.chosen(self.x[:, 0] + self.e) == ()

    def test_values_that_are_never_negative_have_answers_that_are_not(self):
        (warp,) = self.chosen(50 + self.x[:, 0] + self.e)
        assert warp == Warp(low=0.0)

    def test_a_heavy_tail_of_positive_values_is_taken_on_a_log_scale(self):
        (warp,) = self.chosen(np.exp(self.x[:, 0] + 0.5 * self.e))
        assert warp.name == LOG

    def test_heavy_tails_on_both_sides_are_taken_on_a_scale_with_a_sign(self):
        (warp,) = self.chosen(np.sinh(2 * self.x[:, 0] + 1.5 * self.e))
        assert warp.name == SIGNED_LOG
        assert warp.low < 0 < warp.high

    def test_zeros_have_no_logarithm(self):
        values = np.where(RNG.random(300) < 0.3, 0.0, np.exp(self.x[:, 0] + 0.5 * self.e))
        (warp,) = self.chosen(values)
        assert warp.name != LOG
        assert warp.low == 0

    def test_values_in_two_groups_are_taken_by_rank(self):
        values = np.where(RNG.random(300) < 0.5, -5.0, 5.0) + 0.1 * self.e
        (warp,) = self.chosen(values)
        assert warp.name == RANKS

    def test_few_different_values_stay_as_they_are(self):
        (warp,) = self.chosen(np.exp(np.round(self.x[:, 0])))
        assert warp == Warp(low=0.0)
        assert self.chosen(np.where(self.e > 1.0, -1.0, 0.0)) == ()

    @pytest.mark.parametrize(("ranks", "chosen"), [(0.83, RANKS), (0.85, SIGNED_LOG), (1.2, SIGNED_LOG)])
    def test_no_squared_error_is_clearly_higher_than_that_of_a_simpler_scale(self, monkeypatch, ranks, chosen):
        found = {IDENTITY: (0.0, 1.0), SIGNED_LOG: (0.5, 0.8), RANKS: (1.0, ranks)}

        def judged(name, x, values):
            density, error = found[name]
            return np.full(len(values), density), error

        monkeypatch.setattr(warps, "_judged", judged)
        (warp,) = self.chosen(np.sinh(self.e))
        assert warp.name == chosen

    def test_few_labels_choose_nothing(self):
        (found,) = best_warps(self.x[:15], np.exp(self.x[:15, :1]))
        assert (found.name, found.low) == (Warp().name, 0.0)

    def test_each_column_has_a_scale_of_its_own(self):
        columns = [self.x[:, 0] + self.e, np.exp(self.x[:, 1] + 0.5 * self.e)]
        labels = np.stack(columns, axis=1)
        labels[::7, 0] = np.nan
        first, second = best_warps(self.x, labels)
        assert (first, second.name) == (Warp(), LOG)
        outcome = Real.of(labels, 2).on_scales((first, second), labels)
        targets = outcome.targets(labels, np.arange(300), "cpu", torch.float64)
        known = ~np.isnan(labels)
        assert targets.values.isfinite().all()
        assert targets.scale.shape == (300, 2)
        np.testing.assert_allclose(outcome.in_our_unit(labels)[known[:, 1], 1].std(), 1.0)


def test_a_fit_takes_the_scale_of_its_training_labels_alone():
    task = g3nn.synthetic_values(nodes=200, degree=4, features=5, labelled=0.5, val=40, seed=2)
    labels = np.exp(task.labels / task.labels.std())[:, 0]
    labels[np.setdiff1d(np.arange(200), np.union1d(task.train, task.val))] = np.nan

    def scales(labels):
        problems = Problems()
        given = take_apart(Given(task.features, labels, task.edges, task.val, False), problems)
        return read_problem(g3nn.G3NNRegressor().get_params(), Real, given, problems, []).task.warps

    other = labels.copy()
    other[task.val] = -1e6
    assert scales(labels) == scales(other) != ()


class TestNoiseOfNodes:
    outcome = Real(1, None, (0.0,), (1.0,))

    def drawn(self, nodes: int, grows: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Answers that claim the same for all nodes, and labels whose deviation grows with the answer."""
        rng = np.random.default_rng(seed)
        mean = rng.standard_normal(nodes)
        labels = mean + 0.7 * np.exp(grows * mean) * rng.standard_normal(nodes)
        return np.stack([mean, np.full(nodes, -0.5)], axis=1), labels[:, None]

    def test_deviations_differ_where_errors_do(self):
        answer, labels = self.drawn(300, 0.5)
        scaling = self.outcome.fit_scaling(answer, labels)
        others, truth = self.drawn(2000, 0.5, seed=1)
        scaled = self.outcome.scaled(others, scaling)
        _, deviation = self.outcome.moments(scaled)
        assert np.corrcoef(np.log(deviation[:, 0]), others[:, 0])[0, 1] > 0.9
        plain = self.outcome.scaled(others, Scaling(self.outcome.temperature(answer, labels)))
        losses = [self.outcome.loss_and_score(one, truth)[0] for one in (scaled, plain)]
        assert losses[0] < losses[1] - 0.15
        np.testing.assert_array_equal(scaled[:, 0], others[:, 0])

    def test_they_are_equal_where_errors_are(self):
        answer, labels = self.drawn(300, 0.0)
        scaling = self.outcome.fit_scaling(answer, labels)
        assert scaling.offsets is None
        assert scaling.temperature == self.outcome.temperature(answer, labels)

    def test_they_are_equal_where_there_are_few_labels_to_tell(self):
        assert self.outcome.fit_scaling(*self.drawn(25, 0.5)).offsets is None
