"""The classifier with default settings, on public splits and on heterophilous graphs.

    python benchmarks/classifier.py --out classifier.json
    python benchmarks/classifier.py --table classifier.json

The panel chooses on the validation nodes of the public split, and the test nodes are scored once, at the end. On the
heterophilous graphs the default is compared with MLP and GCN, with the same ensemble and seeds. `inductive` fits Cora
without its test nodes, which arrive afterwards with their edges. `coverage` and `set size` describe conformal sets at
alpha 0.1; `ECE if calibrated` is the error these answers would show if they were perfectly calibrated.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import g3nn
from g3nn.estimator import G3NNClassifier
from g3nn.graph.calibrate import expected_calibration_error
from g3nn.graph.task import NodeTask

Row = dict[str, Any]

PUBLIC = ("cora", "citeseer", "pubmed")
HETEROPHILOUS = {
    "heterophilous-1": {"homophily": 0.05, "degree": 8, "signal": 1.0, "seed": 0},
    "heterophilous-2": {"homophily": 0.1, "degree": 6, "signal": 1.5, "seed": 1},
    "heterophilous-3": {"homophily": 0.0, "degree": 10, "signal": 0.7, "seed": 2},
}
ALPHA = 0.1


def known_labels(task: NodeTask) -> np.ndarray:
    """Labels of training and validation nodes; -1 elsewhere."""
    y = np.full(task.num_nodes, -1)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    return y


def calibrated_error(probabilities: np.ndarray, draws: int = 200) -> tuple[float, float]:
    """The calibration error these answers would show if they were perfectly calibrated: mean and 95 % quantile.

    It is never zero, because each bin holds only a few nodes.
    """
    rng = np.random.default_rng(0)
    n = len(probabilities)
    drawn = ((probabilities.cumsum(1) > rng.random((n, 1))).argmax(1) for _ in range(draws))
    errors = [expected_calibration_error(probabilities, labels) for labels in drawn]
    return float(np.mean(errors)), float(np.quantile(errors, 0.95))


def measure(name: str, task: NodeTask, **parameters: Any) -> Row:
    """Fit, then score the test nodes."""
    start = time.perf_counter()
    classifier = G3NNClassifier(**parameters).fit(task.features, known_labels(task), task.edges, val=task.val)
    seconds = time.perf_counter() - start
    labels = task.labels[task.test]
    sets = classifier.predict_set(ALPHA)[task.test]
    expected, high = calibrated_error(classifier.predict_proba()[task.test])
    return {
        "name": name,
        **row_of(classifier),
        **classifier.evaluate(task.test, labels),
        "ece_if_calibrated": expected,
        "ece_if_calibrated_95": high,
        "coverage": float(sets[np.arange(labels.size), labels].mean()),
        "set_size": float(sets.sum(1).mean()),
        "seconds": seconds,
    }


def inductive(task: NodeTask, **parameters: Any) -> Row:
    """Fit without the test nodes, then answer for them as new nodes."""
    start = time.perf_counter()
    kept = np.setdiff1d(np.arange(task.num_nodes), task.test)
    number = np.empty(task.num_nodes, dtype=np.int64)
    number[np.concatenate([kept, task.test])] = np.arange(task.num_nodes)
    new = np.isin(task.edges, task.test).any(axis=0)
    edges = number[task.edges]
    y = known_labels(task)[kept]
    classifier = G3NNClassifier(**parameters).fit(task.features[kept], y, edges[:, ~new], val=number[task.val])
    found = classifier.predict(task.features[task.test], edges[:, new])
    accuracy = float((found == task.labels[task.test]).mean())
    return {
        "name": "cora-inductive",
        **row_of(classifier),
        "accuracy": accuracy,
        "seconds": time.perf_counter() - start,
    }


def row_of(classifier: G3NNClassifier) -> Row:
    return {
        "model": classifier.model_,
        "temperature": classifier.temperature_,
        "isolated_answer": classifier.isolated_answer_,
        "panel": [asdict(entry) for entry in classifier.panel_],
    }


def rows(only: list[str] | None, device: str, seed: int) -> list[Row]:
    found = []

    def wanted(name: str) -> bool:
        return only is None or name in only

    def add(row: Row) -> None:
        found.append(row)
        print(line(row), flush=True)

    for name in filter(wanted, PUBLIC):
        add(measure(name, g3nn.load(name), device=device, random_state=seed))
    if wanted("inductive"):
        add(inductive(g3nn.load("cora"), device=device, random_state=seed))
    for name, recipe in HETEROPHILOUS.items():
        if wanted("heterophilous"):
            task = g3nn.synthetic(nodes=1000, classes=4, labels_per_class=20, val=200, **recipe)
            for model in ("auto", "mlp", "gcn"):
                add(measure(f"{name} {model}", task, model=model, device=device, random_state=seed))
    return found


COLUMNS = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "ece_if_calibrated": "ECE if calibrated",
    "ece_if_calibrated_95": "95 %",
    "brier": "Brier",
    "coverage": "coverage",
    "set_size": "set size",
}
HEAD = f"| data | answered by | {' | '.join(COLUMNS.values())} | seconds |\n|{'---|' * (len(COLUMNS) + 3)}"


def line(row: Row) -> str:
    numbers = [f"{row[key]:.3f}" if key in row else "" for key in COLUMNS]
    return "| " + " | ".join([row["name"], row["model"], *numbers, f"{row['seconds']:.0f}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*PUBLIC, "inductive", "heterophilous"])
    parser.add_argument("--out", type=Path, help="write the records to this file as JSON")
    parser.add_argument("--table", type=Path, help="print stored records instead of measuring")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(HEAD, flush=True)
    if arguments.table:
        print("\n".join(line(row) for row in json.loads(arguments.table.read_text())))
        return
    found = rows(arguments.only, arguments.device, arguments.seed)
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
