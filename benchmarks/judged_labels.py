"""How labels are judged, without training anything on what was found: the share of them that is expected to be wrong,
and whether `label_noise="auto"` would act.

    python benchmarks/judged_labels.py --out results/judged_labels.json

goes over the graphs of the suite label-noise, with one seed and right labels; `--settings`, `--seeds` and `--graphs`
choose others. `--table FILE` prints a record.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from g3nn import G3NNClassifier
from g3nn.base.errors import G3NNWarning
from g3nn.base.parse import UNKNOWN
from g3nn.graph.datasets import load_noisy
from g3nn.graph.datasets.graphs import GRAPHS

CITATIONS = ("cora", "citeseer", "pubmed")


def judged(graph: str, setting: str, seed: int, device: str) -> dict[str, object]:
    """One line of the record. auc: of finding the wrong labels, if there are any."""
    noisy = load_noisy(graph, setting, seed)
    task, labelled = noisy.task, np.union1d(noisy.task.train, noisy.task.val)
    y = np.full(task.num_nodes, UNKNOWN)
    y[labelled] = task.labels[labelled]
    # Any model: those that judge labels are others.
    classifier = G3NNClassifier("mlp", epochs=1, ensemble=1, device=device, random_state=seed)
    classifier.fit(task.features, y, task.edges, val=task.val)
    start = time.perf_counter()
    classifier.audit_labels()
    found = classifier.fitted_.labels
    wrong = noisy.wrong[found.nodes]
    return {
        "graph": graph,
        "setting": setting,
        "seed": seed,
        "expected": float(found.wrong.mean()),
        "acts": found.many,
        "auc": float(roc_auc_score(wrong, found.wrong)) if wrong.any() else None,
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=[*CITATIONS, *GRAPHS])
    parser.add_argument("--settings", nargs="+", default=["uniform-0"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        rows = json.loads(given.table.read_text())
    else:
        cases = [(graph, setting, seed) for graph in given.graphs for setting in given.settings for seed in given.seeds]
        rows = []
        for case in cases:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", G3NNWarning)
                rows.append(judged(*case, given.device))
            print(json.dumps(rows[-1]), flush=True)
            if given.out:
                given.out.write_text(json.dumps(rows, indent=1) + "\n")
    print("| graph | setting | expected to be wrong | acts | AUC |\n|---|---|---|---|---|")
    for row in rows:
        auc = "" if row["auc"] is None else f"{row['auc']:.3f}"
        print(f"| {row['graph']} | {row['setting']} | {row['expected']:.3f} | {row['acts']} | {auc} |")


if __name__ == "__main__":
    main()
