"""What a model that was fitted on tables must remember, to answer for the rows of later ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import pyarrow as pa

from g3nn.data.tables.columns import is_text
from g3nn.data.tables.graph import TableGraph
from g3nn.data.tables.reading import EdgeColumns, NodeColumns
from g3nn.data.tables.schema import FeatureSchema
from g3nn.errors import DataError


@dataclass(frozen=True, eq=False)
class TableNotes:
    """The names of the columns, how features are made of them, and the ids of the fitted nodes in their order.

    typed: whether the node table said that ids are numbers or text.
    """

    node_columns: NodeColumns
    edge_columns: EdgeColumns
    schema: FeatureSchema
    ids: pa.Array
    typed: bool

    @classmethod
    def of(cls, graph: TableGraph, columns: NodeColumns) -> TableNotes:
        columns = replace(columns, split=graph.nodes.split_column)
        return cls(columns, graph.edge_columns, graph.schema, graph.nodes.ids, graph.nodes.typed)

    def to_json(self) -> dict[str, Any]:
        columns = asdict(self.node_columns)
        return {
            "node_columns": {
                name: list(value) if isinstance(value, tuple) else value for name, value in columns.items()
            },
            "edge_columns": asdict(self.edge_columns),
            "schema": self.schema.to_json(),
            "ids": self.ids.to_pylist(),
            "text_ids": is_text(self.ids.type),
            "typed": self.typed,
        }

    @classmethod
    def from_json(cls, content: Any) -> TableNotes:
        """What `to_json` gave; raises where it is something else."""
        try:
            ids = pa.array(content["ids"], pa.large_string() if content["text_ids"] else pa.int64())
            node_columns = NodeColumns(**_columns(NodeColumns, content["node_columns"]))
            edge_columns = EdgeColumns(**_columns(EdgeColumns, content["edge_columns"]))
            return cls(
                node_columns, edge_columns, FeatureSchema.from_json(content["schema"]), ids, bool(content["typed"])
            )
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            raise DataError("the model was not fitted on tables by g3nn, or its notes are damaged.") from error


def _columns(kind: type, content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise TypeError(kind.__name__)
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    if set(found) != {field.name for field in fields(kind)}:
        raise KeyError(kind.__name__)
    return found
