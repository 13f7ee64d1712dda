"""Columns of numbers: how they are read, split, calibrated and measured."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from scipy import stats

from g3nn.base.errors import Problems
from g3nn.base.parse import UNKNOWN
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import OUTCOMES, Counts, Labels, Real, Tags, varies

NAN = float("nan")


def read(y, outcome, n=None):
    problems = Problems()
    return OUTCOMES[outcome].read(y, len(y) if n is None else n, problems), problems.found


class TestReading:
    @pytest.mark.parametrize(
        ("given", "outcome", "values", "flat"),
        [
            ([1.5, None, 2], "real", [[1.5], [NAN], [2.0]], True),
            (np.array([1, 2, 3]), "counts", [[1], [2], [3]], True),
            (np.array([[1.0, NAN], [2.0, 5.0], [NAN, 6.0]]), "real", [[1, NAN], [2, 5], [NAN, 6]], False),
            (torch.tensor([0.5, 1.5]), "real", [[0.5], [1.5]], True),
            (pa.chunked_array([[0.5], [None, 2.5]]), "real", [[0.5], [NAN], [2.5]], True),
            (np.array([[True, False], [False, True]]), "tags", [[1, 0], [0, 1]], False),
            ([[1, 0], [0, None], [0, 1]], "tags", [[1, 0], [0, NAN], [0, 1]], False),
        ],
    )
    def test_numbers_of_any_kind(self, given, outcome, values, flat):
        labels, problems = read(given, outcome)
        assert problems == []
        np.testing.assert_array_equal(labels.values, values)
        assert labels.flat == flat

    def test_columns_keep_their_names(self):
        frame = pa.table({"red": [1, 0, None], "blue": [0, 1, 1]})
        assert read(frame, "tags", 3)[0].names.tolist() == ["red", "blue"]
        assert read(sp.csr_array(np.eye(3)), "tags", 3)[0].names.tolist() == [0, 1, 2]
        same_at_first = pa.table({"red": [1, 0], "red\0": [0, 1]})
        assert read(same_at_first, "tags", 2)[0].names.tolist() == ["red", "red\0"]

    @pytest.mark.parametrize(
        ("given", "outcome", "wrong", "advice"),
        [
            (["a", "b"], "real", "values such as 'a'", "G3NNClassifier"),
            ([True, False], "real", "true and false", "G3NNClassifier"),
            ([1.0, np.inf], "real", "1 values such as inf", "Correct"),
            ([1, -(10**400)], "real", "1 values such as -inf", "Correct"),
            (np.array([1, np.complex128(2 + 1j)], dtype=object), "tags", "values such as np.complex128(2+1j)", ""),
            (np.array([1, 2], dtype="M8[ns]"), "real", "values such as datetime.datetime(1970, 1, 1, 0, 0)", ""),
            ([1.0, 1.0, None], "real", "the same value, or none", "nothing to learn in a constant"),
            ([[1.0, 2.0], [2.0, 2.0]], "real", "in column 1", ""),
            ([0.5, 2], "counts", "1 values such as 0.5", "'real'"),
            ([2.0**54, 2], "counts", "1 values such as 1.80144e+16", ""),
            ([[0, 2], [1, 1]], "tags", "1 values such as 2", "'classes', in one column"),
            ([["a", 0], ["b", 1]], "tags", "values such as 'a'", "'classes'"),
            ([[0, 1], [0, 0]], "tags", "in column 0", "Leave out tags that no node has"),
            (np.arange(2) * 1j, "real", "values such as 0j", ""),
        ],
    )
    def test_other_values_are_refused(self, given, outcome, wrong, advice):
        labels, (problem,) = read(given, outcome)
        assert labels is None
        assert problem.argument == "y"
        assert wrong in problem.given
        assert advice in problem.advice

    @pytest.mark.parametrize(
        ("given", "n", "shape"),
        [([1.0, 2.0], 3, "(2,)"), (np.zeros((2, 2, 1)), 2, "(2, 2, 1)"), (np.zeros((2, 0)), 2, "(2, 0)")],
    )
    def test_one_row_for_each_node(self, given, n, shape):
        assert read(given, "real", n)[1][0].given == f"shape {shape}"

    @pytest.mark.parametrize(
        ("y", "kind", "wrong", "allowed"),
        [
            ([1.0, None], Real, "1 nodes without a value", "a value for each"),
            ([[1.0, 2.0]], Real, "2 columns", "1 column, as in the fit"),
            (["a"], Real, "values such as 'a'", "finite numbers"),
            ([-1], Counts, "1 values such as -1", "whole numbers"),
            ([], Real, "shape (0,)", "one row for each node"),
        ],
    )
    def test_values_to_judge_by_are_checked(self, y, kind, wrong, allowed):
        problems = Problems()
        kind.encode(y, np.arange(1), problems)
        assert problems.found[0].given == wrong
        assert allowed in problems.found[0].allowed


def tag_labels(values):
    values = np.array(values, dtype=float)
    return Labels(np.arange(values.shape[1]), values, False)


class TestSplitting:
    def test_each_tag_is_left_with_and_without_for_training(self):
        rng = np.random.default_rng(0)
        values = np.zeros((200, 5))
        values[:, 0] = rng.random(200) < 0.5
        for t in range(1, 5):
            values[rng.choice(200, 2, replace=False), t] = 1
        values[150:] = np.nan
        values[:2, 1:] = 1
        labels = tag_labels(values)
        for seed in range(20):
            problems = Problems()
            val = Tags.hold_out(labels, 0.2, np.random.RandomState(seed), problems)
            assert problems.found == []
            assert len(val) == 30
            assert varies(values[np.setdiff1d(labels.labelled, val)]).all()

    def test_rare_values_that_cannot_be_spared_are_a_problem(self):
        problems = Problems()
        assert Tags.hold_out(tag_labels([[0], [1], [np.nan]]), 0.5, np.random.RandomState(0), problems).size == 0
        assert "none can be spared" in problems.found[0].given

    @pytest.mark.parametrize(
        ("val", "wrong"), [([2], "1 nodes without a label"), ([], "no node"), ([1], "left to train on")]
    )
    def test_chosen_validation_nodes_are_checked(self, val, wrong):
        problems = Problems()
        Tags.check_validation(tag_labels([[0], [1], [np.nan], [0]]), np.array(val, dtype=int), problems)
        assert any(wrong in problem.given for problem in problems.found)


RNG = np.random.default_rng(0)
VALUES = RNG.normal(50, 10, (40, 2))
REAL = Real.of(VALUES, 2)


def random_answer(replicas=1):
    return np.random.default_rng(1).normal(0, 0.7, (replicas, 40, 4))


class TestCalibration:
    def test_the_average_of_normals_has_the_moments_of_their_mixture(self):
        answers = random_answer(replicas=3)
        average = REAL.averaged(torch.from_numpy(answers))
        draws = np.random.default_rng(2).normal(size=(60_000, 1, 1))
        mixed = np.concatenate([part[:5, :2] + np.exp(part[:5, 2:] / 2) * draws for part in answers])
        np.testing.assert_allclose(average[:5, :2], mixed.mean(0), atol=0.02)
        np.testing.assert_allclose(np.exp(average[:5, 2:]), mixed.var(0), rtol=0.03)

    def test_losses_and_scores_are_those_of_scipy_in_the_unit_of_the_labels(self):
        answer, labels = random_answer()[0], VALUES.copy()
        labels[3, 1] = np.nan
        mean, deviation = REAL.moments(answer)
        np.testing.assert_allclose(mean, VALUES.mean(0) + VALUES.std(0) * answer[:, :2])
        np.testing.assert_allclose(deviation, VALUES.std(0) * np.exp(answer[:, 2:] / 2))
        expected = stats.norm.logpdf(labels, mean, deviation)
        assert REAL.loss_and_score(answer, labels)[0] == pytest.approx(-np.nanmean(expected), rel=1e-10)
        scores = REAL.conformal_scores(answer, labels)
        np.testing.assert_allclose(scores, np.abs(labels - mean) / deviation)
        assert np.isnan(scores[3, 1])
        standard, missed = (VALUES - VALUES.mean(0)) / VALUES.std(0), (mean - VALUES) / VALUES.std(0)
        r2 = 1 - (missed**2).sum() / (standard**2).sum()
        assert REAL.loss_and_score(answer, VALUES)[1] == pytest.approx(r2)

    def test_the_temperature_of_normals_is_the_closed_one(self):
        """Without its prior it would be the mean of the squared distances in deviations."""
        answer = random_answer()[0]
        ratio = np.mean(REAL.conformal_scores(answer, VALUES) ** 2)
        temperature = REAL.temperature(answer, VALUES)
        # The minimum of n / 2 (log T + ratio / T) + (log T)^2 / 2 in log T, where the derivative is zero.
        assert VALUES.size / 2 * (1 - ratio / temperature) + np.log(temperature) == pytest.approx(0.0, abs=1e-2)
        (mean, deviation), (centre, width) = (REAL.moments(REAL.scaled(answer, Scaling(t))) for t in (1.0, temperature))
        np.testing.assert_allclose(centre, mean)
        np.testing.assert_allclose(width, np.sqrt(temperature) * deviation)

    def test_each_column_has_an_interval_by_its_own_scores(self):
        answer = np.zeros((1, 4))
        scores = np.array([[1.0, 4.0], [2.0, NAN], [3.0, 5.0]])
        region = REAL.conformal(answer, scores, 0.25)[0]
        assert region[0].tolist() == pytest.approx((VALUES.mean(0)[0] + VALUES.std(0)[0] * np.array([-3, 3])).tolist())
        assert region[1].tolist() == [-np.inf, np.inf], "two scores exclude nothing at 0.25"

    def test_intervals_of_counts_are_whole_and_never_negative(self):
        counts = np.arange(20.0)[:, None]
        outcome = Counts.of(counts, 1)
        answer = np.tile([[1.0, -3.0]], (20, 1))
        region = outcome.conformal(answer, outcome.conformal_scores(answer, counts), 0.2)
        assert (region >= 0).all()
        np.testing.assert_array_equal(region, np.round(region))
        # The farthest count inside defines the interval; rounding must not lose it.
        inside = (region[:, 0, 0] <= counts[:, 0]) & (counts[:, 0] <= region[:, 0, 1])
        assert inside.sum() == 17


class TestMeasures:
    def test_columns_without_values_or_without_differences_are_nan(self):
        labels = np.array([[1.0, NAN, 3.0], [2.0, NAN, 3.0]])
        outcome = Real.of(np.array([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]), 3)
        region = np.tile([-9.0, 9.0], (2, 3, 1))
        measures = outcome.evaluate(np.zeros((2, 6)), labels, region, np.array(["a", "b", "c"]), False)
        first, empty, constant = (measures["columns"][name] for name in "abc")
        assert np.isfinite(list(first.values())).all()
        assert np.isnan(list(empty.values())).all()
        assert np.isnan(constant["r2"])
        assert constant["mae"] == pytest.approx(2.5)
        assert measures["mae"] == pytest.approx((first["mae"] + constant["mae"]) / 2)
        assert "columns" not in outcome.evaluate(np.zeros((2, 6)), labels, region, np.arange(3), True)


class TestGroups:
    def test_values_fall_into_groups_of_equal_size(self):
        values = RNG.normal(50, 10, (400, 1))
        outcome, labels = Real.of(values, 1), values.copy()
        labels[200:] = np.nan
        answer = np.stack([np.linspace(-2, 2, 400), np.linspace(-4, 0.4, 400)], axis=1)
        codes, beliefs = outcome.groups(answer, labels)
        sizes = np.bincount(codes[:200], minlength=5)
        assert (beliefs.shape, codes[200:].max()) == ((400, 5), UNKNOWN)
        assert sizes.max() - sizes.min() <= 1
        # Elsewhere the mass of a normal in each group, here by drawing.
        limits = np.quantile(values[:200], [0.2, 0.4, 0.6, 0.8], method="lower")
        mean, deviation = (part[307, 0] for part in outcome.moments(answer))
        draws = np.random.default_rng(0).normal(mean, deviation, 400_000)
        shares = np.bincount(np.searchsorted(limits, draws), minlength=5) / draws.size
        np.testing.assert_allclose(beliefs[307], shares, atol=0.004)

    @pytest.mark.parametrize("values", [[0, 0, 0, 0, 9], [0, 9, 9, 9, 9], [1, 2, 1, 2, 1]])
    def test_few_different_values_make_fewer_groups(self, values):
        y = np.array([*values, np.nan], dtype=float)[:, None]
        codes, beliefs = Real.of(y, 1).groups(np.zeros((6, 2)), y)
        assert beliefs.shape == (6, 2)
        low = codes[:5] == 0
        assert y[:5][low].max() < y[:5][~low].min()
        assert codes[5] == UNKNOWN
