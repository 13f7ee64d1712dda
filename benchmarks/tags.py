"""Tags on BlogCatalog, a tenth of its nodes labelled: the joint model compared with its network trained by itself.

    python benchmarks/tags.py --out results/tags.json
    python benchmarks/tags.py --splits 200 201 --out a.json     # some of the splits, in a separate process
    python benchmarks/tags.py --table a.json b.json             # the table of several runs
    python benchmarks/tags.py --blind --splits 100 101 102      # validation figures only; uses no test label

Ten splits (`g3nn.graph.datasets.load_blogcatalog`, seeds 200 to 209): 825 nodes for training, 206 for validation, 9,281
for testing. Macro- and micro-F1 follow the usual protocol for this graph: the number k of tags of a node is given, and
the k tags with the highest scores are predicted.

- joint: p(G | Y) p(Y | X) with a network as the posterior, refined for each node, and edges as counts (`tags-gcn`);
- alone: the same network, trained with binary cross-entropy on the training nodes (`gcn`);
- label propagation (Zhou et al., 2004) of the training tags;
- logistic regression of each tag on the spectral features.

All methods are treated alike. In every split each chooses a point of its own grid, and one of `POWERS`, by macro-F1 on
the validation nodes of that split; only then are the test nodes scored. A power p divides the scores of a tag by its
training frequency to the power p, because rare tags decide macro-F1. Joint and alone have the same network, grid
(`SHARED`), seeds, number of replicas (whose probabilities are averaged) and stopping rule, and losses of the same
scale, so that a weight decay means the same for both. The other options of the joint model are fixed in `JOINT`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import g3nn
from g3nn.graph.datasets import load_blogcatalog
from g3nn.graph.datasets.blogcatalog import spectral_features

SPLITS = tuple(range(200, 210))
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
REPLICAS = 2
SHARED: dict[str, tuple[float, ...]] = {"lr": (0.01, 0.02), "weight_decay": (0.05, 1.0), "dropout": (0.5,)}
TRAINING: dict[str, Any] = {"hidden": 64, "epochs": 200, "patience": 80, "reduction": "sum", "eta": 11.0}
"""A sum over the training nodes, each with weight 11, because a tenth of the nodes has tags."""
JOINT: dict[str, Any] = {
    "edges": "poisson",
    "degrees": True,
    "damping": 0.4,
    "refine": True,
    "edges_per_step": 16384,
    "negatives": "degrees",
    "prior_weight": 11.0,
    "warm_up": 80,
}
"""The bound in nats, except for damping: each of a thousand neighbours adds little new information. Damping, refine and
warm-up were chosen on validation nodes of splits from seed 100 on."""
PRIORS = {"identity": "uniform", "spectral": "mlp"}
"""Identity features say nothing about a node without tags."""
SPREADS = (0.1, 0.3, 0.5, 0.7, 0.9)
PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0)
STEPS = 20
Options = dict[str, Any]
Row = dict[str, Any]
Answers = Iterator[tuple[Options, np.ndarray]]
"""The points of a grid and the scores (n, T) of each."""


def f1(scores: np.ndarray, tags: np.ndarray) -> tuple[float, float]:
    """Macro- and micro-F1 of the k highest scores (m, T) of each row, where k is the number of tags (m, T) of the row.

    A tag that is neither present nor predicted anywhere counts 0 in the macro mean, as in scikit-learn.
    """
    rank = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
    given = rank < tags.sum(1, keepdims=True)
    right, all_ = (given * tags).sum(0), given.sum(0) + tags.sum(0)
    return float(np.mean(2 * right / np.maximum(all_, 1))), float(2 * right.sum() / all_.sum())


def rate(task: g3nn.NodeTask) -> float:
    """The rate of edges between two nodes of typical degree, if only degrees mattered."""
    degrees = np.log1p(np.bincount(task.edges.ravel(), minlength=task.num_nodes))
    pull = np.exp(degrees - degrees.mean())
    return float(2 * task.num_edges / (pull.sum() ** 2 - (pull**2).sum()))


def trained(task: g3nn.NodeTask, model: str, split: int, device: str, options: Options) -> Answers:
    """Every point of `SHARED` with the same seeds, as one stack for each dropout."""
    points = list(itertools.product(SHARED["lr"], SHARED["weight_decay"]))
    each = [point for point in points for _ in range(REPLICAS)]
    lr, weight_decay = (list(column) for column in zip(*each, strict=True))
    seeds = [1000 * split + replica for replica in range(REPLICAS)] * len(points)
    for dropout in SHARED["dropout"]:
        own = {**options, "lr": lr, "weight_decay": weight_decay, "dropout": dropout}
        result = g3nn.fit(task, model, trials=len(each), seed=seeds, device=device, progress=False, **TRAINING, **own)
        answers = result.probabilities.reshape(len(points), REPLICAS, task.num_nodes, -1).mean(1)
        for (rate, decay), scores in zip(points, answers, strict=True):
            yield {"lr": rate, "weight_decay": decay, "dropout": dropout}, scores


def propagated(task: g3nn.NodeTask) -> Answers:
    """F = a D^-1/2 A D^-1/2 F + (1 - a) Y_0 in 20 steps, for every a in `SPREADS`."""
    n, told = task.num_nodes, np.zeros_like(task.labels)
    told[task.train] = task.labels[task.train]
    once = sp.csr_array((np.ones(task.num_edges), tuple(task.edges)), shape=(n, n))
    both = once + once.T
    scale = sp.diags_array(1 / np.sqrt(np.maximum(both.sum(1), 1)))
    step = scale @ both @ scale
    for spread in SPREADS:
        mass = told
        for _ in range(STEPS):
            mass = spread * (step @ mass) + (1 - spread) * told
        yield {"spread": spread}, mass


def regressed(task: g3nn.NodeTask) -> Answers:
    """Logistic regression of each tag on the spectral features, for every C in `PENALTIES`."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    x, train = spectral_features(64), task.train
    for penalty in PENALTIES:
        model = OneVsRestClassifier(LogisticRegression(C=penalty, max_iter=1000)).fit(x[train], task.labels[train])
        yield {"C": penalty}, model.predict_proba(x)


