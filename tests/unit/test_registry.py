"""Components of other packages: found by name, loaded when asked for, left out with one warning if they are broken."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import Distribution, EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest

from g3nn.base import registry
from g3nn.base.errors import G3NNWarning, Problems
from g3nn.base.registry import Registry
from g3nn.graph.outcomes import Outcome, Tags
from g3nn.model.likelihoods import ClassLikelihood, GraphLikelihood
from g3nn.model.likelihoods.gsbm import StochasticBlock

GROUP = "g3nn.likelihoods"


class Good(StochasticBlock):
    """One that can be used."""


class Bare(Good):
    """An option without limits."""

    Options = type("Bare", (), {"wide": 3, "__annotations__": {"wide": int}})


class Half(ClassLikelihood):
    """Not finished."""


class Talks(Good):
    """It supports no class of labels."""

    outcomes = "classes"


class Other(Tags):
    """An outcome under another name."""

    name = "others"


def a_function() -> None: ...


def point(name: str, value: str, package: str = "hubs") -> EntryPoint:
    found = EntryPoint(name, value, GROUP)
    vars(found).update(dist=SimpleNamespace(name=package, version="1.2"))
    return found


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Registry[Any]]:
    """A registry of likelihoods, with `sbm` of g3nn and these entry points."""
    monkeypatch.setitem(sys.modules, "hubs", sys.modules[__name__])

    def made(*points: EntryPoint, contract: type | None = GraphLikelihood, dash: bool = False) -> Registry[Any]:
        monkeypatch.setattr(registry, "_installed", lambda group: points)
        return Registry(GROUP, contract, {"sbm": StochasticBlock}, dash=dash)

    return made


def test_a_component_of_another_package_is_found_and_listed_after_those_of_g3nn(make):
    found = make(point("hub", "hubs:Good"))
    assert list(found) == ["sbm", "hub"]
    assert found["hub"] is Good
    assert "hub" in found
    assert found.package("hub") == ("hubs", "1.2")
    assert found.package("sbm") is None
    assert found.package("nobody") is None
    assert found.own == {"sbm": StochasticBlock}


def test_nothing_is_imported_for_a_name_of_g3nn_or_of_another_package(make, monkeypatch):
    found = make(point("hub", "hubs:Good"), point("bad", "no_such_module:Bad"))
    loaded = []
    monkeypatch.setattr(EntryPoint, "load", lambda self: loaded.append(self.name) or Good)
    assert found["sbm"] is StochasticBlock
    problems = Problems()
    problems.name("likelihood", "sbm", found)
    assert "nobody" not in found
    assert loaded == []
    assert found["hub"] is Good
    assert found["hub"] is Good
    assert loaded == ["hub"]


BROKEN = {
    "an import that fails": (
        "hub",
        "no_such_module:Hub",
        "it cannot be imported (ModuleNotFoundError: No module named",
    ),
    "a name that is not there": ("hub", "hubs:Absent", "it cannot be imported (AttributeError: "),
    "no class": ("hub", "hubs:a_function", "not a class derived from GraphLikelihood"),
    "another kind": ("hub", "hubs:Tags", "not a class derived from GraphLikelihood"),
    "an abstract class": ("hub", "hubs:Half", "Half lacks logits"),
    "options without limits": ("hub", "hubs:Bare", "Options of Bare is no dataclass"),
    "outcomes that are none": ("hub", "hubs:Talks", "outcomes of Talks is 'classes', not a tuple of classes"),
    "a name that cannot be typed": ("Hub", "hubs:Good", "a name has only lower-case letters and digits"),
    "a dash in a likelihood": ("hub-sbm", "hubs:Good", "a name has only lower-case letters and digits"),
    "a name of g3nn": ("sbm", "hubs:Good", "g3nn has a component of this name"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_what_cannot_be_used_is_left_out_with_one_warning_that_names_it(make, fault):
    name, value, why = BROKEN[fault]
    found = make(point(name, value), point("other", "hubs:Good"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert list(found) == ["sbm", "other"]
        assert list(found) == ["sbm", "other"]
        assert found["sbm"] is StochasticBlock
        assert name == "sbm" or name not in found
    (warning,) = caught
    assert warning.category is G3NNWarning
    assert str(warning.message).startswith(f"the entry point {name} = {value!r} of {GROUP} in hubs is left out: ")
    assert why in str(warning.message)


def test_a_name_of_two_packages_is_nobodys(make):
    found = make(point("hub", "hubs:Good", "wheels"), point("hub", "hubs:Good", "hubs"))
    with pytest.warns(G3NNWarning, match="in hubs is left out: wheels offers the same name. Uninstall all of them but"):
        assert list(found) == ["sbm"]
    assert found.package("hub") is None


def test_an_import_that_ends_the_program_does_not(make, monkeypatch):
    found = make(point("hub", "hubs:Good"))
    monkeypatch.setattr(EntryPoint, "load", lambda self: sys.exit("no GPU"))
    with pytest.warns(G3NNWarning, match=r"cannot be imported \(SystemExit: no GPU\)"):
        assert "hub" not in found


def test_an_outcome_is_registered_under_its_own_name(make):
    found = make(point("mine", "hubs:Other"), contract=Outcome)
    with pytest.warns(G3NNWarning, match="Other calls itself 'others'"):
        assert "mine" not in found


def test_a_dataset_is_anything_to_call(make):
    found = make(point("cars-2", "hubs:a_function"), point("trams", "hubs:GROUP"), contract=None, dash=True)
    assert found["cars-2"] is a_function
    with pytest.warns(G3NNWarning, match="it is 'g3nn.likelihoods', not a function that makes a task"):
        assert "trams" not in found


def test_a_package_may_list_all_names_while_it_is_imported(make, monkeypatch):
    found = make(point("hub", "hubs:Good"))
    monkeypatch.setattr(EntryPoint, "load", lambda self: Good if list(found) == ["sbm"] else None)
    assert found["hub"] is Good


def test_metadata_that_cannot_be_read_leaves_g3nn_alone(monkeypatch):
    def fails(group):
        raise TypeError("no =")

    monkeypatch.setattr(registry, "entry_points", fails)
    with pytest.warns(G3NNWarning, match=r"cannot be read \(TypeError: no =\): components of other packages are not"):
        assert list(Registry("g3nn.unread", GraphLikelihood, {"sbm": StochasticBlock})) == ["sbm"]


def test_what_is_no_text_is_no_name(make):
    found = make()
    assert all(name not in found for name in (None, 3, [], ("sbm",)))


@pytest.mark.slow
def test_packages_are_not_even_looked_for_when_g3nn_is_imported():
    """Neither by the package nor by the rooms that hold registries, nor by the estimators."""
    code = """
import g3nn.base.registry
def refuse(group): raise AssertionError("looked for packages")
g3nn.base.registry._installed = refuse
import g3nn, g3nn.training.catalogue, g3nn.graph.datasets, g3nn.estimator, g3nn.studies.suite_check, g3nn.testing
g3nn.ModelSpec(posterior="gcn", likelihood="sbm").components()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_installed_packages_are_read_from_their_metadata(tmp_path, monkeypatch):
    folder = tmp_path / "hubs-1.2.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: hubs\nVersion: 1.2\n")
    (folder / "entry_points.txt").write_text("[g3nn.tests]\nhub = hubs:Good\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "hubs", sys.modules[__name__])
    assert Distribution.from_name("hubs").version == "1.2"
    found: Registry[Any] = Registry("g3nn.tests", GraphLikelihood, {})
    assert dict(found) == {"hub": Good}
    assert found.package("hub") == ("hubs", "1.2")
