"""A suite: which models are trained on what, from which grid each is chosen, and what was published about them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from g3nn.errors import Problems, suggestion
from g3nn.experiments.records import Option, Point
from g3nn.options import integer

AxisValue = Option | Mapping[str, Option]
"""One value of the option that the axis is named after, or several options that change together."""

FILTERS = ("table", "dataset", "setting", "model", "variant", "objective")
"""What a part of a suite can be chosen by."""

_FOLDER = Path(__file__).parent / "suites"


@dataclass(frozen=True)
class Protocol:
    """How many trainings there are, and with which seeds.

    A cell is chosen in two rounds by the mean validation loss: every point of its grid with `selection_seeds` seeds,
    then the best `finalists` points with `finalist_seeds` in all. The point that wins is trained `trials` times.
    """

    trials: int = integer(10, "trainings of the chosen point, which the tables report", low=1)
    first_seed: int = integer(0, "seed of the first trial", low=0)
    selection_seeds: int = integer(2, "trainings of every point of a grid", low=1)
    first_selection_seed: int = integer(1000, "seed of the first training for selection", low=0)
    finalists: int = integer(6, "points that are looked at more closely", low=1)
    finalist_seeds: int = integer(6, "trainings of each of them in all", low=1)

    def check(self, problems: Problems) -> None:
        """Record numbers that are sound one by one but not together."""
        if self.finalist_seeds < self.selection_seeds:
            allowed = f"at least selection_seeds ({self.selection_seeds})"
            problems.add("finalist_seeds", self.finalist_seeds, allowed, "They count the first round too.")
        first, last = self.first_selection_seed, self.first_selection_seed + self.finalist_seeds - 1
        if first < self.first_seed + self.trials and self.first_seed <= last:
            given = f"{self.trials} from seed {self.first_seed} on"
            allowed = f"other seeds than those of the selection, {first} to {last}"
            problems.add("trials", given, allowed, "Choose fewer trials or another first_selection_seed.")


@dataclass(frozen=True)
class Grid:
    """Every combination of the values on some axes, for some models.

    Without objectives, datasets or settings it is for all of them; without variants for cells that name none; without
    axes it has one point.
    """

    models: tuple[str, ...]
    objectives: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    axes: Mapping[str, tuple[AxisValue, ...]] = field(default_factory=dict)
    variants: tuple[str, ...] = ()

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

    variant: tells apart cells of the same model, each with grids of its own. options: those that all points of the
    cell share, as pairs.
    """

    table: str
    dataset: str
    setting: str
    model: str
    row: str = ""
    published: float | None = None
    published_std: float | None = None
    bold: bool = False
    underline: bool = False
    star: bool = False
    variant: str = ""
    options: tuple[tuple[str, Option], ...] = ()

    @property
    def label(self) -> str:
        return label(self.model, self.variant)


def label(model: str, variant: str) -> str:
    """How a row of a table is called."""
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

    fixed: options of every point, unless its grid says otherwise.
    published_trials: how many trials are behind each published mean.
    selects: whether the generative model of lowest validation loss stands for all on a dataset and setting.
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

    def entries(self, only: Mapping[str, str] | None = None) -> list[Entry]:
        """All cells under all objectives, or those that `only` allows: {"dataset": "cora,pubmed", "table": "2"}.

        A discriminative model has no term that the objective changes, so it has one entry, under the first objective.
        """
        every = list(self._every_entry())
        wanted = _wanted(only or {}, every)
        return [entry for entry in every if all(entry.value(key) in values for key, values in wanted.items())]

    def _every_entry(self) -> Iterator[Entry]:
        for cell in self.cells:
            generative = self.counterpart(cell.model) is not None
            for objective in self.objectives if generative else self.objectives[:1]:
                yield Entry(cell, objective)

    def points(self, entry: Entry) -> list[Point]:
        """The grid of an entry: all combinations of all grids that cover it, each once."""
        cell = entry.cell
        grids = [grid for grid in self.grids if grid.covers(entry)]
        options = [{**self.fixed, **dict(cell.options), **chosen} for grid in grids for chosen in grid.points()]
        points = [Point(cell.dataset, cell.setting, cell.model, entry.objective, one) for one in options]
        return list(dict.fromkeys(points))

    def counterpart(self, model: str) -> str | None:
        """The network of a generative model on its own: gcn for lsm-gcn. None for a discriminative model."""
        # Imported here because it brings torch along, which reading results does without.
        from g3nn.model import ModelSpec

        spec = ModelSpec.parse(model)
        return None if spec.likelihood is None else str(spec.posterior)

    def with_trials(self, trials: int) -> Suite:
        """The same suite with another number of trials."""
        problems = Problems()
        if trials < 1:
            problems.add("trials", trials, "a whole number of at least 1")
        protocol = replace(self.protocol, trials=trials)
        protocol.check(problems)
        problems.raise_if_any()
        return replace(self, protocol=protocol)


def axis_options(name: str, value: AxisValue) -> dict[str, Option]:
    """The options that one value on an axis sets."""
    return dict(value) if isinstance(value, Mapping) else {name: value}


def suite_names() -> list[str]:
    """The suites that come with the package."""
    return sorted(folder.name for folder in _FOLDER.iterdir() if any(folder.glob("*.toml")))


def load_suite(name_or_path: str) -> Suite:
    """A suite of the package by name, or one of your own: a folder of .toml files, or one such file."""
    # The reader builds the classes of this module and knows every model, which brings torch along.
    from g3nn.experiments.suite_file import read_suite

    names, path = suite_names(), Path(name_or_path)
    if name_or_path in names:
        path = _FOLDER / name_or_path
    elif not os.path.exists(name_or_path):
        problems = Problems()
        allowed = f"{', '.join(names)}, or the path of a .toml file or of a folder of them"
        problems.add("suite", repr(name_or_path), allowed, suggestion(name_or_path, names))
        problems.raise_if_any()
    return read_suite(path)


def _wanted(only: Mapping[str, str], entries: list[Entry]) -> dict[str, list[str]]:
    """The values that each filter lets through."""
    problems, wanted = Problems(), {}
    for key, text in only.items():
        if key not in FILTERS:
            problems.name("only", key, FILTERS)
            continue
        known = list(dict.fromkeys(entry.value(key) for entry in entries))
        wanted[key] = [value.strip() for value in text.split(",")]
        for value in wanted[key]:
            problems.name(f"only {key}", value, known)
    problems.raise_if_any()
    return wanted
