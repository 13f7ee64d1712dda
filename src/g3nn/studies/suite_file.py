"""Reading a suite from TOML, with all problems of all its files in one error.

A suite is one file, or a folder of files that are read as one:

    objectives = ["released"]                       # objectives of the generative models
    [axes]                                          # an axis is an option, or several that change together
    lr = [0.005, 0.01]
    partition = [{ p0 = 0.9, p1 = 0.1 }, { p0 = 0.5, p1 = 0.6 }]
    [[grids]]                                       # may be limited to objectives, datasets and settings
    models = ["sbm-gcn"]
    axes = ["lr", "partition"]
    [[tables]]
    name = "1"
    setting = "standard"
    cells = [{ model = "sbm-gcn", dataset = "cora", published = 0.822, published_std = 0.002 }]

A table may have several settings, as a list, and say the datasets of all cells that name none and a number of trials. A
suite may also have a title, a source, published_trials, [protocol], [fixed] options and published [[datasets]].
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

from g3nn.base.errors import Problems, refuse, suggestion
from g3nn.base.options import Rule
from g3nn.studies.records import Option
from g3nn.studies.suite import AxisValue, Cell, DatasetRow, Grid, Protocol, Suite, axis_options

_FOLDER = Path(__file__).parent / "suites"

Parsed = TypeVar("Parsed")
TomlTable = dict[str, Any]
Names = str | tuple[str, ...]
"""Read as names in any case."""
Axes = Mapping[str, tuple[AxisValue, ...]]


def _list_of(kind: type, value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_TYPES: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("text", _is_text),
    Names: ("text, or a list of names", lambda value: _is_text(value) or (_list_of(str, value) and bool(value))),
    TomlTable: ("a table", lambda value: isinstance(value, dict)),
    tuple[str, ...]: ("a list of names", lambda value: _list_of(str, value) and bool(value)),
    tuple[TomlTable, ...]: ("a list of tables", lambda value: _list_of(dict, value)),
}
"""What the value of a field of some type may be, and whether it is. Numbers and flags have rules."""

_hints = cache(get_type_hints)

_RULES = {int: Rule(int, "", low=1), float: Rule(float, "", low=0), bool: Rule(bool, "")}
"""For fields that declare no rule of their own."""


@dataclass(frozen=True)
class _File:
    """One file of a suite. The lists of all files are joined; anything else is stated in one of them."""

    title: str = ""
    source: str = ""
    published_trials: int = 0
    selects: bool = False
    objectives: tuple[str, ...] = ()
    protocol: TomlTable = field(default_factory=dict)
    fixed: TomlTable = field(default_factory=dict)
    axes: TomlTable = field(default_factory=dict)
    grids: tuple[TomlTable, ...] = ()
    tables: tuple[TomlTable, ...] = ()
    datasets: tuple[TomlTable, ...] = ()


@dataclass(frozen=True)
class _CellsTable:
    name: str
    setting: Names
    cells: tuple[TomlTable, ...]
    dataset: Names = ()
    trials: int = 0
    options: TomlTable = field(default_factory=dict)


def suite_names() -> list[str]:
    """The suites that come with the package."""
    return sorted(folder.name for folder in _FOLDER.iterdir() if any(folder.glob("*.toml")))


def load_suite(name_or_path: str, to_run: bool = False) -> Suite:
    """A suite of the package by name, or your own: a folder of .toml files, or one such file.

    To be run, the names in it (datasets, models, options and so on) are checked as well, which needs torch.
    """
    names, problems = suite_names(), Problems()
    if name_or_path not in names and not os.path.exists(name_or_path):
        allowed = f"{', '.join(names)}, or the path of a .toml file or of a folder of them"
        refuse("suite", repr(name_or_path), allowed, suggestion(name_or_path, names))
    suite, axes = _read(_FOLDER / name_or_path if name_or_path in names else Path(name_or_path), problems)
    if to_run:
        from g3nn.studies.suite_check import check_names

        check_names(suite, axes, problems)
    for entry in suite.entries() if not problems.found else ():
        if not suite.points(entry) and not entry.cell.quoted:
            given = " ".join((entry.cell.dataset, entry.cell.setting, entry.cell.label, entry.objective))
            problems.add("grids", f"none for {given}", "a grid for every cell under every objective")
    # Models and grids share axes, so one wrong value may be recorded several times.
    problems.found = list(dict.fromkeys(problems.found))
    problems.raise_if_any()
    return suite


def _read(path: Path, problems: Problems) -> tuple[Suite, Axes]:
    """The suite and its axes as far as they can be read. Records everything that is wrong."""
    head, lists = _contents(path, problems)
    protocol = _parsed(Protocol, head.protocol, "protocol", problems) or Protocol()
    protocol.check(problems, "protocol, ")
    axes = {name: _axis(name, values, problems) for name, values in head.axes.items()}
    objectives = tuple(dict.fromkeys(head.objectives))
    grids = [_grid(place, table, objectives, axes, problems) for place, table in lists["grids"]]
    cells = [cell for place, table in lists["tables"] for cell in _cells(place, table, problems)]
    for trials in {cell.trials for cell in cells} - {0}:
        replace(protocol, trials=trials).check(problems, "protocol, ")
    for place, count in Counter((cell.table, cell.dataset, cell.setting, cell.label) for cell in cells).items():
        if count > 1:
            problems.add("cells", f"table {' '.join(place)} twice", "every cell once")
    suite = Suite(
        name=path.resolve().stem if path.is_file() else path.resolve().name,
        title=head.title,
        source=head.source,
        protocol=protocol,
        objectives=objectives,
        grids=tuple(filter(None, grids)),
        cells=tuple(cells),
        datasets=tuple(filter(None, (_parsed(DatasetRow, row, place, problems) for place, row in lists["datasets"]))),
        fixed=_single_values("fixed", head.fixed, problems),
        published_trials=head.published_trials or protocol.trials,
        selects=head.selects,
    )
    return suite, axes


def _contents(path: Path, problems: Problems) -> tuple[_File, dict[str, list[tuple[str, TomlTable]]]]:
    """The files of a suite as one, and the tables of its lists with their places."""
    once: dict[str, Any] = {}
    lists: dict[str, list[tuple[str, TomlTable]]] = {"grids": [], "tables": [], "datasets": []}
    for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            problems.add(file.name, f"something else ({error})", "a TOML file in UTF-8")
            continue
        for name, value in vars(_parsed(_File, data, file.name, problems)).items():
            if name in lists:
                lists[name] += [(f"{file.name}, {name} {number}", table) for number, table in enumerate(value, 1)]
            elif name in once and name in data:
                problems.add(f"{file.name}, {name}", "a second time", "once in all files of a suite")
            elif name in data:
                once[name] = value
    # A file with a problem may have meant to provide what is missing.
    for name in ("objectives", "grids", "tables") if not problems.found else ():
        if not (once | lists).get(name):
            problems.add(f"{path.name}, {name}", "nothing", _TYPES[_hints(_File)[name]][0])
    return _File(**once), lists


def _parsed(kind: type[Parsed], data: TomlTable, place: str, problems: Problems, **given: Any) -> Parsed | None:
    """An instance of a dataclass from the fields `given` and a TOML table; None if a required field is not sound.

    A field is checked by the rule that it declares, or by its type. Every unknown key and every missing or wrong value
    is recorded.
    """
    hints = _hints(cast(Any, kind))
    given |= {"place": place} if "place" in hints else {}
    fields = {one.name: one for one in dataclasses.fields(kind) if one.name not in given}  # type: ignore[arg-type]
    for name in data:
        if name not in fields:
            problems.add(f"{place}, {name}", "an unknown key", ", ".join(fields), suggestion(name, fields))
    complete = True
    for name, one in fields.items():
        rule = one.metadata.get("rule") or _RULES.get(hints[name])
        allowed, accepts = (rule.allowed(), rule.accepts) if rule else _TYPES[hints[name]]
        required = one.default is MISSING and one.default_factory is MISSING
        if name in data and accepts(data[name]):
            value = [data[name]] if hints[name] == Names and isinstance(data[name], str) else data[name]
            given[name] = tuple(value) if isinstance(value, list) else value
        elif name in data or required:
            problems.add(f"{place}, {name}", repr(data[name]) if name in data else "nothing", allowed)
            complete = complete and not required
    return kind(**given) if complete else None


def _cells(place: str, data: TomlTable, problems: Problems) -> list[Cell]:
    table = _parsed(_CellsTable, data, place, problems)
    if table is None:
        return []
    options = tuple(sorted(_single_values(f"{place}, options", table.options, problems).items()))
    shared = {"table": table.name, "options": options, "trials": table.trials}
    datasets = [{"dataset": name} for name in table.dataset] or [{}]
    parsed = [
        _parsed(Cell, {**dataset, **cell}, f"{place}, cells {number}", problems, **shared, setting=setting)
        for setting in table.setting
        for number, cell in enumerate(table.cells, 1)
        for dataset in ([{}] if "dataset" in cell else datasets)
    ]
    return [cell for cell in parsed if cell is not None]


def _single_values(place: str, data: TomlTable, problems: Problems) -> dict[str, Option]:
    """Options with one value each."""
    for name, value in data.items():
        if not isinstance(value, Option):
            problems.add(f"{place}, {name}", repr(value), "one value")
    return {name: value for name, value in data.items() if isinstance(value, Option)}


def _axis(name: str, values: Any, problems: Problems) -> tuple[AxisValue, ...]:
    """The values of an axis; none where they cannot be used."""
    if isinstance(values, list) and values:
        options = [axis_options(name, value) for value in values]
        if all(table and all(isinstance(value, Option) for value in table.values()) for table in options):
            return tuple(values)
    problems.add(f"axes, {name}", repr(values), "a list of values, or of tables of values")
    return ()


def _grid(place: str, data: TomlTable, objectives: tuple[str, ...], axes: Axes, problems: Problems) -> Grid | None:
    limits = dict(data)
    names = limits.pop("axes", [])
    if not _list_of(str, names):
        problems.add(f"{place}, axes", repr(names), "a list of names")
        names = []
    grid = _parsed(Grid, limits, place, problems, axes={name: axes[name] for name in names if name in axes})
    for name in names:
        problems.name(f"{place}, axes", name, axes)
    for name in grid.objectives if grid and objectives else ():
        problems.name(f"{place}, objectives", name, objectives)
    setters: dict[str, dict[str, None]] = {}
    for axis in names:
        for option in (option for value in axes.get(axis, ()) for option in axis_options(axis, value)):
            setters.setdefault(option, {})[axis] = None
    for option, several in setters.items():
        if len(several) > 1:
            problems.add(f"{place}, axes", f"{option} on {' and '.join(several)}", "every option on one axis")
    return grid
