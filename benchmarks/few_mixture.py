"""Mixtures of models with few labels, from answers that `benchmarks/few_members.py` kept: nothing is trained here.

    python benchmarks/few_mixture.py FOLDER --labels 3 --record results/few_members.json

Prints the accuracy of each model, and of mixtures as the default makes them: weights by EM on labels that were left
out, with a prior in which networks share four fifths. What is asked is not a random part of a graph, so each class
counts as often as it is in the graph. --record keeps the accuracy of each model.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scarce import GRAPHS

from g3nn.estimator.answers import shrunk_weights
from g3nn.graph.calibrate import Scaling
from g3nn.graph.datasets import load
from g3nn.graph.outcomes import Classes

JOINT = ("2 sbm-appnp", "4 blsm-grand", "5 dcsbm-grand", "12 dcsbm-grand", "13 blsm-gcn")
NETWORKS = ("4 grand alone", "5 grand alone", "13 gcn alone")
MIXTURES = {
    "joint models and sage": (*JOINT, "9 sage"),
    "networks": (*NETWORKS, "9 sage"),
    "three joint models beside their networks": (*JOINT[2:], *NETWORKS, "9 sage"),
}
_SIMPLE = 0.2


@dataclass(frozen=True, eq=False)
class Answers:
    """Of one graph. asked, left: log-probabilities (n, K) by the name of a model, at its own temperature. weights: of
    the nodes that are asked about."""

    graph: str
    asked: dict[str, np.ndarray]
    left: dict[str, np.ndarray]
    labels: np.ndarray
    left_labels: np.ndarray
    weights: np.ndarray

    @classmethod
    def read(cls, path: Path) -> Answers:
        kept, graph = np.load(path), path.stem.rsplit("-", 2)[0]
        labels, left_labels = kept["asked_labels"], kept["left_labels"]
        known = load(graph).labels
        shares = np.bincount(known[known >= 0]) / (known >= 0).sum()
        weights = shares[labels] / np.bincount(labels, minlength=len(shares))[labels]
        asked, left = dict[str, np.ndarray](), dict[str, np.ndarray]()
        for name in (name[6:] for name in kept.files if name.startswith("asked/")):
            rows = {part: kept[f"{part}/{name}"].astype(np.float64) for part in ("asked", "left")}
            scaling = Scaling()
            if len(left_labels):
                scaling = Scaling(Classes(len(shares)).temperature(scaling(rows["left"]), left_labels))
            asked[name], left[name] = scaling(rows["asked"]), scaling(rows["left"])
        return cls(graph, asked, left, labels, left_labels, weights / weights.sum())

    def accuracy(self, log_prob: np.ndarray) -> float:
        return float(self.weights @ (log_prob.argmax(1) == self.labels))

    def mixture(self, networks: list[str]) -> np.ndarray:
        simple = [name for name in self.asked if name.startswith("simple")]
        names = [name for name in networks if name in self.asked] + simple
        share = np.where(np.isin(names, simple), _SIMPLE / len(simple), (1 - _SIMPLE) / (len(names) - len(simple)))
        if len(self.left_labels):
            each = np.arange(len(self.left_labels))
            share = shrunk_weights(np.stack([self.left[name][each, self.left_labels] for name in names]), share)
        return np.log(sum(weight * np.exp(self.asked[name]) for name, weight in zip(names, share, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    paths = sorted(
        options.folder.glob(f"*-{options.labels}-*.npz"), key=lambda path: GRAPHS.index(path.stem.rsplit("-", 2)[0])
    )
    found = [Answers.read(path) for path in paths]
    names = list(dict.fromkeys(name for one in found for name in one.asked))
    alone = {name: {one.graph: one.accuracy(one.asked[name]) for one in found if name in one.asked} for name in names}
    rows = dict(alone)
    for weight in dict.fromkeys(name.partition("@")[2] for name in names if "@" in name):
        for title, models in MIXTURES.items():
            mixed = {one.graph: one.accuracy(one.mixture([f"{name} @{weight}" for name in models])) for one in found}
            rows[f"{title} @{weight}"] = mixed
    graphs = [one.graph for one in found]
    print(f"| evenness after @ | {' | '.join(graphs)} | mean |\n" + "|---" * (len(graphs) + 2) + "|")
    for name, row in rows.items():
        cells = [f"{row[graph]:.3f}" if graph in row else "-" for graph in graphs]
        print(f"| {name} | {' | '.join(cells)} | {np.mean(list(row.values())):.3f} |")
    if options.record is not None:
        kept = json.loads(options.record.read_text()) if options.record.exists() else {}
        kept[str(options.labels)] = {name: {g: round(v, 4) for g, v in row.items()} for name, row in rows.items()}
        options.record.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
