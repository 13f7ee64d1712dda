from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from pages import Tags, data_of, own_text

from g3nn.base.errors import DataError, InputError
from g3nn.pages import assets
from g3nn.studies.records import Record
from g3nn.studies.store import Store
from g3nn.studies.suite import Cell
from g3nn.studies.suite_file import load_suite
from g3nn.studies.suite_page import write_report

MEGABYTE = 1_000_000


@pytest.fixture
def made(tmp_path):
    """The page of a suite and a store, without the library: that is not ours to check."""

    def make(suite, store):
        path = tmp_path / "report.html"
        write_report(suite, store, path)
        return own_text(path)

    return make


def cells_of(page):
    return {cell["id"]: cell for cell in data_of(page)["cells"]}


def test_the_page_shows_every_cell(suite, full_store, made):
    page = Tags(made(suite, full_store))
    for text in ("A small suite", "nowhere", "Table 2 standard", "Cora", "Pubmed", "SBM-GCN", "elbo objective"):
        assert text in page.text
    assert "device cpu" in page.text
    assert re.search(
        r"Discriminative \d of 2 within 0.01 of the published mean or above 2 of 2 cells measured", page.text
    )
    assert re.search(r"released objective \d of 1 within .* \d of 1 published underlines reproduced ?1 of 1", page.text)
    buttons = [attributes for tag, attributes in page.tags if "data-cell" in attributes]
    assert len(buttons) == len(suite.entries())
    assert all(tag == "button" for tag, attributes in page.tags if "data-cell" in attributes)


def test_what_is_behind_a_cell(suite, full_store, made):
    cell = cells_of(made(suite, full_store))["2.standard.cora.sbm-gcn.elbo"]
    assert (cell["published"], cell["published_std"], cell["trials"]) == (0.822, 0.002, 3)
    assert cell["difference_low"] < cell["difference"] < cell["difference_high"]
    assert cell["binomial_low"] < cell["mean"] < cell["binomial_high"]
    assert cell["counterpart"] == "gcn"
    assert (cell["grid"]["names"], len(cell["grid"]["points"])) == (["hidden"], 2)
    (chosen,) = [point for point in cell["grid"]["points"] if point[-1]]
    assert (chosen[0], chosen[2]) == (cell["chosen"]["hidden"], 2)
    assert [run[0] for run in cell["runs"]] == [0, 1, 2]
    with Store.read(full_store) as store:
        records = [one for one in store.records(evidence=True) if one.stage == "trial"]
    trials = [one.evidence for one in records if (one.point.model, one.point.objective) == ("sbm-gcn", "elbo")]
    np.testing.assert_allclose(cell["confusion"], np.mean([one.confusion for one in trials], axis=0), rtol=1e-4)
    for name, mean in cell["scores"].items():
        assert mean == pytest.approx(np.mean([getattr(one, name) for one in trials]), rel=1e-4)
    assert list(cell["scores"]) == ["ece", "brier", "nll"]
    assert "laplacian" not in cell["curves"]["terms"]
    assert {len(values) for values in cell["curves"]["terms"]["graph"].values()} == {len(cell["curves"]["epochs"])}


def test_an_empty_store(suite, store_of, made):
    page = made(suite, store_of([]))
    text = Tags(page).text
    assert "not measured yet" in text
    assert "0 of 2 cells measured" in text
    assert "No training is stored yet." in text
    assert {cell["mean"] for cell in cells_of(page).values()} == {None}


def test_cells_that_are_missing_have_a_dash(suite, fabricated, store_of, made):
    first = suite.entries()[0]
    page = made(suite, store_of(list(fabricated.records(suite, [first]))))
    cells = cells_of(page)
    assert [id for id, cell in cells.items() if cell["mean"] is not None] == ["2.standard.cora.gcn.released"]
    assert page.count('<span class="mean"><span class="">–</span>') == len(cells) - 1
    assert '<span class="none">–</span>' in page


def test_a_suite_without_cells(suite, store_of, made):
    assert "This suite has no cells." in made(replace(suite, cells=()), store_of([]))


def test_trials_that_failed_are_told(suite, fabricated, store_of, made):
    records = [one for one in fabricated.records(suite) if one.stage == "select" or one.seed != 1]
    points = {one.point for one in records if one.stage == "trial"}
    lost = {"val_loss": None, "val_accuracy": None, "test_accuracy": None, "epochs": 3, "best_epoch": 0}
    error = "out of <memory>"
    records += [Record(one, "trial", 1, "split", "failed", **lost, seconds=0.1, error=error) for one in points]
    page = made(suite, store_of(records))
    assert "2 trials failed" in Tags(page).text
    cell = cells_of(page)["2.standard.cora.gcn.released"]
    assert (cell["trials"], cell["failed"]) == (2, 1)
    assert cell["runs"][1] == [1, None, None, 3, "failed", error]


