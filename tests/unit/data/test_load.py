from __future__ import annotations

import pytest

from g3nn.data import ALL_DATASETS, ALL_SETTINGS, DATASETS, load
from g3nn.errors import InputError, any_of


def test_names():
    assert DATASETS == ("cora", "citeseer", "pubmed")
    assert set(ALL_DATASETS) - set(DATASETS) == {"blogcatalog", "polblogs"}
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
