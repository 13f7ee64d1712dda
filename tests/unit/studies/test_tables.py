from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import copy
from dataclasses import replace

import pytest

from g3nn.base.errors import InputError
from g3nn.studies.comparison import CellResult, Comparison, compare
from g3nn.studies.records import Record
from g3nn.studies.store import Store
from g3nn.studies.suite import Grid, Suite
from g3nn.studies.tables import FORMATS, printed_tables, render, summaries

PROMISED = {
    "table",
    "dataset",
    "setting",
    "model",
    "objective",
    "published",
    "published_std",
    "mean",
    "std",
    "trials",
    "difference",
    "significant",
}
"""The keys that outside scripts depend on."""

EXTRA = {
    "variant",
    "selected",
    "peers",
    "figures",
    "quoted",
    "row",
    "counterpart",
    "published_bold",
    "published_underline",
    "published_star",
    "failed",
    "difference_low",
    "difference_high",
    "binomial_low",
    "binomial_high",
    "p_value",
    "above",
    "best_in",
    "bold",
    "underline",
    "star",
    "val_loss",
    "val_accuracy",
    "nll",
    "ece",
    "chosen",
}

MEASURED = {
    ("gcn", "released", "cora"): (0.8012, 0.004),
    ("sbm-gcn", "released", "cora"): (0.8341, 0.003),
    ("sbm-gcn", "elbo", "cora"): (0.789, 0.0121),
    ("gcn", "released", "citeseer"): (0.6896, 0.01),
}
"""Mean and standard deviation of some cells of the small suite."""


@pytest.fixture
def comparison(small_suite: Suite, store: Store, make_trials: Callable[..., list[Record]]) -> Comparison:
    suite = replace(small_suite, grids=(Grid(("gcn", "mlp", "sbm-gcn")),))
    for entry in suite.entries({"table": "A"}):
        place = (entry.cell.model, entry.objective, entry.cell.dataset)
        if place in MEASURED:
            store.append(make_trials(suite.points(entry)[0], *MEASURED[place]))
    return compare(suite, store)


@pytest.fixture
def empty(small_suite: Suite, store: Store) -> Comparison:
    return compare(small_suite, store)


class TestText:
    def test_the_whole_of_it(self, comparison):
        assert render(comparison, "text") == (
            "Table A, standard, released\n"
            "         cora                     citeseer\n"
            "---------------------------------------------------------\n"
            "gcn      0.801±.004     (+0.001)  0.690±.010 b   (-0.010)\n"
            "---------------------------------------------------------\n"
            "sbm-gcn  0.834±.003 bu* (+0.014)  -\n"
            "\n"
            "Table A, standard, elbo\n"
            "         cora                     citeseer\n"
            "---------------------------------------------------------\n"
            "gcn      0.801±.004 b   (+0.001)  0.690±.010 b   (-0.010)\n"
            "---------------------------------------------------------\n"
            "sbm-gcn  0.789±.012     (-0.031)  -\n"
            "\n"
            "Table B, missing-edge, released\n"
            "     cora\n"
            "---------\n"
            "mlp  -\n"
            "\n"
            "b: best of its column. u: above the same network without a graph likelihood. *: significantly so.\n"
            "In brackets: measured minus published.\n"
            "\n"
            "discriminative: 2 of 3 cells measured with 10 trials each; "
            "1 of 2 within 0.010 of the published mean or above\n"
            "released: 1 of 2 cells measured with 10 trials each; 1 of 1 within 0.010 of the published mean or above; "
            "1 of 1 published underlines reproduced\n"
            "elbo: 1 of 2 cells measured with 10 trials each; 0 of 1 within 0.010 of the published mean or above; "
            "0 of 1 published underlines reproduced\n"
        )

    def test_an_empty_store_gives_dashes(self, empty):
        text = render(empty)
        assert "Table A, standard, elbo" in text
        assert "sbm-gcn  -     -" in text
        assert "released: 0 of 2 cells measured\n" in text


class TestMarkdown:
    def test_rows(self, comparison):
        text = render(comparison, "markdown")
        lines = text.splitlines()
        assert lines[:6] == [
            "### Table A, standard, released",
            "",
            "| model | cora | citeseer |",
            "| --- | --- | --- |",
            "| gcn | 0.801 ± 0.004 (+0.001) | **0.690** ± 0.010 (-0.010) |",
            "| sbm-gcn | <u>**0.834**</u> ± 0.003\\* (+0.014) | – |",
        ]
        assert "| gcn | **0.801** ± 0.004 (+0.001) | **0.690** ± 0.010 (-0.010) |" in lines
        assert lines[-3].startswith("- discriminative: 2 of 3 cells measured")

    def test_every_row_of_a_table_has_the_same_columns(self, comparison):
        counts = [
            [line.count("|") for line in part.splitlines() if line.startswith("|")]
            for part in render(comparison, "markdown").split("###")[1:]
        ]
        assert [set(each) for each in counts] == [{4}, {4}, {3}]


