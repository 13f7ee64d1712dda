"""What an experiment consists of and what it leaves behind: points of a grid, records of trainings, environments."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from g3nn.base.errors import Problems
from g3nn.base.version import __version__
from g3nn.graph.calibrate import Bin

Option = bool | int | float | str
"""The value of an option in a specification."""

STAGES = ("select", "trial")
"""A "select" training serves to choose hyper-parameters and never sees a test label; a "trial" is reported."""

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
        object.__setattr__(self, "options", dict(sorted(self.options.items())))

    @property
    def names(self) -> tuple[str, str, str, str]:
        return self.dataset, self.setting, self.model, self.objective

    @cached_property
    def canonical(self) -> str:
        """The same text for the same specification, whatever the order of its options; 1 and 1.0 are equal."""
        options = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in self.options.items()
        }
        return json.dumps([*self.names, options], separators=(",", ":"), sort_keys=True)

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(self.canonical.encode()).hexdigest()[:24]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)


@dataclass(frozen=True)
class Evidence:
    """What a page shows of one trial beyond its accuracy.

    epochs: the epochs at which `curves` were kept. curves: the values of each term of the loss at those epochs.
    reliability: test nodes by confidence. degrees: test nodes by degree.
    confusion: confusion[k][l] counts the test nodes of class k that were answered l.
    figures: other numbers, by name.
    """

    test_nodes: int
    nll: float
    ece: float
    brier: float
    epochs: list[int]
    curves: Mapping[str, list[float | None]]
    reliability: list[Bin]
    degrees: list[Bin]
    confusion: list[list[int]]
    figures: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str | bytes) -> Evidence:
        data = json.loads(text)
        bins = {name: [Bin(**fields) for fields in data[name]] for name in ("reliability", "degrees")}
        return cls(**{**data, **bins})


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
        with Problems() as problems:
            problems.name("stage", self.stage, STAGES)
            problems.name("status", self.status, STATUSES)
            for name in ("test_accuracy", "evidence"):
                if self.stage == "select" and getattr(self, name) is not None:
                    problems.add(name, "a value", 'none in stage "select"', "Selection may not see test labels.")


@dataclass(frozen=True)
class Environment:
    """The versions and the machine that made a record."""

    software: Mapping[str, str] = field(default_factory=dict)
    hardware: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def current(cls, device: str = "cpu") -> Environment:
        software = {"python": platform.python_version(), "g3nn": __version__}
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


def _cpu_model(description: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor. Only Linux has the file; elsewhere the standard library gives the family at best."""
    try:
        lines = description.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
