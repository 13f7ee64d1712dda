"""What a model that was fitted on tables must remember to answer for the rows of later tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from g3nn.data.tables.edge_table import EdgeColumns
from g3nn.data.tables.graph import TableGraph
from g3nn.data.tables.node_table import NodeColumns
from g3nn.data.tables.schema import FeatureSchema
from g3nn.errors import DataError


@dataclass(frozen=True)
class TableNotes:
    """The names of the columns, how they become features, and the ids of the fitted nodes in their order.

    ids:   as text, also if they are `whole` numbers.
    typed: whether the node table says that ids are numbers or text.
    """

    node_columns: NodeColumns
    edge_columns: EdgeColumns
    schema: FeatureSchema
    ids: list[str]
    whole: bool
    typed: bool

    @classmethod
    def of(cls, graph: TableGraph, columns: NodeColumns) -> TableNotes:
        nodes, columns = graph.nodes, replace(columns, split=graph.nodes.split_column)
        ids, whole = pc.cast(nodes.ids, pa.large_string()).to_pylist(), pa.types.is_integer(nodes.ids.type)
        return cls(columns, graph.edge_columns, graph.schema, ids, whole, nodes.typed)

    @cached_property
    def node_ids(self) -> pa.Array:
        """(n,) int64 or text."""
        return pc.cast(pa.array(self.ids, pa.large_string()), pa.int64() if self.whole else pa.large_string())

    def to_json(self) -> dict[str, Any]:
        from pydantic import TypeAdapter

        content: dict[str, Any] = TypeAdapter(TableNotes).dump_python(self, mode="json")
        return content

    @classmethod
    def from_json(cls, content: Any) -> TableNotes:
        """What `to_json` gave. Nothing in it is trusted."""
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(TableNotes).validate_json(json.dumps(content), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise DataError(
                f"the model was not fitted on tables by g3nn, or its notes are damaged ({reason})."
            ) from error
