"""Labelled graphs drawn from a generative model whose every property is chosen: the truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from g3nn.data.random_graph import Latent, block_probabilities, decode, draw_edges, rewire
from g3nn.errors import Problems
from g3nn.task import NodeTask

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
    """Draw n nodes in K equally large classes, their features and their edges. Linear in the number of edges.

    Features: x_i = signal m_{y_i} + noise, with a random unit vector m_k for each class and standard normal noise.
    Edges: each pair is linked independently, with probability

    - "planted-partition": p_same inside a class, p_other between classes;
    - "latent-space": sigmoid(a + latent_weight u_i . u_j), where u_i = W x_i / |W x_i|, W is a random matrix
      (latent_dim, d), and a takes one value inside classes and one between them.

    Both values follow from the mean degree and the homophily, so the two models differ only inside their blocks.

    model:            "planted-partition" or "latent-space".
    nodes, classes:   n and K.
    degree:           mean number of neighbours of a node.
    homophily:        expected share of edges that join nodes of one class: 1 / K says nothing, less is heterophily.
    edge_noise:       share of the edges, drawn so, that are then replaced by uniformly random pairs.
    features, signal: number of features d, and how far apart the classes are in them (0: features say nothing).
    labels_per_class: training labels; `val` and `test` nodes are drawn from the rest (`test=None`: all that is left).
    seed:             the same arguments and seed give the same task.
    """
    recipe = _Recipe(
        model,
        nodes,
        classes,
        degree,
        homophily,
        edge_noise,
        features,
        signal,
        latent_weight,
        latent_dim,
        labels_per_class,
        val,
        test,
        seed,
    )
    _check(recipe)
    # A stream for each step: more edge noise, say, leaves labels, features, split and the other edges as they were.
    for_labels, for_features, for_edges, for_noise, for_split = np.random.default_rng(seed).spawn(5)
    labels = for_labels.permutation(np.arange(nodes) % classes)
    x = _draw_features(recipe, labels, for_features)
    edges = _draw_edges(recipe, labels, x, for_edges, for_noise)
    train, val_nodes, test_nodes = _draw_split(recipe, labels, for_split)
    name = f"synthetic-{model}"
    return NodeTask.build(x, edges, labels, train, val_nodes, test_nodes, num_classes=classes, name=name)


@dataclass(frozen=True)
class _Recipe:
    """The arguments of `synthetic`."""

    model: str
    nodes: int
    classes: int
    degree: float
    homophily: float
    edge_noise: float
    features: int
    signal: float
    latent_weight: float
    latent_dim: int
    labels_per_class: int
    val: int
    test: int | None
    seed: int

    @property
    def probabilities(self) -> tuple[float, float]:
        sizes = np.bincount(np.arange(self.nodes) % self.classes)
        return block_probabilities(sizes, self.degree, self.homophily)


def _draw_features(recipe: _Recipe, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    centres = rng.standard_normal((recipe.classes, recipe.features))
    centres *= recipe.signal / np.linalg.norm(centres, axis=1, keepdims=True)
    x = rng.standard_normal((recipe.nodes, recipe.features), dtype=np.float32)
    x += centres.astype(np.float32)[labels]
    return x


def _draw_edges(
    recipe: _Recipe, labels: np.ndarray, x: np.ndarray, rng: np.random.Generator, noise_rng: np.random.Generator
) -> np.ndarray:
    latent = None
    if recipe.model == "latent-space":
        positions = x @ rng.standard_normal((recipe.features, recipe.latent_dim), dtype=np.float32)
        positions /= np.linalg.norm(positions, axis=1, keepdims=True)
        latent = Latent(positions, recipe.latent_weight)
    codes = draw_edges(labels, *recipe.probabilities, latent, rng)
    return decode(rewire(codes, recipe.nodes, recipe.edge_noise, noise_rng), recipe.nodes)


def _draw_split(
    recipe: _Recipe, labels: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shuffled = rng.permutation(recipe.nodes)
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels)
    firsts = np.cumsum(sizes) - sizes
    train = by_class[(firsts[:, None] + np.arange(recipe.labels_per_class)).ravel()]
    rest = rng.permutation(np.setdiff1d(shuffled, train))
    end = None if recipe.test is None else recipe.val + recipe.test
    return train, rest[: recipe.val], rest[recipe.val : end]


_RULES: dict[str, tuple[type, Callable[[Any], bool], str]] = {
    "nodes": (Integral, lambda value: value >= 4, "a whole number, at least 4"),
    "classes": (Integral, lambda value: value >= 2, "a whole number, at least 2"),
    "degree": (Real, lambda value: 0 <= value < math.inf, "a number, at least 0"),
    "homophily": (Real, lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "edge_noise": (Real, lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "features": (Integral, lambda value: value >= 1, "a whole number, at least 1"),
    "signal": (Real, lambda value: 0 <= value < math.inf, "a number, at least 0"),
    "latent_weight": (Real, lambda value: abs(value) <= 10, "a number from -10 to 10"),
    "latent_dim": (Integral, lambda value: value >= 1, "a whole number, at least 1"),
    "labels_per_class": (Integral, lambda value: value >= 1, "a whole number, at least 1"),
    "val": (Integral, lambda value: value >= 1, "a whole number, at least 1"),
    "test": (Integral, lambda value: value >= 0, "a whole number, at least 0, or None for all that is left"),
    "seed": (Integral, lambda value: value >= 0, "a whole number, at least 0"),
}


def _check(recipe: _Recipe) -> None:
    problems = Problems()
    problems.name("model", recipe.model, MODELS)
    wrong = set()
    for argument, (kind, holds, allowed) in _RULES.items():
        value = getattr(recipe, argument)
        if argument == "test" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
            problems.add(argument, repr(value), allowed)
            wrong.add(argument)
    _check_together(recipe, wrong, problems)
    problems.raise_if_any()


def _check_together(recipe: _Recipe, wrong: set[str], problems: Problems) -> None:
    """Rules over several arguments, each looked at only when its own arguments are sound."""
    if wrong & {"nodes", "classes"}:
        return
    smallest = recipe.nodes // recipe.classes
    if smallest < 2:
        problems.add("classes", recipe.classes, f"at most {recipe.nodes // 2} for {recipe.nodes} nodes")
        return
    if not wrong & {"labels_per_class", "val", "test"}:
        used = recipe.labels_per_class * recipe.classes + recipe.val + (recipe.test or 0)
        if recipe.labels_per_class > smallest:
            problems.add("labels_per_class", recipe.labels_per_class, f"at most {smallest}, the size of a class")
        elif used > recipe.nodes:
            advice = "Ask for more nodes, or fewer in the split."
            problems.add("labels_per_class, val, test", f"{used} nodes together", f"at most {recipe.nodes}", advice)
    if not wrong & {"degree", "homophily"}:
        for place, p in zip(("inside", "between"), recipe.probabilities, strict=True):
            if p >= 1:
                problems.add(
                    "degree",
                    f"{recipe.degree:g} with homophily {recipe.homophily:g}",
                    f"less than {recipe.degree / p:.4g}, where every pair {place} classes would be linked",
                )