def chosen(task: g3nn.NodeTask, answers: Answers) -> Row:
    """The point and the power with the highest macro-F1 on the validation nodes, and its scores on the test nodes."""
    labels = task.labels
    share = (labels[task.train].sum(0) + 1) / (len(task.train) + 2)
    best, scores, grid = (-1.0, {}, 0.0), np.empty(0), []
    for options, answer in answers:
        found = {power: f1(answer[task.val] / share**power, labels[task.val])[0] for power in POWERS}
        power = max(POWERS, key=lambda power: found[power])
        grid.append({**options, "power": power, "val_macro_f1": found[power]})
        if found[power] > best[0]:
            best, scores = (found[power], options, power), answer / share**power
    row: Row = {"options": best[1], "power": best[2], "grid": grid}
    for part, nodes in (("val_", task.val), ("", task.test)):
        if nodes.size:
            row[f"{part}macro_f1"], row[f"{part}micro_f1"] = f1(scores[nodes], labels[nodes])
    return row


def compared(split: int, features: str, network: str, device: str, blind: bool) -> list[Row]:
    """One row per method."""
    task = load_blogcatalog(seed=split, features=features)
    task = task.without_test() if blind else task
    start = rate(task)
    joint = {**JOINT, "prior": PRIORS[features], "p0": start, "p1": start}
    methods = {
        "joint": trained(task, f"tags-{network}", split, device, joint),
        "alone": trained(task, network, split, device, {}),
        "label propagation": propagated(task),
        "logistic regression": regressed(task),
    }
    rows = []
    for method, answers in methods.items():
        begun = time.perf_counter()
        row = {"method": method, "split": split, "features": features, "network": network, **chosen(task, answers)}
        rows.append({**row, "seconds": round(time.perf_counter() - begun, 1)})
        print({key: value for key, value in rows[-1].items() if key != "grid"}, file=sys.stderr, flush=True)
    return rows


def merged(files: Iterable[Path]) -> list[Row]:
    """The rows of several runs; each split may be in only one of them."""
    rows = [row for file in files for row in json.loads(file.read_text())]
    keys = [(row["method"], row["split"]) for row in rows]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise SystemExit(f"--table: {twice[0]} appears more than once; each split must be unique. Leave one file out.")
    return rows


def table(rows: list[Row]) -> str:
    """Means and standard deviations over the splits, and paired t-tests of the joint model against all others."""
    from scipy.stats import ttest_rel

    prefix = "" if "macro_f1" in rows[0] else "val_"
    splits = sorted({row["split"] for row in rows})
    methods = list(dict.fromkeys(row["method"] for row in rows))

    def values(method: str, key: str) -> np.ndarray:
        of_method = {row["split"]: row[prefix + key] for row in rows if row["method"] == method}
        return np.array([of_method[split] for split in splits])

    nodes = "validation" if prefix else "test"
    lines = [
        f"{len(splits)} splits, {rows[0]['network']} on {rows[0]['features']} features, {nodes} nodes; p: paired t-test"
    ]
    for method in methods:
        cells = []
        for key, name in (("macro_f1", "macro-F1"), ("micro_f1", "micro-F1")):
            found, best = values(method, key), values("joint", key)
            several = method != "joint" and len(splits) > 1
            p = f" (p = {ttest_rel(best, found).pvalue:.1e})" if several else ""
            spread = f" ± {found.std(ddof=1):.4f}" if len(splits) > 1 else ""
            cells.append(f"{name} {found.mean():.4f}{spread}{p}")
        lines.append(f"{method:20} {', '.join(cells)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the records to this file after every split")
    parser.add_argument("--table", type=Path, nargs="+", help="print the stored records of one or several runs")
    parser.add_argument("--splits", type=int, nargs="+", default=SPLITS, help="seeds of the splits")
    parser.add_argument("--features", choices=tuple(PRIORS), default="spectral", help="features of joint and alone")
    parser.add_argument("--network", choices=("appnp", "gcn", "sage", "mlp"), default="gcn", help="their network")
    parser.add_argument("--blind", action="store_true", help="use no test labels; report validation figures")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(merged(arguments.table)))
        return
    rows: list[Row] = []
    for split in arguments.splits:
        rows += compared(split, arguments.features, arguments.network, arguments.device, arguments.blind)
        if arguments.out:
            arguments.out.write_text(json.dumps(rows, indent=1))
    print(table(rows))


if __name__ == "__main__":
    main()
