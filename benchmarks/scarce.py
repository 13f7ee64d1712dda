"""Models of the default's panel with few labels and nothing to validate on: each beside its own network alone.

    export G3NN_DATA=FOLDER
    python benchmarks/scarce.py --out results/scarce.jsonl --splits 5
    python benchmarks/scarce.py --out results/scarce.jsonl --splits 5 --balanced
    python benchmarks/scarce.py --table results/scarce.jsonl

Each is trained for 200 epochs on `--labels` nodes of each class, drawn at random, and the last parameters answer for
all others. A joint model is compared with the same network, options and seed without a likelihood. `--balanced`:
with sharpening that leaves each class as frequent as it was. A run that is in the file is not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from records import tell

import g3nn
from g3nn.estimator.panel import Candidate, panel_of
from g3nn.graph.outcomes import OUTCOMES

GRAPHS, EPOCHS = ("cora", "citeseer", "pubmed"), 200
Row = dict[str, Any]


def split_of(graph: str, labels: int, seed: int) -> g3nn.NodeTask:
    task, rng = g3nn.load(graph), np.random.default_rng((seed, 7))
    classes = (np.flatnonzero(task.labels == one) for one in range(task.num_classes))
    train = np.sort(np.concatenate([rng.permutation(nodes)[:labels] for nodes in classes]))
    test = np.setdiff1d(np.flatnonzero(task.labels >= 0), train)
    parts = (task.features, task.edges, task.labels, train, None, test)
    return g3nn.NodeTask.build(*parts, num_classes=task.num_classes, name=graph)


def models(columns: int, balanced: bool) -> dict[str, Candidate]:
    """By a name: the joint models of the panel, and their networks."""
    found = dict[str, Candidate]()
    for place, one in enumerate(panel_of(OUTCOMES["classes"], columns, 2.0)):
        candidate = Candidate(*one)
        if "-" not in candidate.name:
            continue
        options = dict(candidate.options) | ({"balanced": True} if balanced else {})
        network = candidate.name.split("-")[1]
        own = Candidate(network, "elbo", options).declared(OUTCOMES["classes"])
        alone = {name: value for name, value in options.items() if name in own}
        found[f"{place} {candidate.name}"] = Candidate(candidate.name, candidate.objective, options)
        found[f"{place} {network}"] = Candidate(network, "elbo", alone)
    return found


def measure(task: g3nn.NodeTask, model: Candidate, seed: int) -> tuple[float, float]:
    began, how = time.monotonic(), {**model.options, "epochs": EPOCHS, "keep": "last"}
    plan = Candidate(model.model, model.objective, how).plan({}, (seed,), "cpu")
    return float(plan.fit(task, False).test_accuracy[0]), round(time.monotonic() - began, 1)


def table(rows: list[Row]) -> str:
    """Means over splits, and the joint model less its network."""
    found: dict[tuple[Any, ...], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    names = {row["model"].split()[0]: row["model"].split()[1] for row in rows if "-" in row["model"]}
    for row in rows:
        place, name = row["model"].split()
        key = row["graph"], row["labels"], row["balanced"], int(place), names[place]
        found[key]["joint" if "-" in name else "alone"][row["seed"]] = row["accuracy"]
    lines = ["| graph | labels of each class | sharpening | model | splits | alone | joint | gain |", "|---" * 8 + "|"]
    for (graph, labels, balanced, _, name), kinds in sorted(found.items()):
        both = sorted(kinds["joint"].keys() & kinds["alone"].keys())
        if both:
            alone, joint = (np.mean([kinds[kind][seed] for seed in both]) for kind in ("alone", "joint"))
            how = "balanced" if balanced else "as it was"
            cells = (graph, labels, how, name, len(both), f"{alone:.3f}", f"{joint:.3f}")
            lines.append(f"| {' | '.join(map(str, cells))} | {joint - alone:+.3f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS, metavar="GRAPH")
    parser.add_argument("--only", nargs="+", metavar="NETWORK", help="only these networks and joint models with them")
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--balanced", action="store_true")
    parser.add_argument("--out", type=Path, help="a file of JSON lines that is added to")
    parser.add_argument("--table", type=Path, help="print the table of such a file")
    options = parser.parse_args()
    if options.table is not None:
        print(table([json.loads(line) for line in options.table.read_text().splitlines()]))
        return
    done = options.out.read_text().splitlines() if options.out is not None and options.out.exists() else []
    known = {tuple(json.loads(line)[key] for key in ("graph", "labels", "balanced", "model", "seed")) for line in done}
    for graph in options.graphs:
        for seed in range(options.splits):
            task = split_of(graph, options.labels, seed)
            for name, model in models(task.num_classes, options.balanced).items():
                wanted = options.only is None or name.split()[1].split("-")[-1] in options.only
                if not wanted or (graph, options.labels, options.balanced, name, seed) in known:
                    continue
                accuracy, seconds = measure(task, model, seed)
                row = {"graph": graph, "labels": options.labels, "balanced": options.balanced, "model": name}
                row |= {"seed": seed, "accuracy": accuracy, "seconds": seconds}
                tell(row, options.out)


if __name__ == "__main__":
    main()
