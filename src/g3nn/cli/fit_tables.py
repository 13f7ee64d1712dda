"""What `g3nn fit` does with its options: check, read, fit, write, and say how it went."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table

from g3nn.base.errors import Problems, TrainingError, counted
from g3nn.cli import NOTES, TYPED
from g3nn.cli.by_class import CLASS_WEIGHT, by_class, numbers, thresholds, with_choices
from g3nn.cli.options import TableOptions, as_list
from g3nn.cli.results import as_file, check_out, kept
from g3nn.estimator import GraphEstimator, estimator_for
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.panel import Candidate
from g3nn.estimator.problem import check_parameters, check_share, read_problem
from g3nn.estimator.showing import PAGE, scores_on_test, write_file, write_results
from g3nn.graph.given import Given, take_apart
from g3nn.graph.outcomes import OUTCOMES, Classes, Outcome
from g3nn.graph.rare import ASKED, Threshold, in_words
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.model.tabular import NAMED
from g3nn.training.progress import Interrupted, interruptible, say
from g3nn.training.room import pilot
from g3nn.training.tracking import tracker

if TYPE_CHECKING:
    from g3nn.cli.fit import FitOptions

SWITCH: dict[str, str | bool] = {"auto": "auto", "yes": True, "no": False}

_PARAMETERS = ("model", "objective", "effort", "budget", "ensemble", "directed", "device")
"""What an estimator takes as it was typed."""
_MOST_COLUMNS = 40
_SOME_EPOCHS, _SOME_MODELS = 20, 3
"""By which time and memory are foreseen."""


def fit_tables(options: FitOptions) -> None:
    """Read the tables, fit, write the results and print a summary."""
    start, problems, out = time.perf_counter(), Problems(), options.out
    verbose = not (options.as_json or options.quiet)
    check_out(out, [*as_list(options.nodes), *as_list(options.edges)], options.dry_run, problems)
    check_share("alpha", options.alpha, problems)
    tracked = tracker(options.track, problems)
    classes = {name: numbers(name, getattr(options, name), problems) for name in (CLASS_WEIGHT, *ASKED)}
    problems.name("prior", options.prior, ("auto", *NAMED))
    problems.name("denoise", options.denoise, SWITCH)
    problems.name("label_noise", options.label_noise, SWITCH)
    guessed = options.outcome if options.outcome in OUTCOMES else Classes.name
    check_parameters(_estimator(options, guessed).get_params(deep=False), OUTCOMES[guessed], problems)
    shared = {field.name: getattr(options, field.name) for field in fields(TableOptions)}
    given = {name: value for name, value in shared.items() if value is not None}
    given |= {"target_kind": options.target_kind, "edges_from": options.edges_from or ()}
    graph = read_tables(**given, split=options.split, time=options.time, outcome=options.outcome, problems=problems)
    assert graph.labels is not None
    classes = by_class(classes, OUTCOMES[graph.outcome], graph.labels.names.tolist(), problems)
    problems.raise_if_any()
    summary: dict[str, Any] = {"schema": [one._asdict() for one in graph.columns]}
    if verbose:
        _show_columns(graph)
    if options.dry_run:
        summary |= _foreseen(_estimator(options, graph.outcome, classes[CLASS_WEIGHT]), graph)
    else:
        assert out is not None
        with interruptible() as asked:
            try:
                estimator = _estimator(options, graph.outcome, classes[CLASS_WEIGHT]).fit(graph, track=tracked)
            except Interrupted as error:
                raise TrainingError("interrupted before a model was trained to its end: nothing is written") from error
            options = replace(options, no_audit=True) if asked else options
        found = thresholds(estimator, classes)
        content = graph.nodes.content if options.keep else graph.nodes.content.select([])
        keep = with_choices(content, estimator.answer_table(), found) if found else content
        summary = _summary(estimator, graph) | summary | {"thresholds": [asdict(one) for one in found]}
        if verbose:
            audits = not (options.no_audit or as_file(out))
            say("auditing edges and writing results" if audits else "writing results")
        with kept(lambda elsewhere: _write(estimator, graph, elsewhere / out.name, options, keep)):
            _write(estimator, graph, out, options, keep)
        summary |= {"out": str(out), "seconds": time.perf_counter() - start}
    summary["notes"] = list(NOTES)
    if options.as_json:
        print(json.dumps(summary))
    elif verbose and options.dry_run:
        size = f"{counted(graph.nodes.num_nodes, 'node')} and {counted(graph.edges.shape[1], 'edge')}"
        room = f"{summary['bytes'] / 1e6:,.0f} MB beside the tables"
        print(f"{size}; to try models takes up to about {summary['seconds']:,.0f} s here, and {room}")
        print(
            "to look for wrong labels and judge edges comes on top, several times as much where many labels are wrong"
        )
    elif verbose:
        _show(summary)


def _estimator(options: FitOptions, outcome: str, weights: object = None) -> GraphEstimator:
    """With a label prior of scikit-learn where one is named, of the kind that the outcome needs, and class weights."""
    parameters = {name: getattr(options, name) for name in _PARAMETERS} | {
        "denoise": SWITCH.get(options.denoise, "auto"),
        "label_noise": SWITCH.get(options.label_noise, "auto"),
        "random_state": options.seed,
        "verbose": not (options.as_json or options.quiet),
    }
    if options.prior in NAMED:
        parameters["prior"] = NAMED[options.prior](OUTCOMES[outcome])
    return estimator_for(outcome, parameters if weights is None else {**parameters, "class_weight": weights})


def _write(estimator: GraphEstimator, graph: TableGraph, out: Path, options: FitOptions, keep: pa.Table) -> None:
    alpha = options.alpha
    if options.out is not None and as_file(options.out):
        write_file(estimator.answer_table(alpha=alpha, keep=keep), out)
    else:
        audited, command = not options.no_audit, shlex.join(TYPED)
        write_results(estimator, graph, out, alpha=alpha, keep=keep, audited=audited, command=command)


def _summary(estimator: GraphEstimator, graph: TableGraph) -> dict[str, Any]:
    """What was fitted and how well, as JSON has it. labels: how many were judged and are expected to be wrong, and
    whether models were trained on what they probably are. rare: how well validation nodes of rare classes are
    recognised."""
    task, fitted, outcome, labels = estimator.task_, estimator.fitted_, estimator.fitted_.outcome, None
    best = fitted.best_simple
    if fitted.labels is not None:
        wrong = fitted.labels.wrong
        labels = {"judged": len(wrong), "expected_wrong": float(wrong.sum()), "corrected": fitted.corrected}
    return {
        "nodes": task.num_nodes,
        "edges": task.num_edges,
        "features": task.num_features,
        "outcome": graph.outcome,
        _columns_key(outcome): fitted.columns.tolist(),
        "train": len(task.train),
        "val": len(task.val),
        "split": fitted.split,
        "model": estimator.model_,
        "objective": " + ".join(dict.fromkeys(network.objective for network in fitted.answerer.networks)),
        "panel": [_finite(asdict(entry)) for entry in estimator.panel_],
        **_finite({f"val_{outcome.score_key}": fitted.val_score, "val_loss": fitted.val_loss}),
        "best_simple": best and {"model": best.model, f"val_{outcome.score_key}": best.val_score},
        "rare": fitted.rare_scores,
        "test": scores_on_test(estimator, graph),
        "labels": labels,
    }


def _columns_key(outcome: Outcome | type[Outcome]) -> str:
    """Where a summary lists the classes, the tags, or the columns of numbers."""
    return outcome.name if outcome.pooled else "columns"


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity, the loss of a model that diverged, and no NaN, that of a model without validation nodes."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def _foreseen(estimator: GraphEstimator, graph: TableGraph) -> dict[str, float]:
    """The most seconds and bytes that a search takes, roughly, by some epochs on a small graph of the same make."""
    parameters, outcome = estimator.get_params(deep=False), OUTCOMES[graph.outcome]
    given = take_apart(Given(graph, None, None, None, graph.directed), Problems(), (graph.outcome,))
    problem = read_problem(parameters, outcome, given, Problems(), [])
    task, seeds, device = problem.task, problem.seeds[:1], parameters["device"]
    small, times = pilot(task)
    common = {**problem.common, "epochs": _SOME_EPOCHS}
    plans = [one.plan(common, seeds, device) for one in problem.candidates[:_SOME_MODELS]]
    needed = max(plan.bytes_of_epoch(small) for plan in plans)
    plan, start = Candidate("gcn", "elbo").plan(common, seeds, device), time.perf_counter()
    plan.fit(small, progress=False)
    epoch = times * (time.perf_counter() - start) / _SOME_EPOCHS
    if parameters["model"] == "auto":
        epochs = EFFORTS[parameters["effort"]].most_epochs(task, plan.device.type == "cpu", problem.common["epochs"])
    else:
        epochs = problem.candidates[0].price * parameters["ensemble"] * problem.common["epochs"]
    seconds = min(epoch * epochs, parameters["budget"] or math.inf)
    return {"seconds": seconds, "bytes": times * needed}


def _show_columns(graph: TableGraph) -> None:
    """How each column was read. Columns in a row that were read alike share a line where there are many."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("column", "kind", "missing", "became"):
        table.add_column(heading, justify="right" if heading == "missing" else "left", overflow="fold")
    many = len(graph.columns) > _MOST_COLUMNS
    for _, alike in groupby(graph.columns, key=lambda one: one[1:] if many else one):
        one, *others = alike
        name = f"{one.column} to {others[-1].column} ({len(others) + 1:,})" if others else one.column
        table.add_row(name, one.kind, f"{one.missing:,}" if one.missing else "", one.became)
    Console().print(table)


