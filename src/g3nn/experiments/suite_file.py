"""Reading a suite from TOML: every problem of every file in one error.

A suite is one file, or a folder of them that are read as one:

    objectives = ["released"]                       # under which the generative models are trained
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

and may have a title, a source, published_trials, [protocol], [fixed] options and what was published about [[datasets]].
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from g3nn.catalogue import all_options
from g3nn.data import DATASETS, SETTINGS
from g3nn.errors import Problems, suggestion
from g3nn.experiments.records import Option
from g3nn.experiments.suite import AxisValue, Cell, DatasetRow, Grid, Protocol, Suite, axis_options
from g3nn.model import ModelSpec, allowed_models, model_names
from g3nn.objective import OBJECTIVES, Objective
from g3nn.options import Rule, check, known_names, pick
from g3nn.priors import PRIORS
from g3nn.training.stack import TrainingOptions


@dataclass(frozen=True)
class Key:
    """What may stand behind one key. names: if only these may."""

    allowed: str
    accepts: Callable[[Any], bool]
    required: bool = False
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: Rule, required: bool = False) -> Key:
        return cls(rule.allowed(), rule.accepts, required, rule.choices)


def _one_of(names: Iterable[str]) -> Key:
    return Key.of(Rule(str, "", choices=tuple(names)), required=True)


def _some_of(names: Iterable[str], required: bool = False) -> Key:
    known = tuple(names)

    def accepts(value: Any) -> bool:
        return isinstance(value, list) and bool(value) and all(one in known for one in value)

    return Key(f"a list of {', '.join(known)}", accepts, required, known)


_TEXT = Key("text", lambda value: isinstance(value, str) and bool(value.strip()))
_TABLE = Key("a table", lambda value: isinstance(value, dict))
_TABLES = Key("a list of tables", lambda value: isinstance(value, list) and all(isinstance(one, dict) for one in value))
_COUNT = Key.of(Rule(int, "", low=1), required=True)
_SHARE = Key.of(Rule(float, "", low=0, high=1))
_FLAG = Key.of(Rule(bool, ""))
_PRIOR = Rule(str, "the label prior of a generative model", choices=tuple(PRIORS))

_SUITE = {
    "title": _TEXT,
    "source": _TEXT,
    "published_trials": replace(_COUNT, required=False),
    "selects": _FLAG,
    "objectives": _some_of(OBJECTIVES),
    "protocol": _TABLE,
    "fixed": _TABLE,
    "axes": _TABLE,
}
"""What one file of a suite says for all of them."""

_LISTS = {"grids": _TABLES, "tables": _TABLES, "datasets": _TABLES}
"""What every file of a suite may add to."""

_DATASET = {
    "dataset": _one_of(DATASETS),
    "classes": _COUNT,
    "nodes": _COUNT,
    "edges": _COUNT,
    "mean_two_hop": Key.of(Rule(float, "", low=0), required=True),
}
_CELLS = {
    "name": replace(_TEXT, required=True),
    "setting": _one_of(SETTINGS),
    "options": _TABLE,
    "cells": replace(_TABLES, required=True),
}
_CELL = {
    "model": replace(_one_of(model_names()), allowed=allowed_models()),
    "dataset": _one_of(DATASETS),
    "variant": _TEXT,
    "row": _TEXT,
    "published": _SHARE,
    "published_std": _SHARE,
    "bold": _FLAG,
    "underline": _FLAG,
    "star": _FLAG,
}

_Lists = dict[str, list[tuple[str, dict[str, Any]]]]
"""The items of each list, with where they were found."""


def read_suite(path: Path) -> Suite:
    """The suite in a file or a folder."""
    problems = Problems()
    once, lists = _contents(path, problems)
    complete = not problems.found
    objectives = tuple(dict.fromkeys(once.get("objectives", OBJECTIVES)))
    protocol = _protocol(once.get("protocol", {}), problems)
    rows = [_checked(where, item, _DATASET, problems) for where, item in lists["datasets"]]
    cells = [cell for where, item in lists["tables"] for cell in _cells(where, item, problems)]
    fixed = _fixed(once.get("fixed", {}), cells, problems)
    before = len(problems.found)
    axes = _axes(once.get("axes", {}), problems)
    grids = [_grid(where, item, objectives, axes, problems) for where, item in lists["grids"]]
    suite = Suite(
        name=path.resolve().stem if path.is_file() else path.resolve().name,
        title=once.get("title", ""),
        source=once.get("source", ""),
        protocol=protocol,
        objectives=objectives,
        grids=tuple(grid for grid in grids if grid is not None),
        cells=tuple(cells),
        datasets=tuple(DatasetRow(**row) for row in rows if len(row) == len(_DATASET)),
        fixed=fixed,
        published_trials=once.get("published_trials", protocol.trials),
        selects=once.get("selects", False),
    )
    _check_cells(suite, complete and len(problems.found) == before, problems)
    # Models and grids share axes, so that one wrong value is found many times.
    problems.found = list(dict.fromkeys(problems.found))
    problems.raise_if_any()
    return suite


def _contents(path: Path, problems: Problems) -> tuple[dict[str, Any], _Lists]:
    """The files of a suite, put together."""
    once: dict[str, Any] = {}
    lists: _Lists = {key: [] for key in _LISTS}
    for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
        data = _checked(file.name, _parsed(file, problems), _SUITE | _LISTS, problems)
        for key, value in data.items():
            if key in lists:
                lists[key] += [(f"{file.name}, {key} {number}", item) for number, item in enumerate(value, start=1)]
            elif key in once:
                problems.add(f"{file.name}, {key}", "a second time", "once in all files of a suite")
            else:
                once[key] = value
    # A file with a problem may have meant to say what is missing.
    required = () if problems.found else ("objectives", "grids", "tables")
    for key in required:
        if not (once | lists).get(key):
            problems.add(f"{path.name}, {key}", "nothing", (_SUITE | _LISTS)[key].allowed)
    return once, lists


def _parsed(file: Path, problems: Problems) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problems.add(file.name, f"something else ({error})", "a TOML file in UTF-8")
        return {}


def _checked(where: str, data: Mapping[str, Any], keys: Mapping[str, Key], problems: Problems) -> dict[str, Any]:
    """The sound values of a table; what is unknown, missing or wrong is recorded."""
    for name in data:
        if name not in keys:
            problems.add(f"{where}, {name}", "an unknown key", ", ".join(keys), suggestion(name, keys))
    sound = {}
    for name, key in keys.items():
        if name not in data:
            if key.required:
                problems.add(f"{where}, {name}", "nothing", key.allowed)
        elif key.accepts(data[name]):
            sound[name] = data[name]
        else:
            given = data[name] if isinstance(data[name], list) else [data[name]]
            advice = [suggestion(str(one), key.names) for one in given if one not in key.names]
            problems.add(f"{where}, {name}", repr(data[name]), key.allowed, " ".join(filter(None, advice)))
    return sound


def _protocol(data: dict[str, Any], problems: Problems) -> Protocol:
    inner = Problems()
    check(data, [Protocol], inner)
    protocol: Protocol = Protocol() if inner.found else pick(data, Protocol)
    protocol.check(inner)
    problems.found += [replace(problem, argument=f"protocol, {problem.argument}") for problem in inner.found]
    return protocol


def _cells(where: str, data: dict[str, Any], problems: Problems) -> Iterator[Cell]:
    """The cells of one table that can be told apart."""
    table = _checked(where, data, _CELLS, problems)
    shared = _shared_options(f"{where}, options", table.get("options", {}), problems)
    for number, item in enumerate(table.get("cells", []), start=1):
        cell = _checked(f"{where}, cells {number}", item, _CELL, problems)
        if {"name", "setting"} <= table.keys() and {"model", "dataset"} <= cell.keys():
            _check_options(f"{where}, options", cell["model"], [shared], problems)
            yield Cell(table["name"], setting=table["setting"], options=tuple(sorted(shared.items())), **cell)


def _axes(data: dict[str, Any], problems: Problems) -> dict[str, tuple[AxisValue, ...]]:
    """Every axis, without values where they cannot be used."""
    axes: dict[str, tuple[AxisValue, ...]] = {}
    for name, values in data.items():
        sound = isinstance(values, list) and len(values) > 0 and all(map(_is_axis_value, values))
        axes[name] = tuple(values) if sound else ()
        if not sound:
            problems.add(f"axes, {name}", repr(values), "a list of values, or of tables of values")
        _check_names("axes", (option for value in axes[name] for option in axis_options(name, value)), problems)
    return axes


def _is_axis_value(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(isinstance(one, Option) for one in value.values())
    return isinstance(value, Option)


def _grid(
    where: str,
    data: dict[str, Any],
    objectives: tuple[str, ...],
    axes: Mapping[str, tuple[AxisValue, ...]],
    problems: Problems,
) -> Grid | None:
    keys = {
        "models": replace(_some_of(model_names(), required=True), allowed=f"a list of {allowed_models()}"),
        "objectives": _some_of(objectives),
        "datasets": _some_of(DATASETS),
        "settings": _some_of(SETTINGS),
        "variants": Key("a list of names", _is_names),
        "axes": _some_of(axes),
    }
    before = len(problems.found)
    sound = {key: tuple(names) for key, names in _checked(where, data, keys, problems).items()}
    if len(problems.found) > before:
        return None
    chosen = {name: axes[name] for name in sound.get("axes", ())}
    grid = Grid(**{**sound, "axes": chosen})  # type: ignore[arg-type]
    setters: dict[str, list[str]] = {}
    for axis, values in grid.axes.items():
        for model in grid.models:
            _check_options("axes", model, [axis_options(axis, value) for value in values], problems)
        for option in {option for value in values for option in axis_options(axis, value)}:
            setters.setdefault(option, []).append(axis)
    for option, names in setters.items():
        if len(names) > 1:
            problems.add(f"{where}, axes", f"{option} on {' and '.join(names)}", "every option on one axis")
    return grid


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _shared_options(where: str, data: dict[str, Any], problems: Problems) -> dict[str, Option]:
    """Options with one value each."""
    _check_names(where, data, problems)
    for name, value in data.items():
        if not isinstance(value, Option):
            problems.add(f"{where}, {name}", repr(value), "one value")
    return {name: value for name, value in data.items() if isinstance(value, Option)}


def _fixed(data: dict[str, Any], cells: Iterable[Cell], problems: Problems) -> dict[str, Option]:
    single = _shared_options("fixed", data, problems)
    for model in dict.fromkeys(cell.model for cell in cells):
        _check_options("fixed", model, [single], problems)
    return single


def _every_option() -> dict[str, Rule]:
    return {**all_options(), "prior": _PRIOR}


def _check_names(where: str, options: Iterable[str], problems: Problems) -> None:
    """Record options that no model has."""
    known = _every_option()
    for name in options:
        if name not in known:
            allowed = f"one of the options {', '.join(sorted(known))}"
            problems.add(f"{where}, {name}", "an unknown option", allowed, suggestion(name, known))


def _check_options(where: str, model: str, choices: Iterable[Mapping[str, Option]], problems: Problems) -> None:
    """Record options that others have but not this model, and values that it does not take."""
    for options in choices:
        known = _options_of(model, options.get("prior"))
        for name, value in options.items():
            if name in known and not known[name].accepts(value):
                problems.add(f"{where}, {name}", repr(value), known[name].allowed())
            elif name not in known and name in _every_option():
                problems.add(f"{where}, {name}", f"for {model}", f"one of the options {', '.join(sorted(known))}")


def _options_of(model: str, prior: Any) -> dict[str, Rule]:
    """What can be set for a model; which prior it has is an option of its own."""
    spec = ModelSpec.parse(model)
    if prior in PRIORS:
        spec = replace(spec, prior=prior)
    known = known_names([*spec.option_groups(), Objective, TrainingOptions])
    return known if spec.likelihood is None else {**known, "prior": _PRIOR}


def _check_cells(suite: Suite, with_grids: bool, problems: Problems) -> None:
    """Record cells that are there twice and, where the grids are sound, those that none of them covers."""
    places = [(cell.table, cell.dataset, cell.setting, cell.label) for cell in suite.cells]
    for place in dict.fromkeys(place for place in places if places.count(place) > 1):
        problems.add("cells", f"table {' '.join(place)} twice", "every cell once")
    for entry in suite.entries() if with_grids else ():
        if not suite.points(entry):
            given = " ".join((entry.cell.dataset, entry.cell.setting, entry.cell.label, entry.objective))
            problems.add("grids", f"none for {given}", "a grid for every cell under every objective")
