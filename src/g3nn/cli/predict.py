"""`g3nn predict`: answers of a fitted model for new nodes, with or without edges."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from g3nn.cli import NOTES
from g3nn.cli.options import Alpha, AsJson, DropUnknownEdges, Keep, Precision, Quiet, Recall, Strict

if TYPE_CHECKING:
    from g3nn.base.errors import Problems
    from g3nn.estimator import GraphEstimator


def predict(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `g3nn fit` or `save` wrote.")],
    nodes: Annotated[list[Path], typer.Option(metavar="FILE", help="Table as for the fit. Repeatable as there.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file to write: .csv, .parquet or .xlsx.")],
    edges: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Table of edges among new nodes and those of the fit. Repeatable."),
    ] = None,
    drop_unknown_edges: DropUnknownEdges = False,
    strict: Strict = False,
    recall: Recall = None,
    precision: Precision = None,
    alpha: Alpha = 0.1,
    keep: Keep = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Answer for the nodes of a table, without a new fit.

    Columns are read as they were for the fit; a label column is not looked at. An id that was in the fit stands for the
    node of the fit. Writes the same columns as the predictions of `g3nn fit`.
    """
    from g3nn.base.errors import Problems, counted
    from g3nn.cli.by_class import by_class, numbers, thresholds, with_choices
    from g3nn.cli.results import check_file
    from g3nn.estimator.problem import check_share
    from g3nn.estimator.saving import RECORD
    from g3nn.estimator.showing import write_file
    from g3nn.graph.tables.files import Source
    from g3nn.graph.tables.fitted_tables import read_new_nodes
    from g3nn.graph.tables.kinds import alone
    from g3nn.graph.tables.remarks import Remarks

    problems = Problems()
    remarks = Remarks(problems.found, strict)
    check_file(out, [*nodes, *(edges or [])], problems)
    check_share("alpha", alpha, problems)
    wanted = {"recall": recall, "precision": precision}
    classes = {name: numbers(name, text, problems) for name, text in wanted.items()}
    if (out.parent / RECORD).is_file():
        problems.add("out", out, "a file outside the folder of a model")
    estimator, asked = _load(folder, problems), None
    if estimator is not None:
        tables = estimator.fitted_.tables
        assert tables is not None
        classes = by_class(classes, type(estimator.fitted_.outcome), estimator.fitted_.columns.tolist(), problems)
        asked = read_new_nodes(tables, alone(nodes), alone(edges), remarks, drop_unknown=drop_unknown_edges)
    else:
        # Without a model nothing is known about the columns, but the files can be looked at.
        for argument, paths in {"nodes": nodes, "edges": edges or []}.items():
            for path in paths:
                with remarks.of_table(argument):
                    Source.open(path, argument, remarks)
    remarks.tell()
    problems.raise_if_any()
    assert asked is not None
    assert estimator is not None
    found = thresholds(estimator, classes)
    answers = estimator.answer_table(asked, alpha=alpha, keep=asked.content if keep else None)
    write_file(with_choices(answers, answers, found), out)
    told = {"out": str(out), "nodes": len(asked.numbers), "new": asked.count}
    told |= {"thresholds": [asdict(one) for one in found], "notes": list(NOTES)}
    if as_json:
        print(json.dumps(told))
    elif not quiet:
        for one in found:
            print(one)
        new = "is" if asked.count == 1 else "are"
        print(f"{counted(len(asked.numbers), 'node')}, of which {asked.count:,} {new} new; answers in {out}")


def _load(folder: Path, problems: Problems) -> GraphEstimator | None:
    """A model that was fitted on tables."""
    from g3nn.base.errors import DataError
    from g3nn.estimator import load_model

    given, advice = f"{folder}, where there is no model", ""
    if folder.is_dir():
        try:
            estimator: GraphEstimator = load_model(folder)
        except DataError as error:
            given = str(error).removesuffix(".")
        else:
            if estimator.fitted_.tables is not None:
                return estimator
            given, advice = f"{folder}, a model that was fitted on plain arrays", "Use it from Python."
    problems.add("folder", given, "a folder that `g3nn fit` wrote, or `save` after a fit on tables", advice)
    return None
