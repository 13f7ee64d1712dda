"""New nodes under `refine`: scores inferred from their edges, compared with the network only.

    python benchmarks/new_nodes.py --graphs 3 --out results/new_nodes.json

The graphs are those of outcomes.py. A fifth of the nodes, all of them test nodes, is absent during training and arrives
afterwards with features and edges. Reports RMSE and the share of their values inside 90 % intervals.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import g3nn

LEVEL = 0.9
WAYS = {"network alone": False, "own scores": True}
Row = dict[str, Any]


def measure(outcome: str, seed: int, nodes: int, ensemble: int, device: str) -> list[Row]:
    """One fit. Its new nodes are answered in both ways, each with its own calibration."""
    task = g3nn.synthetic_values(outcome, nodes=nodes, seed=seed)
    new = task.test[: nodes // 5]
    old = np.setdiff1d(np.arange(nodes), new)
    number = np.empty(nodes, dtype=np.int64)
    number[np.concatenate([old, new])] = np.arange(nodes)
    labels = np.full(nodes, np.nan)
    for part in (task.train, task.val):
        labels[part] = task.labels[part, 0]
    edges = number[task.edges]
    inside = (edges < len(old)).all(axis=0)
    weight = int(inside.sum()) / (len(old) - len(task.train))
    options = {"refine": True, "graph_weight": weight}
    common = {"ensemble": ensemble, "device": device, "random_state": seed, "options": options}
    fitted = g3nn.G3NNRegressor("near-gcn", outcome=outcome, **common).fit(
        task.features[old], labels[old], edges[:, inside], val=number[task.val]
    )
    known = np.intersect1d(task.test, old)
    of_known = rmse(fitted.predict()[number[known]], task.labels[known, 0])
    rows = []
    for way, infers in WAYS.items():
        start = time.perf_counter()
        fit = fitted.fitted_
        members = tuple(replace(one, infers=infers) for one in fit.answerer.members)
        answerer = replace(fit.answerer, members=members).calibrated_by(fit.task.val, fit.task)
        asked = g3nn.G3NNRegressor("near-gcn", outcome=outcome, **common)
        asked.restore(replace(fit, answerer=answerer))
        where = task.features[new], edges[:, ~inside]
        low, high = asked.predict_interval(LEVEL, *where)
        truth = task.labels[new, 0]
        row = {"outcome": outcome, "seed": seed, "way": way, "rmse": rmse(asked.predict(*where), truth)}
        row |= {"coverage": float(np.mean((low <= truth) & (truth <= high))), "width": float(np.mean(high - low))}
        row |= {"rmse_of_fitted_nodes": of_known, "seconds": time.perf_counter() - start}
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
    return rows


def rmse(answers: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((answers - truth) ** 2)))


def table(rows: list[Row]) -> str:
    """Means over the graphs."""
    lines = [f"{len({row['seed'] for row in rows})} graphs"]
    for outcome in dict.fromkeys(row["outcome"] for row in rows):
        for way in WAYS:
            own = [row for row in rows if (row["outcome"], row["way"]) == (outcome, way)]
            error, inside, width, known = (
                np.mean([row[key] for row in own]) for key in ("rmse", "coverage", "width", "rmse_of_fitted_nodes")
            )
            told = f"RMSE {error:.3f} (nodes of the fit: {known:.3f}), {100 * inside:.1f} % inside 90 % intervals"
            lines.append(f"{outcome}, {way}: {told} of mean width {width:.2f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the records to this file")
    parser.add_argument("--graphs", type=int, default=3, help="number of graphs, with seeds 0, 1, ...")
    parser.add_argument("--outcomes", nargs="+", default=["real", "counts"])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--ensemble", type=int, default=1)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    rows: list[Row] = []
    for seed in range(given.graphs):
        for outcome in given.outcomes:
            rows += measure(outcome, seed, given.nodes, given.ensemble, given.device)
            if given.out:
                given.out.write_text(json.dumps(rows, indent=1))
    print(table(rows))


if __name__ == "__main__":
    main()
