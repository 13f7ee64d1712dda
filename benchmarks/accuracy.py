"""Accuracy with fixed hyper-parameters: the table in docs/objective.md.

    python benchmarks/accuracy.py --out results/accuracy.json
    python benchmarks/accuracy.py --table results/accuracy.json

Every row is the mean of 10 trials with hidden 16, lr 0.01 and weight decay 5e-4. Rows with a grid first choose their
weights by the mean validation loss of 5 selection seeds; the 10 reported trials use other seeds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import g3nn

FIXED = {"hidden": 16, "lr": 0.01, "weight_decay": 5e-4}
SELECTION_SEEDS = 5
FIRST_SELECTION_SEED = 1000

# The points of a grid are all combinations of one entry from each list.
PAPER_GRID = [
    [{"eta": 0.5}, {"eta": 1.0}, {"eta": 10.0}],
    [{"p0": 0.9, "p1": 0.1}, {"p0": 0.5, "p1": 0.6}],
]
CLASSES = {"cora": 7, "citeseer": 6, "pubmed": 3}


def bound_grid(dataset: str) -> list[list[dict[str, float]]]:
    """The scale of the bound relative to the supervised term (1 or 1/K), the weight of H(q) in it, and eta."""
    scales = [1.0, round(1 / CLASSES[dataset], 4)]
    return [
        [{"graph_weight": scale, "kl_weight": scale} for scale in scales],
        [{"entropy_weight": 0.0}, {"entropy_weight": 0.5}, {"entropy_weight": 1.0}],
        PAPER_GRID[0],
    ]


Row = dict[str, Any]

ROWS: list[Row] = [
    {"dataset": "cora", "setting": "standard", "model": "gcn", "objective": "released"},
    {"dataset": "cora", "setting": "missing-edge", "model": "gcn", "objective": "released"},
    {"dataset": "citeseer", "setting": "standard", "model": "gcn", "objective": "released"},
    {"dataset": "citeseer", "setting": "missing-edge", "model": "gcn", "objective": "released"},
    {"dataset": "pubmed", "setting": "missing-edge", "model": "gcn", "objective": "released"},
    {"dataset": "citeseer", "setting": "standard", "model": "sbm-gcn", "objective": "released", "grid": PAPER_GRID},
    {"dataset": "citeseer", "setting": "standard", "model": "lsm-gcn", "objective": "released", "grid": PAPER_GRID[:1]},
    {"dataset": "cora", "setting": "missing-edge", "model": "sbm-gcn", "objective": "released", "grid": PAPER_GRID},
    {"dataset": "cora", "setting": "standard", "model": "sbm-gcn", "objective": "elbo", "grid": "bound"},
    {"dataset": "pubmed", "setting": "missing-edge", "model": "sbm-gcn", "objective": "elbo", "grid": "bound"},
    {"dataset": "cora", "setting": "standard", "model": "blsm-gcn", "objective": "elbo", "grid": "bound"},
]


def choose(row: Row, device: str) -> tuple[dict[str, float], list[Row]]:
    """The grid point with the lowest mean validation loss. All points and seeds train as one stack."""
    task = g3nn.load(row["dataset"], setting=row["setting"])
    grid = bound_grid(row["dataset"]) if row["grid"] == "bound" else row["grid"]
    points = [{name: value for part in parts for name, value in part.items()} for parts in itertools.product(*grid)]
    columns = {name: [point[name] for point in points for _ in range(SELECTION_SEEDS)] for name in points[0]}
    trials = len(points) * SELECTION_SEEDS
    options = {**FIXED, **columns}
    result = g3nn.fit(
        task, row["model"], row["objective"], trials=trials, seed=FIRST_SELECTION_SEED, device=device, **options
    )
    losses = result.val_loss.reshape(len(points), SELECTION_SEEDS).mean(1)
    tried = [{**p, "val_loss": round(float(loss), 5)} for p, loss in zip(points, losses, strict=True)]
    return points[int(np.argmin(losses))], sorted(tried, key=lambda one: one["val_loss"])


def measure(row: Row, trials: int, device: str) -> Row:
    chosen, tried = choose(row, device) if "grid" in row else ({}, [])
    task = g3nn.load(row["dataset"], setting=row["setting"])
    result = g3nn.fit(task, row["model"], row["objective"], trials=trials, device=device, **FIXED, **chosen)
    print(result, chosen, file=sys.stderr, flush=True)
    return {**result.to_json(), "chosen": chosen, "tried": tried[:10]}


def table(records: list[Row]) -> str:
    lines = [
        "| dataset | setting | model | objective | test accuracy | chosen by validation loss |",
        "|---|---|---|---|---|---|",
    ]
    for record in records:
        accuracy = np.array(record["test_accuracy"])
        weights = ", ".join(f"{name} {value:g}" for name, value in record["chosen"].items()) or "nothing: the defaults"
        cells = [record[key] for key in ("dataset", "setting", "model", "objective")]
        lines.append("| " + " | ".join([*cells, f"{accuracy.mean():.3f} ± {accuracy.std(ddof=1):.3f}", weights]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="train and write the records to this file")
    parser.add_argument("--table", type=Path, help="print stored records as Markdown")
    parser.add_argument("--defaults", action="store_true", help="keep every option at its default instead of choosing")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    if arguments.table:
        print(table(json.loads(arguments.table.read_text())))
    if arguments.out:
        records = []
        for row in ROWS:
            if arguments.defaults:
                row.pop("grid", None)
            records.append(measure(row, arguments.trials, arguments.device))
            arguments.out.write_text(json.dumps(records, indent=1))
        print(table(records))


if __name__ == "__main__":
    main()
