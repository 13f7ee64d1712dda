"""What it would bring to add edges that seem to be missing, beside doubting those that are there.

    G3NN_ATTACKED=DIR python benchmarks/added_edges.py --out added_edges.json

Every node gets edges to those k others that are most like it: cosine of the features times the probability of the same
class by the propagated beliefs, which know training labels alone. sbm-appnp is then trained on the doubted edges and
these, with weight w each. Two seeds; validation and test accuracy.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import g3nn
from g3nn.graph.task import NodeTask
from g3nn.queries.edge_trust import _by_features, _training_labels
from g3nn.queries.genuine import Evidence, unit_rows
from g3nn.queries.scores import ObservedEdges

CELLS = (("cora", "standard"), ("citeseer", "standard"), ("cora", "metattack-25"), ("citeseer", "metattack-25"))
SHARE, SEEDS = 0.5, (0, 1)
OPTIONS = {"hidden": 64, "epochs": 200, "patience": 50, "device": "cpu", "progress": False}


def with_most_alike(task: NodeTask, beliefs: np.ndarray, k: int, weight: float) -> NodeTask:
    """The task with k edges more for each node."""
    rows = sp.csr_array(unit_rows(sp.csr_array(task.features)))
    alike = (rows @ rows.T).toarray() * (beliefs @ beliefs.T)
    np.fill_diagonal(alike, -1)
    nearest = np.argpartition(-alike, k, axis=1)[:, :k]
    pairs = np.stack([np.repeat(np.arange(task.num_nodes), k), nearest.ravel()])
    pairs = np.unique(np.sort(pairs, axis=0), axis=1)
    pairs = pairs[:, ObservedEdges(task.edges, task.num_nodes, directed=False).is_free(pairs)]
    edges = np.concatenate([task.edges, pairs], axis=1)
    weights = np.concatenate([task.weights, np.full(pairs.shape[1], weight)])
    order = np.lexsort(edges[::-1])
    return replace(task, edges=edges[:, order], weights=weights[order])


def accuracies(task: NodeTask) -> dict[str, float]:
    """Of validation and test nodes, mean over the seeds."""
    share = 1 / task.num_classes
    result = g3nn.fit(task, "sbm-appnp", trials=len(SEEDS), seed=SEEDS, graph_weight=share, kl_weight=share, **OPTIONS)
    right = result.answers.argmax(2).cpu().numpy() == task.labels
    return {"val": float(right[:, task.val].mean()), "test": float(right[:, task.test].mean())}


def measured(dataset: str, setting: str) -> list[dict[str, Any]]:
    task = g3nn.load(dataset, setting=setting)
    outcome = task.outcome_model()
    prior = outcome.groups(_by_features(task, outcome, 0, "cpu"), _training_labels(task))[1]
    (found,) = Evidence(task).judge(prior, (SHARE,))
    doubted, records = replace(task, weights=np.maximum(found.probability, 1e-3)), []
    for k, weight in ((0, 0.0), (2, 0.3), (2, 1.0), (5, 0.3), (5, 1.0)):
        changed = with_most_alike(doubted, found.beliefs, k, weight) if k else doubted
        records.append({"dataset": dataset, "setting": setting, "k": k, "weight": weight, **accuracies(changed)})
        print(records[-1], flush=True)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    records = [record for cell in CELLS for record in measured(*cell)]
    given.out.write_text("[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n")


if __name__ == "__main__":
    main()
