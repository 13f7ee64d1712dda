"""Benchmark datasets, the paper's settings, noise, and synthetic graphs: everything that makes a `NodeTask`."""

from __future__ import annotations

import numpy as np

from g3nn.data.attacked import ATTACKED, METATTACK, attacked
from g3nn.data.blogcatalog import load_blogcatalog
from g3nn.data.noise import NOISE, NoisyTask
from g3nn.data.planetoid import DATASETS, planetoid
from g3nn.data.settings import SETTINGS
from g3nn.data.statistics import DatasetStatistics, statistics
from g3nn.data.synthetic import synthetic
from g3nn.data.synthetic_values import synthetic_values
from g3nn.errors import Problems
from g3nn.task import NodeTask

__all__ = [
    "ALL_DATASETS",
    "ALL_SETTINGS",
    "DATASETS",
    "NOISE",
    "SETTINGS",
    "DatasetStatistics",
    "NoisyTask",
    "load",
    "load_blogcatalog",
    "load_noisy",
    "settings_of",
    "statistics",
    "synthetic",
    "synthetic_values",
]

ALL_DATASETS = (*DATASETS, "blogcatalog", "polblogs")
"""The datasets of the paper, one whose nodes have tags, and one that was attacked."""

ALL_SETTINGS = (*SETTINGS, *NOISE, *METATTACK)
"""Those of the paper, those with generated noise, and those with edges of an attacker."""


def settings_of(name: str) -> tuple[str, ...]:
    """The settings that a dataset has."""
    if name == "blogcatalog":
        return ("standard",)
    own = (*SETTINGS, *NOISE) if name in DATASETS else ()
    return (*own, *METATTACK) if name in ATTACKED else own


def load(name: str, setting: str = "standard", seed: int = 0) -> NodeTask:
    """A benchmark dataset in one of the paper's settings or with wrong edges. Names are not case-sensitive.

    seed: of generated noise, such as "random-50"; nothing else depends on it. `blogcatalog` has only the standard
    setting, `polblogs` only "metattack-0" to "metattack-25"; `load_blogcatalog` offers more choices.

    >>> load("cora", setting="missing-edge")
    NodeTask('cora', 'missing-edge': 2708 nodes, 2219 edges, 1433 features, 7 classes, 140/500/1000 train/val/test)
    """
    return load_noisy(name, setting, seed).task


def load_noisy(name: str, setting: str, seed: int = 0) -> NoisyTask:
    """As `load`, with a mask of the edges that were injected."""
    dataset, variant = str(name).lower(), str(setting).lower()
    settings = settings_of(dataset) or ALL_SETTINGS
    problems = Problems()
    if dataset not in ALL_DATASETS:
        problems.name("name", name, ALL_DATASETS)
    if variant not in settings:
        problems.name("setting", setting, settings)
    problems.raise_if_any()
    if variant in METATTACK:
        return attacked(dataset, variant)
    if variant in NOISE:
        return NOISE[variant](planetoid(dataset), seed=seed)
    task = load_blogcatalog() if dataset == "blogcatalog" else SETTINGS[variant](planetoid(dataset))
    return NoisyTask(task, np.zeros(task.num_edges, dtype=bool))
