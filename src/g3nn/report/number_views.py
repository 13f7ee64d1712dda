"""What the page of a regressor shows: errors, residuals, intervals, and the nodes that it is least sure of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.report.averages import tidy
from g3nn.report.beliefs import NumberFindings
from g3nn.report.model_page import clean
from g3nn.report.model_views import percent
from g3nn.report.page_parts import Column, Table
from g3nn.report.views import Card

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.estimator import G3NNRegressor

COLUMNS = "Columns"
UNCERTAIN = (
    "The wider the deviation, the less sure the answer. Low and high are the ends of an interval that is made to hold "
    "the true value 90 times in 100. A label outside of it is marked."
)
DRAWING = "Fill: the answer, from low to high. Ring: how much narrower the deviation is than that of the labels."
SCRIPT = "model_numbers"
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
MOST_POINTS = 2000
"""So many residuals are drawn."""

_SCORES = {"real": "R²", "counts": "deviance explained"}


def taught(estimator: G3NNRegressor) -> str:
    many = len(estimator.target_names_)
    return (
        "real values"
        if estimator.outcome == "real" and many == 1
        else ("counts" if many == 1 else f"{many} columns of numbers")
    )


def judged(
    estimator: G3NNRegressor, names: list[str], audit: AuditTables | None, test: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The parts of the page that are about numbers, as `outcome_page.Judged` takes them."""
    task = estimator.task_
    n, T = task.num_nodes, len(estimator.target_names_)
    mean, deviation = (part.reshape(n, T) for part in (estimator.predict(), estimator.predict_std()))
    interval = estimator.predict_interval(0.9).reshape(2, n, T)
    columns = list(map(clean, estimator.target_names_))
    # What was learned cannot be used to judge.
    scores = None if estimator.refit else estimator.evaluate(task.val, task.labels[task.val])
    charts = {}
    if scores is not None:
        charts = {"residuals": _residuals(estimator, mean, names), "coverage": _coverage(estimator, mean, deviation)}
    return {
        "cards": _cards(scores, test),
        "columns": _columns(estimator, scores),
        "findings": NumberFindings(task, names, audit, columns, mean, deviation, interval),
        "score": _SCORES[estimator.outcome],
        "charts": charts,
    }


def _cards(scores: Mapping[str, Any] | None, test: Mapping[str, Any] | None) -> list[Card]:
    cards = []
    for where, found in (("Test", test), ("Validation", scores)):
        if found is None:
            continue
        error = f"Typical distance between answer and value; {found['mae']:.4g} on average."
        cards.append(Card(f"{where} RMSE", f"{found['rmse']:.4g}", error, (f"On {found['nodes']:,} nodes.",)))
        explained = f"{percent(found['r2'])} of the variance is explained."
        density = (f"Mean log-probability of a value: {found['log_prob']:.4g}.",)
        cards.append(Card(f"{where} R²", f"{found['r2']:.3f}", explained, density))
        inside = "of the values are inside intervals that should hold 90 %."
        cards.append(Card(f"{where} coverage", percent(found["coverage"]), inside, ()))
    return cards


def _columns(estimator: G3NNRegressor, scores: Mapping[str, Any] | None) -> Table:
    """A row for each column of labels."""
    task, rows = estimator.task_, []
    for t, name in enumerate(estimator.target_names_.tolist()):
        known = task.labels[task.train, t]
        known = known[~np.isnan(known)]
        measured: list[float | None] = [None] * 4
        if scores is not None:
            own = scores["columns"][str(name)] if "columns" in scores else scores
            measured = [tidy(own[key]) for key in ("rmse", "mae", "r2", "coverage")]
        rows.append([clean(name), len(known), tidy(float(known.mean())), tidy(float(known.std())), *measured])
    columns = (
        Column("column"),
        Column("training labels", 0),
        Column("mean", 3),
        Column("deviation", 3),
        Column("RMSE", 3),
        Column("MAE", 3),
        Column("R²", 3),
        Column("inside 90 % intervals", 3),
    )
    return Table("Columns", columns, rows)


def _residuals(estimator: G3NNRegressor, mean: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
    """Of the first column at validation nodes."""
    val = estimator.task_.val
    values = estimator.task_.labels[val, 0]
    nodes = val[~np.isnan(values)][:MOST_POINTS]
    residual = estimator.task_.labels[nodes, 0] - mean[nodes, 0]
    return {
        "answers": [tidy(value) for value in mean[nodes, 0].tolist()],
        "residuals": [tidy(value) for value in residual.tolist()],
        "ids": [names[node] for node in nodes.tolist()],
    }


def _coverage(estimator: G3NNRegressor, mean: np.ndarray, deviation: np.ndarray) -> list[list[float | None]]:
    """[claimed, found]: the share of validation values inside the intervals that the distributions themselves claim."""
    val, outcome = estimator.task_.val, estimator.fitted_.outcome
    values = estimator.task_.labels[val]
    known = ~np.isnan(values)
    rows = []
    for level in LEVELS:
        low, high = outcome.interval(mean[val], deviation[val], level)
        rows.append([level, tidy(float(((low <= values) & (values <= high))[known].mean()))])
    return rows
