"""Graphs whose nodes have numbers for labels, alike along edges beyond what features explain: the truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from g3nn.data.random_graph import decode, draw_near
from g3nn.errors import Problems
from g3nn.task import NodeTask


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
    labelled:  share of the nodes whose label training sees; `val` others are for validation, the rest for testing.
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


_LABELS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "real": lambda z, rng: 50 + 10 * z,
    "tags": lambda z, rng: rng.random(z.shape) < 1 / (1 + np.exp(-3 * z)),
    "counts": lambda z, rng: rng.poisson(np.exp(1 + 0.7 * z)),
}

_RULES: dict[str, tuple[type, Callable[[Any], bool], str]] = {
    "nodes": (Integral, lambda value: value >= 4, "a whole number, at least 4"),
    "columns": (Integral, lambda value: value >= 1, "a whole number, at least 1"),
    "degree": (Real, lambda value: 0 < value < math.inf, "a number above 0"),
    "features": (Integral, lambda value: value >= 1, "a whole number, at least 1"),
    "explained": (Real, lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "closeness": (Real, lambda value: 0 <= value < math.inf, "a number, at least 0"),
    "labelled": (Real, lambda value: 0 < value < 1, "a number strictly between 0 and 1"),
    "val": (Integral, lambda value: value >= 1, "a whole number, at least 1"),
    "seed": (Integral, lambda value: value >= 0, "a whole number, at least 0"),
}


def _check(outcome: str, given: dict[str, Any]) -> None:
    problems = Problems()
    problems.name("outcome", outcome, _LABELS)
    sound = set()
    for argument, (kind, holds, allowed) in _RULES.items():
        value = given[argument]
        if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
            problems.add(argument, repr(value), allowed)
        else:
            sound.add(argument)
    if {"nodes", "degree"} <= sound and given["degree"] >= given["nodes"] - 1:
        problems.add("degree", f"{given['degree']:g}", f"less than {given['nodes'] - 1}, where all are linked")
    if {"nodes", "labelled", "val"} <= sound:
        used = round(given["labelled"] * given["nodes"]) + given["val"]
        if used > given["nodes"]:
            advice = "Ask for more nodes, or fewer in the split."
            problems.add("labelled, val", f"{used} nodes together", f"at most {given['nodes']}", advice)
    problems.raise_if_any()
