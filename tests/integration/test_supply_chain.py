"""Pins, hashes and licences of everything that g3nn brings along, and the bill of materials of a release."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PINNED = (ROOT / "constraints.txt").read_text()
LOCKED = (ROOT / "requirements.lock").read_text()


@pytest.fixture(scope="module")
def tool() -> Any:
    """The names of a script in tools."""
    sys.path.insert(0, str(ROOT / "tools"))
    yield lambda name: runpy.run_path(str(ROOT / "tools" / f"{name}.py"))
    sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def pins(tool) -> dict[str, str]:
    found: dict[str, str] = tool("lock")["pins"](PINNED)
    assert len(found) == PINNED.count("=="), "a pin was overlooked, or is there twice"
    return found


@pytest.fixture(scope="module")
def brought(tool) -> tuple[dict[str, Any], set[str]]:
    """Every package that g3nn and its extras need here, and those that are not installed."""
    licences = tool("licences")
    found: tuple[dict[str, Any], set[str]] = licences["closure"](licences["declared"]())
    return found


def test_every_package_that_comes_along_is_pinned_as_it_is_installed(pins, brought):
    installed, absent = brought
    assert len(installed) > 100
    versions = {name: package.version.partition("+")[0] for name, package in installed.items()}
    assert {name: version for name, version in versions.items() if pins.get(name) != version} == {}
    assert absent - pins.keys() == set()


def test_lower_bounds_admit_what_is_tested_and_nothing_has_an_upper_one(tool, pins):
    for text in tool("licences")["declared"]():
        wanted = Requirement(text)
        assert [one.operator for one in wanted.specifier] == [">="], text
        assert wanted.specifier.contains(pins[tool("lock")["normal"](wanted.name)]), text


def test_the_lock_has_the_pins_and_a_hash_of_each(tool, pins):
    lock = tool("lock")
    assert lock["pins"](re.sub(r"\[[\w,-]+\]==", "==", LOCKED)) == {
        name: version for name, version in pins.items() if name not in lock["LEFT_OUT"]
    }, "run python tools/lock.py"
    for name, lines in lock["entries"](LOCKED).items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", lines), name


def test_every_licence_is_allowed(tool, brought):
    assert tool("licences")["refused"](brought[0]) == {}


def test_exceptions_are_still_needed(tool, brought):
    rules = tomllib.loads((ROOT / "tools" / "licences.toml").read_text())
    stated = {name: tool("licences")["licence"](brought[0][name]) for name in rules["packages"]}
    assert stated == {name: rule["states"] for name, rule in rules["packages"].items()}
    assert all(rule["why"] for rule in rules["packages"].values())


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("MIT", True),
        ("BSD-3-Clause AND (MIT OR GPL-3.0-only)", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("unknown", False),
    ],
)
def test_what_an_expression_allows(tool, stated, expected):
    assert tool("licences")["is_allowed"](stated, {"MIT", "BSD-3-Clause"}) is expected


def test_a_licence_that_is_not_allowed_is_found(tool):
    class Package:
        def __init__(self, **metadata: str) -> None:
            self.metadata = self
            self.get = {name.replace("_", "-"): value for name, value in metadata.items()}.get

        def get_all(self, _: str) -> list[str]:
            return []

    packages = {"one": Package(License_Expression="MIT"), "two": Package(License="Sold by the hour\n...")}
    assert tool("licences")["refused"](packages) == {"two": "Sold by the hour"}


def test_the_bill_of_materials_lists_what_users_install(tool, brought):
    bill = tool("sbom")["bill"]()
    listed = {part["name"]: part for part in bill["components"]}
    assert {"torch", "torch-geometric", "starlette", "tensorboard"} <= listed.keys() <= brought[0].keys()
    assert not {"pytest", "mypy", "igraph"} & listed.keys()
    assert all(part["version"] == brought[0][name].version and part["licenses"] for name, part in listed.items())
    refs = {part["bom-ref"] for part in [*bill["components"], bill["metadata"]["component"]]}
    assert len(refs) == len(listed) + 1
    assert {one["ref"] for one in bill["dependencies"]} == refs
    assert all(set(one["dependsOn"]) <= refs for one in bill["dependencies"])
