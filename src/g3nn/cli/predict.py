"""`g3nn predict`: answers of a fitted model for new nodes, with or without edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import typer

from g3nn.cli.options import AsJson, DropUnknownEdges
from g3nn.cli.results import MODEL, NOTES, answers_table
from g3nn.data.folders import replacing
from g3nn.data.tables.files import PARQUET_SUFFIXES, TableFile
from g3nn.data.tables.graph import table_problems
from g3nn.data.tables.new_nodes import NewNodes, read_new_nodes
from g3nn.data.tables.notes import TableNotes
from g3nn.errors import DataError, Problems

if TYPE_CHECKING:
    from g3nn.estimator import GraphEstimator


def predict(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `g3nn fit` wrote.")],
    nodes: Annotated[Path, typer.Option(metavar="FILE", help="Table with the same columns as for the fit.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The Parquet file to write.")],
    edges: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Table of edges among new nodes and those of the fit.")
    ] = None,
    drop_unknown_edges: DropUnknownEdges = False,
    as_json: AsJson = False,
) -> None:
    """Answer for the nodes of a table, without a new fit.

    Columns are read as they were for the fit; a label column is not looked at. An id that was in the fit stands for the
    node of the fit. Writes the same columns as predictions.parquet.
    """
    problems = Problems()
    _check_out(out, folder, [nodes, edges], problems)
    loaded, asked = _load(folder, problems), None
    if loaded is not None:
        estimator, notes = loaded
        missing, drop = estimator.missing, drop_unknown_edges
        asked = read_new_nodes(notes, nodes, edges, problems, missing=missing, drop_unknown=drop)
    else:
        # Without a model nothing is known about the columns, but the files can be looked at.
        for argument, path in {"nodes": nodes, "edges": edges}.items():
            if path is not None:
                with table_problems(argument, problems):
                    TableFile.open(path)
    problems.raise_if_any()
    assert asked is not None
    with replacing(out) as draft:
        pa_parquet.write_table(_answer(estimator, asked), draft)
    told = {"out": str(out), "nodes": len(asked.numbers), "new": asked.count}
    if as_json:
        print(json.dumps(told))
    else:
        print(f"{told['nodes']} nodes, of which {told['new']} are new; answers in {out}")


def _check_out(out: Path, folder: Path, inputs: list[Path | None], problems: Problems) -> None:
    if out.suffix.lower() not in PARQUET_SUFFIXES:
        problems.add("out", out, "a file that ends in .parquet")
    elif out.is_dir():
        problems.add("out", out, "a file, not a folder")
    elif not out.absolute().parent.is_dir():
        problems.add("out", out, "a file in a folder that exists")
    elif any(path is not None and out.resolve() == path.resolve() for path in inputs):
        problems.add("out", out, "another file than the tables that are read")
    elif (folder / MODEL).resolve() in out.resolve().parents:
        problems.add("out", out, "a file outside the folder of the model")


def _load(folder: Path, problems: Problems) -> tuple[GraphEstimator, TableNotes] | None:
    from g3nn.estimator import load_model

    if not (folder / MODEL).is_dir():
        problems.add("folder", f"{folder}, where there is no model", "a folder that `g3nn fit` wrote")
        return None
    try:
        estimator = load_model(folder / MODEL)
        return estimator, TableNotes.from_json(estimator.notes_.get(NOTES))
    except DataError as error:
        problems.add("folder", str(error).removesuffix("."), "what `g3nn fit` wrote")
        return None


def _answer(estimator: GraphEstimator, asked: NewNodes) -> pa.Table:
    """Nodes of the fit and new ones in the order of the table."""
    n = estimator.task_.num_nodes
    parts = [answers_table(estimator, pa.array(np.arange(n)))]
    if asked.features is not None:
        numbers = pa.array(np.arange(n, n + asked.count))
        parts.append(answers_table(estimator, numbers, (asked.features, asked.edges)))
    rows = pa.concat_tables(parts).take(pa.array(asked.numbers))
    return rows.set_column(0, "id", asked.ids)
