"""`g3nn fit`: from a table of nodes and a table of edges to labels, suspicious edges and a model."""

from __future__ import annotations

import json
import math
import time
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow.parquet as pa_parquet
import typer

from g3nn.cli.options import AsJson, DropUnknownEdges
from g3nn.cli.results import MISSING_EDGES, MODEL, NOTES, PAGE, answers_table, edges_table
from g3nn.data.folders import check_new_folder, new_folder
from g3nn.data.tables.edge_table import EdgeColumns
from g3nn.data.tables.graph import TableGraph, read_graph
from g3nn.data.tables.labels import AUTO
from g3nn.data.tables.node_table import NodeColumns, NodeTable
from g3nn.data.tables.notes import TableNotes
from g3nn.errors import G3NNWarning, InputError, Problems
from g3nn.outcomes import OUTCOMES, Classes, Outcome

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.estimator import GraphEstimator


NodesFile = Annotated[Path, typer.Option(metavar="FILE", help="Table with one row per node: CSV or Parquet.")]
EdgesFile = Annotated[Path, typer.Option(metavar="FILE", help="Table with one row per edge: CSV or Parquet.")]
IdColumn = Annotated[str, typer.Option(metavar="COL", help="Column of the node table with the ids.")]
LabelColumns = Annotated[
    list[str],
    typer.Option(metavar="COL", help="Column with the labels; empty where unknown. Repeatable: a column for each tag."),
]
OutFolder = Annotated[Path, typer.Option(metavar="DIR", help="A new or empty folder for the results.")]
TextColumns = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="Column of words, which become TF-IDF features. Repeatable.")
]
CategoricalColumns = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="Column of categories written as numbers. Repeatable.")
]
IgnoredColumns = Annotated[list[str] | None, typer.Option(metavar="COL", help="Column to leave out. Repeatable.")]
SplitColumn = Annotated[
    str | None, typer.Option(metavar="COL", help="Column of train, val and test [split]; test labels only judge.")
]
SourceColumn = Annotated[
    str | None, typer.Option(metavar="COL", help="First end of an edge [source, src, from, or the first column].")
]
TargetColumn = Annotated[
    str | None, typer.Option(metavar="COL", help="Second end of an edge [target, dst, to, or the second column].")
]
WeightColumn = Annotated[
    str | None, typer.Option(metavar="COL", help="Weights of the edges: 0 is no edge, others are all alike.")
]


