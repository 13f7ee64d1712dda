"""What was unusual about tables: notes on what was done about it or, for those who want it strict, problems."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from g3nn.base.errors import DataError, G3NNWarning, Problems
from g3nn.graph.outcomes.labels import quoted


class Oddity(NamedTuple):
    """Something that is seldom meant. done: what becomes of it."""

    found: str
    allowed: str
    done: str
    advice: str = ""


@dataclass
class Remarks:
    """Problems of tables, which end a command, and notes, which do not.

    strict: whether every oddity is a problem.
    """

    problems: Problems = field(default_factory=Problems)
    strict: bool = False
    notes: list[str] = field(default_factory=list)
    _columns: dict[tuple[str, Oddity], list[str]] = field(default_factory=lambda: defaultdict(list))

    def note(self, place: str, oddity: Oddity) -> None:
        if self.strict:
            self.problems.add(place, oddity.found, oddity.allowed, oddity.advice)
        else:
            text = f"{place}: {oddity.found}; {oddity.done}"
            self.notes.append(f"{text}. {oddity.advice}" if oddity.advice else text)

    def say(self, text: str) -> None:
        """A note on what the caller asked for, which is never a problem."""
        self.notes.append(text)

    def column(self, table: str, name: str, oddity: Oddity) -> None:
        """A note about one column; columns of one table with the same oddity share a note."""
        self._columns[table, oddity].append(name)

    def tell(self) -> None:
        """Give out the notes as warnings; each is given once."""
        for (table, oddity), names in self._columns.items():
            self.note(f"{table}, {columns(names)}", oddity)
        self._columns.clear()
        for text in self.notes:
            warnings.warn(text, G3NNWarning, stacklevel=3)

    @contextmanager
    def of_table(self, argument: str) -> Iterator[None]:
        """Collect what is wrong with a table and with its content."""
        try:
            with self.problems.gathered():
                yield
        except DataError as error:
            self.problems.add(argument, str(error).removesuffix("."), "a table: CSV, Parquet, Excel or a data frame")


def columns(names: Sequence[str]) -> str:
    """'column 'a'' or 'columns 'a', 'b''."""
    return f"column{'s' if len(names) > 1 else ''} {quoted(names)}"
