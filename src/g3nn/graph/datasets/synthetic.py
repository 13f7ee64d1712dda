"""Labelled graphs drawn from a generative model with chosen properties, so that the truth is known.

`synthetic` draws classes, `synthetic_values` numbers that are more alike along edges than features explain.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from g3nn.base.errors import Problems
from g3nn.base.options import AMOUNT, COUNT, SHARE, WHOLE, Rule, check_values
from g3nn.graph.datasets.random_graph import Latent, block_probabilities, by_class, draw_graph, draw_near, rewire
from g3nn.graph.task import NodeTask

_VALUES_PER_STREAM = 1 << 24
"""More features than these come from several random streams, on all cores."""

MODELS = ("planted-partition", "latent-space")


def synthetic(
    model: str = "planted-partition",
    *,
    nodes: int = 1000,
    classes: int = 4,
    degree: float = 8.0,
    homophily: float = 0.8,
    edge_noise: float = 0.0,
    features: int = 16,
    signal: float = 1.0,
    latent_weight: float = 2.0,
    latent_dim: int = 4,
    labels_per_class: int = 20,
    val: int = 200,
    test: int | None = None,
    seed: int = 0,
) -> NodeTask:
    """Draw n nodes in K equally large classes, their features and their edges, in time linear in the number of edges.

    Features: x_i = signal m_{y_i} + noise, with a random unit vector m_k for each class and standard normal noise.
    Edges: each pair is linked independently, with probability

    - "planted-partition": p_same inside a class, p_other between classes;
    - "latent-space": sigmoid(a + latent_weight u_i . u_j), where u_i = W x_i / |W x_i|, W is a random matrix
      (latent_dim, d), and a takes one value inside classes and one between them.

    Both values follow from the mean degree and the homophily, so the two models differ only inside their blocks.

    model:            "planted-partition" or "latent-space".
    nodes, classes:   n and K.
    degree:           mean number of neighbours of a node.
    homophily:        expected share of edges that join nodes of one class: 1 / K is neutral, less is heterophily.
    edge_noise:       share of these edges that are then replaced by uniformly random pairs.
    features, signal: number of features d, and how far apart the classes are in them (0: features say nothing).
    labels_per_class: training labels; `val` and `test` nodes are drawn from the rest (`test=None`: all other nodes).
    seed:             the same arguments and seed give the same task.
    """
    _check(locals())
    # One stream for each step: more edge noise, say, leaves labels, features, split and the other edges unchanged.
    for_labels, for_features, for_edges, for_noise, for_split = np.random.default_rng(seed).spawn(5)
    labels = for_labels.permutation(np.arange(nodes) % classes)
    x = _draw_features(labels, classes, features, signal, for_features)
    latent = _draw_latent(x, latent_dim, latent_weight, for_edges) if model == "latent-space" else None
    edges = draw_graph(labels, *_probabilities(nodes, classes, degree, homophily), latent, for_edges)
    if edge_noise:
        edges = rewire(edges, nodes, edge_noise, for_noise)
    train, rest = _draw_train(labels, labels_per_class, for_split)
    split = train, rest[:val], rest[val : None if test is None else val + test]
    train, validation, tested = map(np.sort, split)
    # Everything is in the form that `NodeTask.build` would bring it into, with copies of all of it.
    return NodeTask(x, edges, labels, train, validation, tested, classes, name=f"synthetic-{model}")


def _probabilities(nodes: int, classes: int, degree: float, homophily: float) -> tuple[float, float]:
    """p_same and p_other."""
    return block_probabilities(np.bincount(np.arange(nodes) % classes), degree, homophily)


def _draw_features(
    labels: np.ndarray, classes: int, features: int, signal: float, rng: np.random.Generator
) -> np.ndarray:
    centres = rng.standard_normal((classes, features))
    centres *= signal / np.linalg.norm(centres, axis=1, keepdims=True)
    x = np.empty((labels.size, features), dtype=np.float32)
    rows = -(-_VALUES_PER_STREAM // features)
    blocks = [slice(start, start + rows) for start in range(0, labels.size, rows)]
    streams = [rng] if len(blocks) == 1 else rng.spawn(len(blocks))

    def draw(block: slice, stream: np.random.Generator) -> None:
        stream.standard_normal(out=x[block], dtype=np.float32)
        x[block] += centres.astype(np.float32)[labels[block]]

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(draw, blocks, streams))
    return x


def _draw_latent(x: np.ndarray, dim: int, weight: float, rng: np.random.Generator) -> Latent:
    positions = x @ rng.standard_normal((x.shape[1], dim), dtype=np.float32)
    positions /= np.linalg.norm(positions, axis=1, keepdims=True)
    return Latent(positions, weight)


def _draw_train(labels: np.ndarray, labels_per_class: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The training nodes, and all others in random order."""
    shuffled = rng.permutation(labels.size)
    grouped = shuffled[by_class(labels[shuffled])]
    sizes = np.bincount(labels)
    firsts = np.cumsum(sizes) - sizes
    train = grouped[(firsts[:, None] + np.arange(labels_per_class)).ravel()]
    rest = np.ones(labels.size, dtype=bool)
    rest[train] = False
    return train, rng.permutation(np.flatnonzero(rest))