def fit(
    nodes: NodesFile,
    edges: EdgesFile,
    id: IdColumn,
    label: LabelColumns,
    out: OutFolder,
    text: TextColumns = None,
    categorical: CategoricalColumns = None,
    ignore: IgnoredColumns = None,
    split: SplitColumn = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    weight: WeightColumn = None,
    outcome: Annotated[
        str,
        typer.Option(
            help="What labels are: classes, tags, real (numbers), counts, or auto: tags in several columns, "
            "real if there are fractions, else classes."
        ),
    ] = AUTO,
    drop_unknown_edges: DropUnknownEdges = False,
    model: Annotated[str, typer.Option(help="auto (try a panel of models), or a name such as sbm-gcn.")] = "auto",
    objective: Annotated[str, typer.Option(help="auto, elbo, released or laplacian.")] = "auto",
    ensemble: Annotated[int, typer.Option(help="Number of replicas whose answers are averaged.")] = 5,
    missing: Annotated[str, typer.Option(help="Missing numbers: error, or impute from the neighbours.")] = "error",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Learn from the labels of some nodes and answer for all of them.

    Writes a folder with the model, predictions.parquet, edges.parquet (the least likely edges first) and report.html to
    look at. Of classes, predictions are id, label, probabilities, entropy, a set of classes that holds the true one 9
    times in 10, and has_edges; of tags the likely ones and their probabilities; of numbers mean, deviation, and low and
    high ends of an interval that holds the true one 9 times in 10.
    """
    from g3nn.estimator import estimator_for
    from g3nn.estimator.request import check_parameters

    start, problems = time.perf_counter(), Problems()
    check_new_folder(out, problems)
    chosen: dict[str, Any] = {"objective": objective, "ensemble": ensemble, "missing": missing, "device": device}
    chosen |= {"model": model, "random_state": seed, "verbose": not as_json}
    problems.name("outcome", outcome, (AUTO, *OUTCOMES))
    special = tuple(text or ()), tuple(ignore or ()), tuple(categorical or ()), split
    columns = NodeColumns(id, tuple(label), *special, outcome if outcome in OUTCOMES else AUTO)
    ends = EdgeColumns(source, target, weight)
    graph = read_graph(nodes, edges, columns, ends, problems, missing=missing, drop_unknown=drop_unknown_edges)
    kind = graph.nodes.outcome if graph is not None else (Classes.name if outcome not in OUTCOMES else outcome)
    classifier = estimator_for(kind, chosen)
    check_parameters(classifier.get_params(deep=False), OUTCOMES[kind], problems)
    problems.raise_if_any()
    assert graph is not None
    classifier.fit(graph.features, graph.y, graph.edges, val=graph.val)
    classifier.notes_[NOTES] = TableNotes.of(graph, columns).to_json()
    told = summary(classifier, graph)
    with new_folder(out) as folder:
        write_results(classifier, graph.nodes, told["test"], folder)
    told |= {"out": str(out), "seconds": time.perf_counter() - start}
    if as_json:
        print(json.dumps(told))
    else:
        _show(told)


def write_results(classifier: GraphEstimator, nodes: NodeTable, test: dict[str, Any] | None, folder: Path) -> None:
    """Everything that a fit leaves behind. `test`: how good the answers for test nodes are, if there are any.

    The edges are audited before the model is saved, so that what was learned about them is saved too.
    """
    from g3nn.report import write_model_report

    task, ids = classifier.task_, nodes.ids
    audited = audit(classifier)
    tables = {
        "predictions.parquet": answers_table(classifier, ids),
        "edges.parquet": edges_table(ids, task.edges, audited),
    }
    classifier.save(folder / MODEL)
    for name, table in tables.items():
        pa_parquet.write_table(table, folder / name)
    title = f"Labels for {Path(nodes.name).name}"
    write_model_report(classifier, folder / PAGE, ids=ids.to_pylist(), title=title, audit=audited, test=test)


def audit(classifier: GraphEstimator) -> AuditTables | None:
    """How likely the edges are, and pairs that lack one; None where there is too little to learn from."""
    try:
        return classifier.audit(MISSING_EDGES)
    except InputError as error:
        warnings.warn(f"the edges could not be audited: {error}", G3NNWarning, stacklevel=2)
        return None


def summary(classifier: GraphEstimator, graph: TableGraph) -> dict[str, Any]:
    """What was fitted and how well, as JSON has it."""
    task, outcome = classifier.task_, classifier.fitted_.outcome
    chosen = next(entry for entry in classifier.panel_ if entry.chosen)
    test = None
    if graph.test.size:
        test = classifier.evaluate(graph.test, graph.test_y)
    return {
        "nodes": task.num_nodes,
        "edges": task.num_edges,
        "features": task.num_features,
        "outcome": graph.nodes.outcome,
        _columns_key(outcome): classifier.fitted_.columns.tolist(),
        "train": len(task.train),
        "val": len(task.val),
        "model": classifier.model_,
        "objective": chosen.objective,
        "panel": [_finite(asdict(entry)) for entry in classifier.panel_],
        f"val_{outcome.score_key}": chosen.val_score,
        "val_loss": chosen.val_loss,
        "test": test,
    }


def _columns_key(outcome: Outcome | type[Outcome]) -> str:
    """Where a summary lists the classes, the tags, or the columns of numbers."""
    return outcome.name if outcome.pooled else "columns"


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no infinity, which is the loss of a model that diverged."""
    return {name: None if value in (math.inf, -math.inf) else value for name, value in values.items()}


def _show(told: dict[str, Any]) -> None:
    outcome = OUTCOMES[told["outcome"]]
    sizes = f"{told['nodes']:,} nodes, {told['edges']:,} edges, {told['features']:,} features"
    what = f", {len(told[_columns_key(outcome)])} {outcome.columns_title}" if outcome.pooled else ""
    print(f"{sizes}{what}; {told['train']} labels to train on, {told['val']} to validate on")
    score = told[f"val_{outcome.score_key}"]
    print(f"model {told['model']} ({told['objective']}), validation {outcome.score_title} {score:.3f}")
    if told["test"]:
        print("test " + ", ".join(f"{words} {told['test'][name]:.4g}" for name, words in outcome.measures.items()))
    print(f"results in {told['out']}, {told['seconds']:.1f} s; look at {Path(told['out']) / PAGE}")