def test_names_are_text(suite, full_store, made):
    wild = "</title><script>alert(1)</script> & <b>bold</b>"
    cells = (*suite.cells, replace(suite.cells[0], table="<i>3</i>", row="</script><script>alert(2)"))
    page = made(replace(suite, title=wild, source=wild, name=wild, cells=cells), full_store)
    tags = Tags(page)
    assert wild in tags.text
    assert "<i>3</i>" in tags.text
    assert "alert(1)</script>" not in page
    assert "alert(2)" not in re.sub(r'<script type="application/json".*?</script>', "", page, flags=re.DOTALL)
    scripts = [attributes for tag, attributes in tags.tags if tag == "script"]
    assert len(scripts) == len([1 for tag, _ in Tags(made(suite, full_store)).tags if tag == "script"])


def test_nothing_is_loaded_from_elsewhere(suite, full_store, made):
    page = made(suite, full_store)
    for tag, attributes in Tags(page).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base"), tag
        assert "src" not in attributes, tag
        assert attributes.get("href", "#").startswith("#"), attributes
    assert not re.search(r"https?://|url\(|@import|\bimport\(|\bfetch\(|XMLHttpRequest|WebSocket", page)


def test_the_browser_is_told_to_load_nothing(suite, full_store, made):
    (policy,) = [
        attributes["content"]
        for tag, attributes in Tags(made(suite, full_store)).tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == "'unsafe-inline'"
    assert set(rules) == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    assert not any("http" in rule or "*" in rule for rule in rules.values())


def test_the_same_store_gives_the_same_page(suite, full_store, made):
    assert made(suite, full_store) == made(suite, full_store)


def test_a_store_that_is_not_there(suite, tmp_path):
    with pytest.raises(DataError):
        write_report(suite, tmp_path / "store.sqlite", tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(suite, full_store, tmp_path):
    with pytest.raises(InputError, match="a folder that exists"):
        write_report(suite, full_store, tmp_path / "nowhere" / "report.html")


@pytest.mark.slow
def test_the_page_of_the_paper_stays_small(fabricated, store_of, tmp_path):
    suite = load_suite("paper")
    tables = {cell.table for cell in suite.cells}
    path = tmp_path / "report.html"
    write_report(suite, store_of(list(fabricated.records(suite, suite.entries({"table": "2"})))), path)
    page = path.read_text(encoding="utf-8")
    assert len(cells_of(page)) == 99
    ours = len(page.encode()) - len(str(assets._chart_library()).encode())
    assert ours * len(tables) < 2 * MEGABYTE


@pytest.fixture
def selecting(suite):
    """A suite that lets validation choose, with a variant and nothing published."""
    cells = (
        Cell("1", "cora", "standard", "gcn"),
        Cell("1", "cora", "standard", "gcn", variant="wide"),
        Cell("1", "cora", "standard", "sbm-gcn"),
    )
    grids = (suite.grids[0], replace(suite.grids[0], variants=("wide",), axes={"hidden": (64,)}))
    return replace(suite, objectives=("elbo",), cells=cells, grids=grids, selects=True)


def test_the_chosen_model_stands_beside_its_best_peer(selecting, fabricated, store_of, made):
    page = made(selecting, store_of(list(fabricated.records(selecting))))
    (chosen,) = [cell for cell in cells_of(page).values() if cell["selected"]]
    assert set(chosen["peers"]) == {"gcn", "gcn, wide"}
    assert page.count(f'data-cell="{chosen["id"]}"') == 2
    assert "Chosen by validation" in page
    assert "SBM-GCN on Cora, standard, elbo objective" in page


def test_where_nothing_is_published_there_is_no_column_for_it(selecting, fabricated, store_of, made):
    page = made(selecting, store_of(list(fabricated.records(selecting))))
    assert 'class="results unpublished"' in page
    assert "<span>published</span>" not in page


def test_a_variant_has_a_line_of_its_own(selecting, fabricated, store_of, made):
    page = made(selecting, store_of(list(fabricated.records(selecting))))
    assert 'GCN<span class="variant">wide</span>' in page


def test_a_suite_that_selects_nothing_says_nothing_of_it(suite, full_store, made):
    assert "Chosen by validation" not in made(suite, full_store).split("<script")[0]
