"""What all components share, and the components of a package: one in each file, which has its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import ClassVar, Generic, cast

from torch import nn
from typing_extensions import TypeVar

from g3nn.base.options import NoOptions
from g3nn.graph.outcomes import Classes, Outcome
from g3nn.model.replicas import Replicas, Sizes

T = TypeVar("T")
Declared = TypeVar("Declared", default=object, covariant=True)


class Component(nn.Module, Generic[Declared]):
    """A part of a model, with the options that it declares."""

    Options: ClassVar[type] = NoOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Classes,)
    """The outcomes that it supports."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Declared | None = None) -> None:
        super().__init__()
        self.sizes = sizes
        self.options: Declared = options or self.Options()


def components(package: str, contract: Callable[..., T], names: tuple[str, ...]) -> dict[str, type[T]]:
    """The class derived from `contract` in each module of a package; a dash in a name is an underscore there."""
    found: dict[str, type[T]] = {}
    for name in names:
        module = import_module(f"{package}.{name.replace('-', '_')}")
        own = [part for part in vars(module).values() if inspect.isclass(part) and part.__module__ == module.__name__]
        fitting = [part for part in own if issubclass(part, cast(type[T], contract))]
        if len(fitting) != 1:
            raise TypeError(f"{module.__name__}: {len(fitting)} classes derive from {contract}, not one")
        found[name] = fitting[0]
    return found
