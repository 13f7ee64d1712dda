"""What `g3nn fit` does with its options: check, read, fit, write, and say how it went."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from g3nn.base.errors import Problems
from g3nn.cli import NOTES, TYPED
from g3nn.cli.results import as_file, check_out, kept
from g3nn.estimator import GraphEstimator, estimator_for
from g3nn.estimator.problem import check_parameters, check_share
from g3nn.estimator.showing import PAGE, scores_on_test, write_file, write_results
from g3nn.graph.outcomes import OUTCOMES, Classes, Outcome
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.model.tabular import NAMED
from g3nn.training.tracking import tracker

_COLUMNS = ("id", "label", "text", "categorical", "ignore", "split", "source", "target", "weight")
TABLES = ("nodes", "edges", *_COLUMNS, "directed", "outcome", "na", "keep_na", "drop_unknown_edges", "strict")
"""The options that `read_tables` takes."""

SWITCH = {"auto": "auto", "yes": True, "no": False}

_MOST_COLUMNS = 40


def fit_tables(given: Mapping[str, Any]) -> None:
    """given: the options of the command, by name."""
    start, problems, out = time.perf_counter(), Problems(), given["out"]
    speaks = not (given["as_json"] or given["quiet"])
    check_out(out, [given["nodes"], given["edges"]], given["dry_run"], problems)
    check_share("alpha", given["alpha"], problems)
    tracked = tracker(given["track"], problems)
    for name, allowed in {"prior": ("auto", *NAMED), "denoise": SWITCH, "label_noise": SWITCH}.items():
        problems.name(name, given[name], allowed)
    guessed = given["outcome"] if given["outcome"] in OUTCOMES else Classes.name
    check_parameters(_estimator(given, guessed).get_params(deep=False), OUTCOMES[guessed], problems)
    graph = read_tables(**{name: given[name] for name in TABLES if given[name] is not None}, problems=problems)
    told: dict[str, Any] = {"schema": [one._asdict() for one in graph.columns]}
    if speaks:
        _show_columns(graph)
    if not given["dry_run"]:
        estimator = _estimator(given, graph.outcome).fit(graph, track=tracked)
        told = _summary(estimator, graph) | told
        with kept(lambda elsewhere: _write(estimator, graph, elsewhere / out.name, given)):
            _write(estimator, graph, out, given)
        told |= {"out": str(out), "seconds": time.perf_counter() - start}
    told["notes"] = list(NOTES)
    if given["as_json"]:
        print(json.dumps(told))
    elif speaks and not given["dry_run"]:
        _show(told)


def _estimator(given: Mapping[str, Any], outcome: str) -> GraphEstimator:
    """With a label prior of scikit-learn where one is named, of the kind that the outcome needs."""
    names = ("objective", "ensemble", "device", "effort", "budget", "model", "directed")
    parameters = {name: given[name] for name in names}
    parameters |= {name: SWITCH.get(given[name], "auto") for name in ("denoise", "label_noise")}
    parameters |= {"random_state": given["seed"], "verbose": not (given["as_json"] or given["quiet"])}
    if given["prior"] in NAMED:
        parameters["prior"] = NAMED[given["prior"]](OUTCOMES[outcome])
    return estimator_for(outcome, parameters)


def _write(estimator: GraphEstimator, graph: TableGraph, out: Path, given: Mapping[str, Any]) -> None:
    alpha, keep = given["alpha"], graph.nodes.content if given["keep"] else None
    if as_file(given["out"]):
        write_file(estimator.answer_table(alpha=alpha, keep=keep), out)
    else:
        audited, command = not given["no_audit"], shlex.join(TYPED)
        write_results(estimator, graph, out, alpha=alpha, keep=keep, audited=audited, command=command)


def _summary(estimator: GraphEstimator, graph: TableGraph) -> dict[str, Any]:
    """What was fitted and how well, as JSON has it. labels: how many were judged and are expected to be wrong, and
    whether models were trained on what they probably are."""
    task, fitted, outcome, labels = estimator.task_, estimator.fitted_, estimator.fitted_.outcome, None
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
        "model": estimator.model_,
        "objective": " + ".join(dict.fromkeys(network.objective for network in fitted.answerer.networks)),
        "panel": [_finite(asdict(entry)) for entry in estimator.panel_],
        **_finite({f"val_{outcome.score_key}": fitted.val_score, "val_loss": fitted.val_loss}),
        "test": scores_on_test(estimator, graph),
        "labels": labels,
    }


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
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("column", "kind", "missing", "became"):
        table.add_column(heading, justify="right" if heading == "missing" else "left", overflow="fold")
    for one in graph.columns[:_MOST_COLUMNS]:
        table.add_row(one.column, one.kind, f"{one.missing:,}" if one.missing else "", one.became)
    console = Console()
    console.print(table)
    if len(graph.columns) > _MOST_COLUMNS:
        console.print(f"and {len(graph.columns) - _MOST_COLUMNS:,} more columns")


def _show(told: dict[str, Any]) -> None:
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
