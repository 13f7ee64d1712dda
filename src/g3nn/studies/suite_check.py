"""Whether the datasets, models, objectives and options that a suite names exist: checked before it is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

from g3nn.base.errors import Problems, any_of, suggestion
from g3nn.base.options import Rule, known_names
from g3nn.estimator import G3NNClassifier
from g3nn.graph.datasets import ALL_DATASETS, ALL_SETTINGS, settings_of
from g3nn.model.generative import ModelSpec, allowed_models, model_names
from g3nn.model.objective import OBJECTIVES, Objective
from g3nn.model.priors import PRIORS
from g3nn.studies.records import Option
from g3nn.studies.suite import CLEANED, ESTIMATOR, NO_STACKS, AxisValue, Suite, axis_options
from g3nn.training.catalogue import all_options
from g3nn.training.checks import checked_spec
from g3nn.training.options import TrainingOptions

_OF_ESTIMATOR = {field.name for field in fields(G3NNClassifier)} - {"device", "random_state", "verbose"}
"""The parameters of the estimator that a suite may set; `fit` checks their values."""


def check_names(suite: Suite, axes: Mapping[str, tuple[AxisValue, ...]], problems: Problems) -> None:
    """Record every unknown name in a suite and its axes, and every value that an option does not accept."""
    for objective in suite.objectives:
        problems.name("objectives", objective, OBJECTIVES)
    models, every_option = model_names(), {**all_options(), "prior": _prior()}
    datasets = [name for name in ALL_DATASETS if name != "blogcatalog"]  # Records are of classes.
    estimators = {cell.model for cell in suite.cells} & {ESTIMATOR}
    known = {*every_option, "channels", *(_OF_ESTIMATOR if estimators else ())}

    networks = [cell for cell in suite.cells if cell.model != ESTIMATOR and not cell.quoted]

    def check_model(place: str, model: str) -> None:
        if model not in (*models, *NO_STACKS):
            allowed = f"{allowed_models()}, or {any_of(NO_STACKS)}"
            problems.add(place, repr(model), allowed, suggestion(model, (*models, *NO_STACKS)))

    def check_options(place: str, options: Mapping[str, Option], models_with: Iterable[str]) -> None:
        for name in options:
            if name not in known:
                allowed = f"one of the options {', '.join(sorted(known))}"
                problems.add(f"{place}, {name}", "an unknown option", allowed, suggestion(name, known))
        for model in models_with:
            if model == ESTIMATOR:
                for name in options:
                    problems.name(f"{place}, option for {model}", name, sorted(_OF_ESTIMATOR))
                continue
            network = "gcn" if model == CLEANED else model
            own = _options_of(network, options, place, problems) if network in models else every_option
            for name, value in options.items():
                if name in own and not own[name].accepts(value):
                    problems.add(f"{place}, {name}", repr(value), own[name].allowed())
                elif name not in own and name in every_option:
                    problems.add(f"{place}, {name}", f"for {model}", f"one of the options {', '.join(sorted(own))}")

    check_options("fixed", suite.fixed, dict.fromkeys(network.model for network in networks))
    for row in suite.datasets:
        problems.name("datasets, dataset", row.dataset, datasets)
    for cell in suite.cells:
        table = cell.place.rpartition(", cells")[0]
        problems.name(f"{table}, setting", cell.setting, ALL_SETTINGS)
        problems.name(f"{cell.place}, dataset", cell.dataset, datasets)
        if cell.setting in ALL_SETTINGS and cell.dataset in datasets and cell.setting not in settings_of(cell.dataset):
            problems.add(f"{cell.place}, dataset", f"{cell.dataset} {cell.setting}", "a setting that the dataset has")
        if cell.quoted:
            continue
        check_model(f"{cell.place}, model", cell.model)
        check_options(f"{table}, options", dict(cell.options), [cell.model] if cell in networks else [])
    for grid in suite.grids:
        for model in grid.models:
            check_model(f"{grid.place}, models", model)
        for name in grid.datasets:
            problems.name(f"{grid.place}, datasets", name, datasets)
        for name in grid.settings:
            problems.name(f"{grid.place}, settings", name, ALL_SETTINGS)
    for axis, values in axes.items():
        users = [model for grid in suite.grids if axis in grid.axes for model in grid.models]
        for value in values:
            check_options("axes", axis_options(axis, value), users)


def _options_of(model: str, options: Mapping[str, Any], place: str, problems: Problems) -> dict[str, Rule]:
    """What can be set for a model with the prior and the channels that the options name. Records unknown channels."""
    found, prior = Problems(), options.get("prior")
    spec = checked_spec(model, prior if prior in PRIORS else "mlp", found, options.get("channels"))
    problems.found += [replace(one, argument=f"{place}, {one.argument}") for one in found.found]
    spec = spec or ModelSpec.parse(model)
    declared = known_names([*spec.option_groups(), Objective, TrainingOptions])
    return declared if spec.likelihood is None else {**declared, "prior": _prior()}


def _prior() -> Rule:
    return Rule(str, "the label prior of a generative model", choices=tuple(PRIORS))
