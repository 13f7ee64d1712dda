from __future__ import annotations

from copy import copy
from dataclasses import replace

import pytest

from g3nn.studies import suite_page as views
from g3nn.studies.comparison import compare
from g3nn.studies.records import Environment
from g3nn.studies.store import Store
from g3nn.studies.suite import Protocol
from g3nn.studies.tables import layouts


@pytest.fixture
def comparison(suite, full_store):
    with Store.read(full_store) as store:
        return compare(suite, store)


def test_a_table_has_the_networks_above_and_one_group_for_each_objective(comparison):
    (block,) = layouts(comparison.cells[::-1])
    assert (block.table, block.setting, block.datasets) == ("2", "standard", ["cora", "pubmed"])
    shape = {
        name: [(row.model, [cell is None for cell in row.cells]) for row in rows] for name, rows in block.groups.items()
    }
    whole, gap = [False, False], [False, True]
    assert list(shape.items()) == [
        ("discriminative", [("gcn", whole)]),
        ("elbo", [("sbm-gcn", gap)]),
        ("released", [("sbm-gcn", gap)]),
    ]


def changed(cell, **changes):
    new = copy(cell)
    vars(new).update(changes)
    return new


def view_of(suite, cell, **changes):
    return views.CellView(suite, changed(cell, **changes))


def test_the_colour_of_a_difference(suite, comparison):
    for difference, direction, strength in [
        (0.0, "same", 0),
        (0.0004, "same", 1),
        (-0.015, "below", 50),
        (0.03, "above", 100),
        (0.2, "above", 100),
    ]:
        view = view_of(suite, comparison.cells[0], difference=difference)
        assert (view.direction, view.strength) == (direction, strength)


def test_a_cell_can_be_read_aloud(suite, comparison):
    cell = comparison.cells[2]
    assert cell.counterpart == "gcn"
    changes = {"mean": 0.8301, "std": 0.004, "difference": 0.0081}
    expected = (
        "SBM-GCN on Cora, standard, released objective: measured 0.830 ± 0.004, published 0.822 ± 0.002, "
        "difference +0.008"
    )
    assert view_of(suite, cell, **changes).label == expected
    unmeasured = view_of(suite, cell, mean=None, std=None, difference=None, published=None)
    assert unmeasured.label == "SBM-GCN on Cora, standard, released objective: not measured"


def test_a_network_is_bold_where_no_objective_beats_it(suite, comparison):
    cell = comparison.cells[0]
    assert cell.counterpart is None
    assert view_of(suite, cell, best_in=("released", "elbo")).bold
    assert not view_of(suite, cell, best_in=("released",), bold=True).bold


def test_only_filters_that_offer_a_choice(comparison):
    assert views.filters(comparison.cells) == {
        "dataset": ("cora", "pubmed"),
        "objective": ("released", "elbo"),
        "kind": ("discriminative", "generative"),
    }


def test_the_introduction_counts_the_trials_that_there_are(comparison):
    cells = list(comparison.cells)
    assert "2 models on Cora and Pubmed under 1 setting, each the mean of 3 trials" in views.introduction(cells)
    cells[0] = changed(cells[0], trials=2)
    assert "2 to 3 trials" in views.introduction(cells)
    assert "not measured yet" in views.introduction([changed(cell, mean=None) for cell in cells])


def test_the_protocol_tells_seeds_and_sizes(suite):
    for changes, parts in [
        ({}, ("has 2 points, each trained with 2 seeds, starting at seed 1000.", "with seeds 0 to 2")),
        ({"trials": 1, "first_seed": 7}, ("with seed 7,",)),
        ({"finalists": 2, "finalist_seeds": 5}, ("and the best 2 of them with 5 seeds in all.",)),
    ]:
        text = " ".join(views.protocol(replace(suite, protocol=replace(suite.protocol, **changes))))
        for part in parts:
            assert part in text


def test_the_protocol_tells_several_numbers_of_trials(suite):
    cells = (replace(suite.cells[0], trials=1), *suite.cells[1:])
    text = views.protocol(replace(suite, protocol=Protocol(trials=4), cells=cells))[1]
    assert "trained with seed 0 or seeds 0 to 3, which" in text


def test_without_a_grid_nothing_is_chosen(suite):
    grids = tuple(replace(grid, axes={"hidden": (16,)}) for grid in suite.grids)
    assert "nothing is chosen" in views.protocol(replace(suite, grids=grids))[0]


def test_environments_are_told_apart():
    one, other = Environment({"torch": "2"}, {"device": "cpu"}), Environment({"torch": "2"}, {"device": "cuda"})
    assert views.environments([one, other, one]) == ["device cpu, torch 2", "device cuda, torch 2"]
