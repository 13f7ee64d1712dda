"""Components as if another package offered them."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest

from g3nn.base.registry import Registry


def offer(patch: pytest.MonkeyPatch, registry: Registry[Any], name: str, component: Any, package: str = "hubs") -> None:
    """The registry finds the component under this name, and nothing else of other packages."""
    point = EntryPoint(name, f"{package}:{component.__name__}", registry.group)
    vars(point).update(dist=SimpleNamespace(name=package, version="1.2"))
    patch.setitem(vars(registry), "_offered", {name: point})
    patch.setitem(registry._loaded, name, component)
