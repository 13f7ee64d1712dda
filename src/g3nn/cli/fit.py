"""`g3nn fit`: from a table of nodes and a table of edges to labels, suspicious edges and a model."""

from __future__ import annotations

import json
import math
import shlex
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from g3nn.cli import NOTES, TYPED
from g3nn.cli.options import Alpha, AsJson, DropUnknownEdges, Keep, Quiet, Strict, Track

if TYPE_CHECKING:
    from g3nn.estimator import GraphEstimator
    from g3nn.estimator.fitted import Fitted
    from g3nn.graph.outcomes import Outcome
    from g3nn.graph.tables.graph import TableGraph

PAGE = "report.html"

_TABLE = "CSV, Parquet or Excel (.xlsx)"

NodesFile = Annotated[Path, typer.Option(metavar="FILE", help=f"Table with one row per node: {_TABLE}.")]
EdgesFile = Annotated[Path, typer.Option(metavar="FILE", help=f"Table with one row per edge: {_TABLE}.")]
IdColumn = Annotated[str, typer.Option(metavar="COL", help="Column of the node table with the ids.")]
LabelColumns = Annotated[
    list[str],
    typer.Option(metavar="COL", help="Column with the labels; empty where unknown. Repeatable: a column for each tag."),
]
OutPath = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR|FILE",
        help="A new or empty folder for the results, or a file for the answers alone: .csv, .parquet or .xlsx.",
    ),
]
TextColumns = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="Column of words, which become TF-IDF features. Repeatable.")
]
CategoricalColumns = Annotated[
    list[str] | None, typer.Option(metavar="COL", help="Column of categories written as numbers. Repeatable.")
]
IgnoredColumns = Annotated[list[str] | None, typer.Option(metavar="COL", help="Column to leave out. Repeatable.")]
SplitColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="Column of train, val and test; by default one called split. Test labels only judge."
    ),
]
SourceColumn = Annotated[
    str | None,
    typer.Option(metavar="COL", help="First end of an edge; by default source, src, from, or the first column."),
]
TargetColumn = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Second end of an edge; by default target, dst, to, or the second column."),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Weights of the edges; by default a column called weight. none: all count alike."),
]
NullWords = Annotated[
    list[str] | None, typer.Option(metavar="WORD", help="A further word for an unknown value. Repeatable.")
]

SWITCH = {"auto": "auto", "yes": True, "no": False}
Denoise = Annotated[
    str,
    typer.Option(help="Doubt edges that features and labels do not explain: auto (if validation says so), yes or no."),
]
LabelNoise = Annotated[
    str,
    typer.Option(help="Look for wrong labels and train on what they probably are: auto (if many are), yes or no."),
]
PriorName = Annotated[
    str,
    typer.Option(
        help="Who learns labels from features alone: auto (a network), trees (boosted trees of scikit-learn), or "
        "linear-model (its logistic, ridge or Poisson regression)."
    ),
]


