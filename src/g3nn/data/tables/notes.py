"""What a model that was fitted on tables must remember to answer for the rows of later tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, Any

from annotated_types import MinLen

from g3nn.data.tables.edge_table import EdgeColumns
from g3nn.data.tables.graph import TableGraph
from g3nn.data.tables.node_table import NodeColumns
from g3nn.data.tables.schema import FeatureSchema
from g3nn.errors import DataError


@dataclass(frozen=True)
class TableNotes:
    """The names of the columns, how they become features, and the ids of the fitted nodes in their order.

    typed: whether the node table says that ids are numbers or text.
    """

    node_columns: NodeColumns
    edge_columns: EdgeColumns
    schema: FeatureSchema
    ids: Annotated[list[int] | list[str], MinLen(1)]
    typed: bool

    @classmethod
    def of(cls, graph: TableGraph, columns: NodeColumns) -> TableNotes:
        columns = replace(columns, split=graph.nodes.split_column)
        return cls(columns, graph.edge_columns, graph.schema, graph.nodes.ids.to_pylist(), graph.nodes.typed)

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
            where = ".".join(map(str, first["loc"])) or "all of them"
            advice = "the model was not fitted on tables by g3nn, or its notes are damaged"
            raise DataError(f"{advice} ({where}: {first['msg']}).") from error
