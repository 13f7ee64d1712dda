"""The packages that g3nn and its extras bring along, and the licence of each, as their metadata state it.

python tools/licences.py            # a table of all that are installed here
python tools/licences.py --check    # fails at a licence that tools/licences.toml does not allow
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
CLASSIFIER = "License :: OSI Approved :: "


def declared() -> list[str]:
    """What pyproject.toml asks for, with every extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]


def closure(requirements: Iterable[str]) -> tuple[dict[str, Distribution], set[str]]:
    """Every package that these need here, by name, and the names of those that are not installed."""
    found: dict[str, Distribution] = {}
    absent: set[str] = set()
    waiting, seen = [(Requirement(one), "") for one in requirements], set()
    while waiting:
        wanted, extra = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(wanted.name)
        for own in {"", *wanted.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, own))
            try:
                found[name] = distribution(wanted.name)
            except PackageNotFoundError:
                absent.add(name)
                continue
            waiting += [(Requirement(one), own) for one in found[name].requires or ()]
    return dict(sorted(found.items())), absent


def direct(requirements: Iterable[str]) -> set[str]:
    """The packages that these name and that are needed here, without extras."""
    named = [Requirement(one) for one in requirements]
    return {canonicalize_name(one.name) for one in named if one.marker is None or one.marker.evaluate({"extra": ""})}


def licence(package: Distribution) -> str:
    """An SPDX expression where there is one, else the classifiers, else the first line of the text."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [line for line in metadata.get_all("Classifier") or () if line.startswith(CLASSIFIER)]
    if classifiers:
        return " AND ".join(line.removeprefix(CLASSIFIER) for line in classifiers)
    return str(metadata.get("License") or "").strip().partition("\n")[0].strip() or "unknown"


def is_allowed(stated: str, names: set[str]) -> bool:
    """Whether every part of an expression is allowed, or of alternatives one."""
    if stated in names:
        return True
    parts = [part.strip(" ()") for part in re.split(r"\bAND\b", stated)]
    return all(any(one.strip(" ()") in names for one in re.split(r"\bOR\b", part)) for part in parts)


def refused(packages: dict[str, Distribution]) -> dict[str, str]:
    """The packages whose licence is not allowed, with it."""
    rules = tomllib.loads((ROOT / "tools" / "licences.toml").read_text())
    names, known = set(rules["allowed"]), rules["packages"]
    stated = {name: licence(package) for name, package in packages.items()}
    return {
        name: words
        for name, words in stated.items()
        if words != known.get(name, {}).get("states") and not is_allowed(words, names)
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    packages, absent = closure(declared())
    if not wanted.check:
        for name, package in packages.items():
            print(f"{name:40} {package.version:15} {licence(package)}")
        for name in sorted(absent):
            print(f"{name:40} not installed")
        return 0
    bad = refused(packages)
    for name, words in bad.items():
        print(f"{name}: {words}: not allowed by tools/licences.toml", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
