"""Benchmark datasets, the paper's settings, noise, and synthetic graphs: everything that makes a `NodeTask`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from g3nn.base.errors import DataError, G3NNError, Problems
from g3nn.base.registry import Registry
from g3nn.graph.datasets.blogcatalog import load_blogcatalog
from g3nn.graph.datasets.graphs import ATTACKED, GRAPHS, METATTACK, attacked, folder_of, graph
from g3nn.graph.datasets.noise import EDGE_NOISE, LABEL_NOISE, NOISE, NoisyTask
from g3nn.graph.datasets.planetoid import DATASETS, planetoid
from g3nn.graph.datasets.scarce import SCARCE
from g3nn.graph.datasets.settings import SETTINGS
from g3nn.graph.datasets.statistics import statistics
from g3nn.graph.datasets.synthetic import synthetic, synthetic_values
from g3nn.graph.task import NodeTask

__all__ = [
    "ALL_DATASETS",
    "ALL_SETTINGS",
    "DATASETS",
    "DRAWN",
    "EDGE_NOISE",
    "GRAPHS",
    "LABEL_NOISE",
    "NOISE",
    "SCARCE",
    "SETTINGS",
    "NoisyTask",
    "folder_of",
    "load",
    "load_blogcatalog",
    "load_noisy",
    "seeded",
    "settings_of",
    "statistics",
    "synthetic",
    "synthetic_values",
]

_OWN: dict[str, Callable[..., NodeTask]] = {
    **{name: partial(planetoid, name) for name in DATASETS},
    "blogcatalog": load_blogcatalog,
    "polblogs": lambda: attacked("polblogs", "metattack-0").task,
    **{name: partial(graph, name) for name in GRAPHS},
}
ALL_DATASETS = Registry("g3nn.datasets", None, _OWN)
"""What makes the standard task of each dataset: those of the paper, one whose nodes have tags, one that was attacked,
eleven unlike them, and those of other packages."""

DRAWN = {**NOISE, **SCARCE}
"""What makes the settings of which each seed has one of its own: noise, and few labels."""

ALL_SETTINGS = (*SETTINGS, *DRAWN, *METATTACK)
"""Those of the paper, those with generated noise, those with few labels, and those with edges of an attacker."""


def seeded(name: str, setting: str) -> bool:
    """Whether each seed has a task of its own: generated noise, or a split."""
    return setting in DRAWN or name in GRAPHS


def settings_of(name: str) -> tuple[str, ...]:
    """The settings that a dataset has."""
    if name == "blogcatalog":
        return ("standard",)
    if ALL_DATASETS.package(name) or name in GRAPHS:
        return ("standard", "missing-edge", *DRAWN)
    own = (*SETTINGS, *DRAWN) if name in DATASETS else ()
    return (*own, *METATTACK) if name in ATTACKED else own


def load(name: str, setting: str = "standard", seed: int = 0) -> NodeTask:
    """A benchmark dataset in one of the paper's settings, with noise or with few labels. Names are not case-sensitive.

    seed: of generated noise, such as "random-50" or "uniform-30", of the labels of "labels-3", and of the split of the
    graphs in `G3NN_GRAPHS`; nothing else depends on it. `blogcatalog` has only the standard setting, `polblogs` only
    "metattack-0" to "metattack-25"; `load_blogcatalog` offers more choices. Those graphs and a dataset of another
    package have the settings "standard" and "missing-edge", those with noise, and those with few labels.

    >>> load("cora", setting="missing-edge")
    NodeTask('cora', 'missing-edge': 2708 nodes, 2219 edges, 1433 features, 7 classes, 140/500/1000 train/val/test)
    """
    return load_noisy(name, setting, seed).task


def load_noisy(name: str, setting: str, seed: int = 0) -> NoisyTask:
    """As `load`, with masks of the edges that were injected and of the nodes whose label is wrong."""
    dataset, variant = str(name).lower(), str(setting).lower()
    settings = settings_of(dataset) or ALL_SETTINGS
    with Problems() as problems:
        if dataset not in ALL_DATASETS:
            problems.name("name", name, ALL_DATASETS)
        if variant not in settings:
            problems.name("setting", setting, settings)
    if variant in METATTACK:
        return attacked(dataset, variant)
    if variant in DRAWN:
        return DRAWN[variant](_standard(dataset, seed), seed=seed)
    return NoisyTask.of(SETTINGS[variant](_standard(dataset, seed)))


def _standard(name: str, seed: int) -> NodeTask:
    """A dataset with its standard split. An error in another package names that package."""
    package = ALL_DATASETS.package(name)
    if package is None:
        return ALL_DATASETS[name](seed=seed) if name in GRAPHS else ALL_DATASETS[name]()
    try:
        task = ALL_DATASETS[name]()
    except G3NNError:
        raise
    except Exception as error:
        raise DataError(f"{name}: {package[0]} cannot load it ({type(error).__name__}: {error}).") from error
    if not isinstance(task, NodeTask):
        raise DataError(f"{name}: {package[0]} gave {type(task).__name__} instead of a NodeTask. Tell its authors.")
    return replace(task, name=name)
