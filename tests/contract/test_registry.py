"""A component that nobody registered would escape the contract tests, so it fails here."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import g3nn.likelihoods
import g3nn.outcomes
import g3nn.posteriors
import g3nn.priors
from g3nn.catalogue import available
from g3nn.likelihoods import LIKELIHOODS, GraphLikelihood
from g3nn.outcomes import OUTCOMES, Outcome
from g3nn.posteriors import POSTERIORS, LabelPosterior, ModulePosterior
from g3nn.priors import PRIORS, LabelPrior

FAMILIES = {
    "likelihoods": (g3nn.likelihoods, LIKELIHOODS, GraphLikelihood),
    "priors": (g3nn.priors, PRIORS, LabelPrior),
    "posteriors": (g3nn.posteriors, POSTERIORS, LabelPosterior),
    "outcomes": (g3nn.outcomes, OUTCOMES, Outcome),
}
NOT_REGISTERED = {ModulePosterior}
"""It wraps a module that the user brings, so it has no name."""


def modules(package: ModuleType) -> list[ModuleType]:
    """Every module of a package but the one with the contract."""
    names = [info.name for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")]
    return [importlib.import_module(name) for name in names if not name.endswith(".base")]


def defined_in(module: ModuleType, contract: type) -> list[type]:
    """The components that a module defines, not those it imports."""
    classes = [member for _, member in inspect.getmembers(module, inspect.isclass)]
    return [one for one in classes if one.__module__ == module.__name__ and issubclass(one, contract)]


MODULES = [
    pytest.param(module, contract, id=module.__name__.removeprefix("g3nn."))
    for package, _, contract in FAMILIES.values()
    for module in modules(package)
]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_component_is_registered(family):
    package, registry, contract = FAMILIES[family]
    found = {component for module in modules(package) for component in defined_in(module, contract)}
    assert found - NOT_REGISTERED == set(registry.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_no_component_has_two_names(family):
    registry = FAMILIES[family][1]
    assert len(set(registry.values())) == len(registry)


def test_exceptions_exist_and_are_not_registered():
    registered = {component for _, registry, _ in FAMILIES.values() for component in registry.values()}
    assert not NOT_REGISTERED & registered


@pytest.mark.parametrize("family", FAMILIES)
def test_every_registered_name_is_documented(family):
    assert list(available()[family]) == list(FAMILIES[family][1])


@pytest.mark.parametrize(("module", "contract"), MODULES)
def test_a_file_holds_one_component(module, contract):
    assert len(defined_in(module, contract)) == 1


@pytest.mark.parametrize(("module", "contract"), MODULES)
def test_components_are_final(module, contract):
    """A concrete component is not the base of another: behaviour is composed, not overridden."""
    (component,) = defined_in(module, contract)
    assert [one for one in component.__subclasses__() if one.__module__.startswith("g3nn.")] == []


@pytest.mark.parametrize(("module", "contract"), MODULES)
def test_a_file_and_its_component_say_what_they_are(module, contract):
    tree = ast.parse(inspect.getsource(module))
    (component,) = defined_in(module, contract)
    (definition,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == component.__name__]
    assert ast.get_docstring(tree)
    assert ast.get_docstring(definition)


@pytest.mark.parametrize("family", FAMILIES)
def test_names_can_be_typed(family):
    """Lower case, and no likelihood contains the dash that separates it from a posterior."""
    for name in FAMILIES[family][1]:
        assert name == name.lower()
        assert name.replace("-", "").isalnum()
        assert family != "likelihoods" or "-" not in name
