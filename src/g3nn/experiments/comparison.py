"""Measured beside published: what the records of a suite say about each of its cells."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from g3nn.experiments.records import Option, Point, Record
from g3nn.experiments.selection import Losses, chosen, losses
from g3nn.experiments.statistics import LEVEL, TOLERANCE, Sample, difference_interval, t_test, wilson_interval
from g3nn.experiments.store import Store
from g3nn.experiments.suite import Entry, Suite, label


@dataclass(frozen=True)
class GridPoint:
    """A point that was tried. mean_val_loss: None if one of its trainings diverged or failed."""

    options: Mapping[str, Option]
    mean_val_loss: float | None
    seeds: int


@dataclass(frozen=True)
class CellResult:
    """One cell under one objective. Whatever has not been measured or published is None.

    trials: those with a test accuracy, which mean and std are taken over. failed: those without.
    difference: mean - published, with Welch's 95 % interval. binomial_low, binomial_high: Wilson's 95 % interval of
    the mean for a test set of this size. p_value, significant, above: against the counterpart, the same network
    without a graph likelihood. best_in: the objectives under which no mean of the table and dataset is higher, where
    a discriminative model is held against the generative ones of every objective. bold: whether its own is among them.
    chosen: the options that the selection came to. val_loss, val_accuracy, nll, ece: means over the trials.
    selected: the generative model of lowest validation loss on its dataset and setting, in suites that select one.
    peers: for such a model, the discriminative ones beside it and the p-values of the difference.
    """

    table: str
    dataset: str
    setting: str
    model: str
    variant: str
    objective: str
    row: str
    counterpart: str | None
    published: float | None
    published_std: float | None
    published_bold: bool
    published_underline: bool
    published_star: bool
    mean: float | None = None
    std: float | None = None
    trials: int = 0
    failed: int = 0
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    binomial_low: float | None = None
    binomial_high: float | None = None
    p_value: float | None = None
    significant: bool | None = None
    above: bool | None = None
    best_in: tuple[str, ...] = ()
    bold: bool = False
    underline: bool = False
    star: bool = False
    val_loss: float | None = None
    val_accuracy: float | None = None
    nll: float | None = None
    ece: float | None = None
    chosen: Mapping[str, Option] | None = None
    selected: bool = False
    peers: Mapping[str, float | None] = field(default_factory=dict)
    selection: list[GridPoint] = field(default_factory=list)

    @property
    def label(self) -> str:
        return label(self.model, self.variant)

    @property
    def sample(self) -> Sample | None:
        """The trials in short."""
        return None if self.mean is None else Sample(self.mean, self.std, self.trials)


@dataclass(frozen=True)
class Comparison:
    """The cells of a suite, in its order."""

    suite: str
    cells: list[CellResult]


def compare(suite: Suite, store: Store, only: Mapping[str, str] | None = None) -> Comparison:
    """Every cell of the suite, or of a part of it; the marks are those of the whole. Cells without records stay."""
    wanted = set(suite.entries(only))
    entries = suite.entries()
    known = losses(store.records(stage="select"))
    seeds = _seeds(known)
    points = [suite.points(entry) for entry in entries]
    choices = [chosen(grid, known, suite.protocol) for grid in points]
    trials = _trials(store, choices)
    cells = [
        replace(
            _measured(suite, entry, trials[choice.key] if choice else []),
            chosen=choice.options if choice else None,
            selection=[_grid_point(point, known, seeds[point.key]) for point in grid if point.key in seeds],
        )
        for entry, grid, choice in zip(entries, points, choices, strict=True)
    ]
    marked = _with_best(_beside_counterparts(cells), suite.objectives)
    if suite.selects:
        marked = _with_selected(marked)
    return Comparison(suite.name, [cell for entry, cell in zip(entries, marked, strict=True) if entry in wanted])


def _seeds(known: Losses) -> dict[str, list[int]]:
    """The seeds that every point was tried with, by its key."""
    seeds: dict[str, list[int]] = defaultdict(list)
    for key, seed in known:
        seeds[key].append(seed)
    return dict(seeds)


def _grid_point(point: Point, known: Losses, seeds: Sequence[int]) -> GridPoint:
    mean = statistics.fmean(known[point.key, seed] for seed in seeds)
    return GridPoint(point.options, mean if math.isfinite(mean) else None, len(seeds))


def _trials(store: Store, choices: Iterable[Point | None]) -> dict[str, list[Record]]:
    """The trials of the chosen points, by key."""
    trials: dict[str, list[Record]] = defaultdict(list)
    keys = {choice.key for choice in choices if choice is not None}
    for record in store.records(stage="trial", point_keys=keys, evidence=True):
        trials[record.point.key].append(record)
    return trials


def _measured(suite: Suite, entry: Entry, trials: Sequence[Record]) -> CellResult:
    """A cell on its own: the published side and the trials."""
    cell = entry.cell
    result = CellResult(
        table=cell.table,
        dataset=cell.dataset,
        setting=cell.setting,
        model=cell.model,
        variant=cell.variant,
        objective=entry.objective,
        row=cell.row,
        counterpart=suite.counterpart(cell.model),
        published=cell.published,
        published_std=cell.published_std,
        published_bold=cell.bold,
        published_underline=cell.underline,
        published_star=cell.star,
    )
    accuracies = [record.test_accuracy for record in trials if record.test_accuracy is not None]
    result = replace(result, trials=len(accuracies), failed=len(trials) - len(accuracies))
    sample = Sample.of(accuracies)
    if sample is None:
        return result
    kept = [record.evidence for record in trials if record.evidence is not None]
    binomial = wilson_interval(sample.mean, kept[0].test_nodes) if kept else (None, None)
    result = replace(
        result,
        mean=sample.mean,
        std=sample.std,
        binomial_low=binomial[0],
        binomial_high=binomial[1],
        val_loss=_mean(record.val_loss for record in trials),
        val_accuracy=_mean(record.val_accuracy for record in trials),
        nll=_mean(one.nll for one in kept),
        ece=_mean(one.ece for one in kept),
    )
    if cell.published is None:
        return result
    published = Sample(cell.published, cell.published_std, suite.published_trials)
    low, high = difference_interval(sample, published) or (None, None)
    return replace(result, difference=sample.mean - cell.published, difference_low=low, difference_high=high)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _beside_counterparts(cells: Sequence[CellResult]) -> list[CellResult]:
    """Generative cells with the outcome of the test against the network alone."""
    alone = {
        (cell.dataset, cell.setting, cell.model): cell.sample
        for cell in cells
        if cell.counterpart is None and not cell.variant
    }

    def tested(cell: CellResult) -> CellResult:
        sample = cell.sample
        other = alone.get((cell.dataset, cell.setting, cell.counterpart)) if cell.counterpart is not None else None
        if sample is None or other is None:
            return cell
        above = sample.mean > other.mean + TOLERANCE
        p_value = t_test(sample, other)
        significant = None if p_value is None else p_value < LEVEL
        star = above and bool(significant)
        return replace(cell, p_value=p_value, significant=significant, above=above, underline=above, star=star)

    return [tested(cell) for cell in cells]


def _with_best(cells: Sequence[CellResult], objectives: Sequence[str]) -> list[CellResult]:
    """Cells that know where they are best. Equal means are all best."""
    best: dict[tuple[str, str, str, str], float] = {}
    for cell in cells:
        for objective in _contests(cell, objectives):
            place = (cell.table, cell.setting, cell.dataset, objective)
            if cell.mean is not None:
                best[place] = max(best.get(place, 0.0), cell.mean)

    def placed(cell: CellResult) -> CellResult:
        best_in = tuple(
            objective
            for objective in _contests(cell, objectives)
            if cell.mean is not None
            and cell.mean >= best[cell.table, cell.setting, cell.dataset, objective] - TOLERANCE
        )
        return replace(cell, best_in=best_in, bold=cell.objective in best_in)

    return [placed(cell) for cell in cells]


def _with_selected(cells: Sequence[CellResult]) -> list[CellResult]:
    """Cells with the generative one of lowest validation loss marked for each dataset and setting.

    The validation loss is that of its trials, which decide nothing else.
    """
    lowest: dict[tuple[str, str], float] = {}
    for cell in cells:
        if cell.counterpart is not None and cell.val_loss is not None:
            place = (cell.dataset, cell.setting)
            lowest[place] = min(lowest.get(place, math.inf), cell.val_loss)

    def marked(cell: CellResult) -> CellResult:
        place = (cell.dataset, cell.setting)
        if cell.counterpart is None or cell.val_loss is None or cell.val_loss > lowest[place]:
            return cell
        peers = [one for one in cells if (one.dataset, one.setting) == place and one.counterpart is None]
        return replace(cell, selected=True, peers={peer.label: _p_value(cell, peer) for peer in peers})

    return [marked(cell) for cell in cells]


def _p_value(cell: CellResult, other: CellResult) -> float | None:
    one, two = cell.sample, other.sample
    return None if one is None or two is None else t_test(one, two)


def _contests(cell: CellResult, objectives: Sequence[str]) -> Sequence[str]:
    """The objectives a cell is compared under: its own, or all of them for a discriminative model."""
    return objectives if cell.counterpart is None else (cell.objective,)
