"""The page of a suite on noisy graphs: a line for each model, and the estimator beside its peers."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pages import loader

from g3nn.studies.store import Store
from g3nn.studies.suite import Cell, Grid, Protocol, Suite
from g3nn.studies.suite_page import write_report

pytestmark = pytest.mark.slow

FABRICATED = Path(__file__).parents[1] / "unit" / "report" / "fabricated.py"
SETTINGS = ("standard", "random-20", "random-50")
FIGURES = {"audit AUC": 0.912, "cosine AUC": 0.803}


@pytest.fixture(scope="module")
def noisy(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    cells = [Cell("1", "cora", setting, model) for setting in SETTINGS for model in ("gcn", "g3nn")]
    cells += [Cell("1", "cora", setting, "pro-gnn", "elsewhere", 0.7, quoted=True) for setting in SETTINGS]
    grid = Grid(("gcn", "g3nn"))
    suite = Suite("noisy", "Noisy", "nowhere", Protocol(trials=3), ("elbo",), (grid,), tuple(cells), selects=True)
    fabricated = runpy.run_path(str(FABRICATED))
    records = fabricated["records"](suite, [entry for entry in suite.entries() if not entry.cell.quoted])
    folder = tmp_path_factory.mktemp("noisy")
    with Store.open(folder / "store.sqlite", environment=fabricated["ENVIRONMENT"]) as store:
        store.append([replace(one, evidence=replace(one.evidence, figures=FIGURES)) for one in records])
    write_report(suite, folder / "store.sqlite", folder / "report.html")
    yield from loader(browser, (folder / "report.html").as_uri())


def test_a_line_for_each_model(noisy):
    page = noisy()
    assert page.locator("#rates figcaption").all_inner_texts() == ["Random on Cora"]
    lines = page.evaluate("document.querySelector('#rates .chart').data.map(({ name, x }) => [name, x])")
    assert lines == [["gcn", [0, 20, 50]], ["g3nn", [0, 20, 50]], ["pro-gnn (published)", [0, 20, 50]]]
    assert page.locator("#choices-title").inner_text() == "Beside the best peer"


def test_the_estimator_says_how_well_its_audit_does(noisy):
    page = noisy("#cell=1.random-50.cora.g3nn.elbo")
    drawer = page.locator("#drawer").inner_text()
    assert "estimator" in drawer
    assert all(text in drawer for text in ("audit AUC", "0.912", "cosine AUC", "0.803", "t-tests against"))
    assert "Chosen" not in drawer
