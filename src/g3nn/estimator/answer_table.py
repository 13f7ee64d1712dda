"""Answers as a table for people: one row per node, with what was given and what is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.special import entr

from g3nn.estimator.members import Answers
from g3nn.estimator.tables import asked_of, is_table
from g3nn.graph.outcomes import Classes, Labels, Tags, is_known
from g3nn.graph.outcomes.labels import has_label

if TYPE_CHECKING:
    from g3nn.estimator.fitted import Fitted

ROLES = ("unlabelled", "train", "validation", "test")


def answer_table(fitted: Fitted, X: Any, edges: Any, alpha: float, keep: pa.Table | None) -> pa.Table:
    """id, what was given, the answer, and the columns to `keep`. Nothing given: the nodes of the fit."""
    n, tables = fitted.task.num_nodes, fitted.tables
    if tables is not None and is_table(X):
        X = asked_of(tables, X, edges)
        ids, answers, numbers = X.ids, fitted.ask(X, None), X.numbers
    else:
        answers = fitted.ask(X, edges)
        numbers = np.arange(n) if X is None else n + np.arange(len(answers.isolated))
        ids = tables.node_ids if tables is not None and X is None else pa.array(numbers)
    columns: dict[str, Any] = {"id": ids}
    if (numbers < n).all():
        columns |= given_columns(fitted, numbers)
    columns |= answer_columns(fitted, answers, alpha)
    known = set() if tables is None else {tables.node_columns.id, *tables.node_columns.labels}
    return pa.table(columns) if keep is None else beside(columns, keep, known)


def given_columns(fitted: Fitted, nodes: np.ndarray) -> dict[str, Any]:
    """What the fit knew about some of its nodes, by column: given (the label), and role (train, validation, test or
    unlabelled)."""
    task, tables = fitted.task, fitted.tables
    values, role = task.labels.copy(), np.zeros(task.num_nodes, dtype=np.int64)
    role[task.train], role[task.val] = 1, 2
    if tables is not None and tables.test:
        values[tables.test], role[tables.test] = np.array(tables.test_values, dtype=values.dtype), 3
    given = _given(Labels(fitted.columns, values[nodes], fitted.flat), isinstance(fitted.outcome, Tags))
    return {**given, "role": pa.array(ROLES).take(pa.array(role[nodes]))}


def _given(labels: Labels, tags: bool) -> dict[str, Any]:
    """Labels by name; of several columns of numbers, one column for each."""
    names, values = labels.names.tolist(), labels.values
    if values.ndim == 1:
        return {"given": pa.array(names).take(pa.array(values, mask=~is_known(values)))}
    if tags:
        rows = zip(_members(names, values == 1).to_pylist(), has_label(values), strict=True)
        return {"given": pa.array([row if known else None for row, known in rows], pa.list_(pa.string()))}
    columns = {
        f"given_{name}" if len(names) > 1 else "given": column for name, column in zip(names, values.T, strict=True)
    }
    return {name: pa.array(column, from_pandas=True) for name, column in columns.items()}


def answer_columns(fitted: Fitted, answers: Answers, alpha: float) -> dict[str, Any]:
    """Of classes: label (the likeliest), prob_CLASS for each class, entropy (in nats), conformal_set (classes of which
    the true one is not, in a share alpha of the nodes). Of tags: tags (those that are likelier than not), prob_TAG for
    each. Of numbers: mean, deviation, low and high ends of an interval that misses the truth in a share alpha. Always:
    has_edges."""
    outcome, names = fitted.outcome, [str(name) for name in fitted.columns.tolist()]
    mean, deviation = outcome.moments(fitted.answerer.calibrated(answers))
    has_edges = {"has_edges": ~answers.isolated}
    if isinstance(outcome, Tags):
        return {"tags": _members(names, mean > 0.5), **_each("prob", names, mean), **has_edges}
    region = fitted.answerer.conformal(answers, alpha)
    if isinstance(outcome, Classes):
        label = pa.array(fitted.columns.tolist()).take(pa.array(mean.argmax(1)))
        sets = {"entropy": entr(mean).sum(1), "conformal_set": _members(names, region)}
        return {"label": label, **_each("prob", names, mean), **sets, **has_edges}
    columns: dict[str, Any] = {}
    parts = {"mean": mean, "deviation": deviation, "low": region[..., 0], "high": region[..., 1]}
    for part, values in parts.items():
        columns |= {part: values[:, 0]} if len(names) == 1 else _each(part, names, values)
    return {**columns, **has_edges}


def _each(part: str, names: list[str], values: np.ndarray) -> dict[str, Any]:
    return {f"{part}_{name}": column for name, column in zip(names, values.T, strict=True)}


def _members(names: list[str], chosen: np.ndarray) -> pa.Array:
    """(n,) lists: the names that `chosen` (n, K) says are in."""
    starts = pa.array(np.cumsum([0, *chosen.sum(1)]), pa.int32())
    return pa.ListArray.from_arrays(starts, pa.array(names).take(pa.array(np.nonzero(chosen)[1])))


def beside(columns: dict[str, Any], content: pa.Table, without: set[str | None]) -> pa.Table:
    """Answers and the original columns of the nodes, apart from those `without`."""
    kept = {name: content[name] for name in content.column_names if name not in without}
    return pa.table({**columns, **{f"{name} (table)" if name in columns else name: kept[name] for name in kept}})
