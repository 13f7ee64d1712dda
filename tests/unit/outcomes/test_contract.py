"""What every registered outcome promises: from labels as a caller has them to calibrated, measured answers.

A new outcome is tested by being registered, and by an example of its labels in `EXAMPLES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from g3nn.calibrate import TEMPERATURES, Scaling
from g3nn.errors import Problems
from g3nn.estimator.panel import candidates, check_candidates
from g3nn.estimator.request import COMMON
from g3nn.outcomes import OUTCOMES, Labels, Outcome, Targets, has_label, is_known, without_labels_of
from g3nn.outcomes.base import as_stack
from g3nn.parse import UNKNOWN
from g3nn.task import NodeTask

N, REPLICAS, ALPHA = 60, 3, 0.2
RNG = np.random.default_rng(0)
EXAMPLES: dict[str, Any] = {
    "classes": np.array(["red", "green", "blue"])[RNG.integers(0, 3, N)],
    "tags": (RNG.random((N, 2)) < 0.4).astype(int),
    "real": RNG.normal([40.0, -2.0], [9.0, 0.1], (N, 2)),
    "counts": RNG.poisson([2.0, 30.0], (N, 2)),
}
"""For each outcome labels of all nodes, of at least two columns or classes."""

DEFAULTS = {"hidden": 16, "lr": 0.01, "weight_decay": 5e-4, "epochs": 10, "patience": 5}


@dataclass(frozen=True, eq=False)
class Case:
    """Labels as read, their task, and random answers of several replicas."""

    labels: Labels
    task: NodeTask
    outcome: Outcome
    answers: torch.Tensor

    @property
    def answer(self) -> np.ndarray:
        return self.outcome.averaged(self.answers)

    @property
    def targets(self) -> Targets:
        return self.outcome.targets(self.task.labels, self.task.train, "cpu", torch.float64)


def partly_known(name: str) -> Any:
    """The last ten nodes are not labelled, and of several columns some entries are not known."""
    y = np.array(EXAMPLES[name], dtype=object)
    y[50:] = None
    if y.ndim == 2:
        y[3, 0] = y[4, 1] = y[45, 1] = None
    return y


def make(name: str) -> Case:
    problems = Problems()
    kind = OUTCOMES[name]
    labels = kind.read(partly_known(name), N, problems)
    assert labels is not None
    val = kind.hold_out(labels, 0.3, np.random.RandomState(0), problems)
    problems.raise_if_any()
    train = np.setdiff1d(labels.labelled, val)
    pairs = np.stack([np.arange(N - 1), np.arange(1, N)])
    task = NodeTask.build(np.eye(N), pairs, labels.values, train, val, num_classes=len(labels.names), outcome=name)
    outcome = task.outcome_model()
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(REPLICAS, N, outcome.num_scores, generator=generator, dtype=torch.float64)
    start = torch.tensor(outcome.start, dtype=torch.float64).expand(REPLICAS, -1) if outcome.start else None
    return Case(labels, task, outcome, outcome.answer(scores, start))


@pytest.fixture(scope="module", params=list(OUTCOMES))
def case(request: pytest.FixtureRequest) -> Case:
    return make(request.param)


def draws(case: Case, answer: np.ndarray, count: int) -> np.ndarray:
    """(count, T) or (count,): labels with the moments of the last node, exchangeable with each other."""
    rng = np.random.default_rng(3)
    mean, deviation = (part[-1] for part in case.outcome.moments(answer))
    if case.labels.values.ndim == 1:
        return rng.choice(case.task.num_classes, count, p=mean)
    values = mean + deviation * rng.standard_normal((count, len(mean)))
    if case.outcome.name == "tags":
        return (rng.random((count, len(mean))) < mean).astype(float)
    return np.maximum(np.round(values), 0) if case.outcome.name == "counts" else values


class TestReading:
    def test_labels_are_read_as_they_are(self, case):
        y, values = partly_known(case.outcome.name), case.labels.values
        assert case.labels.labelled.tolist() == list(range(50))
        np.testing.assert_array_equal(is_known(values), np.not_equal(y, None))
        shown = case.labels.names[values[:50]] if values.ndim == 1 else values[:50]
        known = is_known(values[:50])
        np.testing.assert_array_equal(shown[known], y[:50][known].astype(shown.dtype))

    def test_labels_to_judge_by_are_those_that_were_read(self, case):
        problems = Problems()
        encoded = case.outcome.encode(partly_known(case.outcome.name)[:50], case.labels.names, problems)
        assert problems.found == []
        np.testing.assert_array_equal(encoded, case.labels.values[:50])

    def test_anything_else_is_a_problem_of_its_argument(self, case):
        for y in ([0, 1], [None] * N, [{}] * N, np.zeros((N, 2, 2))):
            problems = Problems()
            assert case.outcome.read(y, N, problems, "labels") is None, y
            assert [problem.argument for problem in problems.found] == ["labels"], y

    def test_held_out_nodes_are_a_share_of_the_labelled_ones_and_leave_enough(self, case):
        problems = Problems()
        val = case.outcome.hold_out(case.labels, 0.3, np.random.RandomState(5), problems)
        case.outcome.check_validation(case.labels, val, problems)
        assert problems.found == []
        assert np.isin(val, case.labels.labelled).all()
        assert abs(len(val) - 15) <= 1
        assert val.tolist() == np.unique(val).tolist()
        again = case.outcome.hold_out(case.labels, 0.3, np.random.RandomState(5), problems)
        np.testing.assert_array_equal(val, again)
        case.outcome.check_validation(case.labels, case.labels.labelled, problems)
        assert [problem.argument for problem in problems.found] == ["val"]

    def test_a_task_holds_the_labels_and_says_what_they_are(self, case):
        np.testing.assert_array_equal(case.task.labels, case.labels.values)
        assert case.task.num_classes == case.outcome.columns == len(case.labels.names)
        assert f"{case.outcome.columns} {case.outcome.columns_title}" in repr(case.task)

    def test_every_model_of_its_panel_can_be_trained(self, case):
        problems = Problems()
        models = case.outcome.panel(2, 1.5)
        tried = candidates("auto", "auto", {}, models, problems, type(case.outcome))
        check_candidates(tried, DEFAULTS, "cpu", problems, type(case.outcome))
        assert problems.found == []
        assert set(DEFAULTS) == set(COMMON)
        assert {"mlp", "gcn"} <= {model for model, _, _ in models}
        assert len({(model, str(options)) for model, _, options in models}) == len(models)


class TestDistribution:
    def test_targets_hide_what_training_may_not_see(self, case):
        targets = case.targets
        np.testing.assert_array_equal(targets.known.numpy(), is_known(case.task.labels))
        hidden = np.setdiff1d(np.arange(N), case.task.train)
        assert not targets.observed[hidden].any()
        np.testing.assert_array_equal(targets.observed[case.task.train], targets.known[case.task.train])
        assert not case.outcome.as_inputs(targets)[hidden].any()
        assert (targets.label[hidden] == UNKNOWN).all()

    def test_shapes(self, case):
        columns, targets = case.outcome.columns, case.targets
        assert case.answers.shape[:2] == (REPLICAS, N)
        for part in (case.outcome.mean(case.answers), case.outcome.variance(case.answers)):
            assert part.shape == (REPLICAS, N, columns)
        assert case.outcome.supervised(case.answers, targets).shape == (REPLICAS, len(case.task.train))
        sums, beliefs = case.outcome.node_terms(case.answers, case.answers, targets, True, (1.0, 1.0))
        assert sums.shape == (REPLICAS, 4)
        assert beliefs.shape[:2] == (REPLICAS, N)
        assert (case.outcome.variance(case.answers) >= 0).all()

    def test_the_divergence_of_an_answer_from_itself_is_zero(self, case):
        sums, _ = case.outcome.node_terms(case.answers, case.answers, case.targets, True, (0.5, 0.25))
        torch.testing.assert_close(sums[:, 2], sums[:, 3])
        others = case.answers.roll(1, 0)
        sums, _ = case.outcome.node_terms(case.answers, others, case.targets, True, (0.5, 0.25))
        assert (sums[:, 2] > sums[:, 3]).all()

    def test_the_average_of_equal_answers_is_that_answer(self, case):
        one = case.answers[:1]
        np.testing.assert_allclose(case.outcome.averaged(one.expand(REPLICAS, -1, -1)), one[0].numpy(), atol=1e-12)
        assert case.answer.shape == case.answers.shape[1:]
        np.testing.assert_allclose(case.outcome.averaged(case.answers.flip(0)), case.answer, atol=1e-12)
        if case.outcome.pooled:
            average = case.outcome.moments(case.answer)[0]
            np.testing.assert_allclose(average, case.outcome.mean(case.answers).mean(0).numpy(), atol=1e-12)


class TestCalibration:
    def test_a_higher_temperature_is_less_certain_and_keeps_the_mode(self, case):
        np.testing.assert_allclose(case.outcome.scaled(case.answer, Scaling()), case.answer, atol=1e-12)
        cool, warm = (case.outcome.scaled(case.answer, Scaling(t)) for t in (0.5, 2.0))
        cool_deviation, warm_deviation = (case.outcome.moments(answer)[1].sum(1) for answer in (cool, warm))
        assert (warm_deviation >= cool_deviation).all()
        if case.outcome.pooled:
            likeliest = (case.outcome.moments(answer)[0].argmax(1) for answer in (cool, warm))
            np.testing.assert_array_equal(*likeliest)

    def test_losses_and_scores_are_those_of_validation(self, case):
        val = case.task.val
        expected = case.outcome.validation(as_stack(case.answer), case.targets, torch.from_numpy(val))
        got = case.outcome.loss_and_score(case.answer[val], case.task.labels[val])
        assert got == pytest.approx(tuple(expected[:, 0].tolist()), rel=1e-12)

    def test_the_calibrated_loss_is_at_most_a_little_above_the_loss(self, case):
        val = torch.from_numpy(case.task.val)
        loss = case.outcome.validation(case.answers, case.targets, val)[0]
        assert (case.outcome.calibrated_loss(case.answers, case.targets, val) <= loss + 1e-12).all()

    def test_the_temperature_has_the_lowest_cost(self, case):
        labels = case.task.labels[:50]
        best, count = case.outcome.temperature(case.answer[:50], labels), is_known(labels).sum()

        def cost(temperature: float) -> float:
            scaled = case.outcome.scaled(case.answer[:50], Scaling(temperature))
            return count * case.outcome.loss_and_score(scaled, labels)[0] + np.log(temperature) ** 2 / 2

        assert TEMPERATURES[0] <= best <= TEMPERATURES[1]
        assert all(cost(best) < cost(factor * best) for factor in (0.8, 1.25) if TEMPERATURES[0] < factor * best < 20)
        unknown = without_labels_of(labels, np.arange(50))
        if labels.ndim == 2:
            assert case.outcome.temperature(case.answer[:50], unknown) == 1.0
        assert case.outcome.temperature(case.answer[:0], labels[:0]) == 1.0

    def test_conformal_regions_cover_as_promised(self, case):
        """Labels drawn alike are exchangeable: 200 of them give the scores and 200 others are covered."""
        answer = np.repeat(case.answer[-1:], 400, axis=0)
        labels = draws(case, case.answer, 400)
        scores = np.sort(case.outcome.conformal_scores(answer[:200], labels[:200]), axis=0)
        region = case.outcome.conformal(answer[200:], scores, ALPHA)
        if labels.ndim == 1:
            inside = region[np.arange(200), labels[200:]]
        else:
            assert region.shape == (200, case.outcome.columns, 2)
            inside = ((region[:, :, 0] <= labels[200:]) & (labels[200:] <= region[:, :, 1])).mean(1)
        # Three standard errors of both halves.
        assert inside.mean() >= 1 - ALPHA - 3 * np.sqrt(2 * ALPHA * (1 - ALPHA) / 200)
        few = case.outcome.conformal(answer[:2], scores[:3], ALPHA)
        assert few.all() if labels.ndim == 1 else np.isinf(few[:, :, 1]).all(), "three scores exclude nothing"

    def test_regions_cover_the_nodes_that_gave_the_scores(self, case):
        """By the rule of split conformal prediction, whatever the labels are."""
        answer, labels = case.answer[:45], case.task.labels[:45]
        scores = np.sort(case.outcome.conformal_scores(answer, labels), axis=0)
        region = case.outcome.conformal(answer, scores, ALPHA)
        known = is_known(labels)
        if labels.ndim == 1:
            inside = region[np.arange(45), labels][:, None]
            known = known[:, None]
        else:
            inside = (region[:, :, 0] - 1e-9 <= labels) & (labels <= region[:, :, 1] + 1e-9)
        assert ((inside & known).sum(0) >= (1 - ALPHA) * known.sum(0)).all()


class TestReports:
    def test_measures_are_numbers_that_a_summary_names(self, case):
        val, outcome = case.task.val, case.outcome
        answer, labels = case.answer[val], case.task.labels[val]
        region = outcome.conformal(answer, outcome.conformal_scores(answer, labels), ALPHA)
        measures = outcome.evaluate(answer, labels, region, case.labels.names, True)
        assert set(outcome.measures) <= set(measures)
        single = [value for value in measures.values() if not isinstance(value, dict)]
        assert all(isinstance(value, float) and np.isfinite(value) for value in single)
        by_column = outcome.evaluate(answer, labels, region, case.labels.names, False).get("columns", {})
        assert set(by_column) <= set(map(str, case.labels.names.tolist()))

    def test_groups_are_beliefs_about_classes(self, case):
        labels, before = case.task.labels, case.answer.copy()
        codes, beliefs = case.outcome.groups(case.answer, labels)
        assert codes.shape == (N,)
        assert beliefs.shape[0] == N
        assert beliefs.shape[1] >= 2
        assert (beliefs >= 0).all()
        np.testing.assert_allclose(beliefs.sum(1), 1)
        known = codes != UNKNOWN
        np.testing.assert_array_equal(beliefs[known], np.eye(beliefs.shape[1])[codes[known]])
        assert not known[~has_label(labels)].any()
        np.testing.assert_array_equal(case.answer, before)
        nothing = without_labels_of(labels, np.arange(N)) if case.outcome.pooled else labels
        np.testing.assert_allclose(case.outcome.groups(case.answer, nothing)[1].sum(1), 1)


def test_names_are_all_different():
    assert [outcome.name for outcome in OUTCOMES.values()] == list(OUTCOMES)
    assert len({outcome.score_key for outcome in OUTCOMES.values()}) == len(OUTCOMES)
    assert all(outcome.score_key.isidentifier() and outcome.score_title for outcome in OUTCOMES.values())
    assert {outcome.view for outcome in OUTCOMES.values()} == {"classes", "tags", "numbers"}
    assert set(EXAMPLES) == set(OUTCOMES), "a new outcome needs an example of its labels"
