"""What a fit on tables leaves behind: a folder with the model, its answers, judged edges and labels, and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from g3nn.base.folders import new_folder, replacing
from g3nn.estimator.base import GraphEstimator
from g3nn.estimator.saving import MODEL
from g3nn.estimator.showing import audit_or_note
from g3nn.graph.tables.frames import write_table
from g3nn.graph.tables.graph import TableGraph
from g3nn.pages import write_model_report
from g3nn.queries import AuditTables

PAGE = "report.html"


def write_file(table: pa.Table, out: Path) -> None:
    """A table as one file, which appears whole or not at all."""
    with replacing(out) as draft:
        write_table(table, draft)


def write_results(
    estimator: GraphEstimator,
    graph: TableGraph,
    out: Path,
    *,
    alpha: float = 0.1,
    keep: pa.Table | None = None,
    audited: bool = True,
    command: str = "",
) -> None:
    """Everything that a fit leaves behind. keep: columns to put beside the answers. command: what was typed.

    The edges are audited before the model is saved, so that what was learned about them is saved too.
    """
    ids = graph.nodes.ids
    found = audit_or_note(estimator.audit_edges) if audited else None
    with new_folder(out) as folder:
        estimator.save(folder / MODEL)
        write_table(estimator.answer_table(alpha=alpha, keep=keep), folder / "predictions.parquet")
        write_table(_edges(ids, estimator.task_.edges, found), folder / "edges.parquet")
        write_table(_labels(ids, estimator), folder / "labels.parquet")
        write_model_report(
            estimator,
            folder / PAGE,
            nodes=graph.nodes.content,
            title=f"Labels for {Path(graph.nodes.name).name}",
            audit=found,
            test=scores_on_test(estimator, graph),
            command=command,
        )


def scores_on_test(estimator: GraphEstimator, graph: TableGraph) -> dict[str, Any] | None:
    """How good the answers for the test nodes of the tables are, if there are any."""
    return estimator.evaluate(graph.test, graph.test_labels) if graph.test.size else None


def _edges(ids: pa.Array, edges: np.ndarray, audit: AuditTables | None) -> pa.Table:
    """One row per edge, the least likely first: source, target, probability, rank (from 1); null without an audit."""
    if audit is None:
        nothing = {name: pa.nulls(edges.shape[1], kind) for name, kind in _JUDGED.items()}
        rows = {"source": edges[0], "target": edges[1], **nothing}
    else:
        rows = {name: audit.edges[name] for name in ("source", "target", *_JUDGED)}
    return pa.table({**rows, **{end: ids.take(pa.array(rows[end])) for end in ("source", "target")}})


def _labels(ids: pa.Array, estimator: GraphEstimator) -> pa.Table:
    """One row per given label, the most suspicious first: id, given, answer, probability (that it is wrong), rank (from
    1); no row where the fit did not judge them."""
    if estimator.fitted_.labels is None:
        words = {"id": ids.type, "given": pa.string(), "answer": pa.string()}
        return pa.schema({**words, **_JUDGED}).empty_table()
    rows = estimator.audit_labels()
    judged = {name: rows[name].tolist() for name in ("given", "answer", *_JUDGED)}
    return pa.table({"id": ids.take(pa.array(rows["node"])), **judged})


_JUDGED = {"probability": pa.float64(), "rank": pa.int64()}
