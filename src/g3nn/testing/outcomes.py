"""What an outcome promises: from labels as a caller has them to calibrated, measured answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from inspect import isfunction
from typing import Any

import numpy as np
import torch

from g3nn.base.errors import Problems
from g3nn.base.parse import UNKNOWN
from g3nn.estimator.panel import Candidate, candidates, check_candidates, panel_of
from g3nn.estimator.problem import COMMON
from g3nn.graph.calibrate import TEMPERATURES, Scaling
from g3nn.graph.outcomes import OUTCOMES, Labels, Outcome, Targets, has_label, is_known, without_labels_of
from g3nn.graph.outcomes.base import as_stack
from g3nn.graph.task import NodeTask
from g3nn.pages.model_views import VIEWS
from g3nn.testing.components import declared_options
from g3nn.testing.situations import LabelsOf, random_answers, read_labels

N, LABELLED, REPLICAS, ALPHA = 60, 50, 3, 0.2
"""Nodes, how many of them have a label, replicas, and how often a region may miss."""


@dataclass(frozen=True, eq=False)
class OutcomeCase:
    """An outcome with labels as a caller has them, their task, and random answers of several replicas.

    make: makes the labels.
    """

    component: type[Outcome]
    make: LabelsOf = field(repr=False)

    def __str__(self) -> str:
        return self.component.__name__

    @property
    def given(self) -> np.ndarray:
        """The last ten nodes are not labelled, and of several columns some entries are not known."""
        labels = np.asarray(self.make(N, 3))
        y = labels.astype(object) if labels.ndim == 1 else labels[:, :2].astype(object)
        y[LABELLED:] = None
        if y.ndim == 2:
            y[3, 0] = y[4, 1] = y[45, 1] = None
        return y

    @cached_property
    def labels(self) -> Labels:
        """As read."""
        return read_labels(self.component, self.given)

    @cached_property
    def task(self) -> NodeTask:
        problems, labels, kind = Problems(), self.labels, self.component
        val = kind.hold_out(labels, 0.3, np.random.RandomState(0), problems)
        problems.raise_if_any()
        train = np.setdiff1d(labels.labelled, val)
        pairs = np.stack([np.arange(N - 1), np.arange(1, N)])
        classes = len(labels.names)
        return NodeTask.build(np.eye(N), pairs, labels.values, train, val, num_classes=classes, outcome=kind.name)

    @cached_property
    def outcome(self) -> Outcome:
        return self.component.of(self.task.labels[self.task.train], self.task.num_classes, self.component.Options())

    @cached_property
    def answers(self) -> torch.Tensor:
        return random_answers(self.outcome, REPLICAS, seed=1, nodes=N)

    @property
    def answer(self) -> np.ndarray:
        return self.outcome.averaged(self.answers)

    @property
    def targets(self) -> Targets:
        return self.outcome.targets(self.task.labels, self.task.train, "cpu", torch.float64)


def declarations_are_complete(case: OutcomeCase) -> None:
    """It is registered under its own name, says what its score is called as no other outcome does, has a view that
    pages know, and options with descriptions."""
    kind = case.component
    installed = "install your package, with its entry point in the group g3nn.outcomes"
    assert OUTCOMES.get(kind.name) is kind, f"{kind.name!r} does not lead to it: {installed}"
    assert vars(kind).get("__doc__"), "it has no docstring"
    assert kind.score_key.isidentifier(), f"score_key {kind.score_key!r} is no identifier"
    assert kind.score_title, "score_title is empty"
    others = [one for one in OUTCOMES.values() if one is not kind]
    assert kind.score_key not in [one.score_key for one in others], f"another has the score_key {kind.score_key!r}, too"
    named = kind.__name__ in [one.__name__ for one in others]
    assert not named, f"another class is called {kind.__name__}, too, and saved models are read by class name"
    assert kind.view in VIEWS, f"view is {kind.view!r}, expected one of {', '.join(VIEWS)}"
    declared_options(kind.Options)


# Reading


def labels_are_read_as_they_are(case: OutcomeCase) -> None:
    """`read` keeps every value and which are unknown; `encode` gives the same for labels to judge by."""
    y, labels = case.given, case.labels
    values = labels.values
    assert labels.labelled.tolist() == list(range(LABELLED)), "other nodes are labelled than those given"
    np.testing.assert_array_equal(is_known(values), y != None)  # noqa: E711 - entry by entry
    shown = labels.names[values[:LABELLED]] if values.ndim == 1 else values[:LABELLED]
    known = is_known(values[:LABELLED])
    np.testing.assert_array_equal(shown[known], y[:LABELLED][known].astype(shown.dtype))
    problems = Problems()
    encoded = case.component.encode(y[:LABELLED], labels.names, problems)
    assert problems.found == [], f"encode refuses what read takes: {problems.found}"
    assert encoded is not None, "encode gave None for good labels"
    np.testing.assert_array_equal(encoded, values[:LABELLED])


def anything_else_is_a_problem_of_its_argument(case: OutcomeCase) -> None:
    """`read` records one problem under the name of the argument and gives None for what is no labels of n nodes."""
    others: tuple[Any, ...] = ([0, 1], [None] * N, [{}] * N, np.zeros((N, 2, 2)))
    for y in others:
        problems = Problems()
        assert case.component.read(y, N, problems, "labels") is None, f"it takes {y}"
        assert [problem.argument for problem in problems.found] == ["labels"], f"of {y} it says {problems.found}"


def held_out_nodes_are_a_share_of_the_labelled_ones(case: OutcomeCase) -> None:
    """`hold_out` takes a share of the labelled nodes, sorted, the same for the same seed, and leaves enough;
    `check_validation` refuses to hold out all of them."""
    problems, labels, kind = Problems(), case.labels, case.component
    val = kind.hold_out(labels, 0.3, np.random.RandomState(5), problems)
    kind.check_validation(labels, val, problems)
    assert problems.found == [], f"its own choice is refused: {problems.found}"
    assert np.isin(val, labels.labelled).all(), "nodes without labels are held out"
    assert abs(len(val) - 0.3 * LABELLED) <= 1, f"{len(val)} of {LABELLED} are held out for a share of 0.3"
    np.testing.assert_array_equal(val, np.unique(val))
    np.testing.assert_array_equal(val, kind.hold_out(labels, 0.3, np.random.RandomState(5), problems))
    kind.check_validation(labels, labels.labelled, problems)
    assert [problem.argument for problem in problems.found] == ["val"], "all labels can be held out"


def a_task_holds_the_labels_and_says_what_they_are(case: OutcomeCase) -> None:
    """A task keeps the labels as read, and its description says how many classes or columns there are."""
    task, labels, outcome = case.task, case.labels, case.outcome
    np.testing.assert_array_equal(task.labels, labels.values)
    assert task.num_classes == outcome.columns == len(labels.names), "the numbers of columns differ"
    assert f"{outcome.columns} {outcome.columns_title}" in repr(task), repr(task)


def every_model_of_its_panel_can_be_trained(case: OutcomeCase) -> None:
    """`panel` names models, objectives and options that exist and support the outcome, each once."""
    problems, models = Problems(), panel_of(case.component, 2, 1.5)
    tried = candidates("auto", "auto", {}, [Candidate(*one) for one in models], problems, case.component)
    check_candidates(tried, {**COMMON, "epochs": 10, "patience": 5}, "cpu", problems, case.component)
    assert problems.found == [], f"some cannot be trained: {problems.found}"
    assert models, "it is empty"
    assert len({(model, str(options)) for model, _, options in models}) == len(models), "some are there twice"


# The distribution


def targets_hide_what_training_may_not_see(case: OutcomeCase) -> None:
    """Of a node that is not for training, `observed`, `label` and `as_inputs` reveal nothing."""
    task, outcome, targets = case.task, case.outcome, case.targets
    np.testing.assert_array_equal(targets.known.numpy(), is_known(task.labels))
    hidden = np.setdiff1d(np.arange(N), task.train)
    assert not targets.observed[hidden].any(), "a hidden label is observed"
    np.testing.assert_array_equal(targets.observed[task.train], targets.known[task.train])
    assert not outcome.as_inputs(targets)[hidden].any(), "a hidden label is an input"
    assert (targets.label[hidden] == UNKNOWN).all(), "a hidden label has a value"


def shapes_are_those_of_the_contract(case: OutcomeCase) -> None:
    """Answers (R, n, width), means and variances (R, n, K), terms (R, 4); variances are not negative."""
    outcome, answers, targets = case.outcome, case.answers, case.targets
    width = outcome.columns * outcome.numbers_per_column
    assert answers.shape == (REPLICAS, N, width), f"answers have the shape {tuple(answers.shape)}"
    for part in (outcome.mean(answers), outcome.variance(answers)):
        assert part.shape == (REPLICAS, N, outcome.columns), f"mean or variance has the shape {tuple(part.shape)}"
    assert outcome.supervised(answers, targets).shape == (REPLICAS, len(case.task.train))
    sums, beliefs = outcome.node_terms(answers, answers, targets, True, (1.0, 1.0))
    assert sums.shape == (REPLICAS, 4), f"the sums of node_terms have the shape {tuple(sums.shape)}"
    assert beliefs.shape[:2] == (REPLICAS, N), f"beliefs have the shape {tuple(beliefs.shape)}"
    assert (outcome.variance(answers) >= 0).all(), "a variance is negative"


def the_divergence_of_an_answer_from_itself_is_zero(case: OutcomeCase) -> None:
    """KL(q | p) in `node_terms` is zero for p = q and positive for others."""
    outcome, answers, targets = case.outcome, case.answers, case.targets
    sums, _ = outcome.node_terms(answers, answers, targets, True, (0.5, 0.25))
    torch.testing.assert_close(sums[:, 2], sums[:, 3])
    sums, _ = outcome.node_terms(answers, answers.roll(1, 0), targets, True, (0.5, 0.25))
    assert (sums[:, 2] > sums[:, 3]).all(), "the divergence from another answer is not positive"


def the_average_of_equal_answers_is_that_answer(case: OutcomeCase) -> None:
    """`mixture` does not depend on the order of the answers; a pooled outcome has the mean of their means."""
    outcome, answers, answer = case.outcome, case.answers, case.answer
    one = answers[:1]
    np.testing.assert_allclose(outcome.averaged(one.expand(REPLICAS, -1, -1)), one[0].numpy(), atol=1e-12)
    assert answer.shape == answers.shape[1:], f"the mixture has the shape {answer.shape}"
    np.testing.assert_allclose(outcome.averaged(answers.flip(0)), answer, atol=1e-12)
    if outcome.pooled:
        np.testing.assert_allclose(outcome.moments(answer)[0], outcome.mean(answers).mean(0).numpy(), atol=1e-12)


# Calibration


def a_higher_temperature_is_less_certain_and_keeps_the_mode(case: OutcomeCase) -> None:
    """Temperature 1 changes nothing; the deviation grows with it, and the likeliest value stays."""
    outcome, answer = case.outcome, case.answer
    np.testing.assert_allclose(outcome.scaled(answer, Scaling()), answer, atol=1e-12)
    cool, warm = (outcome.moments(outcome.scaled(answer, Scaling(temperature))) for temperature in (0.5, 2.0))
    assert (warm[1].sum(1) >= cool[1].sum(1)).all(), "a higher temperature is more certain"
    if outcome.pooled:
        np.testing.assert_array_equal(cool[0].argmax(1), warm[0].argmax(1))


def losses_and_scores_are_those_of_validation(case: OutcomeCase) -> None:
    """`loss_and_score` of an answer is what `validation` says of it, and calibration does not raise the loss."""
    outcome, answers, targets, task = case.outcome, case.answers, case.targets, case.task
    val = torch.from_numpy(task.val)
    expected = outcome.validation(as_stack(case.answer), targets, val)[:, 0].tolist()
    got = outcome.loss_and_score(case.answer[task.val], task.labels[task.val])
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    loss = outcome.validation(answers, targets, val)[0]
    assert (outcome.calibrated_loss(answers, targets, val) <= loss + 1e-12).all(), "calibration raises the loss"


def the_temperature_has_the_lowest_cost(case: OutcomeCase) -> None:
    """`temperature` has the lowest loss with a standard normal prior on its logarithm, and is 1 without labels."""
    outcome, answer, labels = case.outcome, case.answer[:LABELLED], case.task.labels[:LABELLED]
    best, count = outcome.temperature(answer, labels), is_known(labels).sum()

    def cost(temperature: float) -> float:
        scaled = outcome.scaled(answer, Scaling(temperature))
        return float(count * outcome.loss_and_score(scaled, labels)[0] + np.log(temperature) ** 2 / 2)

    assert TEMPERATURES[0] <= best <= TEMPERATURES[1], f"{best} is out of bounds"
    for factor in (0.8, 1.25):
        if TEMPERATURES[0] < factor * best < 20:
            assert cost(best) < cost(factor * best), f"{factor * best} is better than {best}"
    if labels.ndim == 2:
        unknown = without_labels_of(labels, np.arange(LABELLED))
        assert outcome.temperature(answer, unknown) == 1.0, "it is not 1 if no label is known"
    assert outcome.temperature(answer[:0], labels[:0]) == 1.0, "it is not 1 without nodes"


def conformal_regions_cover_as_promised(case: OutcomeCase) -> None:
    """Labels drawn alike are exchangeable: 200 of them give the scores and 200 others are covered as often as promised,
    up to three standard errors of both halves. Few scores exclude nothing."""
    outcome, labels = case.outcome, case.task.labels[:LABELLED]
    known = np.flatnonzero(is_known(labels).reshape(LABELLED, -1).all(1))
    drawn = labels[np.random.default_rng(3).choice(known, 400)]
    answer = np.repeat(case.answer[-1:], 400, axis=0)
    scores = np.sort(outcome.conformal_scores(answer[:200], drawn[:200]), axis=0)
    region = outcome.conformal(answer[200:], scores, ALPHA)
    covered = _inside(region, drawn[200:]).mean()
    least = 1 - ALPHA - 3 * np.sqrt(2 * ALPHA * (1 - ALPHA) / 200)
    assert covered >= least, f"{covered:.2f} are covered, expected at least {least:.2f}"
    few = outcome.conformal(answer[:2], scores[:3], ALPHA)
    assert few.all() if labels.ndim == 1 else np.isinf(few[:, :, 1]).all(), "three scores exclude something"


def regions_cover_the_nodes_that_gave_the_scores(case: OutcomeCase) -> None:
    """By the rule of split conformal prediction, whatever the labels are."""
    outcome, answer, labels = case.outcome, case.answer[:45], case.task.labels[:45]
    scores = np.sort(outcome.conformal_scores(answer, labels), axis=0)
    known = is_known(labels).reshape(45, -1)
    inside = _inside(outcome.conformal(answer, scores, ALPHA), labels).reshape(45, -1)
    assert ((inside & known).sum(0) >= (1 - ALPHA) * known.sum(0)).all(), "too few of them are covered"


def _inside(region: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(m,) or (m, T): whether each label lies in its region, (m, K) booleans or (m, T, 2) ends."""
    if labels.ndim == 1:
        return np.asarray(region[np.arange(len(labels)), labels])
    assert region.shape == (*labels.shape, 2), f"a region has the shape {region.shape}"
    return np.asarray((region[:, :, 0] - 1e-9 <= labels) & (labels <= region[:, :, 1] + 1e-9))


