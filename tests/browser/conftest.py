"""A headless Chromium, a report to look at, and pages that fail a test when they complain or ask for anything."""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import loader, visitor

from g3nn.studies.store import Store
from g3nn.studies.suite import Cell, Grid, Protocol, Suite
from g3nn.studies.suite_page import write_report

FABRICATED = Path(__file__).parents[1] / "unit" / "report" / "fabricated.py"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _lacking(what: str) -> None:
    """Without a browser there is nothing to see; on CI there must be one."""
    message = f"{what} is not installed"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _lacking("playwright")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        _lacking("Chromium")
    with sync_playwright() as playwright:
        # As root, as in most containers, Chromium starts only without its sandbox. It opens nothing but our own page.
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with two settings, two datasets and two models. GCN was not trained on Pubmed, standard."""
    settings = {"2": "standard", "3": "missing-edge"}
    cells = tuple(
        Cell(table, dataset, setting, model, f"Table {table}", 0.8, 0.004, underline="-" in model)
        for table, setting in settings.items()
        for dataset in ("cora", "pubmed")
        for model in ("gcn", "sbm-gcn")
    )
    grid = Grid(("gcn", "sbm-gcn"), ("released", "elbo"), (), (), {"hidden": (16, 32, 64), "lr": (0.01, 0.005)})
    protocol = Protocol(trials=4, selection_seeds=1, finalists=2, finalist_seeds=2)
    suite = Suite("small", "Tables <b>small</b>", "nowhere", protocol, ("released", "elbo"), (grid,), cells)
    fabricated = runpy.run_path(str(FABRICATED))
    trained = [entry for entry in suite.entries() if entry.cell != cells[2]]
    folder = tmp_path_factory.mktemp("report")
    with Store.open(folder / "store.sqlite", environment=fabricated["ENVIRONMENT"]) as store:
        store.append(list(fabricated["records"](suite, trained)))
    write_report(suite, folder / "store.sqlite", folder / "report.html")
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="session")
def fresh(browser: Any, report: str) -> Iterator[Callable[..., Any]]:
    """Loads the report anew: fresh("#dataset=cora", color_scheme="dark")."""
    yield from loader(browser, report)


@pytest.fixture(scope="session")
def _loaded(fresh: Callable[..., Any]) -> Any:
    """Reading the chart library takes a second, so most tests look at one page, which `visit` sets back."""
    return fresh()


@pytest.fixture
def visit(_loaded: Any) -> Iterator[Callable[..., Any]]:
    """The report at an address, as a reader with this window sees it: visit("#dataset=cora", width=380)."""
    yield from visitor(_loaded)
