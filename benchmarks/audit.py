"""How well the edge audit finds edges that were added or taken away.

    python benchmarks/audit.py
    python benchmarks/audit.py --dataset citeseer --seeds 5 --json results/audit.json

For each seed, 10 % random edges are added to the graph, and the area under the ROC curve says how well the audit ranks
them among all edges. Then 10 % of the edges are removed instead, and it says how well `edge_proba` tells them from
random non-edges. The classifier (3 replicas, averaged) and the audit see only the altered graph. For comparison,
`auc_labels` uses labels alone: the probability that both ends have the same class. Precision is the share of altered
edges at the top of the list, as many rows as edges were altered; for removed edges the list is that of all pairs.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

import g3nn
from g3nn.graph.datasets.random_graph import decode, encode, uniform_pairs
from g3nn.graph.task import NodeTask
from g3nn.queries import GraphAudit

SHARE = 0.1
Row = dict[str, float]


def non_edges(task: NodeTask, count: int, rng: np.random.Generator) -> np.ndarray:
    """Codes of `count` different pairs without an edge."""
    edges = encode(*task.edges, task.num_nodes)
    free = np.zeros(0, dtype=np.int64)
    while free.size < count:
        drawn = encode(*uniform_pairs(task.num_nodes, 2 * count, rng), task.num_nodes)
        free = np.setdiff1d(np.concatenate([free, drawn]), edges)
    return rng.permutation(free)[:count]


def beliefs(task: NodeTask, model: str, seed: int, device: str) -> np.ndarray:
    """(n, K): the mean of three replicas, one-hot at the labelled nodes."""
    result = g3nn.fit(task, model, "elbo", trials=3, seed=seed, device=device, progress=False)
    q = result.probabilities.mean(0)
    q[task.train] = np.eye(task.num_classes)[task.labels[task.train]]
    return q


def agreement(q: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    return (q[pairs[0]] * q[pairs[1]]).sum(1)


def spurious(task: NodeTask, model: str, seed: int, device: str) -> Row:
    n, rng = task.num_nodes, np.random.default_rng(seed)
    added = non_edges(task, round(SHARE * task.num_edges), rng)
    edges = decode(np.sort(np.concatenate([encode(*task.edges, n), added])), n)
    altered = task.with_edges(edges)
    q = beliefs(altered, model, seed, device)
    start = time.perf_counter()
    table = GraphAudit.fit(altered, q, seed=seed, device=device).suspicious()
    seconds = time.perf_counter() - start
    truth = np.isin(encode(table["source"], table["target"], n), added)
    return {
        "auc": roc_auc_score(truth, -table["probability"]),
        "auc_labels": roc_auc_score(np.isin(encode(*edges, n), added), -agreement(q, edges)),
        "precision": float(truth[: added.size].mean()),
        "seconds": seconds,
    }


def removed(task: NodeTask, model: str, seed: int, device: str) -> Row:
    n, rng = task.num_nodes, np.random.default_rng([seed, 1])
    gone = np.zeros(task.num_edges, dtype=bool)
    gone[rng.permutation(task.num_edges)[: round(SHARE * task.num_edges)]] = True
    altered = task.with_edges(task.edges[:, ~gone])
    q = beliefs(altered, model, seed, device)
    start = time.perf_counter()
    audit = GraphAudit.fit(altered, q, seed=seed, device=device)
    seconds = time.perf_counter() - start
    others = decode(non_edges(task, 10 * int(gone.sum()), rng), n)
    pairs = np.concatenate([task.edges[:, gone], others], axis=1)
    truth = np.arange(pairs.shape[1]) < gone.sum()
    table = audit.missing(int(gone.sum()))
    recovered = np.isin(encode(table["source"], table["target"], n), encode(*task.edges[:, gone], n))
    return {
        "auc": roc_auc_score(truth, audit.edge_proba(pairs)),
        "auc_labels": roc_auc_score(truth, agreement(q, pairs)),
        "precision": float(recovered.mean()),
        "seconds": seconds,
    }


def summary(rows: list[Row]) -> str:
    columns = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    spread = int(len(rows) > 1)
    return ", ".join(f"{key} {v.mean():.3f} ± {v.std(ddof=spread):.3f}" for key, v in columns.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="cora")
    parser.add_argument("--model", default="sbm-gcn", help="the classifier that gives the beliefs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path, help="write the figures of every seed here")
    arguments = parser.parse_args()
    task = g3nn.load(arguments.dataset)
    rows: dict[str, list[Row]] = {"spurious": [], "removed": []}
    for seed in range(arguments.seeds):
        for name, measure in (("spurious", spurious), ("removed", removed)):
            rows[name].append(measure(task, arguments.model, seed, arguments.device))
            print(f"{name}, seed {seed}:", {key: round(value, 4) for key, value in rows[name][-1].items()}, flush=True)
    print(f"\n{arguments.dataset}, beliefs of {arguments.model}, {arguments.seeds} seeds, mean ± standard deviation")
    for name, measured in rows.items():
        print(f"{name:>9}: {summary(measured)}")
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"dataset": arguments.dataset, "model": arguments.model, **rows}, indent=1)
        )


if __name__ == "__main__":
    main()
