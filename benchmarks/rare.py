"""A class of 2 % on drawn graphs: whether its probabilities keep its rate, and whether a simple model finds more of it.

    python benchmarks/rare.py --positives 20 50 100 200 --seeds 0 1 2 --out rare.jsonl
    python benchmarks/rare.py --table rare.jsonl

In a drawn graph every fiftieth node is of the class, among the labelled nodes too. Those have other amounts, are linked
to more nodes, and more of these are of the class. There are so many labels that as many as asked for are of the class;
tests are on all other nodes. The best simple model is the one of benchmarks/floor.py with the highest average
precision, as a mean over seeds, which flatters it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from floor import Data, simple
from records import tell
from sklearn.metrics import average_precision_score

import g3nn

Row = dict[str, Any]
RATE, TESTED, FEATURES, INFORMATIVE = 0.02, 1000, 8, 3
OWN = "g3nn"


def drawn(positives: int, seed: int) -> tuple[Data, np.ndarray]:
    """A graph, and its labelled nodes."""
    rng = np.random.default_rng(seed)
    n = round(positives / RATE) + TESTED
    labels = np.zeros(n, dtype=np.int64)
    labels[rng.permutation(n)[: round(RATE * n)]] = 1
    features = rng.normal(size=(n, FEATURES))
    features[:, :INFORMATIVE] += labels[:, None] * rng.uniform(0.4, 1.0, INFORMATIVE)
    features[:, 0] = np.exp(features[:, 0])
    # Ends of the class are drawn more often, and once more so if the other end is of the class.
    weight = np.where(labels == 1, 1.6, 1.0)
    source = rng.choice(n, 4 * n, p=weight / weight.sum())
    target = rng.choice(n, 4 * n, p=weight / weight.sum())
    inside = (labels[source] == 1) & (rng.random(4 * n) < 0.15)
    target[inside] = rng.choice(np.flatnonzero(labels), int(inside.sum()))
    edges = np.stack([source, target])[:, source != target]
    chosen = np.concatenate(
        [rng.permutation(np.flatnonzero(labels == k))[: round(positives * share)] for k, share in enumerate((49, 1))]
    )
    return Data(features, edges, labels, 0.5), np.sort(chosen)


def measure(positives: int, seed: int, effort: str) -> Iterator[Row]:
    one, shown = drawn(positives, seed)
    test = np.setdiff1d(np.arange(len(one.labels)), shown)
    has = one.labels[test] == 1

    def row(model: str, p: np.ndarray) -> Row:
        measured = {"ap": float(average_precision_score(has, p[test])), "ratio": float(p[test].mean() / has.mean())}
        return {"positives": positives, "seed": seed, "model": model, **measured}

    for name, given in simple(one, shown):
        yield row(name, given[:, 1])
    labels, began = np.full(len(one.labels), -1), time.monotonic()
    labels[shown] = one.labels[shown]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", g3nn.G3NNWarning)
        estimator = g3nn.G3NNClassifier(effort=effort, random_state=seed).fit(one.features, labels, one.edges)
    more = {"seconds": round(time.monotonic() - began, 1), "chose": estimator.model_}
    yield {**row(OWN, estimator.predict_proba()[:, 1]), **more}


def table(rows: list[Row]) -> str:
    """Average precision and the ratio of mean probability and rate, means over seeds."""
    found: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["positives"]][row["model"]].append(row)
    heads = ("labels of the class", "graphs", "best simple model", "AP", "AP of g3nn", "mean probability / rate")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for positives, models in sorted(found.items()):
        ap = {model: float(np.mean([one["ap"] for one in runs])) for model, runs in models.items()}
        best = max((model for model in ap if model != OWN), key=lambda model: ap[model])
        ratios = [one["ratio"] for one in models[OWN]]
        own = f"{np.mean(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        lines.append(f"| {positives} | {len(ratios)} | {best} | {ap[best]:.3f} | {ap[OWN]:.3f} | {own} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positives", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--out", type=Path, help="a file of JSON lines that is added to")
    parser.add_argument("--table", type=Path, help="print the table of such a file")
    options = parser.parse_args()
    if options.table is not None:
        print(table([json.loads(line) for line in options.table.read_text().splitlines()]))
        return
    for positives in options.positives:
        for seed in options.seeds:
            for row in measure(positives, seed, options.effort):
                tell(row, options.out)


if __name__ == "__main__":
    main()
