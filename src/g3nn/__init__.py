"""g3nn labels the nodes of a partly labelled, noisy graph with a joint generative model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from g3nn.threads import wait_passively
from g3nn.version import __version__ as __version__

if TYPE_CHECKING:
    from g3nn.catalogue import available
    from g3nn.data import load, synthetic, synthetic_values
    from g3nn.data.tables.graph import TableGraph, read_tables
    from g3nn.errors import DataError, G3NNError, G3NNWarning, InputError, TrainingError
    from g3nn.estimator import G3NNClassifier, G3NNRegressor, Nodes, load_model
    from g3nn.model import GenerativeModel, ModelSpec
    from g3nn.objective import Objective
    from g3nn.task import NodeTask
    from g3nn.training import FitResult, fit

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
    "g3nn.catalogue": ("available",),
    "g3nn.data.tables.graph": ("TableGraph", "read_tables"),
    "g3nn.data": ("load", "synthetic", "synthetic_values"),
    "g3nn.errors": ("DataError", "G3NNError", "G3NNWarning", "InputError", "TrainingError"),
    "g3nn.estimator": ("G3NNClassifier", "G3NNRegressor", "Nodes", "load_model"),
    "g3nn.model": ("GenerativeModel", "ModelSpec"),
    "g3nn.objective": ("Objective",),
    "g3nn.task": ("NodeTask",),
    "g3nn.training": ("FitResult", "fit"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

wait_passively()


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: loading torch takes longer than most commands."""
    if name not in _HOME:
        raise AttributeError(f"module 'g3nn' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
