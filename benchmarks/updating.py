"""How long an update and the next ten questions take, and whether answers are as good as those of a fit from scratch.

    python benchmarks/updating.py --out updating.jsonl --only cora citeseer --seeds 3
    python benchmarks/updating.py --table updating.jsonl

From 2 labels of each class on, ten random ones come in at a time until there are 20 per class. `G3NNClassifier` begins
with effort "quick" and is updated after every ten; from scratch the same model, sbm-appnp with two replicas, is trained
on the same labels for 150 epochs. Graphs, seeds and test nodes are those of `labelling.py`. One record on each line.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from labelling import FIRST, LAST, Choice, Lesson, begun, networks, split_task

from g3nn.base.errors import G3NNWarning

STEP = 10


def records(graph: str, seed: int, folder: Path | None, device: str, every: int) -> Iterator[dict[str, Any]]:
    """One for every step; every few of them with the accuracy from scratch."""
    task, pool = split_task(graph, seed, FIRST, folder)
    rng, K = np.random.default_rng([seed, 11]), task.num_classes
    order = rng.permutation(np.setdiff1d(pool, task.train))
    nodes, test = task.train, task.test
    model, first = begun(graph, seed, FIRST, folder, device)
    lesson = Lesson(Choice(graph, seed, "random", 0.0), "small")
    for number in range(1, (LAST - FIRST) * K // STEP + 1):
        new = order[(number - 1) * STEP : number * STEP]
        nodes, start = np.concatenate([nodes, new]), time.perf_counter()
        model.update(new, task.labels[new])
        found = {"graph": graph, "seed": seed, "labels": len(nodes), "first_seconds": first, "device": device}
        middle = time.perf_counter()
        model.suggest(STEP)
        found |= {"update_seconds": middle - start, "suggest_seconds": time.perf_counter() - middle}
        measured = model.evaluate(test, task.labels[test])
        found |= {"updated": measured["accuracy"], "ece": measured["ece"]}
        if number % every == 0:
            seen = task.with_split(np.sort(nodes), task.val, test)
            found["scratch"] = float(np.mean(networks(lesson, seen, device)[0][test] == task.labels[test]))
        yield found


def table(path: Path) -> str:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        record = json.loads(line)
        groups[f"{record['graph']} on {record['device']}"].append(record)
    lines = [
        "| graph | seeds | first fit, s | update, s | suggest, s | updated | from scratch | ece |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for where, found in sorted(groups.items()):
        both = [one for one in found if "scratch" in one]
        means = [fmean(one[name] for one in found) for name in ("first_seconds", "update_seconds", "suggest_seconds")]
        scores = [fmean(one[name] for one in both) for name in ("updated", "scratch", "ece")]
        seeds = len({one["seed"] for one in found})
        figures = [*(f"{value:.2f}" for value in means), *(f"{value:.3f}" for value in scores)]
        lines.append(f"| {where} | {seeds} | " + " | ".join(figures) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, metavar="DIR", help="a folder of .npz files")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file of records; graphs and seeds in it are done")
    parser.add_argument("--only", nargs="+", metavar="GRAPH", default=["cora", "citeseer"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--every", type=int, default=3, help="every so many steps a fit from scratch")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print stored records instead of measuring")
    given = parser.parse_args()
    if given.table:
        print(table(given.table))
        return
    if given.out is None:
        parser.error("--out is needed")
    known = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    done = {(one["graph"], one["seed"]) for one in known}
    for graph in given.only:
        for seed in range(given.seeds):
            if (graph, seed) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", G3NNWarning)
                found = list(records(graph, seed, given.graphs, given.device, given.every))
            with given.out.open("a") as out:
                out.writelines(json.dumps(one) + "\n" for one in found)


if __name__ == "__main__":
    main()
