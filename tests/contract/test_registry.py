"""A component that nobody registered would escape the contract tests, so it fails here."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import g3nn.graph.outcomes
import g3nn.model.channels
import g3nn.model.likelihoods
import g3nn.model.posteriors
import g3nn.model.priors
from g3nn.graph.outcomes import OUTCOMES, Outcome
from g3nn.model.channels import CHANNELS, Channel
from g3nn.model.likelihoods import LIKELIHOODS, GraphLikelihood
from g3nn.model.posteriors import POSTERIORS, LabelPosterior, ModulePosterior
from g3nn.model.priors import PRIORS, LabelPrior
from g3nn.training.catalogue import available

FAMILIES = {
    "likelihoods": (g3nn.model.likelihoods, LIKELIHOODS, GraphLikelihood),
    "priors": (g3nn.model.priors, PRIORS, LabelPrior),
    "posteriors": (g3nn.model.posteriors, POSTERIORS, LabelPosterior),
    "channels": (g3nn.model.channels, CHANNELS, Channel),
    "outcomes": (g3nn.graph.outcomes, OUTCOMES, Outcome),
}
NOT_REGISTERED = {ModulePosterior}
"""It wraps a module that the user brings, so it has no name."""


DOCUMENTS = sorted(Path(__file__).parents[2].glob("docs/*.md"))


def is_named(name: str, text: str) -> bool:
    """Whether a text has a name as code or as the first cell of a row, alone or as a part of the name of a model."""
    word = rf"(?<![\w-])(?:\w+-)?{re.escape(name)}(?!\w)"
    code = re.findall(r"`([^`\n]+)`", text)
    cells = re.findall(r"^\| *([^|`]+?) *\|", text, re.MULTILINE)
    return any(re.search(word, part) for part in code) or any(re.fullmatch(word, cell) for cell in cells)


SHARED = {f"g3nn.graph.outcomes.{name}" for name in ("labels", "numbers", "warps")}
SHARED |= {"g3nn.model.channels.confusion", "g3nn.model.likelihoods.latent"}
"""Modules with what components share or are made of."""


def modules(package: ModuleType) -> list[ModuleType]:
    """Every module of a package but the one with the contract."""
    names = [info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [importlib.import_module(name) for name in names if not name.endswith(".base")]


def defined_in(module: ModuleType, contract: type) -> list[type]:
    """The components that a module defines: neither those it imports nor what several components share."""
    classes = [member for _, member in inspect.getmembers(module, inspect.isclass) if not inspect.isabstract(member)]
    return [one for one in classes if one.__module__ == module.__name__ and issubclass(one, contract)]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_component_is_registered(family):
    package, registry, contract = FAMILIES[family]
    found = {component for module in modules(package) for component in defined_in(module, contract)}
    assert found - NOT_REGISTERED == set(registry.values())
    assert len(set(registry.values())) == len(registry), "no component has two names"


def test_exceptions_exist_and_are_not_registered():
    registered = {component for _, registry, _ in FAMILIES.values() for component in registry.values()}
    assert not NOT_REGISTERED & registered


@pytest.mark.parametrize("family", FAMILIES)
def test_every_registered_name_is_offered_and_documented(family):
    names = set(FAMILIES[family][1])
    assert names == set(available()[family])
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    assert texts
    assert {name for name in names if not any(is_named(name, text) for text in texts)} == set()


NAMED = {
    "the prior `linear` is small": True,
    "train `--model sbm-linear`": True,
    "| linear | 0.8 |": True,
    "| lsm-linear | 0.8 |": True,
    "a linear model": False,
    "a `bilinear` model": False,
    "`nonlinear`": False,
    "| bilinear | 0.8 |": False,
    "`one` linear `two`": False,
}


def test_what_names_a_component():
    assert {text: is_named("linear", text) for text in NAMED} == NAMED


@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_holds_one_component_that_is_final_and_says_what_it_is(family):
    """A concrete component is not the base of another: behaviour is composed, not overridden."""
    package, _, contract = FAMILIES[family]
    for module in modules(package):
        defined = defined_in(module, contract)
        assert len(defined) == (module.__name__ not in SHARED), module.__name__
        assert inspect.getdoc(module), module.__name__
        for component in defined:
            assert [one for one in component.__subclasses__() if one.__module__.startswith("g3nn.")] == [], component
            assert vars(component)["__doc__"], component


@pytest.mark.parametrize("family", FAMILIES)
def test_names_can_be_typed(family):
    """Lower case, and no likelihood contains the dash that separates it from a posterior."""
    for name in FAMILIES[family][1]:
        assert name == name.lower()
        assert name.replace("-", "").isalnum()
        assert family != "likelihoods" or "-" not in name
