"""Tables as a page's script takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Column:
    """digits: how many after the point; None for words."""

    label: str
    digits: int | None = None


@dataclass(frozen=True)
class Table:
    """rows: a value for each column, None where there is none."""

    caption: str
    columns: tuple[Column, ...]
    rows: list[list[Any]]
