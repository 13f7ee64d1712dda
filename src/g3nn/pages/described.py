"""What a table says about the nodes of a page: their ids, a name to show, and all other columns as text."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from g3nn.base.errors import Problems
from g3nn.base.parse import is_frame

if TYPE_CHECKING:
    from g3nn.graph.tables.fitted_tables import FittedTables

NAMES = ("name", "title", "full_name", "fullname", "display_name", "label")
"""Columns with the name of a node, the best first; without one, a column that ends so, such as team_name."""

MOST_COLUMNS, LONGEST, MOST_BYTES = 40, 300, 3_000_000
"""The most columns, letters of a cell, and bytes altogether that are embedded."""


@dataclass(frozen=True, eq=False)
class Described:
    """ids: (n,). title: the column with the names of the nodes, None if ids are all there is. columns: the texts of
    every other column, None where a cell is empty. left_out: how many columns are left out for their size."""

    ids: list[str]
    title: str | None = None
    columns: dict[str, list[str | None]] = field(default_factory=dict)
    left_out: int = 0

    def at(self, nodes: np.ndarray) -> dict[str, object]:
        """What a page shows of these nodes."""
        chosen = nodes.tolist()
        return {
            "ids": [self.ids[node] for node in chosen],
            "title": self.title,
            "columns": {name: [texts[node] for node in chosen] for name, texts in self.columns.items()},
            "columns_left_out": self.left_out,
        }


def described(n: int, tables: FittedTables | None, nodes: object, problems: Problems) -> Described:
    """nodes: a data frame with a row for each of the n fitted nodes, in the order of the fit, or None.

    Ids are those of the fit, if it was made with tables; else the column id, else numbers from 0.
    """
    ids = None if tables is None else [clean(one) for one in tables.ids]
    labels = set() if tables is None else set(tables.node_columns.labels)
    numbered = [str(node) for node in range(n)]
    if nodes is not None and not is_frame(nodes):
        problems.add("nodes", type(nodes).__name__, "a data frame with a row for each node of the fit")
        nodes = None
    if nodes is None:
        return Described(ids or numbered)
    import narwhals as nw

    frame = nw.from_native(nodes, eager_only=True)
    added = 0 if tables is None else tables.added
    if len(frame) != n - added:
        problems.add("nodes", f"{len(frame)} rows", f"one for each of the {n - added} nodes, in the order of the fit")
        return Described(ids or numbered)
    texts = {
        clean(name): [text_of(value, LONGEST) for value in [*frame[name].to_list(), *[None] * added]]
        for name in frame.columns
    }
    called = next((name for name in texts if name.lower() == "id"), "") if tables is None else tables.node_columns.id
    own = texts.pop(called or "", None)
    if ids is None:
        ids = numbered if own is None else [one or "" for one in own]
    kept = _affordable(texts)
    return Described(ids, _title(kept, labels), kept, len(texts) - len(kept))


def clean(value: object) -> str:
    """Text that can be written to a file: half a surrogate pair cannot."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def text_of(value: object, longest: int) -> str | None:
    """A cell as text, cut to a length; None if it is empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    text = f"{value:.6g}" if isinstance(value, float) else clean(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _affordable(texts: dict[str, list[str | None]]) -> dict[str, list[str | None]]:
    """The columns that fit into the page: those with a name for the nodes, then as they come."""
    kept, total = list[str](), 0
    for name in sorted(texts, key=lambda name: not _is_title(name)):
        size = sum(len((text or "").encode()) + 3 for text in texts[name])
        if len(kept) < MOST_COLUMNS and total + size <= MOST_BYTES:
            kept.append(name)
            total += size
    return {name: column for name, column in texts.items() if name in kept}


def _is_title(name: str) -> bool:
    return name.lower().replace(" ", "_") in NAMES or name.lower().endswith(("name", "title"))


def _title(texts: dict[str, list[str | None]], labels: set[str]) -> str | None:
    """A column that is called so and holds words."""
    likely = [name for name in texts if name not in labels and _is_title(name) and _are_words(texts[name])]
    known = [name for wanted in NAMES for name in likely if name.lower().replace(" ", "_") == wanted]
    return next(iter([*known, *likely]), None)


def _are_words(texts: list[str | None]) -> bool:
    return any(any(letter.isalpha() for letter in text) for text in texts if text is not None)
