from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from g3nn.studies.records import Record
from g3nn.studies.store import Store
from g3nn.studies.suite import Cell, Grid, Protocol, Suite


@pytest.fixture(scope="session")
def fabricated() -> Any:
    """The functions of fabricated.py, which is no test and lies beside this file."""
    return SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("fabricated.py"))))


@pytest.fixture
def suite() -> Suite:
    """Two datasets, one setting, a network and a generative model; only one dataset has the latter."""
    cells = (
        Cell("2", "cora", "standard", "gcn", "Table 2, GCN", 0.815, 0.002),
        Cell("2", "pubmed", "standard", "gcn", "Table 2, GCN", 0.794, 0.004, bold=True),
        Cell("2", "cora", "standard", "sbm-gcn", "Table 2, SBM_GCN", 0.822, 0.002, underline=True, star=True),
    )
    grid = Grid(("gcn", "sbm-gcn"), ("released", "elbo"), (), (), {"hidden": (16, 32), "lr": (0.01,)})
    protocol = Protocol(trials=3, selection_seeds=2, finalists=1, finalist_seeds=2)
    return Suite("small", "A small suite", "nowhere", protocol, ("released", "elbo"), (grid,), cells)


@pytest.fixture
def store_of(tmp_path: Path, fabricated: Any) -> Callable[[Sequence[Record]], Path]:
    """The path of a new store with these records."""

    def make(records: Sequence[Record]) -> Path:
        path = tmp_path / "store.sqlite"
        with Store.open(path, environment=fabricated.ENVIRONMENT) as store:
            store.append(records)
        return path

    return make


@pytest.fixture
def full_store(store_of: Callable[[Sequence[Record]], Path], suite: Suite, fabricated: Any) -> Path:
    return store_of(list(fabricated.records(suite)))
