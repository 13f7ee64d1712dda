"""The paper's suite is checked without training anything."""

from __future__ import annotations

from collections import Counter

import pytest

from g3nn.studies.suite import DatasetRow, Protocol, Suite
from g3nn.studies.suite_file import load_suite
from g3nn.training.plan import Plan

TABLES = {"2": "standard", "3": "missing-edge", "4": "reduced-label"}
MODELS = ("mlp", "gcn", "gat", "lsm-gcn", "lsm-gat", "sbm-gcn", "sbm-gat")
DATASETS = ("cora", "pubmed", "citeseer")

PUBLISHED = {
    ("2", "mlp"): "0.583 0.009, 0.734 0.002, 0.569 0.008",
    ("2", "gcn"): "0.815 0.002, 0.794 0.004 b, 0.718 0.003",
    ("2", "gat"): "0.825 0.005, 0.785 0.004, 0.715 0.007",
    ("2", "lsm-gcn"): "0.825 0.002 u*, 0.779 0.004, 0.744 0.003 u*",
    ("2", "lsm-gat"): "0.829 0.003 bu, 0.776 0.007, 0.731 0.005 u*",
    ("2", "sbm-gcn"): "0.822 0.002 u*, 0.784 0.006, 0.745 0.004 bu*",
    ("2", "sbm-gat"): "0.829 0.003 u, 0.774 0.004, 0.740 0.003 u*",
    ("3", "mlp"): "0.583 0.009, 0.734 0.002, 0.569 0.008",
    ("3", "gcn"): "0.665 0.007, 0.746 0.004, 0.652 0.005",
    ("3", "gat"): "0.682 0.004, 0.744 0.006, 0.642 0.004",
    ("3", "lsm-gcn"): "0.711 0.005 u*, 0.766 0.006 bu*, 0.704 0.002 u*",
    ("3", "lsm-gat"): "0.710 0.007 u*, 0.766 0.004 u*, 0.691 0.005 u*",
    ("3", "sbm-gcn"): "0.718 0.004 bu*, 0.762 0.005 u*, 0.716 0.004 bu*",
    ("3", "sbm-gat"): "0.716 0.007 u*, 0.761 0.005 u*, 0.709 0.008 u*",
    ("4", "mlp"): "0.498 0.004, 0.674 0.005, 0.493 0.010",
    ("4", "gcn"): "0.750 0.003, 0.724 0.005 b, 0.666 0.003",
    ("4", "gat"): "0.771 0.004, 0.711 0.006, 0.675 0.005",
    ("4", "lsm-gcn"): "0.777 0.002 u*, 0.709 0.003, 0.691 0.005 u*",
    ("4", "lsm-gat"): "0.792 0.004 u*, 0.699 0.003, 0.691 0.004 u*",
    ("4", "sbm-gcn"): "0.780 0.002 u*, 0.710 0.004, 0.703 0.006 bu*",
    ("4", "sbm-gat"): "0.796 0.008 bu*, 0.699 0.003, 0.698 0.003 u*",
}
"""As printed: mean, standard deviation and marks for Cora, Pubmed and Citeseer."""

GRID_SIZES = {
    "mlp": {"released": 9},
    "gcn": {"released": 9},
    "gat": {"released": 18},
    "lsm-gcn": {"released": 27, "elbo": 36},
    "lsm-gat": {"released": 54, "elbo": 36},
    "sbm-gcn": {"released": 54, "elbo": 72},
    "sbm-gat": {"released": 108, "elbo": 72},
}


@pytest.fixture(scope="module")
def paper() -> Suite:
    return load_suite("paper")


def test_every_cell_is_there_once(paper):
    cells = [(cell.table, cell.setting, cell.model, cell.dataset) for cell in paper.cells]
    expected = [(table, TABLES[table], model, dataset) for table in TABLES for model in MODELS for dataset in DATASETS]
    assert cells == expected
    assert len(cells) == 63


def test_numbers_and_marks_are_those_printed(paper):
    printed: dict[tuple[str, str], list[str]] = {}
    for cell in paper.cells:
        assert cell.row == f"Table {cell.table}, {cell.model.upper().replace('-', '_')}"
        marks = ("b" * cell.bold) + ("u" * cell.underline) + ("*" * cell.star)
        text = f"{cell.published:.3f} {cell.published_std:.3f} {marks}".strip()
        printed.setdefault((cell.table, cell.model), []).append(text)
    assert {place: ", ".join(texts) for place, texts in printed.items()} == PUBLISHED


def test_the_first_table_describes_the_datasets(paper):
    assert paper.datasets == (
        DatasetRow("cora", 7, 2708, 5278, 35.8),
        DatasetRow("pubmed", 3, 19717, 44324, 59.1),
        DatasetRow("citeseer", 6, 3327, 4552, 14.1),
    )


def test_the_protocol(paper):
    assert paper.protocol == Protocol(10, 0, 1, 1000, 5, 4)
    assert (paper.name, paper.objectives, paper.published_trials) == ("paper", ("released", "elbo"), 10)


def test_generative_models_run_under_both_objectives_and_the_others_once(paper):
    counts = Counter((entry.cell.model, entry.objective) for entry in paper.entries())
    assert counts == {(model, objective): 9 for model, sizes in GRID_SIZES.items() for objective in sizes}


def test_every_cell_of_a_model_has_a_grid_of_the_same_size(paper):
    for entry in paper.entries():
        points = paper.points(entry)
        assert len(points) == GRID_SIZES[entry.cell.model][entry.objective], entry
        assert len({point.key for point in points}) == len(points)


def test_every_option_is_one_of_the_model(paper):
    entries = paper.entries({"table": "2"})
    assert {entry.cell.model for entry in entries} == set(MODELS)
    for entry in entries:
        for point in paper.points(entry):
            plan = Plan.check(point.model, point.objective, 1, 0, "mlp", "cpu", point.options)
            assert point.options.items() <= plan.hyperparameters("classes").items(), entry


CLASSES = {"cora": 7, "pubmed": 3, "citeseer": 6}


def test_the_bound_is_taken_as_written_or_divided_by_the_number_of_classes(paper):
    for dataset in DATASETS:
        (entry,) = paper.entries({"model": "sbm-gat", "table": "3", "dataset": dataset, "objective": "elbo"})
        weights = Counter((point.options["graph_weight"], point.options["kl_weight"]) for point in paper.points(entry))
        part = round(1 / CLASSES[dataset], 4)
        assert weights == {(1, 1): 36, (part, part): 36}


def test_the_grid_of_the_paper(paper):
    (entry,) = paper.entries({"model": "sbm-gat", "table": "2", "dataset": "cora", "objective": "released"})
    values = {name: set() for name in paper.points(entry)[0].options}
    for point in paper.points(entry):
        for name, value in point.options.items():
            values[name].add(value)
    assert values == {
        "hidden": {16, 32, 64},
        "hidden_is": {"total", "per-head"},
        "heads": {8},
        "lr": {0.001, 0.005, 0.01},
        "eta": {0.5, 1, 10},
        "p0": {0.9, 0.5},
        "p1": {0.1, 0.6},
        "weight_decay": {0.0005},
        "epochs": {1000},
        "patience": {50},
    }
    assert {(point.options["p0"], point.options["p1"]) for point in paper.points(entry)} == {(0.9, 0.1), (0.5, 0.6)}