def _show(summary: dict[str, Any]) -> None:
    outcome = OUTCOMES[summary["outcome"]]
    sizes = f"{summary['nodes']:,} nodes, {summary['edges']:,} edges, {summary['features']:,} features"
    what = f", {len(summary[_columns_key(outcome)])} {outcome.columns_title}" if outcome.pooled else ""
    print(f"{sizes}{what}; {summary['split']}")
    score = summary[f"val_{outcome.score_key}"]
    judged = "not validated" if score is None else f"validation {outcome.score_title} {score:.3f}"
    print(f"model {summary['model']}, {judged}")
    if summary["best_simple"]:
        name, own = summary["best_simple"]["model"], summary["best_simple"][f"val_{outcome.score_key}"]
        print(f"the best simple model, {name}, has {own:.3f}")
    labels = summary["labels"]
    if labels and labels["expected_wrong"] >= 1:
        some = "; models were trained on what labels probably are" if labels["corrected"] else ""
        print(f"about {labels['expected_wrong']:.0f} of {labels['judged']} labels may be wrong{some}")
    _show_rare("validation", summary["rare"], summary["val"])
    for one in summary["thresholds"]:
        print(Threshold(**one))
    if test := summary["test"]:
        print("test " + ", ".join(f"{words} {test[name]:.4g}" for name, words in outcome.measures.items()))
        _show_rare("test", {name: test["classes"][name] for name in test.get("rare", ())}, test["nodes"])
    page = f"; look at {Path(summary['out']) / PAGE}" if Path(summary["out"]).is_dir() else ""
    print(f"results in {summary['out']}, {summary['seconds']:.1f} s{page}")


def _show_rare(where: str, rows: Mapping[str, Any], nodes: int) -> None:
    """How well rare classes are recognised, among so many nodes."""
    for name, row in rows.items():
        print("\n  ".join([f"rare class {name} on {where}:", *in_words(row, nodes)]))
