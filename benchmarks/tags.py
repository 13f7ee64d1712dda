"""Tags on a real graph: BlogCatalog with a tenth of its nodes labelled, the joint model against its own network alone.

    python benchmarks/tags.py --out results/tags.json

Ten splits (`g3nn.data.load_blogcatalog`, seeds 0 to 9): 825 nodes for training, 206 for validation, 9,281 for testing.
Macro- and micro-F1 by the usual protocol of this graph, the same for all methods: how many tags a test node has is
told, and as many tags with the highest scores are taken.

- joint: p(G | Y) p(Y | X) with a network as posterior;
- alone: the same network, trained with binary cross-entropy on the training nodes;
- label propagation (Zhou et al., 2004) of the training tags, with the weight of the neighbours that has the highest
  macro-F1 on the validation nodes of the split.

Every training stops by the log-probability of the validation tags. `--choose` compares a grid around `JOINT` and
`ALONE` by the validation nodes of splits that are none of the ten; it sees no test node.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import g3nn
from g3nn.data import load_blogcatalog

SPLITS_TO_CHOOSE_BY = (100, 101, 102)
TRAINING: dict[str, Any] = {"hidden": 64, "epochs": 120, "patience": 25}
NEUTRAL: dict[str, Any] = {"degrees": True, "p0": 0.5, "p1": 0.5, "edges_per_step": 32768}
"""Tags say nothing about edges at first, and nodes have their degrees whatever their tags."""
JOINT: tuple[str, dict[str, Any]] = ("tags-gcn", {**NEUTRAL, "graph_weight": 5.0, "lr": 0.02})
ALONE: tuple[str, dict[str, Any]] = ("gcn", {"lr": 0.02})
GRID: list[tuple[str, dict[str, Any]]] = [
    *((network, {"lr": lr}) for network in ("gcn", "mlp") for lr in (0.02, 0.05)),
    *(
        (f"tags-{network}", {**NEUTRAL, "graph_weight": weight, "eta": eta, "lr": 0.02})
        for network in ("gcn", "mlp")
        for weight in (1.0, 5.0, 20.0)
        for eta in (1.0, 10.0)
    ),
    ("tags-gcn", {**NEUTRAL, "graph_weight": 5.0, "lr": 0.02, "refine": True}),
    ("tags-gcn", {**NEUTRAL, "graph_weight": 5.0, "lr": 0.02, "degrees": False}),
    ("sbm-gcn", {"graph_weight": 5.0, "lr": 0.02, "edges_per_step": 32768}),
]
SPREADS = (0.1, 0.3, 0.5, 0.7, 0.9)
STEPS = 20
Row = dict[str, Any]


def f1(scores: np.ndarray, tags: np.ndarray) -> tuple[float, float]:
    """Macro- and micro-F1 of the k highest of each row of scores (m, T), where k is how many tags (m, T) the row has.

    A tag that no row has and none was given counts 0 in the macro mean, as in scikit-learn.
    """
    rank = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
    given = rank < tags.sum(1, keepdims=True)
    right, all_ = (given * tags).sum(0), given.sum(0) + tags.sum(0)
    return float(np.mean(2 * right / np.maximum(all_, 1))), float(2 * right.sum() / all_.sum())


def trained(task: g3nn.NodeTask, model: str, seed: int, device: str, options: dict[str, Any]) -> Row:
    result = g3nn.fit(task, model, seed=seed, device=device, **TRAINING, **options)
    figures = {"val_log_prob": -float(result.val_loss[0]), "test_log_prob": float(result.test_log_prob[0])}
    row = {"model": model, "options": options, "split": seed, **scored(task, result.probabilities[0]), **figures}
    row |= {"epochs": int(result.epochs[0]), "seconds": round(result.seconds, 1)}
    print(row, file=sys.stderr, flush=True)
    return row


def propagated(task: g3nn.NodeTask, split: int) -> Row:
    """F = a D^-1/2 A D^-1/2 F + (1 - a) Y_0, by 20 steps, with the best of several a on the validation nodes."""
    n, told = task.num_nodes, np.zeros_like(task.labels)
    told[task.train] = task.labels[task.train]
    once = sp.csr_array((np.ones(task.num_edges), tuple(task.edges)), shape=(n, n))
    both = once + once.T
    scale = sp.diags_array(1 / np.sqrt(np.maximum(both.sum(1), 1)))
    step = scale @ both @ scale
    answers = {}
    for spread in SPREADS:
        mass = told
        for _ in range(STEPS):
            mass = spread * (step @ mass) + (1 - spread) * told
        answers[spread] = mass
    best = max(SPREADS, key=lambda spread: f1(answers[spread][task.val], task.labels[task.val])[0])
    row = {"model": "label propagation", "options": {"spread": best}, "split": split, **scored(task, answers[best])}
    print(row, file=sys.stderr, flush=True)
    return row


def scored(task: g3nn.NodeTask, scores: np.ndarray) -> Row:
    """F1 on the validation nodes, and on the test nodes if there are any."""
    macro, micro = f1(scores[task.val], task.labels[task.val])
    row = {"val_macro_f1": macro, "val_micro_f1": micro}
    if task.test.size:
        macro, micro = f1(scores[task.test], task.labels[task.test])
        row |= {"macro_f1": macro, "micro_f1": micro}
    return row


def choose(device: str) -> None:
    """Print the means over the splits for every point of the grid, the highest log-probability first."""
    tasks = {split: load_blogcatalog(seed=split).without_test() for split in SPLITS_TO_CHOOSE_BY}
    lines = []
    for model, options in GRID:
        rows = [trained(task, model, split, device, options) for split, task in tasks.items()]
        keys = ("val_log_prob", "val_macro_f1", "val_micro_f1")
        means = [float(np.mean([row[key] for row in rows])) for key in keys]
        lines.append((means[0], f"{means[0]:.5f}   {means[1]:.4f}   {means[2]:.4f}   {model} {options}"))
    print("log-prob   macro-F1 micro-F1, on validation nodes")
    print("\n".join(line for _, line in sorted(lines, reverse=True)))


def table(rows: list[Row]) -> str:
    """Means and deviations over the splits, and paired t-tests of the joint model against everything else."""
    from scipy.stats import ttest_rel

    def values(model: str, key: str) -> np.ndarray:
        of_model = {row["split"]: row[key] for row in rows if row["model"] == model}
        return np.array([of_model[split] for split in sorted(of_model)])

    models = list(dict.fromkeys(row["model"] for row in rows))
    joint = next(model for model in models if "-" in model)
    lines = [f"{len(values(joint, 'macro_f1'))} splits; p: paired t-test against {joint}"]
    for model in models:
        cells = []
        for key, name in (("macro_f1", "macro-F1"), ("micro_f1", "micro-F1")):
            found, best = values(model, key), values(joint, key)
            p = "" if model == joint else f" (p = {ttest_rel(best, found).pvalue:.1e})"
            cells.append(f"{name} {found.mean():.4f} ± {found.std(ddof=1):.4f}{p}")
        lines.append(f"{model:18} {', '.join(cells)}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the records here, after every split")
    parser.add_argument("--table", type=Path, help="print stored records")
    parser.add_argument("--choose", action="store_true", help="compare the grid instead")
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(10)), help="their seeds")
    parser.add_argument("--device", default="auto")
    arguments = parser.parse_args()
    rows: list[Row] = []
    if arguments.table:
        print(table(json.loads(arguments.table.read_text())))
    elif arguments.choose:
        choose(arguments.device)
    else:
        for split in arguments.splits:
            task = load_blogcatalog(seed=split)
            rows += [trained(task, model, split, arguments.device, options) for model, options in (JOINT, ALONE)]
            rows.append(propagated(task, split))
            if arguments.out:
                arguments.out.write_text(json.dumps(rows, indent=1))
        print(table(rows))


if __name__ == "__main__":
    main()