_SIZES = dict(nodes=Rule(int, low=4), classes=Rule(int, low=2))
_SPLIT = dict(labels_per_class=COUNT, val=COUNT, test=WHOLE)
_LINKS = dict(degree=AMOUNT, homophily=SHARE, edge_noise=SHARE)
_FEATURES = dict(features=COUNT, signal=AMOUNT, latent_weight=Rule(float, low=-10, high=10), latent_dim=COUNT)
_RULES = _SIZES | _LINKS | _FEATURES | _SPLIT | dict(seed=WHOLE)


def _check(given: dict[str, Any]) -> None:
    problems, given = Problems(), {**given, "test": 0 if given["test"] is None else given["test"]}
    problems.name("model", given["model"], MODELS)
    accepted = check_values(given, _RULES, problems)
    nodes, classes, degree, homophily = given["nodes"], given["classes"], given["degree"], given["homophily"]
    sizes = accepted >= _SIZES.keys()
    if sizes and nodes < 2 * classes:
        problems.add("nodes, classes", f"{nodes} nodes, {classes} classes", "at least two nodes in each class")
        problems.raise_if_any()
    if sizes and accepted >= _SPLIT.keys():
        labels = given["labels_per_class"]
        smallest, used = nodes // classes, labels * classes + given["val"] + given["test"]
        if labels > smallest:
            problems.add("labels_per_class", labels, f"at most {smallest}, the size of a class")
        elif used > nodes:
            advice = "Ask for more nodes, or for fewer in the split."
            problems.add("labels_per_class, val, test", f"{used} nodes together", f"at most {nodes}", advice)
    if sizes and accepted >= _LINKS.keys():
        for where, p in zip(("inside", "between"), _probabilities(nodes, classes, degree, homophily), strict=True):
            if p >= 1:
                allowed = f"less than {degree / p:.4g}, where every pair {where} classes would be linked"
                problems.add("degree", f"{degree:g} with homophily {homophily:g}", allowed)
    problems.raise_if_any()


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
    _check_values(outcome, locals())
    for_features, for_values, for_edges, for_labels, for_split = np.random.default_rng(seed).spawn(5)
    x = for_features.standard_normal((nodes, features))
    directions = for_values.standard_normal((features, columns))
    directions /= np.linalg.norm(directions, axis=0)
    z = math.sqrt(explained) * (x @ directions)
    z += math.sqrt(1 - explained) * for_values.standard_normal((nodes, columns))
    edges = draw_near(z, closeness, degree, for_edges)
    order, train = for_split.permutation(nodes), round(labelled * nodes)
    split = order[:train], order[train : train + val], order[train + val :]
    labels = _LABELS[outcome](z, for_labels)
    return NodeTask.build(x, edges, labels, *split, outcome=outcome, name=f"synthetic-{outcome}")


_LABELS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = dict(
    real=lambda z, rng: 50 + 10 * z,
    tags=lambda z, rng: rng.random(z.shape) < 1 / (1 + np.exp(-3 * z)),
    counts=lambda z, rng: rng.poisson(np.exp(1 + 0.7 * z)),
)

_VALUE_RULES = dict(nodes=Rule(int, low=4), columns=COUNT, features=COUNT, val=COUNT, seed=WHOLE)
_VALUE_RULES |= dict(explained=SHARE, labelled=Rule(float, low=0, high=1, open_ends=True))
_VALUE_RULES |= dict(degree=Rule(float, low=0, open_ends=True), closeness=AMOUNT)


def _check_values(outcome: str, given: dict[str, Any]) -> None:
    problems, nodes = Problems(), given["nodes"]
    problems.name("outcome", outcome, _LABELS)
    accepted = check_values(given, _VALUE_RULES, problems)
    if {"nodes", "degree"} <= accepted and given["degree"] >= nodes - 1:
        problems.add("degree", f"{given['degree']:g}", f"less than {nodes - 1}, where every pair would be linked")
    if {"nodes", "labelled", "val"} <= accepted:
        used = round(given["labelled"] * nodes) + given["val"]
        if used > nodes:
            advice = "Ask for more nodes, or for fewer in the split."
            problems.add("labelled, val", f"{used} nodes together", f"at most {nodes}", advice)
    problems.raise_if_any()
