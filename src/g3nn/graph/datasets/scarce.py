"""Few labels, and nothing to validate on. `SCARCE` maps the name of a setting to its function of a task and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from g3nn.base.errors import Problems
from g3nn.base.options import WHOLE, Rule, check_values
from g3nn.graph.datasets.noise import NoisyTask
from g3nn.graph.task import NodeTask

MOST_TESTED = 2000
_STREAM = 7
"""Published graphs and splits may have been drawn by the first numbers of a small seed."""


def few_known(task: NodeTask, labels: int, linked: bool = True, seed: int = 0) -> NoisyTask:
    """So many random labels of each class, or all of a smaller one, are known and no others; no node validates.

    Random others test, at most 2,000. linked: whether test nodes keep their edges.
    """
    with Problems() as problems:
        check_values({"labels": labels, "seed": seed}, {"labels": Rule(int, "", low=1), "seed": WHOLE}, problems)
        if not task.kind.exclusive:
            problems.add("task", f"labels of kind {task.outcome}", "one class of each node")
    rng, known = np.random.default_rng((seed, _STREAM)), np.flatnonzero(task.labels >= 0)
    classes = (np.flatnonzero(task.labels == label) for label in range(task.num_classes))
    train = np.sort(np.concatenate([rng.permutation(nodes)[:labels] for nodes in classes]))
    test = np.sort(rng.permutation(np.setdiff1d(known, train))[:MOST_TESTED])
    setting = f"labels-{labels}" + ("" if linked else "-missing-edge")
    found = replace(task, train=train, val=test[:0], test=test, setting=setting, beliefs=None, unit=None)
    return NoisyTask.of(found if linked else found.without_edges_of(test))


SCARCE: dict[str, Callable[..., NoisyTask]] = {
    **{f"labels-{count}": partial(few_known, labels=count) for count in (1, 2, 3, 5, 10)},
    **{f"labels-{count}-missing-edge": partial(few_known, labels=count, linked=False) for count in (3, 20)},
}