# Reports


def measures_are_numbers_that_a_summary_names(case: OutcomeCase) -> None:
    """`evaluate` gives every key of `measures`, as finite numbers, and by column only for columns that there are."""
    task, outcome, names = case.task, case.outcome, case.labels.names
    answer, labels = case.answer[task.val], task.labels[task.val]
    region = outcome.conformal(answer, outcome.conformal_scores(answer, labels), ALPHA)
    measures = outcome.evaluate(answer, labels, region, names, True)
    lacking = set(outcome.measures) - set(measures)
    assert not lacking, f"evaluate lacks {', '.join(sorted(lacking))}"
    wrong = [key for key, one in measures.items() if not isinstance(one, dict) and not _is_number(one)]
    assert not wrong, f"no finite numbers: {', '.join(wrong)}"
    by_column = outcome.evaluate(answer, labels, region, names, False).get("columns", {})
    assert isinstance(by_column, dict)
    assert set(by_column) <= set(map(str, names.tolist())), f"columns are {list(by_column)}"


def _is_number(value: object) -> bool:
    return isinstance(value, float) and bool(np.isfinite(value))


def groups_are_beliefs_about_classes(case: OutcomeCase) -> None:
    """`groups` gives at least two groups with beliefs that sum to 1, certain where a label is known, and changes
    nothing that it is given."""
    outcome, answer, labels = case.outcome, case.answer, case.task.labels
    before = answer.copy()
    codes, beliefs = outcome.groups(answer, labels)
    assert (codes.shape, len(beliefs)) == ((N,), N), f"the shapes are {codes.shape} and {beliefs.shape}"
    assert beliefs.shape[1] >= 2, "there is one group only"
    assert (beliefs >= 0).all(), "a belief is negative"
    np.testing.assert_allclose(beliefs.sum(1), 1)
    known = codes != UNKNOWN
    np.testing.assert_array_equal(beliefs[known], np.eye(beliefs.shape[1])[codes[known]])
    assert not known[~has_label(labels)].any(), "a node without a label has a group"
    np.testing.assert_array_equal(answer, before)
    nothing = without_labels_of(labels, np.arange(N)) if outcome.pooled else labels
    np.testing.assert_allclose(outcome.groups(answer, nothing)[1].sum(1), 1)


OUTCOME_PROMISES = [
    promise
    for name, promise in globals().copy().items()
    if isfunction(promise) and promise.__module__ == __name__ and not name.startswith("_")
]
"""All functions above, in their order."""
