"""Benchmark datasets, the paper's settings, and synthetic graphs: everything that makes a `NodeTask`."""

from __future__ import annotations

from g3nn.data.planetoid import DATASETS, planetoid
from g3nn.data.settings import SETTINGS
from g3nn.data.statistics import DatasetStatistics, statistics
from g3nn.data.synthetic import synthetic
from g3nn.data.synthetic_values import synthetic_values
from g3nn.errors import Problems
from g3nn.task import NodeTask

__all__ = ["DATASETS", "SETTINGS", "DatasetStatistics", "load", "statistics", "synthetic", "synthetic_values"]


def load(name: str, setting: str = "standard") -> NodeTask:
    """A benchmark dataset in one of the paper's settings. Names are not case-sensitive.

    >>> load("cora", setting="missing-edge")
    NodeTask('cora', 'missing-edge': 2708 nodes, 2219 edges, 1433 features, 7 classes, 140/500/1000 train/val/test)
    """
    dataset, variant = str(name).lower(), str(setting).lower()
    problems = Problems()
    if dataset not in DATASETS:
        problems.name("name", name, DATASETS)
    if variant not in SETTINGS:
        problems.name("setting", setting, SETTINGS)
    problems.raise_if_any()
    return SETTINGS[variant](planetoid(dataset))
