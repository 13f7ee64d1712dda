"""The tables of an audit: edges, pairs that lack one, and labels, the most suspicious first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from g3nn.graph.tables.frames import html_table, native_frame

if TYPE_CHECKING:
    from pandas import DataFrame

_ROW = np.dtype([("rank", np.int64), ("source", np.int64), ("target", np.int64), ("probability", np.float64)])


LABEL_ROW = np.dtype(
    [("rank", np.int64), ("node", np.int64), ("given", object), ("answer", object), ("probability", np.float64)]
)
TYPE_ROW = np.dtype([("type", object), ("edges", np.int64), ("suspicious", np.int64)])


def probably_wrong(table: np.ndarray) -> np.ndarray:
    """The labels that are more probably wrong than right, and something else."""
    return table[(table["probability"] > 0.5) & (table["given"] != table["answer"])]


@dataclass(frozen=True, eq=False)
class AuditTables:
    """Structured arrays with the columns rank (from 1), source, target and probability, and where edges have types,
    type: the names of those that join a pair, or of a missing one the only one that can. Nodes are those of the
    caller: ids after a fit with ids, otherwise numbers.

    edges:   every observed edge, the most suspicious first.
    missing: pairs without an edge that probably should have one, the likeliest first.
    labels:  every given label, the most suspicious first, with the columns rank, node, given, answer (what it probably
             is) and probability (that the given label is wrong), by models that have not seen it.
    types:   every type with its number of edges, and how many of these have a probability below 0.5.
    """

    edges: np.ndarray
    missing: np.ndarray
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=LABEL_ROW))
    types: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=TYPE_ROW))

    def named(self, ids: pa.Array) -> AuditTables:
        """With ids (n,) in place of node numbers."""
        return replace(self, **{name: with_ids(getattr(self, name), ids) for name in ("edges", "missing", "labels")})

    def to_frame(self) -> tuple[DataFrame | pa.Table, DataFrame | pa.Table]:
        """Edges and missing ones, as pandas data frames (Arrow tables without pandas)."""
        return native_frame(_arrow(self.edges)), native_frame(_arrow(self.missing))

    def _repr_html_(self) -> str:
        tables = {"Edges, the least likely first": self.edges, "Pairs that seem to lack an edge": self.missing}
        tables |= {"Labels, the most suspicious first": self.labels} | (
            {"Types": self.types} if len(self.types) else {}
        )
        return "".join(html_table(_arrow(rows), title, most=10) for title, rows in tables.items())


def with_ids(rows: np.ndarray, ids: pa.Array) -> np.ndarray:
    """Rows with ids (n,) in place of node numbers."""
    names, called = rows.dtype.names or (), ids.to_numpy(zero_copy_only=False)
    of_nodes = [name for name in names if name in ("source", "target", "node")]
    table = rows.astype([(name, called.dtype if name in of_nodes else rows.dtype[name]) for name in names])
    for name in of_nodes:
        table[name] = called[rows[name]]
    return table


def _arrow(rows: np.ndarray) -> pa.Table:
    return pa.table({name: rows[name] for name in rows.dtype.names or ()})


def ranked_pairs(
    pairs: np.ndarray, probability: np.ndarray, order: np.ndarray, types: list[str] | None = None
) -> np.ndarray:
    """Rows in the given order, ranked from 1. types: of each row."""
    table = np.empty(order.size, dtype=_ROW if types is None else [*_ROW.descr, ("type", object)])
    if types is not None:
        table["type"] = types
    table["rank"] = np.arange(1, order.size + 1)
    table["source"], table["target"] = pairs[:, order]
    table["probability"] = probability[order]
    return table
