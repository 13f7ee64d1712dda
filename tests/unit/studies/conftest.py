"""Small suites and made-up records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import g3nn.graph.datasets
from g3nn.graph.datasets import synthetic
from g3nn.graph.task import NodeTask
from g3nn.studies import executors
from g3nn.studies.records import Environment, Evidence, Point, Record
from g3nn.studies.store import Store
from g3nn.studies.suite import Suite
from g3nn.studies.suite_file import load_suite

SMALL = """
title = "A small suite"
source = "nowhere"
objectives = ["released", "elbo"]

[protocol]
trials = 4
selection_seeds = 1
finalists = 2
finalist_seeds = 2

[fixed]
epochs = 5
lr = 0.01

[axes]
hidden = [4, 8]
lr = [0.01, 0.1]
partition = [{ p0 = 0.9, p1 = 0.1 }, { p0 = 0.5, p1 = 0.6 }]

[[grids]]
models = ["gcn", "mlp"]

[[grids]]
models = ["sbm-gcn"]
axes = ["hidden", "partition"]

[[grids]]
models = ["sbm-gcn"]
objectives = ["elbo"]
datasets = ["citeseer"]
axes = ["lr"]

[[tables]]
name = "A"
setting = "standard"
cells = [
    { model = "gcn", dataset = "cora", published = 0.8, published_std = 0.01, row = "Table A, GCN" },
    { model = "sbm-gcn", dataset = "cora", published = 0.82, published_std = 0.01, underline = true },
    { model = "gcn", dataset = "citeseer", published = 0.7 },
    { model = "sbm-gcn", dataset = "citeseer" },
]

[[tables]]
name = "B"
setting = "missing-edge"
cells = [{ model = "mlp", dataset = "cora" }]
"""


@pytest.fixture(scope="session")
def small_text() -> str:
    """A whole suite in one file."""
    return SMALL


@pytest.fixture
def small_suite(tmp_path: Path) -> Suite:
    file = tmp_path / "small.toml"
    file.write_text(SMALL, encoding="utf-8")
    return load_suite(str(file), to_run=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite", environment=Environment()) as opened:
        yield opened


def _evidence(test_nodes: int = 1000, nll: float = 0.5, ece: float = 0.1) -> Evidence:
    return Evidence(test_nodes, nll, ece, brier=0.2, epochs=[], curves={}, reliability=[], degrees=[], confusion=[])


@pytest.fixture(scope="session")
def make_evidence() -> Callable[..., Evidence]:
    return _evidence


def _record(point: Point, stage: str, seed: int, **changes: Any) -> Record:
    result = {"val_loss": 1.0, "val_accuracy": 0.5, "test_accuracy": None}
    ended = {"split": "s", "status": "stopped", "epochs": 9, "best_epoch": 5, "seconds": 1.0}
    return Record(point, stage, seed, **{**ended, **result, **changes})


@pytest.fixture(scope="session")
def make_record() -> Callable[..., Record]:
    return _record


@pytest.fixture(scope="session")
def make_trials() -> Callable[[Point, float, float], list[Record]]:
    """Ten trials of a point whose accuracies have exactly this mean and standard deviation."""

    def make(point: Point, mean: float, std: float) -> list[Record]:
        reach = std * math.sqrt(0.9)
        return [
            _record(point, "trial", seed, test_accuracy=mean + (reach if seed % 2 else -reach), evidence=_evidence())
            for seed in range(10)
        ]

    return make


@pytest.fixture
def graph(monkeypatch) -> Iterator[NodeTask]:
    """A small graph in the place of Cora, and none of the others."""
    task = replace(synthetic(nodes=120, labels_per_class=10, val=30, seed=1), name="cora")
    monkeypatch.setitem(g3nn.graph.datasets.ALL_DATASETS.own, "cora", lambda: task)
    monkeypatch.delenv("G3NN_GRAPHS", raising=False)
    executors.task_of.cache_clear()
    yield task
    executors.task_of.cache_clear()
