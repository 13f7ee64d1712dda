"""Whether the tables are still those that a project began with, and what is different if not."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from g3nn.base.errors import Problems
from g3nn.graph.tables.graph import TableGraph
from g3nn.graph.tables.remarks import counted, listed

Facts = dict[str, Any]


def digest_of(graph: TableGraph, nodes: Path, edges: Path) -> Facts:
    """The two files by their content, and parts of it to say what has changed."""
    content, ids = graph.nodes.content, pc.cast(graph.nodes.ids, pa.large_string())
    return {
        "nodes": _of_file(nodes),
        "edges": _of_file(edges),
        "rows": content.num_rows,
        "pairs": int(graph.edges.shape[1]),
        "ids": _of_array(ids.take(pc.sort_indices(ids))),
        "columns": {name: _of_array(content[name].combine_chunks()) for name in content.column_names},
    }


def differences(before: Facts, now: Facts) -> list[str]:
    """What has changed, in words; nothing if both files are as they were."""
    if (before["nodes"], before["edges"]) == (now["nodes"], now["edges"]):
        return []
    found, old, new = [], before["columns"], now["columns"]
    if before["rows"] != now["rows"]:
        found.append(f"{before['rows']:,} rows became {now['rows']:,}")
    elif before["ids"] != now["ids"]:
        found.append("other ids")
    parts = {
        "new columns": [name for name in new if name not in old],
        "columns that are gone": [name for name in old if name not in new],
        "other values in": [name for name in new if name in old and new[name] != old[name]],
    }
    found += [f"{what} {listed(names)}" for what, names in parts.items() if names]
    if before["edges"] != now["edges"]:
        same = " as before, but others or in another order" if before["pairs"] == now["pairs"] else ""
        found.append(
            f"{counted(before['pairs'], 'edge')} became {now['pairs']:,}" if not same else f"as many edges{same}"
        )
    return found or ["the same content in other bytes"]


def check_ids(before: Facts, now: Facts, answered: list[str], ids: pa.Array, problems: Problems) -> None:
    """Answers are kept by id, so a project goes on only with the ids that it began with."""
    if before["ids"] == now["ids"]:
        return
    known = pc.is_in(pa.array(answered, pa.large_string()), value_set=pc.cast(ids, pa.large_string()))
    lost = [one for one, there in zip(answered, known.to_pylist(), strict=True) if not there]
    gone = f"; {counted(len(lost), 'answered id')} no longer there ({listed(lost)})" if lost else ""
    problems.add(
        "nodes",
        f"a table that has changed since the project began: {'; '.join(differences(before, now))}{gone}",
        "a table with the same ids",
        "Bring the former table back, or begin another project with another --out. All answers are kept; --export "
        "writes them to a file.",
    )


def _of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _of_array(values: pa.Array) -> str:
    made = hashlib.sha256(str(values.type).encode())
    for buffer in values.buffers():
        made.update(b"-" if buffer is None else memoryview(buffer))
    return made.hexdigest()[:16]
