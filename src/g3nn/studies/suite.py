"""A suite: which models are trained on what, from which grid each is chosen, and what was published about them.

Suites and their results can be read without torch; only running a suite needs it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from g3nn.base.errors import Problems
from g3nn.base.options import Rule, integer
from g3nn.studies.records import Option, Point

AxisValue = Option | Mapping[str, Option]
"""One value of the option that the axis is named after, or several options that change together."""

Only = Mapping[str, str] | None
"""The part of a suite that is wanted; see `Suite.entries`."""

FILTERS = ("table", "dataset", "setting", "model", "variant", "objective")
"""What a part of a suite can be selected by."""

ESTIMATOR = "g3nn"
"""The name of `G3NNClassifier` among the models; the options of its points are its parameters."""

CLEANED = "gcn-cleanlab"
"""The name of a GCN without the labels that cleanlab doubts; the options of its points are those of a GCN."""

NO_STACKS = (ESTIMATOR, CLEANED)
"""What is trained one by one."""

_TWO_WORDS = ("label-propagation", "correct-smooth", "gcn-jaccard", "gcn-svd", "pro-gnn", CLEANED)
"""Networks with a dash in their name; with any other name, the part before the first dash is a likelihood."""

_SHARE = {"rule": Rule(float, "", low=0, high=1)}


@dataclass(frozen=True)
class Protocol:
    """How many trainings there are, and with which seeds.

    A cell is chosen in two rounds by the mean validation loss: every point of its grid with `selection_seeds` seeds,
    then the best `finalists` points with `finalist_seeds` in all. The winner is trained `trials` times.
    """

    trials: int = integer(10, "trainings of the chosen point, which the tables report", low=1)
    first_seed: int = integer(0, "seed of the first trial", low=0)
    selection_seeds: int = integer(2, "trainings of every point of a grid", low=1)
    first_selection_seed: int = integer(1000, "seed of the first training for selection", low=0)
    finalists: int = integer(6, "points that enter the second round", low=1)
    finalist_seeds: int = integer(6, "trainings of each finalist, both rounds together", low=1)

    def check(self, problems: Problems, place: str = "") -> None:
        """Record values that are valid one by one but not together."""
        if self.finalist_seeds < self.selection_seeds:
            allowed = f"at least selection_seeds ({self.selection_seeds})"
            problems.add(f"{place}finalist_seeds", self.finalist_seeds, allowed, "They include the first round.")
        first, last = self.first_selection_seed, self.first_selection_seed + self.finalist_seeds - 1
        if first < self.first_seed + self.trials and self.first_seed <= last:
            given = f"{self.trials} from seed {self.first_seed} on"
            allowed = f"other seeds than those of the selection, {first} to {last}"
            problems.add(f"{place}trials", given, allowed, "Choose fewer trials or another first_selection_seed.")


@dataclass(frozen=True)
class Grid:
    """Every combination of the values on some axes, for some models.

    Without objectives, datasets or settings it covers all of them; without variants, cells that name none; without
    axes it has one point. place: where a suite file says so.
    """

    models: tuple[str, ...]
    objectives: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    axes: Mapping[str, tuple[AxisValue, ...]] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    place: str = field(default="", compare=False)

    def covers(self, entry: Entry) -> bool:
        cell = entry.cell
        limits = (
            (self.objectives, entry.objective),
            (self.datasets, cell.dataset),
            (self.settings, cell.setting),
        )
        named = cell.variant in (self.variants or ("",))
        return named and cell.model in self.models and all(not names or name in names for names, name in limits)

    def points(self) -> list[dict[str, Option]]:
        """The options of every combination; the last axis changes fastest."""
        steps = [[axis_options(name, value) for value in values] for name, values in self.axes.items()]
        return [
            {name: value for step in combination for name, value in step.items()}
            for combination in itertools.product(*steps)
        ]


@dataclass(frozen=True)
class Cell:
    """One number of a table. row: where it was published. bold, underline, star: how it was marked there.

    variant: distinguishes cells of the same model, each with its own grids. options: shared by all points of the cell,
    as pairs. quoted: only what was published stands here, and nothing is trained. trials: 0 for as many as the protocol
    says. place: where a suite file says so.
    """

    table: str
    dataset: str
    setting: str
    model: str
    row: str = ""
    published: float | None = field(default=None, metadata=_SHARE)
    published_std: float | None = field(default=None, metadata=_SHARE)
    bold: bool = False
    underline: bool = False
    star: bool = False
    variant: str = ""
    options: tuple[tuple[str, Option], ...] = ()
    quoted: bool = False
    trials: int = 0
    place: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        return label(self.model, self.variant)


def label(model: str, variant: str) -> str:
    """The name of a row of a table."""
    return f"{model}, {variant}" if variant else model


@dataclass(frozen=True)
class Entry:
    """A cell under one objective: what is chosen, trained and reported."""

    cell: Cell
    objective: str

    def value(self, key: str) -> str:
        """By one of `FILTERS`."""
        return self.objective if key == "objective" else str(getattr(self.cell, key))


@dataclass(frozen=True)
class DatasetRow:
    """What was published about a dataset. mean_two_hop: nodes within two hops of a node, on average."""

    dataset: str
    classes: int
    nodes: int
    edges: int
    mean_two_hop: float


@dataclass(frozen=True)
class Suite:
    """Experiments as data.

    fixed: options of every point, unless its grid says otherwise; the estimator has none but those of its grid.
    published_trials: the number of trials behind each published mean.
    selects: whether the generative model of lowest validation loss represents all of them on a dataset and setting.
    """

    name: str
    title: str
    source: str
    protocol: Protocol
    objectives: tuple[str, ...]
    grids: tuple[Grid, ...]
    cells: tuple[Cell, ...]
    datasets: tuple[DatasetRow, ...] = ()
    fixed: Mapping[str, Option] = field(default_factory=dict)
    published_trials: int = 10
    selects: bool = False

    def entries(self, only: Only = None) -> list[Entry]:
        """All cells under all objectives, or those that `only` allows: {"dataset": "cora,pubmed", "table": "2"}.

        The objective changes nothing about a discriminative model, so it has one entry, under the first objective.
        """
        entries = [
            Entry(cell, objective)
            for cell in self.cells
            for objective in (self.objectives if counterpart(cell.model) else self.objectives[:1])
        ]
        wanted = _wanted(only or {}, entries)
        return [entry for entry in entries if all(entry.value(key) in values for key, values in wanted.items())]

    def points(self, entry: Entry) -> list[Point]:
        """The grid of an entry: all combinations of all grids that cover it, each once; none of a quoted cell."""
        cell = entry.cell
        if cell.quoted:
            return []
        combinations = [combination for grid in self.grids if grid.covers(entry) for combination in grid.points()]
        shared = {} if cell.model == ESTIMATOR else {**self.fixed, **dict(cell.options)}
        options = [{**shared, **combination} for combination in combinations]
        points = [Point(cell.dataset, cell.setting, cell.model, entry.objective, values) for values in options]
        return list(dict.fromkeys(points))

    def trials(self, cell: Cell) -> int:
        """How often the chosen point of a cell is trained."""
        return cell.trials or self.protocol.trials

    def with_trials(self, trials: int) -> Suite:
        """The same suite with another number of trials, the same for all cells."""
        with Problems() as problems:
            if trials < 1:
                problems.add("trials", trials, "a whole number of at least 1")
            protocol = replace(self.protocol, trials=trials)
            protocol.check(problems)
        return replace(self, protocol=protocol, cells=tuple(replace(cell, trials=0) for cell in self.cells))


def counterpart(model: str) -> str | None:
    """The network of a generative model on its own: gcn for lsm-gcn. None for a discriminative model."""
    _, dash, network = model.partition("-")
    return network if dash and model not in _TWO_WORDS else None


def axis_options(name: str, value: AxisValue) -> dict[str, Option]:
    """The options that one value on an axis sets."""
    return dict(value) if isinstance(value, Mapping) else {name: value}


def checked_part(suite: Suite, only: Only, trials: int | None, problems: Problems) -> Suite:
    """The suite with this number of trials. Records it if the suite has no such part."""
    with problems.gathered():
        suite = suite.with_trials(trials) if trials is not None else suite
    with problems.gathered():
        if not suite.entries(only):
            problems.add("only", dict(only or {}), "a part of the suite that is not empty", "Leave a filter out.")
    return suite


def _wanted(only: Mapping[str, str], entries: list[Entry]) -> dict[str, list[str]]:
    """The values that each filter lets through."""
    problems, wanted = Problems(), {}
    for key, text in only.items():
        if key not in FILTERS:
            problems.name("only", key, FILTERS)
            continue
        names = list(dict.fromkeys(entry.value(key) for entry in entries))
        wanted[key] = [value.strip() for value in text.split(",")]
        for value in wanted[key]:
            problems.name(f"only {key}", value, names)
    problems.raise_if_any()
    return wanted
