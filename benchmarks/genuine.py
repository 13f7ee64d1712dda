"""How honest `edge_proba(density="genuine")` is, where it is known which edges are false.

    python benchmarks/genuine.py --out results/genuine.json
    python benchmarks/genuine.py --table results/genuine.json

Random edges are added to graphs whose genuine edges are known: drawn ones, until 50, 80 or 95 % of all edges are
genuine, and Cora with 25 and 50 % more edges. The classifier that gives the beliefs and the audit see only the altered
graph. `genuine` is the true share, `mean` that of the audit, `ece` the expected calibration error in 15 bins, `auc` how
well false edges are ranked. A file of records is gone on from where it stopped.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from records import Record, records_to_extend, stored, write_records
from sklearn.metrics import roc_auc_score

import g3nn
from g3nn.base.errors import Problems
from g3nn.graph.datasets.noise import random_edges
from g3nn.queries import GraphAudit
from g3nn.queries.edge_trust import SHARES, judged_edges

BINS = 15
DRAWN = {"nodes": 1500, "classes": 4, "degree": 8.0, "homophily": 0.95, "latent_weight": 8.0, "signal": 2.0}
CASES = [("drawn", 0.5), ("drawn", 0.8), ("drawn", 0.95), ("cora", 1 / 1.25), ("cora", 1 / 1.5)]
"""Graphs, and the share of their edges that is genuine once others were added."""


def measured(graph: str, share: float, seed: int) -> Record:
    task = g3nn.load(graph) if graph != "drawn" else g3nn.synthetic("latent-space", seed=seed, **DRAWN)
    noisy = random_edges(task, 1 / share - 1, seed)
    task, genuine = noisy.task, ~noisy.injected
    q = g3nn.fit(task, "gcn", trials=1, seed=seed, device="cpu", progress=False).probabilities.mean(0)
    q[task.train] = np.eye(task.num_classes)[task.labels[task.train]]
    start = time.perf_counter()
    judged = judged_edges(task, SHARES[0], featureless=False, seed=seed, device="cpu")
    audit = GraphAudit.fit(task, q, judged=judged, seed=seed, device="cpu")
    found = audit.edge_proba(task.edges, "genuine")
    seconds = time.perf_counter() - start
    gaps = np.bincount(np.minimum((found * BINS).astype(int), BINS - 1), found - genuine)
    return {
        "graph": graph,
        "seed": seed,
        "genuine": round(float(genuine.mean()), 4),
        "mean": round(float(found.mean()), 4),
        "ece": round(float(np.abs(gaps).sum() / genuine.size), 4),
        "auc": round(float(roc_auc_score(genuine, found)), 4),
        "seconds": round(seconds, 1),
    }


def key(record: Record) -> tuple[str, float, int]:
    return record["graph"], round(record["genuine"], 2), record["seed"]


def table(records: list[Record]) -> str:
    rows = ["| graph | genuine | mean of edge_proba | ECE | AUC |", "|---|---|---|---|---|"]
    for case in sorted({key(record)[:2] for record in records}):
        some = [record for record in records if key(record)[:2] == case]
        means = (f"{np.mean([record[name] for record in some]):.3f}" for name in ("genuine", "mean", "ece", "auc"))
        rows.append(f"| {case[0]} | {' | '.join(means)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, help="the file of records")
    parser.add_argument("--table", type=Path, help="print what a file of records says, and measure nothing")
    given = parser.parse_args()
    if given.table:
        print(table(stored(given.table, "--table", key)))
        return
    problems = Problems()
    records = records_to_extend(given.out, key, problems)
    problems.raise_if_any()
    for seed in range(given.seeds):
        for graph, share in CASES:
            if (graph, round(share, 2), seed) not in map(key, records):
                records.append(measured(graph, share, seed))
                print(records[-1], flush=True)
                write_records(given.out, records)
    print(table(records))


if __name__ == "__main__":
    main()
