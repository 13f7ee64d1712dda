"""What an experiment is made of and what it leaves behind: points of a grid, records of trials, where they ran."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from g3nn.errors import Problems

Option = bool | int | float | str
"""The value of an option in a specification."""

STAGES = ("select", "trial")
"""A "select" training serves to choose hyper-parameters and never meets a test label; a "trial" is what is reported."""

STATUSES = ("stopped", "limit", "diverged", "failed")
"""How a training ended: early stopping, the last epoch, a loss that was no longer finite, or an error."""

_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "numba", "triton")


@dataclass(frozen=True, eq=False)
class Point:
    """One full specification: what is trained on what, with every option that is not at its default."""

    dataset: str
    setting: str
    model: str
    objective: str
    options: Mapping[str, Option]

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(sorted(self.options.items()))))

    def canonical(self) -> str:
        """The same text for the same specification, whatever order or kind of number it was written with."""
        return self._canonical

    @cached_property
    def _canonical(self) -> str:
        options = {name: _plain(value) for name, value in self.options.items()}
        parts = [self.dataset, self.setting, self.model, self.objective, options]
        return json.dumps(parts, separators=(",", ":"), sort_keys=True)

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:24]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.canonical() == other.canonical()

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __reduce__(self) -> tuple[type[Point], tuple[Any, ...]]:
        """Points travel to other processes, and a read-only view of a mapping cannot be pickled."""
        return Point, (self.dataset, self.setting, self.model, self.objective, dict(self.options))


@dataclass(frozen=True)
class Bin:
    """Some test nodes: those of similar confidence, or of similar degree."""

    low: float
    high: float
    nodes: int
    accuracy: float
    confidence: float


@dataclass(frozen=True)
class Evidence:
    """What a page shows of one trial beyond its accuracy.

    epochs: the epochs at which `curves` were kept. curves: term of the loss -> its value at those epochs.
    reliability: test nodes by confidence of the answer. degrees: test nodes by number of neighbours.
    confusion: confusion[k][l] counts test nodes of class k that were answered l.
    """

    test_nodes: int
    nll: float
    ece: float
    brier: float
    epochs: tuple[int, ...]
    curves: Mapping[str, tuple[float | None, ...]]
    reliability: tuple[Bin, ...]
    degrees: tuple[Bin, ...]
    confusion: tuple[tuple[int, ...], ...]

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("test_nodes", "nll", "ece", "brier")},
            "epochs": list(self.epochs),
            "curves": {name: list(values) for name, values in self.curves.items()},
            "reliability": [asdict(one) for one in self.reliability],
            "degrees": [asdict(one) for one in self.degrees],
            "confusion": [list(row) for row in self.confusion],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evidence:
        return cls(
            **{name: data[name] for name in ("test_nodes", "nll", "ece", "brier")},
            epochs=tuple(data["epochs"]),
            curves={name: tuple(values) for name, values in data["curves"].items()},
            reliability=tuple(Bin(**one) for one in data["reliability"]),
            degrees=tuple(Bin(**one) for one in data["degrees"]),
            confusion=tuple(tuple(row) for row in data["confusion"]),
        )


@dataclass(frozen=True)
class Record:
    """One training: what it was, how it ended, what it reached.

    split: a hash of the training, validation and test nodes. seconds: its share of the time of its stack.
    val_loss, val_accuracy, test_accuracy: at the epoch of the lowest validation loss; None where there is none.
    """

    point: Point
    stage: str
    seed: int
    split: str
    status: str
    val_loss: float | None
    val_accuracy: float | None
    test_accuracy: float | None
    epochs: int
    best_epoch: int
    seconds: float
    error: str = ""
    evidence: Evidence | None = None

    def __post_init__(self) -> None:
        problems = Problems()
        problems.name("stage", self.stage, STAGES)
        problems.name("status", self.status, STATUSES)
        if self.stage == "select":
            for name in ("test_accuracy", "evidence"):
                if getattr(self, name) is not None:
                    problems.add(name, "a value", 'none in stage "select"', "Choosing may not see test labels.")
        problems.raise_if_any()


@dataclass(frozen=True)
class Environment:
    """The versions and the machine that made a record."""

    software: Mapping[str, str] = field(default_factory=dict)
    hardware: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def current(cls, device: str = "cpu") -> Environment:
        # Modules below the package may not import it; by now it is loaded, installed or not.
        software = {"python": platform.python_version(), "g3nn": sys.modules[__name__.partition(".")[0]].__version__}
        for package in _PACKAGES:
            try:
                software[package] = version(package)
            except PackageNotFoundError:
                continue
        hardware = {"machine": platform.machine(), "system": platform.system(), "device": device}
        hardware |= {"cpu": _cpu_model(), "cores": str(os.cpu_count() or 1)}
        if device.startswith("cuda"):
            import torch

            software["cuda"] = str(torch.version.cuda)
            hardware["gpu"] = torch.cuda.get_device_name(device)
        return cls(software, hardware)


def _plain(value: Option) -> Option:
    """1 and 1.0 are the same value of an option."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _cpu_model(description: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor. Only Linux has the file; the standard library knows no more than the family."""
    try:
        lines = description.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
