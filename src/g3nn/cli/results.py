"""What `g3nn fit` and `g3nn predict` write for people: answers and edges as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.estimator import GraphEstimator

MODEL = "model"
"""The folder of the saved model, inside the folder of results."""

PAGE = "report.html"

MISSING_EDGES = 1000
"""So many pairs that seem to lack an edge are shown on the page."""

NOTES = "tables"
"""Under this name the saved model remembers the tables."""

ALPHA = 0.1
"""The sets of classes, and the intervals, miss the true one at most this often."""


def predictions_table(
    ids: pa.Array, classes: np.ndarray, probabilities: np.ndarray, sets: np.ndarray, has_edges: np.ndarray
) -> pa.Table:
    """One row per node: id, label, prob_CLASS for each class, entropy (in nats), conformal_set, has_edges.

    probabilities, sets: (n, K); sets are booleans.
    """
    names = [str(name) for name in classes.tolist()]
    known = np.maximum(probabilities, np.finfo(np.float64).tiny)
    label = pa.array(classes.tolist()).take(pa.array(probabilities.argmax(1)))
    members = pa.array(names).take(pa.array(np.nonzero(sets)[1]))
    starts = pa.array(np.cumsum([0, *sets.sum(1)]), pa.int32())
    columns = {
        "id": ids,
        "label": label,
        **{f"prob_{name}": probabilities[:, k] for k, name in enumerate(names)},
        "entropy": -(probabilities * np.log(known)).sum(1),
        "conformal_set": pa.ListArray.from_arrays(starts, members),
        "has_edges": has_edges,
    }
    return pa.table(columns)


def numbers_table(
    ids: pa.Array, mean: np.ndarray, deviation: np.ndarray, interval: np.ndarray, has_edges: np.ndarray
) -> pa.Table:
    """One row per node: id, mean, deviation, low, high (an interval that holds the value 9 times in 10), has_edges.

    mean, deviation: (n,). interval: (2, n).
    """
    columns = {"id": ids, "mean": mean, "deviation": deviation, "low": interval[0], "high": interval[1]}
    return pa.table({**columns, "has_edges": has_edges})


def tags_table(ids: pa.Array, names: np.ndarray, probabilities: np.ndarray, has_edges: np.ndarray) -> pa.Table:
    """One row per node: id, tags (those that are likelier than not), prob_TAG for each tag, has_edges.

    probabilities: (n, T).
    """
    chosen = probabilities > 0.5
    members = pa.array([str(name) for name in names.tolist()]).take(pa.array(np.nonzero(chosen)[1]))
    starts = pa.array(np.cumsum([0, *chosen.sum(1)]), pa.int32())
    each = {f"prob_{name}": probabilities[:, t] for t, name in enumerate(names.tolist())}
    return pa.table({"id": ids, "tags": pa.ListArray.from_arrays(starts, members), **each, "has_edges": has_edges})


def answers_table(estimator: GraphEstimator, ids: pa.Array, graph: tuple[Any, ...] = ()) -> pa.Table:
    """What an estimator answers for its own nodes or, given features and edges, for new ones."""
    from g3nn.estimator import G3NNClassifier, G3NNRegressor
    from g3nn.outcomes import Tags

    task = estimator.task_
    has_edges = linked(task.edges, task.num_nodes)
    if graph:
        has_edges = linked(graph[1], task.num_nodes + graph[0].shape[0])[task.num_nodes :]
    if isinstance(estimator, G3NNRegressor):
        moments = estimator.predict(*graph), estimator.predict_std(*graph)
        return numbers_table(ids, *moments, estimator.predict_interval(1 - ALPHA, *graph), has_edges)
    assert isinstance(estimator, G3NNClassifier)
    probabilities = estimator.predict_proba(*graph)
    if isinstance(estimator.fitted_.outcome, Tags):
        return tags_table(ids, estimator.classes_, probabilities, has_edges)
    return predictions_table(ids, estimator.classes_, probabilities, estimator.predict_set(ALPHA, *graph), has_edges)


def linked(edges: np.ndarray, n: int) -> np.ndarray:
    """(n,) which nodes have an edge to another one."""
    found = np.zeros(n, dtype=bool)
    found[edges[:, edges[0] != edges[1]].ravel()] = True
    return found


def edges_table(ids: pa.Array, edges: np.ndarray, audit: AuditTables | None) -> pa.Table:
    """One row per edge, the least likely first: source, target, probability, rank (from 1); null without an audit."""
    if audit is None:
        source, target = (ids.take(pa.array(end)) for end in edges)
        probability, rank = (pa.nulls(edges.shape[1], kind) for kind in (pa.float64(), pa.int64()))
    else:
        source, target = (ids.take(pa.array(audit.edges[end])) for end in ("source", "target"))
        probability, rank = (pa.array(audit.edges[name]) for name in ("probability", "rank"))
    return pa.table({"source": source, "target": target, "probability": probability, "rank": rank})
