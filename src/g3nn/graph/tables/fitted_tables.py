"""What a model that was fitted on tables must remember to answer for the rows of later tables."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import DataError
from g3nn.graph.tables.edge_table import NO_WEIGHT, EdgeColumns
from g3nn.graph.tables.graph import TableGraph
from g3nn.graph.tables.node_table import NodeColumns
from g3nn.graph.tables.schema import ColumnRead, FeatureSchema


@dataclass(frozen=True)
class FittedTables:
    """The names of the columns, how they become features, and the ids of the fitted nodes in their order.

    ids:   as text, also if they are `whole` numbers.
    typed: whether the node table says that ids are numbers or text.
    read:  how each column of the node table was read.
    test, test_values: the test nodes by number, and their labels as numbers, which the fit did not see.
    """

    node_columns: NodeColumns
    edge_columns: EdgeColumns
    schema: FeatureSchema
    ids: list[str]
    whole: bool
    typed: bool
    read: tuple[ColumnRead, ...]
    test: list[int]
    test_values: list[Any]

    @classmethod
    def of(cls, graph: TableGraph) -> FittedTables:
        nodes = graph.nodes
        ids, whole = pc.cast(nodes.ids, pa.large_string()).to_pylist(), pa.types.is_integer(nodes.ids.type)
        held_out = [] if graph.test_labels is None else graph.test_labels.values.tolist()
        return cls(
            nodes.columns,
            # Edges that counted alike in the fit will do so later.
            replace(graph.edge_columns, weight=graph.edge_columns.weight or NO_WEIGHT),
            graph.schema,
            ids,
            whole,
            nodes.typed,
            graph.columns,
            graph.test.tolist(),
            held_out,
        )

    @cached_property
    def node_ids(self) -> pa.Array:
        """(n,) int64 or text."""
        return pc.cast(pa.array(self.ids, pa.large_string()), pa.int64() if self.whole else pa.large_string())

    def to_json(self) -> dict[str, Any]:
        """As plain lists, mappings, numbers and texts."""
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return content

    @classmethod
    def from_json(cls, content: Any) -> FittedTables:
        """What `to_json` gave. Nothing in it is trusted."""
        from pydantic import TypeAdapter, ValidationError

        try:
            return TypeAdapter(FittedTables).validate_json(json.dumps(content), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise DataError(f"what the model remembers of its tables is damaged ({reason}).") from error
