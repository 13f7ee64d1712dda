"""From a request to tasks: features in the form that a model sees, missing ones filled in, and the part to train on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from g3nn.base.errors import Problems
from g3nn.estimator.features import FeatureTable
from g3nn.estimator.forms import Form
from g3nn.estimator.request import Request
from g3nn.graph.task import NodeTask


def tasks_of(
    request: Request, inductive: bool, impute: bool
) -> tuple[NodeTask, NodeTask, np.ndarray, Form, np.ndarray | None]:
    """The task on the whole graph; the part that is trained on, in inductive use the labelled nodes alone; the numbers
    of its nodes in the whole graph; the form of the features; and the means of their columns where missing values are
    filled in."""
    n = request.features.num_nodes
    seen = request.labels.labelled if inductive else np.arange(n)
    number = np.full(n, -1, dtype=np.int64)
    number[seen] = np.arange(len(seen))
    among = np.isin(request.edges, seen).all(axis=0)
    inside = number[request.edges[:, among]]
    problems = Problems()
    form = Form.fit(request.features.at(seen))
    request = replace(request, features=form.apply(request.features, problems))
    problems.raise_if_any()
    features, means = _filled(request, seen, inside) if impute else (request.features, None)
    whole = NodeTask.build(
        features.matrix,
        request.edges,
        request.labels.values,
        request.train,
        request.val if len(request.val) else None,
        num_classes=len(request.labels.names),
        directed=request.directed,
        outcome=request.outcome.name,
        weights=False if request.edge_weights is None else request.edge_weights,
    )
    if len(seen) == n:
        return whole, whole, seen, form, means
    own = {"features": whole.features[seen], "edges": inside, "labels": whole.labels[seen]}
    own["weights"] = None if whole.weights is None else whole.weights[among]
    return whole, replace(whole, **own, train=number[whole.train], val=number[whole.val]), seen, form, means


def _filled(request: Request, seen: np.ndarray, inside: np.ndarray) -> tuple[FeatureTable, np.ndarray]:
    """Nodes that are trained on are filled in from each other first, then the rest from all."""
    part, problems = request.features.at(seen), Problems()
    means = part.column_means(problems)
    problems.raise_if_any()
    part = part.filled(inside, means)
    if len(seen) == request.features.num_nodes:
        return part, means
    rest = np.setdiff1d(np.arange(request.features.num_nodes), seen)
    rows = part.above(replace(part, matrix=request.features.matrix[rest]))
    order = np.argsort(np.concatenate([seen, rest]))
    return replace(rows, matrix=rows.matrix[order]).filled(request.edges, means), means
