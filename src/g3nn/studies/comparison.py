"""Measured and published results side by side: what the records of a suite say about each of its cells."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from g3nn.graph.calibrate import wilson_interval
from g3nn.studies.records import Option, Point, Record
from g3nn.studies.selection import Losses, chosen, losses
from g3nn.studies.store import Store
from g3nn.studies.suite import ESTIMATOR, Entry, Only, Suite, counterpart, label

LEVEL = 0.05
"""A difference is significant if its p-value is below this."""

TOLERANCE = 1e-9
"""Means closer than this are equal: they differ only by rounding in the last digits."""


@dataclass(frozen=True)
class Sample:
    """Some trials. std: with n - 1; None for a single trial, or where it was not published."""

    mean: float
    std: float | None
    size: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample | None:
        if not values:
            return None
        return cls(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None, len(values))

    @property
    def variance_of_mean(self) -> float | None:
        return None if self.std is None or self.size < 2 else self.std**2 / self.size


@dataclass(frozen=True)
class GridPoint:
    """A point that was tried. mean_val_loss: None if one of its trainings diverged or failed."""

    options: Mapping[str, Option]
    mean_val_loss: float | None
    seeds: int


class CellResult:
    """One cell under one objective. Whatever was not measured or not published is None.

    trials: the number of trials with a test accuracy, over which mean and std are taken. failed: those without.
    difference: mean - published, with Welch's 95 % interval. binomial_low, binomial_high: Wilson's 95 % interval of
    the mean for a test set of this size. p_value, significant, above: compared with the counterpart, the same network
    without a graph likelihood. best_in: the objectives under which no mean of the table and dataset is higher; a
    discriminative model is compared with the generative ones of every objective. bold: whether its own objective is
    among them. chosen: the options that the selection chose. val_loss, val_accuracy, nll, ece: means over the trials.
    selected: the generative model, or estimator, of lowest validation loss on its dataset and setting, in suites that
    select one. peers: for such a model, the discriminative models beside it with the p-values of the difference.
    figures: means of the other numbers in the evidence of the trials. quoted: nothing is measured. runs: the records of
    all its trials.
    """

    def __init__(self, suite: Suite, entry: Entry, known: Losses, by_point: Mapping[str, Sequence[Record]]) -> None:
        cell, points = entry.cell, suite.points(entry)
        choice = chosen(points, known, suite.protocol)
        runs = [record for record in by_point.get(choice.key, ()) if record.stage == "trial"] if choice else []
        accuracies = [record.test_accuracy for record in runs if record.test_accuracy is not None]
        sample = Sample.of(accuracies)
        trials = runs if sample else []
        shown = [record.evidence for record in trials if record.evidence is not None]
        self.table, self.dataset, self.setting = cell.table, cell.dataset, cell.setting
        self.model, self.variant, self.objective = cell.model, cell.variant, entry.objective
        self.row, self.counterpart = cell.row, counterpart(cell.model)
        self.published, self.published_std = cell.published, cell.published_std
        self.published_bold, self.published_underline, self.published_star = cell.bold, cell.underline, cell.star
        self.mean: float | None = sample.mean if sample else None
        self.std: float | None = sample.std if sample else None
        self.trials, self.failed = len(accuracies), len(runs) - len(accuracies)
        nothing: tuple[float | None, float | None] = None, None
        count = suite.published_trials
        published = None if cell.published is None else Sample(cell.published, cell.published_std, count)
        self.difference = sample.mean - published.mean if sample and published else None
        welch = difference_interval(sample, published) if sample and published else None
        self.difference_low, self.difference_high = welch or nothing
        binomial = wilson_interval(sample.mean, shown[0].test_nodes) if sample and shown else nothing
        self.binomial_low, self.binomial_high = binomial
        self.p_value: float | None = None
        self.significant: bool | None = None
        self.above: bool | None = None
        self.best_in: tuple[str, ...] = ()
        self.bold = self.underline = self.star = False
        self.val_loss = _mean(record.val_loss for record in trials)
        self.val_accuracy = _mean(record.val_accuracy for record in trials)
        self.nll, self.ece = _mean(one.nll for one in shown), _mean(one.ece for one in shown)
        self.chosen = choice.options if choice else None
        self.selected = False
        self.peers: dict[str, float | None] = {}
        self.figures = _figures([evidence.figures for evidence in shown])
        self.quoted = cell.quoted
        self.selection = [tried for point in points if (tried := _grid_point(point, by_point.get(point.key, ())))]
        self.runs = runs

    @property
    def label(self) -> str:
        return label(self.model, self.variant)

    @property
    def ours(self) -> bool:
        """Whether it is compared with its peers, or one of them. A variant of the estimator is a peer of it."""
        return self.counterpart is not None or (self.model == ESTIMATOR and not self.variant)

    def facts(self) -> dict[str, object]:
        """Its fields, but for the points of the selection and the records of the trials: there are thousands."""
        return {name: value for name, value in vars(self).items() if name not in ("selection", "runs")}

    @property
    def sample(self) -> Sample | None:
        """The trials as mean, spread and size."""
        return None if self.mean is None else Sample(self.mean, self.std, self.trials)


@dataclass(frozen=True)
class Comparison:
    """The cells of a suite, in its order."""

    suite: str
    cells: list[CellResult]


def compare(suite: Suite, store: Store, only: Only = None) -> Comparison:
    """Every cell of the suite, or of a part of it; marks refer to the whole. Cells without records are included."""
    wanted = set(suite.entries(only))
    entries = suite.entries()
    records = store.records(evidence=True)
    known = losses(records)
    by_point: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_point[record.point.key].append(record)
    cells = [CellResult(suite, entry, known, by_point) for entry in entries]
    for cell in cells:
        _mark(cell, cells, suite)
    return Comparison(suite.name, [cell for entry, cell in zip(entries, cells, strict=True) if entry in wanted])


def _grid_point(point: Point, records: Sequence[Record]) -> GridPoint | None:
    """How a point did in the selection; None if it was not tried."""
    values = list(losses(records).values())
    if not values:
        return None
    mean = statistics.fmean(values)
    return GridPoint(point.options, mean if math.isfinite(mean) else None, len(values))


def _figures(trials: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for figures in trials for name in figures)
    return {name: statistics.fmean(figures[name] for figures in trials if name in figures) for name in names}


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _mark(cell: CellResult, cells: Sequence[CellResult], suite: Suite) -> None:
    """Compare a cell with the others: with its counterpart, within its table, and with its peers."""
    sample = cell.sample
    if sample is None:
        return
    beside = [other for other in cells if (other.dataset, other.setting) == (cell.dataset, cell.setting)]
    networks = [other.sample for other in beside if other.model == cell.counterpart and not other.variant]
    if networks and networks[0] is not None:
        above, p_value = sample.mean > networks[0].mean + TOLERANCE, t_test(sample, networks[0])
        significant = None if p_value is None else p_value < LEVEL
        cell.p_value, cell.significant, cell.above, cell.underline = p_value, significant, above, above
        cell.star = above and bool(significant)
    best = {
        objective: max(other.mean or 0.0 for other in beside if _in_contest(other, cell.table, objective))
        for objective in suite.objectives
        if _in_contest(cell, cell.table, objective)
    }
    cell.best_in = tuple(objective for objective, mean in best.items() if sample.mean >= mean - TOLERANCE)
    cell.bold = cell.objective in cell.best_in
    ours = [_order(other) for other in beside if other.ours and other.mean is not None]
    if suite.selects and cell.ours and _order(cell) <= min(ours):
        peers = {other.label: other.sample for other in beside if not other.ours and not other.quoted}
        cell.selected = True
        cell.peers = {peer: None if other is None else t_test(sample, other) for peer, other in peers.items()}


def _order(cell: CellResult) -> float:
    """By which one of our models is selected; where nothing validates there is only one to select."""
    return math.inf if cell.val_loss is None else cell.val_loss


def _in_contest(cell: CellResult, table: str, objective: str) -> bool:
    """Whether a cell is compared in a table under an objective: a discriminative model is under every objective."""
    return cell.table == table and (cell.counterpart is None or cell.objective == objective)


def t_test(one: Sample, other: Sample) -> float | None:
    """The p-value of the two-sided t-test with a pooled variance; None where a standard deviation is unknown."""
    if one.variance_of_mean is None or other.variance_of_mean is None:
        return None
    if one.std == other.std == 0:
        return float(math.isclose(one.mean, other.mean, abs_tol=TOLERANCE))
    from scipy.stats import ttest_ind_from_stats

    test = ttest_ind_from_stats(one.mean, one.std, one.size, other.mean, other.std, other.size)
    return float(test.pvalue)


def difference_interval(one: Sample, other: Sample) -> tuple[float, float] | None:
    """Welch's interval for the difference of two means with different variances."""
    first, second = one.variance_of_mean, other.variance_of_mean
    if first is None or second is None:
        return None
    difference, variance = one.mean - other.mean, first + second
    if variance == 0:
        return difference, difference
    from scipy.stats import t

    freedom = variance**2 / (first**2 / (one.size - 1) + second**2 / (other.size - 1))
    reach = float(t.ppf(1 - LEVEL / 2, freedom)) * math.sqrt(variance)
    return difference - reach, difference + reach
