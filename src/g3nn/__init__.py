"""g3nn labels the nodes of a partly labelled, noisy graph with a joint generative model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from g3nn.base.moved import MOVED, keep_old_names
from g3nn.base.threads import wait_passively
from g3nn.base.version import __version__ as __version__

if TYPE_CHECKING:
    from g3nn.base.errors import DataError, G3NNError, G3NNWarning, InputError, TrainingError
    from g3nn.estimator import G3NNClassifier, G3NNRegressor, Nodes, load_model
    from g3nn.graph.datasets import load, synthetic, synthetic_values
    from g3nn.graph.tables.graph import TableGraph, read_tables
    from g3nn.graph.task import NodeTask
    from g3nn.model.generative import GenerativeModel, ModelSpec
    from g3nn.model.objective import Objective
    from g3nn.training import FitResult, fit
    from g3nn.training.catalogue import available

__all__ = [
    "DataError",
    "FitResult",
    "G3NNClassifier",
    "G3NNError",
    "G3NNRegressor",
    "G3NNWarning",
    "GenerativeModel",
    "InputError",
    "ModelSpec",
    "NodeTask",
    "Nodes",
    "Objective",
    "TableGraph",
    "TrainingError",
    "available",
    "fit",
    "load",
    "load_model",
    "read_tables",
    "synthetic",
    "synthetic_values",
]

_HOMES = {
    "g3nn.training.catalogue": ("available",),
    "g3nn.graph.tables.graph": ("TableGraph", "read_tables"),
    "g3nn.graph.datasets": ("load", "synthetic", "synthetic_values"),
    "g3nn.base.errors": ("DataError", "G3NNError", "G3NNWarning", "InputError", "TrainingError"),
    "g3nn.estimator": ("G3NNClassifier", "G3NNRegressor", "Nodes", "load_model"),
    "g3nn.model.generative": ("GenerativeModel", "ModelSpec"),
    "g3nn.model.objective": ("Objective",),
    "g3nn.graph.task": ("NodeTask",),
    "g3nn.training": ("FitResult", "fit"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

wait_passively()
keep_old_names()


def __getattr__(name: str) -> object:
    """Import a name when it is first used: loading torch takes longer than most commands."""
    if name in MOVED:
        return import_module(f"g3nn.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'g3nn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
