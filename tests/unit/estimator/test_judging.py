"""Averages, temperatures and losses of answers that are no classes, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import expit, logit

from g3nn.calibrate import Scaling
from g3nn.estimator.judging import CLASSES, NumberJudge, judge_of
from g3nn.outcomes.classes import Classes
from g3nn.outcomes.counts import Counts
from g3nn.outcomes.real import Real
from g3nn.outcomes.tags import Tags

RNG = np.random.default_rng(0)
VALUES = RNG.normal(50, 10, (40, 2))
COUNTS = RNG.poisson(4.0, (40, 2)).astype(float)
TAGS = (RNG.random((40, 2)) < 0.3).astype(float)


def of_values():
    return NumberJudge(Real.of(VALUES, 2))


def random_answer(width=4, replicas=1, seed=1):
    return np.random.default_rng(seed).normal(0, 0.7, (replicas, 40, width))


def test_each_outcome_has_its_judge():
    assert judge_of(Classes(3)) is CLASSES
    assert judge_of(Tags.of(TAGS, 2)) == NumberJudge(Tags.of(TAGS, 2))


def test_the_mean_of_normals_has_the_moments_of_their_mixture():
    answers = random_answer(replicas=3)
    found = of_values().averaged(torch.from_numpy(answers))
    draws = np.random.default_rng(2).normal(size=(200_000, 1, 1))
    means, deviations = answers[:, :, :2], np.exp(answers[:, :, 2:] / 2)
    mixed = np.concatenate([means[r] + deviations[r] * draws[:60_000] for r in range(3)])[:, :5]
    np.testing.assert_allclose(found[:5, :2], mixed.mean(0), atol=0.02)
    np.testing.assert_allclose(np.exp(found[:5, 2:]), mixed.var(0), rtol=0.03)


def test_the_mean_of_tags_is_that_of_their_probabilities():
    answers = random_answer(2, replicas=3)
    found = NumberJudge(Tags.of(TAGS, 2)).averaged(torch.from_numpy(answers))
    np.testing.assert_allclose(expit(found), expit(answers).mean(0), rtol=1e-12)


def test_losses_are_those_of_scipy_in_the_unit_of_the_labels():
    judge, answer = of_values(), random_answer()[0]
    labels = VALUES.copy()
    labels[3, 1] = np.nan
    mean, deviation = judge.in_units(answer)
    np.testing.assert_allclose(mean, VALUES.mean(0) + VALUES.std(0) * answer[:, :2])
    np.testing.assert_allclose(deviation, VALUES.std(0) * np.exp(answer[:, 2:] / 2))
    expected = stats.norm.logpdf(labels, mean, deviation)
    assert judge.loss(answer, labels) == pytest.approx(-np.nanmean(expected), rel=1e-10)
    strangeness = judge.strangeness(answer, labels)
    np.testing.assert_allclose(strangeness, np.abs(labels - mean) / deviation)
    assert np.isnan(strangeness[3, 1])


def test_the_temperature_of_normals_is_the_closed_one():
    """Without its prior it would be the mean of the squared distances in deviations; the prior is felt by 1 / n."""
    judge, answer = of_values(), random_answer()[0]
    ratio = np.mean(judge.strangeness(answer, VALUES) ** 2)
    found = judge.temperature(answer, VALUES)
    # The minimum of n / 2 (log T + ratio / T) + (log T)^2 / 2 in log T, where the derivative is zero.
    assert VALUES.size / 2 * (1 - ratio / found) + np.log(found) == pytest.approx(0.0, abs=1e-2)
    scaled = judge.scaled(answer, Scaling(found))
    np.testing.assert_allclose(judge.in_units(scaled)[0], judge.in_units(answer)[0])
    np.testing.assert_allclose(judge.in_units(scaled)[1], np.sqrt(found) * judge.in_units(answer)[1])


@pytest.mark.parametrize(
    ("judge", "width", "labels"),
    [(NumberJudge(Tags.of(TAGS, 2)), 2, TAGS), (NumberJudge(Counts.of(COUNTS, 2)), 4, COUNTS)],
)
def test_a_temperature_never_makes_the_loss_worse_but_for_its_prior(judge, width, labels):
    answer = random_answer(width)[0]
    found = judge.temperature(answer, labels)
    losses = {T: judge.loss(judge.scaled(answer, Scaling(T)), labels) for T in (found, 1.0, 0.5 * found, 2 * found)}
    costs = {T: labels.size * loss + np.log(T) ** 2 / 2 for T, loss in losses.items()}
    assert min(costs, key=costs.get) == found
    assert judge.temperature(answer, np.full_like(labels, np.nan)) == 1.0


def test_tempered_tags_keep_their_side():
    judge = NumberJudge(Tags.of(TAGS, 2))
    answer = random_answer(2)[0]
    p = judge.in_units(judge.scaled(answer, Scaling(2.0)))[0]
    np.testing.assert_allclose(logit(p), answer / 2, atol=1e-12)


def test_scores_are_those_of_the_outcome():
    judge, answer = of_values(), random_answer()[0]
    mean = judge.in_units(answer)[0]
    standard = (VALUES - VALUES.mean(0)) / VALUES.std(0)
    missed = ((mean - VALUES) / VALUES.std(0)) ** 2
    assert judge.score(answer, VALUES) == pytest.approx(1 - missed.sum() / (standard**2).sum())
