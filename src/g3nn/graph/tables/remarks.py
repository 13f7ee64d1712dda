"""What is said about tables: problems, notes on what was unusual and what was done about it, and parts of sentences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from g3nn.base.errors import DataError, Problems, warn_caller
from g3nn.graph.outcomes.labels import quoted

_LONGEST = 60


def listed(values: Sequence[object] | np.ndarray) -> str:
    """The first values of a sequence or an array, not too long, and how many more there are."""
    items = values.tolist() if isinstance(values, np.ndarray | pa.Array | pa.ChunkedArray) else values
    short = [f"{item[:_LONGEST]}..." if isinstance(item, str) and len(item) > _LONGEST else item for item in items]
    return quoted(short)


class Oddity(NamedTuple):
    """Something that is seldom meant. done: what becomes of it."""

    found: str
    allowed: str
    done: str
    advice: str = ""


@dataclass
class Remarks(Problems):
    """Problems of tables, which end a command, and notes, which do not.

    strict: whether every oddity is a problem. A note that is added to `notes` directly never is.
    """

    strict: bool = False
    notes: list[str] = field(default_factory=list)
    _columns: dict[tuple[str, Oddity], list[str]] = field(default_factory=lambda: defaultdict(list))

    def note(self, place: str, found: str, allowed: str, done: str, advice: str = "") -> None:
        """An `Oddity` of a place."""
        if self.strict:
            self.add(place, found, allowed, advice)
        else:
            self.notes.append(f"{place}: {found}; {done}{'. ' if advice else ''}{advice}")

    def column(self, table: str, name: str, oddity: Oddity) -> None:
        """A note about one column; columns of one table with the same oddity share a note."""
        self._columns[table, oddity].append(name)

    def tell(self) -> None:
        """Give out the notes as warnings; each is given once."""
        for (table, oddity), names in self._columns.items():
            self.note(f"{table}, column{'s' if len(names) > 1 else ''} {quoted(names)}", *oddity)
        self._columns.clear()
        for text in self.notes:
            warn_caller(text)

    @contextmanager
    def of_table(self, argument: str) -> Iterator[None]:
        """Collect what is wrong with a table and with its content."""
        try:
            with self.gathered():
                yield
        except DataError as error:
            self.add(argument, str(error).removesuffix("."), "a table: CSV, Parquet, Excel, JSON or a data frame")