def fit(
    nodes: NodesFile,
    edges: EdgesFile,
    id: IdColumn,
    label: LabelColumns,
    out: OutPath = None,
    text: TextColumns = None,
    categorical: CategoricalColumns = None,
    ignore: IgnoredColumns = None,
    split: SplitColumn = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    weight: WeightColumn = None,
    directed: Annotated[bool, typer.Option("--directed", help="Edges have a direction.")] = False,
    outcome: Annotated[
        str,
        typer.Option(
            help="What labels are: classes, tags, real (numbers), counts, or auto: tags in several columns, numbers if "
            "there are fractions or many different whole numbers, else classes."
        ),
    ] = "auto",
    na: NullWords = None,
    keep_na: Annotated[
        bool, typer.Option("--keep-na", help="NA, N/A, nan, null, None, ? and - are values like any other.")
    ] = False,
    drop_unknown_edges: DropUnknownEdges = False,
    strict: Strict = False,
    model: Annotated[str, typer.Option(help="auto (try a panel of models), or a name such as sbm-gcn.")] = "auto",
    objective: Annotated[str, typer.Option(help="auto, elbo, released or laplacian.")] = "auto",
    prior: PriorName = "auto",
    effort: Annotated[str, typer.Option(help="How much is tried: quick, default or thorough.")] = "default",
    budget: Annotated[float | None, typer.Option(help="Seconds that may be spent on trying models.")] = None,
    denoise: Denoise = "auto",
    label_noise: LabelNoise = "auto",
    ensemble: Annotated[int, typer.Option(help="Number of replicas whose answers are averaged.")] = 5,
    alpha: Alpha = 0.1,
    no_audit: Annotated[bool, typer.Option("--no-audit", help="Do not judge the edges.")] = False,
    keep: Keep = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how the tables are read, and stop.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    track: Track = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn from the labels of some nodes and answer for all of them.

    Writes a folder with the model, predictions.parquet, edges.parquet (the least likely edges first), labels.parquet
    (the given labels, the most suspicious first) and report.html to look at. Each row of the predictions has the id,
    the label that was given, its role (train, validation, test or unlabelled) and the answer. Of classes that is label,
    probabilities, entropy, a set of classes that holds the true one 9 times in 10, and has_edges; of tags the likely
    ones and their probabilities; of numbers mean, deviation, and low and high ends of an interval that holds the true
    one 9 times in 10.
    """
    from g3nn.base.errors import Problems
    from g3nn.cli.results import as_file, check_out, kept
    from g3nn.estimator.problem import check_parameters, check_share
    from g3nn.graph.outcomes import OUTCOMES, Classes
    from g3nn.graph.tables.graph import read_tables
    from g3nn.model.tabular import NAMED
    from g3nn.training.tracking import tracker

    start, problems = time.perf_counter(), Problems()
    check_out(out, [nodes, edges], dry_run, problems)
    check_share("alpha", alpha, problems)
    chosen: dict[str, Any] = {"objective": objective, "ensemble": ensemble, "device": device}
    chosen |= {"effort": effort, "budget": budget, "denoise": SWITCH.get(denoise, "auto")}
    chosen["label_noise"] = SWITCH.get(label_noise, "auto")
    chosen |= {"model": model, "random_state": seed, "verbose": not (as_json or quiet), "directed": directed}
    told_of = tracker(track, problems)
    guessed = outcome if outcome in OUTCOMES else Classes.name
    problems.name("prior", prior, ("auto", *NAMED))
    problems.name("denoise", denoise, SWITCH)
    problems.name("label_noise", label_noise, SWITCH)
    check_parameters(_estimator(guessed, prior, chosen).get_params(deep=False), OUTCOMES[guessed], problems)
    graph = read_tables(
        nodes,
        edges,
        id=id,
        label=label,
        text=text or (),
        categorical=categorical or (),
        ignore=ignore or (),
        split=split,
        source=source,
        target=target,
        weight=weight,
        directed=directed,
        outcome=outcome,
        na=na or (),
        keep_na=keep_na,
        drop_unknown_edges=drop_unknown_edges,
        strict=strict,
        problems=problems,
    )
    told: dict[str, Any] = {"schema": [one._asdict() for one in graph.columns]}
    if not (as_json or quiet):
        _show_columns(graph)
    if not dry_run:
        assert out is not None
        classifier = _estimator(graph.outcome, prior, chosen).fit(graph, track=told_of)
        told = summary(classifier, graph) | told
        columns = graph.nodes.content if keep else None

        def write(place: Path) -> None:
            if as_file(out):
                write_answers(classifier, place, alpha, columns)
            else:
                write_results(classifier, graph, told["test"], place, alpha, columns, audited=not no_audit)

        with kept(lambda elsewhere: write(elsewhere / out.name)):
            write(out)
        told |= {"out": str(out), "seconds": time.perf_counter() - start}
    told["notes"] = list(NOTES)
    if as_json:
        print(json.dumps(told))
    elif not dry_run and not quiet:
        _show(told)


def _estimator(outcome: str, prior: str, chosen: dict[str, Any]) -> GraphEstimator:
    """prior: the name of an estimator of scikit-learn, of the kind that the outcome needs; otherwise there is none."""
    from g3nn.estimator import estimator_for
    from g3nn.graph.outcomes import OUTCOMES
    from g3nn.model.tabular import NAMED

    named = {"prior": NAMED[prior](OUTCOMES[outcome])} if prior in NAMED else {}
    return estimator_for(outcome, {**chosen, **named})


def write_answers(classifier: GraphEstimator, out: Path, alpha: float, kept: Any) -> None:
    from g3nn.base.folders import replacing
    from g3nn.graph.tables.frames import write_table

    with replacing(out) as draft:
        write_table(classifier.answer_table(alpha=alpha, keep=kept), draft)


def write_results(
    classifier: GraphEstimator,
    graph: TableGraph,
    test: dict[str, Any] | None,
    out: Path,
    alpha: float,
    kept: Any,
    audited: bool = True,
) -> None:
    """Everything that a fit leaves behind. `test`: how good the answers for test nodes are, if there are any.

    The edges are audited before the model is saved, so that what was learned about them is saved too.
    """
    from g3nn.base.folders import new_folder
    from g3nn.cli.results import edges_table, labels_table
    from g3nn.estimator.saving import MODEL
    from g3nn.estimator.showing import audit_or_note
    from g3nn.graph.tables.frames import write_table
    from g3nn.pages import write_model_report

    ids = graph.nodes.ids
    found = audit_or_note(classifier.audit_edges) if audited else None
    with new_folder(out) as folder:
        classifier.save(folder / MODEL)
        write_table(classifier.answer_table(alpha=alpha, keep=kept), folder / "predictions.parquet")
        write_table(edges_table(ids, classifier.task_.edges, found), folder / "edges.parquet")
        write_table(labels_table(ids, classifier), folder / "labels.parquet")
        title = f"Labels for {Path(graph.nodes.name).name}"
        command = shlex.join(TYPED)
        nodes = graph.nodes.content
        write_model_report(classifier, folder / PAGE, nodes=nodes, title=title, audit=found, test=test, command=command)


def summary(classifier: GraphEstimator, graph: TableGraph) -> dict[str, Any]:
    """What was fitted and how well, as JSON has it."""
    task, fitted = classifier.task_, classifier.fitted_
    outcome = fitted.outcome
    test = None
    if graph.test.size:
        test = classifier.evaluate(graph.test, graph.test_labels)
    return {
        "nodes": task.num_nodes,
        "edges": task.num_edges,
        "features": task.num_features,
        "outcome": graph.outcome,
        _columns_key(outcome): classifier.fitted_.columns.tolist(),
        "train": len(task.train),
        "val": len(task.val),
        "model": classifier.model_,
        "objective": " + ".join(dict.fromkeys(network.objective for network in fitted.answerer.networks)),
        "panel": [_finite(asdict(entry)) for entry in classifier.panel_],
        **_finite({f"val_{outcome.score_key}": fitted.val_score, "val_loss": fitted.val_loss}),
        "test": test,
        "labels": None if fitted.labels is None else _labels(fitted),
    }


def _labels(fitted: Fitted) -> dict[str, Any]:
    """How many labels were judged and are expected to be wrong, and whether models were trained on what they are."""
    assert fitted.labels is not None
    wrong = fitted.labels.wrong
    return {"judged": len(wrong), "expected_wrong": float(wrong.sum()), "corrected": fitted.corrected}


def _columns_key(outcome: Outcome | type[Outcome]) -> str:
    """Where a summary lists the classes, the tags, or the columns of numbers."""
    return outcome.name if outcome.pooled else "columns"


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no infinity, the loss of a model that diverged, and no NaN, that of one without validation nodes."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def _show_columns(graph: TableGraph) -> None:
    """How each column was read. Of columns of one kind in a row, a table with many shows the first ones."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("column", "kind", "missing", "became"):
        table.add_column(heading, justify="right" if heading == "missing" else "left", overflow="fold")
    shown = graph.columns[:_MOST_COLUMNS]
    for one in shown:
        table.add_row(one.column, one.kind, f"{one.missing:,}" if one.missing else "", one.became)
    console = Console()
    console.print(table)
    if len(graph.columns) > len(shown):
        console.print(f"and {len(graph.columns) - len(shown):,} more columns")


_MOST_COLUMNS = 40


def _show(told: dict[str, Any]) -> None:
    from g3nn.graph.outcomes import OUTCOMES

    outcome = OUTCOMES[told["outcome"]]
    sizes = f"{told['nodes']:,} nodes, {told['edges']:,} edges, {told['features']:,} features"
    what = f", {len(told[_columns_key(outcome)])} {outcome.columns_title}" if outcome.pooled else ""
    print(f"{sizes}{what}; {told['train']} labels to train on, {told['val']} to validate on")
    score = told[f"val_{outcome.score_key}"]
    judged = "not validated" if score is None else f"validation {outcome.score_title} {score:.3f}"
    print(f"model {told['model']}, {judged}")
    if told["labels"] and told["labels"]["expected_wrong"] >= 1:
        some = "; models were trained on what labels probably are" if told["labels"]["corrected"] else ""
        print(f"about {told['labels']['expected_wrong']:.0f} of {told['labels']['judged']} labels may be wrong{some}")
    if told["test"]:
        print("test " + ", ".join(f"{words} {told['test'][name]:.4g}" for name, words in outcome.measures.items()))
    page = f"; look at {Path(told['out']) / PAGE}" if Path(told["out"]).is_dir() else ""
    print(f"results in {told['out']}, {told['seconds']:.1f} s{page}")
