from __future__ import annotations

import json
from dataclasses import replace

import pytest
from offered import offer

from g3nn.base.errors import DataError, InputError, any_of
from g3nn.cli import datasets as command
from g3nn.graph.datasets import ALL_DATASETS, ALL_SETTINGS, DATASETS, GRAPHS, load, settings_of


def test_names():
    assert DATASETS == ("cora", "citeseer", "pubmed")
    assert set(ALL_DATASETS) - set(DATASETS) == {"blogcatalog", "polblogs", *GRAPHS}
    assert load("cora").setting == "standard"


def test_names_are_not_case_sensitive():
    task = load("Cora", setting="Missing-Edge")
    assert (task.name, task.setting) == ("cora", "missing-edge")


def test_the_example_in_the_documentation():
    expected = load.__doc__.split(">>> ")[1].splitlines()[1].strip()
    assert repr(load("cora", setting="missing-edge")) == expected


def test_both_names_are_checked_at_once_with_suggestions():
    with pytest.raises(InputError) as caught:
        load("Coraa", setting="missing_edges")
    name, setting = caught.value.problems
    assert (name.argument, name.given, name.allowed) == ("name", "'Coraa'", any_of(ALL_DATASETS))
    assert name.advice == "Did you mean 'cora'?"
    assert (setting.argument, setting.allowed) == ("setting", any_of(ALL_SETTINGS))
    assert setting.advice == "Did you mean 'missing-edge'?"


def test_what_is_no_name_is_refused():
    for name in [None, 3, ""]:
        with pytest.raises(InputError, match="name: got"):
            load(name)


def test_tags_have_no_setting_of_the_paper():
    with pytest.raises(InputError, match="setting: got 'reduced-label'; expected standard"):
        load("blogcatalog", setting="reduced-label")


def test_a_dataset_of_another_package_has_its_name_and_the_settings_of_any_graph(monkeypatch, learnable):
    def cars():
        return replace(learnable, name="no matter what")

    offer(monkeypatch, ALL_DATASETS, "cars", cars)
    assert list(ALL_DATASETS)[-1] == "cars"
    assert load("Cars").name == "cars"
    assert load("cars", "missing-edge").num_edges < learnable.num_edges
    assert load("cars", "random-100").num_edges == 2 * learnable.num_edges
    assert set(settings_of("cars")) < set(ALL_SETTINGS)
    with pytest.raises(InputError, match="setting: got 'reduced-label'"):
        load("cars", "reduced-label")


def test_what_goes_wrong_in_another_package_is_told_under_its_name(monkeypatch, run_command):
    def cars():
        return {}["wheels"]

    offer(monkeypatch, ALL_DATASETS, "cars", cars)
    with pytest.raises(DataError, match=r"cars: hubs cannot load it \(KeyError: 'wheels'\)"):
        load("cars")
    monkeypatch.setattr(command, "LISTED", ("cora", "cars"))
    ended = run_command("datasets", "--json")
    assert ended.code == 0
    assert [row["name"] for row in json.loads(ended.out)] == ["cora"]
    assert "note: cars: hubs cannot load it" in ended.err

    def no_task():
        return 3

    offer(monkeypatch, ALL_DATASETS, "cars", no_task)
    with pytest.raises(DataError, match="cars: hubs gave int instead of a NodeTask"):
        load("cars")
