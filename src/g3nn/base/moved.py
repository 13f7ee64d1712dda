"""Modules of version 0.2 that other packages import, under the names that they had there."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "audit": "queries",
    "channels": "model.channels",
    "data": "graph.datasets",
    "data.tables": "graph.tables",
    "errors": "base.errors",
    "experiments": "studies",
    "inputs": "model.inputs",
    "likelihoods": "model.likelihoods",
    "networks": "model.networks",
    "objective": "model.objective",
    "options": "base.options",
    "outcomes": "graph.outcomes",
    "posteriors": "model.posteriors",
    "priors": "model.priors",
    "replicas": "model.replicas",
    "sparse": "kernels.sparse",
    "suggest": "queries",
    "task": "graph.task",
    "tracking": "training.tracking",
}


class MovedModules(MetaPathFinder, Loader):
    """Importing `g3nn.likelihoods.sbm` gives the module `g3nn.model.likelihoods.sbm` itself, and a warning."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, rest = name.partition(".")
        moved = next((old for old in sorted(MOVED, reverse=True) if f"{rest}.".startswith(f"{old}.")), None)
        if package != "g3nn" or moved is None:
            return None
        return ModuleSpec(name, self, origin=f"g3nn.{MOVED[moved]}{rest.removeprefix(moved)}")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        assert spec.origin is not None
        module = import_module(spec.origin)
        message = f"{spec.name} is now {spec.origin}; the old name goes with version 0.4"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run. Python has given the module the old name's specification: it gets its own back."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def keep_old_names() -> None:
    # First, or modules of a package under its old name would be loaded a second time.
    sys.meta_path.insert(0, MovedModules())
