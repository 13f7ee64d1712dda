"""Isolated nodes, scored on nodes whose edges training never saw: what does isolated validation miss?

    python benchmarks/without_edges.py --out results/without_edges.json
    python benchmarks/without_edges.py --folds 0 --out a.json     # one fold, in a separate process
    python benchmarks/without_edges.py --table a.json b.json      # the table of several runs

Cora without the edges of test nodes and without any test label. In each of two folds one half of the validation nodes
is fresh: it loses its edges too, like the test nodes, and is scored only at the end. The other half decides when
training stops, as validation nodes do: it keeps its edges in the training graph and is answered as if it had none
(`validation="isolated"`). Both losses are taken at the best temperature of each answer.

A model that memorises what its network says about validation nodes with their edges does well on the validation half
and no better on the fresh one.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import g3nn

FOLDS = (0, 1)
SEEDS = (5000, 5001, 5002)
RANDOM: dict[str, Any] = {
    "samples": 4,
    "consistency_weight": 1.0,
    "sharpening": 0.5,
    "order": 8,
    "node_dropout": 0.5,
    "feature_dropout": 0.5,
    "dropout": 0.5,
}
TRAINING: dict[str, Any] = {"weight_decay": 5e-4, "epochs": 600, "patience": 100, "calibrated": True}
WIDE = {**RANDOM, "hidden": 128, "warm_up": 100, "graph_weight": 1.0, "kl_weight": 1.0, "entropy_weight": 0.7}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "grand": ("grand", {**RANDOM, "hidden": 128}),
    "dcsbm-grand": ("dcsbm-grand", WIDE),
    "dcsbm-grand, true KL": ("dcsbm-grand", {**WIDE, "entropy_weight": 1.0}),
    "dcsbm-grand, no pairs of isolated nodes": ("dcsbm-grand", {**WIDE, "isolated_nodes": "missing"}),
    "dcsbm-grand, network and prior together": (
        "dcsbm-grand",
        {**WIDE, "isolated_answer": "both", "graph_weight": 2.0, "distillation_weight": 1.0},
    ),
    "mix-grand": (
        "mix-grand",
        {**WIDE, "hidden": 32, "graph_weight": 0.5, "kl_weight": 0.5, "entropy_weight": 0.5},
    ),
    "sbm-grand, isolated passes": ("sbm-grand", {**WIDE, "hidden": 32, "entropy_weight": 1.0, "isolated_share": 0.3}),
}

Row = dict[str, Any]


def measured(fold: int, name: str, device: str) -> Row:
    """One model in one fold: its figures on the validation half and on the fresh half."""
    full = g3nn.load("cora", setting="missing-edge").without_test()
    shuffled = np.random.default_rng(0).permutation(full.val)
    fresh, val = (np.sort(shuffled[half::2]) for half in (fold, 1 - fold))
    task = replace(full.without_edges_of(fresh), val=val)
    model, options = MODELS[name]
    training = {**TRAINING, "validation": "isolated", "device": device, "progress": False}
    result = g3nn.fit(task, model, trials=len(SEEDS), seed=SEEDS, **training, **options)
    nodes, log_prob = torch.from_numpy(fresh), result.answers
    targets = result.outcome.targets(full.labels, full.train, "cpu", log_prob.dtype)
    right = log_prob[:, nodes].argmax(2) == targets.values[nodes]
    return {
        "model": name,
        "fold": fold,
        "val_loss": round(float(result.val_loss.mean()), 4),
        "val_accuracy": round(float(result.val_accuracy.mean()), 4),
        "fresh_loss": round(float(result.outcome.calibrated_loss(log_prob, targets, nodes).mean()), 4),
        "fresh_accuracy": round(float(right.double().mean()), 4),
        "epochs": round(float(result.best_epoch.mean()), 1),
    }


def table(rows: list[Row]) -> str:
    """Means over the folds, that is over all validation nodes."""
    lines = [f"{'':44} validation     fresh"]
    for name in MODELS:
        own = [row for row in rows if row["model"] == name]
        if own:
            keys = ("val_loss", "val_accuracy", "fresh_loss", "fresh_accuracy")
            means = [float(np.mean([row[key] for row in own])) for key in keys]
            lines.append(f"{name:44} {means[0]:.3f} {means[1]:.3f}    {means[2]:.3f} {means[3]:.3f}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the records to this file after every training")
    parser.add_argument("--table", type=Path, nargs="+", help="print the stored records of one or several runs")
    parser.add_argument("--folds", type=int, nargs="+", choices=FOLDS, default=FOLDS)
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    if arguments.table:
        print(table([row for file in arguments.table for row in json.loads(file.read_text())]))
        return
    rows: list[Row] = []
    for fold in arguments.folds:
        for name in MODELS:
            rows.append(measured(fold, name, arguments.device))
            print(rows[-1], file=sys.stderr, flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps(rows, indent=1))
    print(table(rows))


if __name__ == "__main__":
    main()
