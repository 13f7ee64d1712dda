"""Whether the default is as certain as it is right where labels are few: mean confidence beside accuracy on test nodes.

    export G3NN_GRAPHS=FOLDER
    python benchmarks/confidence.py noise --seeds 0 1 2 --out confidence.json
    python benchmarks/confidence.py three validation --graphs texas acm --seeds 0 --out confidence.json
    python benchmarks/confidence.py --table confidence.json

Cases, each with labels of its own for every seed; all other nodes are test nodes:

- noise: 400 nodes in 2 classes, with features and edges that have nothing to do with them, and 24, 60 or 120 labels;
- three: 3 labels of each class in all, nothing to validate on beside them;
- validation: 20 labels of each class, and 10, 20 or 50 validation nodes.

Beside the default an APPNP and an MLP with fixed settings are trained for 200 epochs on the same labels. A file of
records is gone on from where it stopped.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from records import Record, records_to_extend, stored, write_records

import g3nn
from g3nn.base.errors import Problems
from g3nn.graph.calibrate import expected_calibration_error

LABELS = {"noise": (24, 60, 120), "three": (3,), "validation": (10, 20, 50)}
"""Of noise in all, of three for each class, of validation those to validate on."""
OF_A_CLASS = 20
MEASURES = "accuracy", "confidence", "ece"
PLAIN = ("appnp", "mlp")


def cases(kind: str, graphs: Sequence[str], seeds: Sequence[int]) -> Iterator[Record]:
    for graph in ("drawn",) if kind == "noise" else graphs:
        for count in LABELS[kind]:
            for seed in seeds:
                yield {"case": kind, "graph": graph, "count": count, "seed": seed}


def problem(case: Record) -> tuple[g3nn.NodeTask, np.ndarray, np.ndarray | None]:
    """A graph with all its labels, the nodes whose labels are known, and those of them to validate on."""
    # A stream of its own: some graphs were drawn by the first numbers of a small seed.
    rng = np.random.default_rng((case["seed"], 1))
    if case["case"] == "noise":
        drawn = {"nodes": 400, "classes": 2, "degree": 6.0, "homophily": 0.5, "features": 16, "signal": 0.0}
        task = g3nn.synthetic(seed=case["seed"], labels_per_class=20, val=20, **drawn)
        return task, rng.permutation(task.num_nodes)[: case["count"]], None
    task = g3nn.load(case["graph"])
    order = rng.permutation(np.flatnonzero(task.labels >= 0))
    most = 3 if case["case"] == "three" else OF_A_CLASS
    known = np.concatenate([order[task.labels[order] == k][:most] for k in range(task.num_classes)])
    if case["case"] == "three":
        return task, known, None
    val = np.setdiff1d(order, known, assume_unique=True)[: case["count"]]
    return task, np.concatenate([known, val]), val


def measured(case: Record, effort: str) -> Iterator[Record]:
    task, known, val = problem(case)
    labels = np.where(np.isin(np.arange(task.num_nodes), known), task.labels, -1)
    test = np.setdiff1d(np.flatnonzero(task.labels >= 0), known)
    fixed = {"validation": 0, "hidden": 64, "options": {"dropout": 0.5}, "label_noise": False, "denoise": False}
    plain = {name: {"model": name, **fixed} for name in PLAIN}
    for name, parameters in {effort: {"effort": effort}, **plain}.items():
        start = time.perf_counter()
        classifier = g3nn.G3NNClassifier(**parameters, random_state=case["seed"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", g3nn.G3NNWarning)
            classifier.fit(task.features, labels, task.edges, val=val if name == effort else None)
        found = np.zeros((task.num_nodes, task.num_classes))
        found[:, classifier.classes_.astype(int)] = classifier.predict_proba()
        right = found[test].argmax(1) == task.labels[test]
        yield {
            **case,
            "model": name,
            "accuracy": round(float(right.mean()), 4),
            "confidence": round(float(found[test].max(1).mean()), 4),
            "ece": round(expected_calibration_error(found[test], task.labels[test]), 4),
            "chose": classifier.model_,
            "seconds": round(time.perf_counter() - start, 1),
        }


def key(record: Record) -> tuple[object, ...]:
    return tuple(record[name] for name in ("case", "graph", "count", "seed", "model"))


def table(records: Sequence[Record]) -> str:
    """A line for each case, graph and number of labels, and one for the mean over graphs."""
    groups: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for record in records:
        where = record["case"], record["graph"], record["count"], record["model"]
        groups[where].append(record)
        groups[record["case"], "mean", "", record["model"]].append(record)
    lines = ["| case | graph | labels | model | runs | accuracy | confidence | gap | ECE |", "|---" * 9 + "|"]
    for where in sorted(groups, key=lambda one: (one[0], one[1] == "mean", *map(str, one[1:]))):
        found = groups[where]
        accuracy, confidence, ece = (
            np.mean([one[name] for one in found]) for name in ("accuracy", "confidence", "ece")
        )
        cells = (*where, len(found), *(f"{x:.3f}" for x in (accuracy, confidence, confidence - accuracy, ece)))
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*LABELS, []])
    parser.add_argument("--graphs", nargs="+", default=["cora"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--effort", default="default")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    if options.table is not None:
        print(table(stored(options.table, "--table", key)))
        return
    problems = Problems()
    records = records_to_extend(options.out, key, problems)
    problems.raise_if_any()
    done = set(map(key, records))
    for kind in options.cases:
        for case in cases(kind, options.graphs, options.seeds):
            if key({**case, "model": options.effort}) not in done:
                for record in measured(case, options.effort):
                    records = [one for one in records if key(one) != key(record)] + [record]
                    print(record, flush=True)
                write_records(options.out, records)


if __name__ == "__main__":
    main()
