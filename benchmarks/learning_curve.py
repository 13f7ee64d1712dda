"""What `learning_curve` of a fit with a few labels of each class foretells, beside fits with more of the same labels.

    export G3NN_DATA=FOLDER G3NN_GRAPHS=FOLDER
    python benchmarks/learning_curve.py --graphs texas cora --seeds 3 --out results/learning_curve.jsonl
    python benchmarks/learning_curve.py --table results/learning_curve.jsonl

Labels of 3, 5 and 10 nodes of each class, as far as it has more, are drawn at random, the fewer among the more. All
nodes without the largest number of labels test. A row that is in the file is not made again.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from records import tell

import g3nn
from g3nn.graph.datasets import load

EACH = (3, 5, 10)


def rows_of(graph: str, seed: int) -> list[dict[str, Any]]:
    """One for each larger number of labels."""
    task, rng = load(graph), np.random.default_rng((seed, 7))
    drawn = [rng.permutation(np.flatnonzero(task.labels == one)) for one in range(task.num_classes)]
    some = {each: np.concatenate([nodes[: min(each, len(nodes) // 2 + 1)] for nodes in drawn]) for each in EACH}
    test = np.setdiff1d(np.flatnonzero(task.labels >= 0), some[EACH[-1]])
    found, scores = [], dict[int, float]()
    for each, nodes in some.items():
        y, began = np.full(task.num_nodes, -1), process_time()
        y[nodes] = task.labels[nodes]
        clf = g3nn.G3NNClassifier(effort="quick", random_state=seed, device="cpu").fit(task.features, y, task.edges)
        scores[each], seconds = float((clf.predict()[test] == task.labels[test]).mean()), process_time() - began
        if each == EACH[0]:
            curve, first, took = clf.learning_curve(), len(nodes), process_time() - began - seconds
            cost = {"fit_seconds": round(seconds, 1), "curve_seconds": round(took, 1)}
            trained = [tuple(one) for one in curve.trained]
            continue
        at, gain = curve.at(len(nodes)), curve.gain(len(nodes) - first)
        row = {"graph": graph, "seed": seed, "each": each, "labels": len(nodes), "first": first, "now": scores[EACH[0]]}
        row |= {"expected_now": 1 - curve.error, "score": scores[each], "expected": float(at.score[0])}
        row |= {"low": float(at.low[0]), "high": float(at.high[0])}
        found.append(row | {f"gain_{name}": getattr(gain, name) for name in ("score", "low", "high")})
        found[-1] |= {"trained": trained, "judged": curve.judged, **cost}
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Means over seeds, and how often intervals hold what came."""
    lines = ["| graph | labels of a class | fits | accuracy | expected | inside | gain | expected | inside |"]
    lines.append("|---" * 9 + "|")
    for graph, each in dict.fromkeys((row["graph"], row["each"]) for row in rows):
        own = [row for row in rows if (row["graph"], row["each"]) == (graph, each)]
        came = [row["score"] - row["now"] for row in own]
        inside = sum(row["low"] <= row["score"] <= row["high"] for row in own)
        held = sum(row["gain_low"] <= gain <= row["gain_high"] for row, gain in zip(own, came, strict=True))
        means = [np.mean([row[name] for row in own]) for name in ("score", "expected", "gain_score")]
        cells = (f"{means[0]:.3f}", f"{means[1]:.3f}", inside, f"{np.mean(came):+.3f}", f"{means[2]:+.3f}", held)
        lines.append(f"| {graph} | {each} | {len(own)} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=("texas", "chameleon_filtered", "cora"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="a file of JSON lines that is added to")
    parser.add_argument("--table", type=Path, help="print the table of such a file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", g3nn.G3NNWarning)
    if options.table:
        print(table([json.loads(line) for line in options.table.read_text().splitlines()]))
        return
    done = options.out.read_text().splitlines() if options.out and options.out.exists() else []
    known = {(row["graph"], row["seed"]) for row in map(json.loads, done)}
    for seed in range(options.seeds):
        for graph in options.graphs:
            for row in rows_of(graph, seed) if (graph, seed) not in known else ():
                tell(row, options.out)


if __name__ == "__main__":
    main()
