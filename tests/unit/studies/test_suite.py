from __future__ import annotations

from dataclasses import replace

import pytest

from g3nn.base.errors import InputError, Problems
from g3nn.model.generative import ModelSpec, model_names
from g3nn.studies.suite import Entry, Grid, Protocol, checked_part, counterpart
from g3nn.studies.suite_file import load_suite, suite_names


def names(entries: list[Entry]) -> list[str]:
    return [f"{entry.cell.table} {entry.cell.dataset} {entry.cell.model} {entry.objective}" for entry in entries]


ALL = [
    "A cora gcn released",
    "A cora sbm-gcn released",
    "A cora sbm-gcn elbo",
    "A citeseer gcn released",
    "A citeseer sbm-gcn released",
    "A citeseer sbm-gcn elbo",
    "B cora mlp released",
]


class TestGrid:
    def test_points_are_all_combinations(self):
        grid = Grid(("gcn",), axes={"hidden": (4, 8), "lr": (0.1, 0.2)})
        assert grid.points() == [
            {"hidden": 4, "lr": 0.1},
            {"hidden": 4, "lr": 0.2},
            {"hidden": 8, "lr": 0.1},
            {"hidden": 8, "lr": 0.2},
        ]

    def test_a_table_on_an_axis_sets_its_own_options(self):
        grid = Grid(("sbm-gcn",), axes={"partition": ({"p0": 0.9, "p1": 0.1}, {"p0": 0.5, "p1": 0.6})})
        assert grid.points() == [{"p0": 0.9, "p1": 0.1}, {"p0": 0.5, "p1": 0.6}]

    def test_without_axes_there_is_one_point(self):
        assert Grid(("gcn",)).points() == [{}]


class TestPoints:
    def test_several_grids_are_joined_and_the_fixed_options_give_way(self, small_suite):
        (entry,) = small_suite.entries({"dataset": "citeseer", "objective": "elbo"})
        options = [dict(point.options) for point in small_suite.points(entry)]
        first, second = {"p0": 0.9, "p1": 0.1}, {"p0": 0.5, "p1": 0.6}
        products = [{"epochs": 5, "lr": 0.01, "hidden": hidden, **p} for hidden in (4, 8) for p in (first, second)]
        assert options == [*products, {"epochs": 5, "lr": 0.01}, {"epochs": 5, "lr": 0.1}]

    def test_a_grid_of_one_dataset_leaves_the_others_alone(self, small_suite):
        sizes = [len(small_suite.points(entry)) for entry in small_suite.entries()]
        assert sizes == [1, 4, 4, 1, 4, 6, 1]

    def test_a_point_that_two_grids_give_is_there_once(self, small_suite):
        twice = replace(small_suite, grids=(Grid(("gcn",), axes={"eta": (1, 2)}), Grid(("gcn",), axes={"eta": (1.0,)})))
        assert len(twice.points(twice.entries()[0])) == 2

    def test_a_point_says_what_it_is_for(self, small_suite):
        entry = small_suite.entries()[2]
        point = small_suite.points(entry)[0]
        assert (point.dataset, point.setting, point.model, point.objective) == ("cora", "standard", "sbm-gcn", "elbo")

    def test_a_grid_can_be_limited_to_settings(self, small_suite):
        cells = tuple(
            replace(cell, setting=setting)
            for cell in small_suite.cells[:1]
            for setting in ("standard", "reduced-label")
        )
        grids = (Grid(("gcn",)), Grid(("gcn",), settings=("reduced-label",), axes={"hidden": (3,)}))
        limited = replace(small_suite, cells=cells, grids=grids)
        assert [len(limited.points(entry)) for entry in limited.entries()] == [1, 2]


class TestEntries:
    def test_discriminative_models_come_once(self, small_suite):
        assert names(small_suite.entries()) == ALL
        assert small_suite.entries({}) == small_suite.entries(None) == small_suite.entries()

    def test_only(self, small_suite):
        for only, expected in [
            ({"table": "B"}, ALL[6:]),
            ({"setting": "missing-edge"}, ALL[6:]),
            ({"dataset": "citeseer"}, ALL[3:6]),
            ({"model": "gcn, mlp"}, [ALL[0], ALL[3], ALL[6]]),
            ({"objective": "elbo"}, [ALL[2], ALL[5]]),
            ({"objective": "released,elbo", "dataset": "cora"}, [ALL[0], ALL[1], ALL[2], ALL[6]]),
            ({"objective": "elbo", "model": "gcn"}, []),
        ]:
            assert names(small_suite.entries(only)) == expected

    def test_what_the_suite_does_not_have_is_refused_with_the_nearest(self, small_suite):
        only = {"modell": "gcn", "dataset": "coraa,citeseer", "objective": "elbow", "setting": "reduced-label"}
        with pytest.raises(InputError) as caught:
            small_suite.entries(only)
        advice = {problem.argument: problem.advice for problem in caught.value.problems}
        assert advice == {
            "only": "Did you mean 'model'?",
            "only dataset": "Did you mean 'cora'?",
            "only objective": "Did you mean 'elbo'?",
            "only setting": "",
        }

    def test_a_part_without_cells_is_refused(self, small_suite):
        problems = Problems()
        checked_part(small_suite, {"table": "B", "dataset": "citeseer"}, 0, problems)
        assert [problem.argument for problem in problems.found] == ["trials", "only"]


class TestSuite:
    def test_the_counterpart_is_the_network_alone(self):
        assert (counterpart("lsm-gcn"), counterpart("mlp")) == ("gcn", None)
        for name in model_names():
            spec = ModelSpec.parse(name)
            assert counterpart(name) == (spec.posterior if spec.likelihood is not None else None), name

    def test_another_number_of_trials_changes_nothing_else(self, small_suite):
        more = small_suite.with_trials(7)
        assert more.protocol == replace(small_suite.protocol, trials=7)
        assert replace(more, protocol=small_suite.protocol) == small_suite
        assert more.published_trials == 4

    def test_trials_are_at_least_one_and_keep_clear_of_the_selection(self, small_suite):
        for trials in [0, -1, 1001]:
            with pytest.raises(InputError, match="trials"):
                small_suite.with_trials(trials)

    def test_seeds_of_the_selection_may_come_first(self, small_suite):
        protocol = Protocol(first_seed=50, first_selection_seed=0)
        assert replace(small_suite, protocol=protocol).with_trials(5000).protocol.trials == 5000


class TestLoad:
    def test_built_in_suites_load_by_name(self):
        assert "paper" in suite_names()
        assert [load_suite(name, to_run=True).name for name in suite_names()] == suite_names()

    def test_an_unknown_suite_gets_the_names(self):
        for given, advice in [("papper", "'paper'"), ("no/such/suite.toml", "paper"), ("", "paper")]:
            with pytest.raises(InputError) as caught:
                load_suite(given)
            (problem,) = caught.value.problems
            assert problem.argument == "suite"
            assert advice in str(problem)

    def test_by_path(self, small_text, tmp_path):
        (tmp_path / "mine.toml").write_text(small_text, encoding="utf-8")
        alone, folder = load_suite(str(tmp_path / "mine.toml")), load_suite(str(tmp_path))
        assert (alone.name, folder.name) == ("mine", tmp_path.name)
        assert replace(folder, name="mine") == alone
