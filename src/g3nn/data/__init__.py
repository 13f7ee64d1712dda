"""Benchmark datasets, the paper's settings, and synthetic graphs: everything that makes a `NodeTask`."""

from __future__ import annotations

from g3nn.data.blogcatalog import load_blogcatalog
from g3nn.data.planetoid import DATASETS, planetoid
from g3nn.data.settings import SETTINGS
from g3nn.data.statistics import DatasetStatistics, statistics
from g3nn.data.synthetic import synthetic
from g3nn.data.synthetic_values import synthetic_values
from g3nn.errors import Problems
from g3nn.task import NodeTask

__all__ = [
    "ALL_DATASETS",
    "DATASETS",
    "SETTINGS",
    "DatasetStatistics",
    "load",
    "load_blogcatalog",
    "statistics",
    "synthetic",
    "synthetic_values",
]

ALL_DATASETS = (*DATASETS, "blogcatalog")
"""The datasets of the paper, and one whose nodes have tags."""


def load(name: str, setting: str = "standard") -> NodeTask:
    """A benchmark dataset in one of the paper's settings. Names are not case-sensitive.

    `blogcatalog` has only the standard setting; `load_blogcatalog` offers more choices.

    >>> load("cora", setting="missing-edge")
    NodeTask('cora', 'missing-edge': 2708 nodes, 2219 edges, 1433 features, 7 classes, 140/500/1000 train/val/test)
    """
    dataset, variant = str(name).lower(), str(setting).lower()
    settings = ("standard",) if dataset == "blogcatalog" else tuple(SETTINGS)
    problems = Problems()
    if dataset not in ALL_DATASETS:
        problems.name("name", name, ALL_DATASETS)
    if variant not in settings:
        problems.name("setting", setting, settings)
    problems.raise_if_any()
    return load_blogcatalog() if dataset == "blogcatalog" else SETTINGS[variant](planetoid(dataset))
