"""Components by name: those of g3nn, and those that other installed packages offer by entry points.

A package names what it offers in its `pyproject.toml`, such as

    [project.entry-points."g3nn.likelihoods"]
    hubs = "my_package.hubs:HubBlock"

Nothing of it is imported before the name is looked up or all names are listed. What cannot be used is left out with one
warning, so that no other package can break g3nn.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any, Generic, TypeVar

from g3nn.base.errors import warn_caller
from g3nn.base.options import Rule

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Components by name. group: of the entry points. contract: the class to derive from; None: anything to call.

    dash: whether a name may contain one.
    """

    def __init__(self, group: str, contract: type | None, own: Mapping[str, T], *, dash: bool = True) -> None:
        self.group = group
        self.contract = contract
        self.own = dict(own)
        self.dash = dash
        self._loaded: dict[str, T | None] = {}
        self._lock = RLock()

    def __getitem__(self, name: str) -> T:
        if not isinstance(name, str):
            raise KeyError(name)
        if name in self.own:
            return self.own[name]
        found = self._load(name) if name in self._offered else None
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        for name in self._offered:
            if self._load(name) is not None:
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def package(self, name: str) -> tuple[str, str] | None:
        """Name and version of the package that offers a component; None if g3nn itself or no package does."""
        return None if name in self.own or name not in self._offered else _package(self._offered[name])

    @cached_property
    def _offered(self) -> dict[str, EntryPoint]:
        """The entry points of other packages by name, without those that share a name."""
        offered: dict[str, list[EntryPoint]] = {}
        for point in sorted(_installed(self.group), key=lambda point: (point.name, _package(point))):
            offered.setdefault(point.name, []).append(point)
        for name, points in offered.items():
            others = " and ".join(_package(point)[0] for point in points[1:])
            if name in self.own:
                _warn(points[0], "g3nn has a component of this name. Ask for another name")
            elif others:
                _warn(points[0], f"{others} offers the same name. Uninstall all of them but one")
        return {name: points[0] for name, points in offered.items() if name not in self.own and len(points) == 1}

    def _load(self, name: str) -> T | None:
        """What an entry point names; None, with a warning at the first time, if it cannot be used."""
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = None  # For a package that lists all names while it is imported.
                point = self._offered[name]
                try:
                    found: T = point.load()
                except (Exception, SystemExit) as error:
                    failed = f"{type(error).__name__}: {error}"
                    _warn(point, f"it cannot be imported ({failed}). Update or uninstall the package")
                else:
                    if fault := self._fault(name, found):
                        _warn(point, f"{fault}. Tell the authors of the package")
                    else:
                        self._loaded[name] = found
            return self._loaded[name]

    def _fault(self, name: str, found: Any) -> str:
        """Why something cannot be used under a name; empty if it can."""
        if not re.fullmatch("[a-z][a-z0-9-]*" if self.dash else "[a-z][a-z0-9]*", name):
            return f"a name has only lower-case letters{', digits and dashes' if self.dash else ' and digits'}"
        if self.contract is None:
            return "" if callable(found) else f"it is {found!r}, not a function that makes a task"
        if not (isinstance(found, type) and issubclass(found, self.contract)):
            return f"it is {found!r}, not a class derived from {self.contract.__name__}"
        if missing := sorted(getattr(found, "__abstractmethods__", ())):
            return f"{found.__name__} lacks {', '.join(missing)}"
        if (called := getattr(found, "name", name)) != name:
            return f"{found.__name__} calls itself {called!r}"
        served = getattr(found, "outcomes", ())
        if not (isinstance(served, tuple) and all(map(inspect.isclass, served))):
            return f"outcomes of {found.__name__} is {served!r}, not a tuple of classes"
        options = getattr(found, "Options", None)
        if not (isinstance(options, type) and dataclasses.is_dataclass(options)):
            return f"Options of {found.__name__} is no dataclass"
        bare = [one.name for one in dataclasses.fields(options) if not isinstance(one.metadata.get("rule"), Rule)]
        return f"options of {found.__name__} without limits: {', '.join(bare)}" if bare else ""


@cache
def _installed(group: str) -> tuple[EntryPoint, ...]:
    try:
        return tuple(entry_points(group=group))
    except Exception as error:
        why = f"the metadata of some installed package cannot be read ({type(error).__name__}: {error})"
        warn_caller(f"{why}: components of other packages are not found.")
        return ()


def _package(point: EntryPoint) -> tuple[str, str]:
    """Its name and version."""
    dist = point.dist
    return ("an unknown package", "") if dist is None else (dist.name or "an unknown package", dist.version or "")


def _warn(point: EntryPoint, why: str) -> None:
    what = f"the entry point {point.name} = {point.value!r} of {point.group} in {_package(point)[0]}"
    warn_caller(f"{what} is left out: {why}.")