class TestLatex:
    def test_rows(self, comparison):
        lines = render(comparison, "latex").splitlines()
        assert (
            r"gcn & 0.801 $\pm$ {\small 0.004} ($+0.001$) & \textbf{0.690} $\pm$ {\small 0.010} ($-0.010$) \\" in lines
        )
        assert r"sbm-gcn & \underline{\textbf{0.834}} $\pm$ {\small 0.003}$^*$ ($+0.014$) & -- \\" in lines
        assert lines.count(r"\begin{tabular}{lll}") == 2

    def test_environments_braces_and_dollars_are_closed(self, comparison):
        text = render(comparison, "latex")
        assert re.findall(r"\\begin{(\w+)}", text) == ["table", "tabular"] * 3
        assert re.findall(r"\\end{(\w+)}", text) == ["tabular", "table"] * 3
        assert text.count("{") == text.count("}")
        assert text.count("$") % 2 == 0
        assert text.isascii()

    def test_every_row_has_as_many_columns_as_the_table(self, comparison):
        for part in render(comparison, "latex").split(r"\begin{tabular}")[1:]:
            columns = len(part[1 : part.index("}")])
            rows = [line for line in part.splitlines() if line.endswith(r"\\")]
            assert rows
            assert {row.count("&") + 1 for row in rows} == {columns}

    def test_what_latex_would_read_as_a_command_is_escaped(self, comparison):
        cells = [changed(comparison, table=r"50%_of\all~{&#$^}")]
        escaped = r"Table 50\%\_of\textbackslash{}all\textasciitilde{}\{\&\#\$\textasciicircum{}\}, standard"
        assert escaped in render(Comparison("x", cells), "latex")


class TestJson:
    def test_keys(self, comparison):
        answer = json.loads(render(comparison, "json"))
        assert set(answer) == {"suite", "cells"}
        assert answer["suite"] == "small"
        assert [set(cell) for cell in answer["cells"]] == [PROMISED | EXTRA] * 7

    def test_values(self, comparison):
        gcn, sbm, *_ = json.loads(render(comparison, "json"))["cells"]
        assert {key: gcn[key] for key in PROMISED} == {
            "table": "A",
            "dataset": "cora",
            "setting": "standard",
            "model": "gcn",
            "objective": "released",
            "published": 0.8,
            "published_std": 0.01,
            "mean": 0.8012,
            "std": 0.004,
            "trials": 10,
            "difference": 0.0012,
            "significant": None,
        }
        assert (sbm["significant"], sbm["best_in"], sbm["star"]) == (True, ["released"], True)
        assert 0 < sbm["p_value"] < 1e-6
        assert sbm["chosen"] == {"epochs": 5, "lr": 0.01}

    def test_what_is_not_known_is_null(self, empty):
        for cell in json.loads(render(empty, "json"))["cells"]:
            assert (cell["mean"], cell["std"], cell["difference"], cell["significant"]) == (None,) * 4
            assert cell["trials"] == 0


def test_an_unknown_format_gets_the_nearest(empty):
    with pytest.raises(InputError, match="'markdown'"):
        render(empty, "markdwon")


def test_no_cells_are_no_error():
    assert all(render(Comparison("nothing", []), format) for format in FORMATS)


def test_tables_put_discriminative_models_above_those_of_every_objective(comparison):
    shape = [
        (printed.title, [[model for model, *_ in group] for group in printed.groups])
        for printed in printed_tables(comparison, lambda cell, objective: "")
    ]
    assert shape == [
        ("Table A, standard, released", [["gcn"], ["sbm-gcn"]]),
        ("Table A, standard, elbo", [["gcn"], ["sbm-gcn"]]),
        ("Table B, missing-edge, released", [["mlp"]]),
    ]


def test_a_pair_that_the_suite_does_not_have_is_a_dash(comparison):
    cells = [cell for cell in comparison.cells if (cell.model, cell.dataset) != ("gcn", "citeseer")]
    assert "gcn      0.801±.004     (+0.001)  -\n" in render(Comparison("x", cells))


def changed(comparison: Comparison, **changes: object) -> CellResult:
    cell = copy(comparison.cells[0])
    vars(cell).update(changes)
    return cell


def test_a_cell_shows_what_is_known(comparison):
    for changes, expected in [
        ({"std": None}, "0.801          (+0.001)"),
        ({"difference": None}, "0.801±.004"),
        ({"difference": -0.0002}, "0.801±.004     (+0.000)"),
        ({"std": 0.1234}, "0.801±.123     (+0.001)"),
    ]:
        lines = render(Comparison("x", [changed(comparison, **changes)])).splitlines()
        assert lines[3] == f"gcn  {expected}"


def test_a_summary_counts_trials_and_failures(comparison):
    cells = [changed(comparison, difference=-0.010), changed(comparison, trials=7, failed=3, difference=-0.0101)]
    (summary,) = summaries(Comparison("x", cells))
    counts = {"cells": 2, "measured": 2, "published": 2, "close": 1, "underlined": 0, "reproduced": 0, "failed": 3}
    assert vars(summary) == {"name": "discriminative", "trials": (7, 10), **counts}
    assert str(summary) == (
        "discriminative: 2 of 2 cells measured with 7 to 10 trials each; "
        "1 of 2 within 0.010 of the published mean or above; 3 trials failed"
    )
