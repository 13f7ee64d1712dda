"""Graphs with numbers for labels, which are more alike along edges than features explain; the truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from g3nn.base.errors import Problems
from g3nn.graph.datasets.arguments import check_arguments, number, whole
from g3nn.graph.datasets.random_graph import decode, draw_near
from g3nn.graph.task import NodeTask


def synthetic_values(
    outcome: str = "real",
    *,
    nodes: int = 5000,
    columns: int = 1,
    degree: float = 10.0,
    features: int = 16,
    explained: float = 0.2,
    closeness: float = 4.0,
    labelled: float = 0.05,
    val: int = 500,
    seed: int = 0,
) -> NodeTask:
    """Draw n nodes with hidden values z, labels that follow from z, features that explain a part of z, and edges
    between nodes with close z. Linear in the number of edges.

    z_it = sqrt(explained) x_i . u_t + sqrt(1 - explained) e_it with standard normal x and e and random unit vectors
    u_t; p(e_ij = 1) = sigmoid(a - closeness |z_i - z_j|^2), where a follows from the mean degree. Labels are

    - "real": 50 + 10 z;
    - "tags": 1 with probability sigmoid(3 z);
    - "counts": a count with rate exp(1 + 0.7 z).

    columns:   T. degree: mean number of neighbours. features: d.
    explained: share of the variance of z that features explain.
    labelled:  share of the nodes that are for training; `val` others are for validation, the rest for test.
    seed:      the same arguments and seed give the same task.
    """
    _check(outcome, locals())
    for_features, for_values, for_edges, for_labels, for_split = np.random.default_rng(seed).spawn(5)
    x = for_features.standard_normal((nodes, features))
    directions = for_values.standard_normal((features, columns))
    directions /= np.linalg.norm(directions, axis=0)
    z = math.sqrt(explained) * (x @ directions)
    z += math.sqrt(1 - explained) * for_values.standard_normal((nodes, columns))
    edges = decode(draw_near(z, closeness, degree, for_edges), nodes)
    order, train = for_split.permutation(nodes), round(labelled * nodes)
    split = order[:train], order[train : train + val], order[train + val :]
    labels = _LABELS[outcome](z, for_labels)
    return NodeTask.build(x, edges, labels, *split, outcome=outcome, name=f"synthetic-{outcome}")


_LABELS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = dict(
    real=lambda z, rng: 50 + 10 * z,
    tags=lambda z, rng: rng.random(z.shape) < 1 / (1 + np.exp(-3 * z)),
    counts=lambda z, rng: rng.poisson(np.exp(1 + 0.7 * z)),
)

_SIZES = dict(nodes=whole(4), columns=whole(1), features=whole(1), val=whole(1), seed=whole(0))
_SHARES = dict(explained=number(0, 1), labelled=number(0, 1, open_ends=True))
_RULES = _SIZES | _SHARES | dict(degree=number(0, open_ends=True), closeness=number(0))


def _check(outcome: str, given: dict[str, Any]) -> None:
    problems, nodes = Problems(), given["nodes"]
    problems.name("outcome", outcome, _LABELS)
    accepted = check_arguments(given, _RULES, problems)
    if {"nodes", "degree"} <= accepted and given["degree"] >= nodes - 1:
        problems.add("degree", f"{given['degree']:g}", f"less than {nodes - 1}, where every pair would be linked")
    if {"nodes", "labelled", "val"} <= accepted:
        used = round(given["labelled"] * nodes) + given["val"]
        if used > nodes:
            advice = "Ask for more nodes, or for fewer in the split."
            problems.add("labelled, val", f"{used} nodes together", f"at most {nodes}", advice)
    problems.raise_if_any()
