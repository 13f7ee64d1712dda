"""A column of times: the latest labels validate, and no edge speaks for a label that is older than the edge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import counted, refuse
from g3nn.graph.tables.cells import date_formats, decimal_of, floats, is_number, is_text, known, numbers, plain
from g3nn.graph.tables.edge_table import Located
from g3nn.graph.tables.encoders import is_date, seconds_of
from g3nn.graph.tables.remarks import Remarks, listed

LATEST = 0.2
"""The share of the labels that validates."""


class Times(NamedTuple):
    """values: (m,), NaN where unknown. dated: whether these are seconds since 1970."""

    values: np.ndarray
    dated: bool

    def shown(self, value: float) -> str:
        if not self.dated:
            return f"{value:g}"
        return str(np.datetime64(int(value), "s")).replace("T", " ").removesuffix(" 00:00:00")


def read_times(place: str, column: pa.ChunkedArray, nulls: tuple[str, ...]) -> Times:
    cells = known(plain(column, typed=False), nulls)
    given = cells.drop_null()
    if is_date(cells.type):
        return Times(seconds_of(cells, ""), dated=True)
    if is_number(cells.type):
        return Times(floats(cells), dated=False)
    if is_text(cells.type) and len(given):
        as_numbers = numbers(cells, decimal_of(given))
        if as_numbers.null_count == cells.null_count:
            return Times(floats(as_numbers), dated=False)
        if formats := date_formats(given):
            return Times(seconds_of(cells, formats[0]), dated=True)
    refuse(place, f"values such as {listed(pc.unique(given)[:2])}", "dates or numbers")


def by_time(
    column: str,
    nodes: tuple[str, pa.Table],
    edges: tuple[str, Located | None],
    labelled: np.ndarray,
    nulls: tuple[str, ...],
    remarks: Remarks,
) -> tuple[Located | None, np.ndarray]:
    """The edges without those that are later than a labelled node at either end; and of the labelled nodes the latest,
    to validate. nodes, edges: with the names of their tables. The time of a node is in a column of its table, and else
    that of its last edge."""
    (nodes_name, table), (edges_name, stated), none = nodes, edges, labelled[:0]
    content = None if stated is None else stated.content
    of_nodes, of_edges = (
        None
        if part is None or column not in part.column_names
        else read_times(f"{name}, column {column!r}", part[column], nulls)
        for name, part in ((nodes_name, table), (edges_name, content))
    )
    if of_nodes is None and of_edges is None:
        every = [*table.column_names, *([] if content is None else content.column_names)]
        remarks.name("time", column, sorted(set(every)))
        return stated, none
    place, n = f"{nodes_name}, column {column!r}", table.num_rows
    if of_nodes is None:
        assert of_edges is not None
        assert stated is not None
        last, place = np.full(n, -np.inf), f"{edges_name}, column {column!r}"
        for ends in stated.edges.pairs:
            np.fmax.at(last, ends[ends < n], of_edges.values[ends < n])
        of_nodes = Times(last, of_edges.dated)
    elif of_edges is not None and of_edges.dated != of_nodes.dated:
        words = [("numbers", "dates")[one.dated] for one in (of_nodes, of_edges)]
        refuse(f"time {column!r}", f"{words[0]} of nodes and {words[1]} of edges", "dates in both, or numbers in both")
    times = of_nodes.values[labelled]
    if np.isnan(times).any():
        refuse(place, f"{counted(int(np.isnan(times).sum()), 'label')} without a time", "a time for each label")
    latest = labelled[np.argsort(times, kind="stable")][len(labelled) - max(1, round(LATEST * len(labelled))) :]
    if of_edges is not None and place.startswith(nodes_name) and stated is not None:
        until = np.full(int(stated.edges.pairs.max(initial=n - 1)) + 1, np.inf)
        until[labelled] = times
        kept = ~(of_edges.values > until[stated.edges.pairs].min(axis=0))
        left_out = {**stated.left_out, "later than the label of an end": int((~kept).sum())}
        stated = stated.where(kept)._replace(left_out=left_out)
    first = of_nodes.shown(of_nodes.values[latest].min()) if np.isfinite(times).any() else "the last edge"
    remarks.notes.append(f"{place}: the {counted(len(latest), 'latest label')}, from {first}, validate")
    return stated, latest
