"""What `g3nn fit` and `g3nn predict` write for people: answers and edges as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy.special import entr

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.estimator import GraphEstimator

MODEL = "model"
"""The folder of the saved model, inside the folder of results."""

PAGE = "report.html"

MISSING_EDGES = 1000
"""How many pairs that seem to lack an edge the page shows at most."""

NOTES = "tables"
"""The name under which the saved model remembers the tables."""

ALPHA = 0.1
"""The share of nodes whose set of classes, or interval, may miss the truth."""


def answers_table(estimator: GraphEstimator, ids: pa.Array, graph: tuple[Any, ...] = ()) -> pa.Table:
    """What an estimator answers for its own nodes or, given features and edges, for new ones: one row per node.

    Of classes: id, label, prob_CLASS for each class, entropy (in nats), conformal_set, has_edges. Of tags: id, tags
    (those that are likelier than not), prob_TAG for each tag, has_edges. Of numbers: id, mean, deviation, low and high
    ends of an interval, has_edges.
    """
    has_edges = ~estimator.task_.isolated
    if graph:
        features, edges = graph
        new = estimator.task_.num_nodes + np.arange(features.shape[0])
        has_edges = np.isin(new, edges[:, edges[0] != edges[1]])
    return pa.table({"id": ids, **_answers(estimator, graph), "has_edges": has_edges})


def _answers(estimator: GraphEstimator, graph: tuple[Any, ...]) -> dict[str, Any]:
    from g3nn.estimator import G3NNClassifier, G3NNRegressor
    from g3nn.outcomes import Tags

    if isinstance(estimator, G3NNRegressor):
        low, high = estimator.predict_interval(1 - ALPHA, *graph)
        return {"mean": estimator.predict(*graph), "deviation": estimator.predict_std(*graph), "low": low, "high": high}
    assert isinstance(estimator, G3NNClassifier)
    probabilities, classes = estimator.predict_proba(*graph), estimator.classes_.tolist()
    names = [str(name) for name in classes]
    each = {f"prob_{name}": column for name, column in zip(names, probabilities.T, strict=True)}
    if isinstance(estimator.fitted_.outcome, Tags):
        return {"tags": _members(names, probabilities > 0.5), **each}
    label = pa.array(classes).take(pa.array(probabilities.argmax(1)))
    sets = _members(names, estimator.predict_set(ALPHA, *graph))
    return {"label": label, **each, "entropy": entr(probabilities).sum(1), "conformal_set": sets}


def _members(names: list[str], chosen: np.ndarray) -> pa.Array:
    """(n,) lists: the names that `chosen` (n, K) says are in."""
    starts = pa.array(np.cumsum([0, *chosen.sum(1)]), pa.int32())
    return pa.ListArray.from_arrays(starts, pa.array(names).take(pa.array(np.nonzero(chosen)[1])))


def edges_table(ids: pa.Array, edges: np.ndarray, audit: AuditTables | None) -> pa.Table:
    """One row per edge, the least likely first: source, target, probability, rank (from 1); null without an audit."""
    if audit is None:
        source, target = (ids.take(pa.array(end)) for end in edges)
        probability, rank = (pa.nulls(edges.shape[1], kind) for kind in (pa.float64(), pa.int64()))
    else:
        source, target = (ids.take(pa.array(audit.edges[end])) for end in ("source", "target"))
        probability, rank = (pa.array(audit.edges[name]) for name in ("probability", "rank"))
    return pa.table({"source": source, "target": target, "probability": probability, "rank": rank})
