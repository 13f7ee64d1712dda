"""What a page shows of nodes, one at a time: their columns, pictures and links, and the edges around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.graph.relations import backwards
from g3nn.graph.tables.cells import is_text, known, plain
from g3nn.graph.tables.graph import TableGraph
from g3nn.labelling.project import Json
from g3nn.pages.described import NAMES, clean, text_of

MOST_COLUMNS, LONGEST_CELL, LONGEST_TEXT = 40, 300, 20_000
"""The most columns of a node that are shown, and the most letters of a cell and of a text."""

NEAR, FAR, FAR_OF_ONE = 12, 18, 3
"""The most neighbours that are drawn, and the most neighbours of neighbours, in all and of each."""

MOST_COUNTED = 5_000
"""Of a node with more neighbours, the first ones are counted."""

PICTURES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif"}
PICTURES |= {".webp": "image/webp", ".avif": "image/avif"}


@dataclass(frozen=True)
class ShownColumns:
    """Which columns play a part on the page."""

    label: str
    title: str | None = None
    text: tuple[str, ...] = ()
    image: str | None = None
    url: str | None = None


class Records:
    """The node table by row, and the graph by neighbourhoods. Rows are numbers; ids are texts."""

    def __init__(self, graph: TableGraph, shown: ShownColumns, folder: Path) -> None:
        self.graph, self.shown, self.folder = graph, shown, folder.resolve()
        self.size = graph.nodes.num_nodes
        self.content = graph.nodes.content
        own = {graph.nodes.columns.id, shown.label, shown.title, shown.image, shown.url, *shown.text}
        self._others = [name for name in self.content.column_names if name not in own]

    @cached_property
    def ids(self) -> pa.Array:
        return pc.cast(self.graph.nodes.ids, pa.large_string())

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {id: row for row, id in enumerate(self.ids.to_pylist())}

    def row(self, id: str) -> int | None:
        """None if there is no such id."""
        return self._rows.get(id)

    def rows(self, ids: Iterable[str]) -> np.ndarray:
        """Of many ids at once; those that do not exist are left out."""
        return np.array([self._rows[id] for id in ids if id in self._rows], dtype=np.int64)

    def id(self, row: int) -> str:
        return str(self.ids[row].as_py())

    def named(self, row: int) -> tuple[str, str]:
        """The id and the title of a node, as lists show it."""
        return self.id(row), self.title(row)

    @cached_property
    def given(self) -> tuple[np.ndarray, list[str]]:
        """The labels in the table: (n,) positions among the classes, -1 where there is none, and the classes."""
        nothing = np.full(self.size, -1, dtype=np.int64)
        if self.shown.label not in self.content.column_names:
            return nothing, []
        cells = plain(self.content[self.shown.label], self.graph.nodes.typed)
        if not is_text(cells.type):
            if pa.types.is_floating(cells.type):
                cells = pc.if_else(pc.is_nan(cells), None, cells)
                whole = pc.all(pc.equal(cells, pc.floor(cells))).as_py() is not False
                cells = pc.cast(cells, pa.int64()) if whole else cells
            cells = pc.cast(cells, pa.large_string())
        cells = known(cells, self.graph.nodes.columns.nulls)
        names = sorted(cells.unique().drop_null().to_pylist())
        codes = pc.fill_null(pc.index_in(cells, value_set=pa.array(names, cells.type)), -1)
        return codes.to_numpy().astype(np.int64), names

    def _text(self, column: str | None, row: int, longest: int = LONGEST_TEXT) -> str | None:
        return None if column is None else text_of(self.content[column][row].as_py(), longest)

    def title(self, row: int) -> str:
        return self._text(self._title_column, row, LONGEST_CELL) or self.id(row)

    @cached_property
    def _title_column(self) -> str | None:
        if self.shown.title is not None:
            return self.shown.title
        by_name = {name.lower().replace(" ", "_"): name for name in self._others}
        return next((by_name[name] for name in NAMES if name in by_name), None)

    def record(self, row: int) -> Json:
        """Everything that a page shows of a node itself."""
        shown = self.shown
        cells = {name: self.content[name][row].as_py() for name in self._others if name != self._title_column}
        # Of many columns, most are zeros: word counts and indicators.
        if len(cells) > MOST_COLUMNS:
            cells = {name: cell for name, cell in cells.items() if cell not in (0, False)}
        told = [(clean(name), text) for name, cell in cells.items() if (text := text_of(cell, LONGEST_CELL))]
        texts = [(clean(name), self._text(name, row)) for name in shown.text]
        link, picture = self._text(shown.url, row), self._text(shown.image, row)
        return {
            "id": clean(self.id(row)),
            "title": clean(self.title(row)),
            "texts": [(name, text) for name, text in texts if text],
            "columns": told[:MOST_COLUMNS],
            "more_columns": max(len(told) - MOST_COLUMNS, 0),
            "url": {"text": link, "safe": urlsplit(link).scheme in ("http", "https")} if link else None,
            "picture": {"text": picture, "here": self.picture(row) is not None} if picture else None,
        }

    def picture(self, row: int) -> Path | None:
        """A picture below the folder of the table; None if there is none, or if the cell points anywhere else."""
        cell = None if self.shown.image is None else self.content[self.shown.image][row].as_py()
        if not isinstance(cell, str) or "\0" in cell:
            return None
        try:
            path = (self.folder / cell).resolve()
            there = path.is_relative_to(self.folder) and path.suffix.lower() in PICTURES and path.is_file()
        except (OSError, ValueError):
            return None
        return path if there else None

    @cached_property
    def _near(self) -> tuple[np.ndarray, np.ndarray]:
        """Neighbours of all nodes in a row, and where those of each begin."""
        source, target = self.graph.edges
        ends = np.concatenate([source, target])
        order = np.argsort(ends, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=self.size))])
        return np.concatenate([target, source])[order], starts

    def prepare(self) -> None:
        """What takes a moment in a large graph, before the first question."""
        _ = self._near, self.given, self._rows

    def neighbours(self, row: int, most: int = MOST_COUNTED) -> np.ndarray:
        """Each once, without the node itself; of more than `most` the first."""
        others, starts = self._near
        near = others[starts[row] : min(starts[row + 1], starts[row] + most)]
        _, first = np.unique(near, return_index=True)
        near = near[np.sort(first)]
        return near[near != row]

    def by_type(self, row: int) -> dict[str, list[int]]:
        """Neighbours by the type of their edges, as this node sees them; none where all edges and nodes are alike."""
        relations, found = self.graph.relations, dict[str, list[int]]()
        if relations is None or relations.alike:
            return found
        for at in np.flatnonzero((relations.pairs == row).any(axis=0)).tolist():
            type, (source, target) = int(relations.types[at]), relations.pairs[:, at].tolist()
            back = bool(relations.directed[type]) and target == row
            name = relations.names[type]
            found.setdefault(backwards(name) if back else name, []).append(source if target == row else target)
        return found

    def kind(self, row: int) -> str | None:
        """Of a node; None where all are of one kind."""
        relations = self.graph.relations
        if relations is None or len(relations.kind_names) == 1:
            return None
        return relations.kind_names[relations.kinds[row]]

    def surroundings(self, row: int, first: Iterable[int] = ()) -> tuple[list[int], list[tuple[int, int]]]:
        """Nodes to draw, the middle first and then its neighbours, and edges as pairs of places among them.

        first: neighbours that come before others, such as those with a label."""
        near, wanted = self.neighbours(row).tolist(), set(first)
        near = sorted(near, key=lambda node: node not in wanted)[:NEAR]
        places = {node: place for place, node in enumerate([row, *near])}
        pairs = [(0, places[node]) for node in near]
        for node in near:
            further = self.neighbours(node, 50).tolist()
            pairs += [(places[node], places[one]) for one in further if one in places and node < one != row]
            new = [one for one in further if one not in places][:FAR_OF_ONE]
            for one in new[: max(0, 1 + NEAR + FAR - len(places))]:
                places[one] = len(places)
                pairs.append((places[node], places[one]))
        return list(places), pairs
