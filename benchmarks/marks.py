"""What columns of edges add to a joint model, on drawn graphs.

    python benchmarks/marks.py --model blsm-gcn --seeds 4 --out results/marks.jsonl

Each graph has 400 nodes, 3 classes with 5 labels each, and an amount on every edge: log-normal, its mean depends
on the pair of classes (`depends`) or on nothing (`noise`). Its mean, least and largest value at a node are features in
any case. Two replicas are trained with and without the amounts as a factor of the model.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from records import tell

import g3nn
from g3nn.graph.datasets.synthetic import synthetic
from g3nn.graph.marks import Marks
from g3nn.graph.task import NodeTask

DRAWN = {
    "nodes": 400,
    "classes": 3,
    "degree": 6,
    "homophily": 0.4,
    "features": 16,
    "signal": 1.0,
    "labels_per_class": 5,
}
TRAINED = {"trials": 2, "progress": False, "epochs": 200, "patience": 60}


def amounts(task: NodeTask, spread: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng((seed, 7))
    means = rng.standard_normal((task.num_classes, task.num_classes)) * spread
    means = (means + means.T) / np.sqrt(2)
    source, target = task.labels[task.edges]
    return np.exp(means[source, target] + rng.standard_normal(task.num_edges))


def with_sums(task: NodeTask, amount: np.ndarray) -> NodeTask:
    """Features have three more columns: the mean, smallest and largest amount of each node's edges."""
    ends, n = np.concatenate(task.edges), task.num_nodes
    values, count = np.tile(np.log(amount), 2), np.maximum(np.bincount(ends, minlength=n), 1)
    least, most = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(least, ends, values)
    np.maximum.at(most, ends, values)
    columns = np.stack([np.bincount(ends, values, n) / count, least, most], axis=1)
    columns[~np.isfinite(columns)] = 0
    columns = (columns - columns.mean(0)) / columns.std(0)
    return replace(task, features=np.concatenate([task.features, columns.astype(np.float32)], axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="blsm-gcn")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, help="a file of JSON lines that is added to")
    options = parser.parse_args()
    for amount, spread in (("depends", 1.0), ("noise", 0.0)):
        for seed in range(options.seeds):
            task = synthetic(**DRAWN, signal=1.0, val=30, seed=seed)
            values = amounts(task, spread, seed)
            task = with_sums(task, values)
            row = {"model": options.model, "amount": amount, "seed": seed}
            for name, marks in (("without", None), ("with", Marks.of(task.edges, values))):
                row[name] = float(g3nn.fit(replace(task, marks=marks), options.model, **TRAINED).test_accuracy.mean())
            tell(row, options.out)


if __name__ == "__main__":
    main()
