"""What `g3nn fit` and `g3nn predict` share: where results go, and edges as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from g3nn.data.tables.frames import TABLE_SUFFIXES, check_excel
from g3nn.errors import DataError, Problems
from g3nn.folders import check_new_file, check_new_folder

if TYPE_CHECKING:
    from g3nn.audit import AuditTables


def as_file(out: Path) -> bool:
    """Whether the answers alone are wanted, in one file."""
    return out.suffix.lower() in TABLE_SUFFIXES and not out.is_dir()


def check_out(out: Path | None, inputs: list[Path | None], dry_run: bool, problems: Problems) -> None:
    """Record why results cannot be written there: into a folder, or into a file that does not replace an input."""
    if dry_run:
        return
    if out is None:
        problems.add("out", "nothing", "a folder or a file for the results", "--dry-run needs none.")
    elif as_file(out):
        check_file(out, inputs, problems)
    else:
        check_new_folder(out, problems)


def check_file(out: Path, inputs: list[Path | None], problems: Problems) -> None:
    if out.suffix.lower() not in TABLE_SUFFIXES:
        problems.add("out", out, f"a file that ends in {', '.join(TABLE_SUFFIXES)}")
    elif any(path is not None and out.resolve() == path.resolve() for path in inputs):
        problems.add("out", out, "another file than the tables that are read")
    else:
        check_new_file(out, problems)
    try:
        check_excel(out)
    except DataError as error:
        problems.add("out", str(error), "a file that can be written")


def edges_table(ids: pa.Array, edges: np.ndarray, audit: AuditTables | None) -> pa.Table:
    """One row per edge, the least likely first: source, target, probability, rank (from 1); null without an audit."""
    if audit is None:
        source, target = (ids.take(pa.array(end)) for end in edges)
        probability, rank = (pa.nulls(edges.shape[1], kind) for kind in (pa.float64(), pa.int64()))
    else:
        source, target = (ids.take(pa.array(audit.edges[end])) for end in ("source", "target"))
        probability, rank = (pa.array(audit.edges[name]) for name in ("probability", "rank"))
    return pa.table({"source": source, "target": target, "probability": probability, "rank": rank})
