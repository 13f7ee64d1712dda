"""Noise, added to a sound task. Wrong edges: random ones added, edges removed, and an attack that uses labels. Wrong
labels: flipped to any other class, or to the next one.

`NOISE` maps the name of a setting, such as "random-50", to its function of a task and a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from g3nn.base.errors import Problems, refuse
from g3nn.base.options import AMOUNT, SHARE, WHOLE, Rule, check_values
from g3nn.base.parse import UNKNOWN, decode, encode
from g3nn.graph.datasets.random_graph import free_pairs
from g3nn.graph.outcomes import Classes
from g3nn.graph.task import NodeTask

UNIFORM, PAIR = FLIPS = ("uniform", "pair")
"""Which class a wrong label names."""

_DRAWS = 1000
"""More of them hardly find what these have not."""


@dataclass(frozen=True, eq=False)
class NoisyTask:
    """A task, which of its edges, (E,) booleans, were injected, and which of its nodes, (n,) booleans, have a wrong
    label."""

    task: NodeTask
    injected: np.ndarray
    wrong: np.ndarray

    @classmethod
    def of(cls, task: NodeTask, injected: np.ndarray | None = None, wrong: np.ndarray | None = None) -> NoisyTask:
        """Without injected edges or wrong labels where none are given."""
        return cls(
            task,
            np.zeros(task.num_edges, dtype=bool) if injected is None else injected,
            np.zeros(task.num_nodes, dtype=bool) if wrong is None else wrong,
        )


def random_edges(task: NodeTask, rate: float, seed: int = 0) -> NoisyTask:
    """Uniformly random pairs become edges, `rate` times as many as there are edges."""
    _checked(task, {"rate": rate, "seed": seed}, AMOUNT)
    count, n = round(rate * task.num_edges), task.num_nodes
    free = n * (n - 1) // 2 - task.num_edges
    _check_count(rate, count, free, "pairs that are no edges")
    added = free_pairs(encode(task.edges[0], task.edges[1], n), n, count, free, np.random.default_rng(seed))
    return _changed(task, np.ones(task.num_edges, dtype=bool), decode(added, n), f"random-{100 * rate:g}")


def removed_edges(task: NodeTask, share: float, seed: int = 0) -> NoisyTask:
    """A random share of the edges is removed."""
    _checked(task, {"share": share, "seed": seed}, SHARE)
    order = np.random.default_rng(seed).permutation(task.num_edges)
    kept = order >= round(share * task.num_edges)
    return _changed(task, kept, task.edges[:, :0], f"removed-{100 * share:g}")


def dice(task: NodeTask, rate: float, seed: int = 0) -> NoisyTask:
    """Disconnect internally, connect externally (Waniek et al., 2018): `rate` times as many flips as there are edges.

    Half of them, rounded down, remove edges inside classes, the others add edges between classes. The attack uses
    the labels of all nodes; nodes whose label is unknown are left alone.
    """
    _checked(task, {"rate": rate, "seed": seed}, AMOUNT)
    _check_classes(task, Problems())
    labels, n, flips, rng = task.labels, task.num_nodes, round(rate * task.num_edges), np.random.default_rng(seed)

    def across(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return (labels[i] != labels[j]) & (labels[i] != UNKNOWN) & (labels[j] != UNKNOWN)

    i, j = task.edges
    inside = np.flatnonzero((labels[i] == labels[j]) & (labels[i] != UNKNOWN))
    sizes = np.bincount(labels[labels != UNKNOWN])
    free = int(sizes.sum() ** 2 - (sizes**2).sum()) // 2 - int(across(i, j).sum())
    _check_count(rate, flips // 2, inside.size, "edges inside classes")
    _check_count(rate, flips - flips // 2, free, "pairs between classes that are no edges")
    kept = np.ones(task.num_edges, dtype=bool)
    kept[rng.permutation(inside)[: flips // 2]] = False
    added = free_pairs(encode(i, j, n), n, flips - flips // 2, free, rng, across)
    return _changed(task, kept, decode(added, n), f"dice-{100 * rate:g}")


def flipped_labels(task: NodeTask, share: float, how: str = UNIFORM, seed: int = 0) -> NoisyTask:
    """A random share of the training and validation labels, drawn from both together, is wrong.

    how: "uniform", any other class is as likely; "pair", it is the next one, and after the last the first. Draws that
    leave a class without a training label are made again.
    """
    problems = Problems()
    check_values({"share": share, "seed": seed}, {"share": SHARE, "seed": WHOLE}, problems)
    problems.name("how", how, FLIPS)
    _check_classes(task, problems)
    rng, K, labelled = np.random.default_rng(seed), task.num_classes, np.union1d(task.train, task.val)
    count = round(share * labelled.size)
    for _ in range(_DRAWS):
        labels, nodes = task.labels.copy(), rng.permutation(labelled)[:count]
        steps = 1 if how == PAIR else rng.integers(1, K, count)
        labels[nodes] = (labels[nodes] + steps) % K
        if np.unique(labels[task.train]).size == K:
            changed = replace(task, labels=labels, setting=f"{how}-{100 * share:g}", beliefs=None)
            return NoisyTask.of(changed, wrong=labels != task.labels)
    refuse("share", share, "one that leaves every class a training label", f"{_DRAWS} draws did not.")


EDGE_NOISE: dict[str, Callable[..., NoisyTask]] = {
    **{f"random-{percent}": partial(random_edges, rate=percent / 100) for percent in (20, 50, 100)},
    **{f"removed-{percent}": partial(removed_edges, share=percent / 100) for percent in (20, 50)},
    **{f"dice-{percent}": partial(dice, rate=percent / 100) for percent in (5, 15, 25)},
}
LABEL_NOISE: dict[str, Callable[..., NoisyTask]] = {
    **{f"uniform-{percent}": partial(flipped_labels, share=percent / 100) for percent in (0, 10, 30, 50)},
    "pair-30": partial(flipped_labels, share=0.3, how=PAIR),
}
NOISE = {**EDGE_NOISE, **LABEL_NOISE}


def _changed(task: NodeTask, kept: np.ndarray, added: np.ndarray, setting: str) -> NoisyTask:
    """The task with only the edges `kept` and those `added`, which have weight 1, the mean of all weights."""
    edges = np.concatenate([task.edges[:, kept], added], axis=1)
    order = np.argsort(encode(edges[0], edges[1], task.num_nodes))
    weights = None if task.weights is None else np.append(task.weights[kept], np.ones(added.shape[1]))[order]
    return NoisyTask.of(task.with_edges(edges[:, order], weights, setting=setting), injected=order >= kept.sum())


def _checked(task: NodeTask, given: dict[str, float], amount: Rule) -> None:
    with Problems() as problems:
        check_values(given, {name: WHOLE if name == "seed" else amount for name in given}, problems)
        if task.directed:
            problems.add("task", "directed edges", "an undirected graph")


def _check_classes(task: NodeTask, problems: Problems) -> None:
    if not task.kind.exclusive:
        problems.add("task", f"labels of kind {task.outcome}", Classes.name)
    problems.raise_if_any()


def _check_count(rate: float, count: int, most: int, what: str) -> None:
    if count > most:
        refuse("rate", rate, f"a lower one: there are only {most} {what}, and {count} are needed")
