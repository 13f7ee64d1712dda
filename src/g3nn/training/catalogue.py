"""What is available: datasets, settings, models, and every option with its default and limits."""

from __future__ import annotations

import dataclasses

from g3nn.base.options import Rule, known_names, rules
from g3nn.graph.datasets import ALL_DATASETS, ALL_SETTINGS
from g3nn.graph.outcomes import OUTCOMES
from g3nn.model.generative import REGISTRIES, ModelOptions, model_names, registered_options
from g3nn.model.objective import OBJECTIVES, Objective
from g3nn.training import TrainingOptions


def available() -> dict[str, object]:
    """The names of all datasets, settings, models, outcomes and objectives, and the options of every part."""
    return {
        "datasets": list(ALL_DATASETS),
        "settings": list(ALL_SETTINGS),
        "models": model_names(),
        "objectives": list(OBJECTIVES),
        **{
            f"{kind}s": {name: _describe(part.Options) for name, part in registry.items()}
            for kind, registry in REGISTRIES.items()
        },
        "model_options": _describe(ModelOptions),
        "objective_options": _describe(Objective),
        "training_options": _describe(TrainingOptions),
    }


def all_options() -> dict[str, Rule]:
    """Every declared option by name."""
    outcomes = [outcome.Options for outcome in OUTCOMES.values()]
    return known_names([*registered_options(), Objective, TrainingOptions, *outcomes])


def _describe(options: type) -> dict[str, dict[str, object]]:
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    return {
        name: {"default": defaults[name], "allowed": rule.allowed(), "help": rule.help, "per_trial": rule.per_replica}
        for name, rule in rules(options).items()
    }
