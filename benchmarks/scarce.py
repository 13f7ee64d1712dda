"""Few labels, and nothing to validate on: the default, without joint models, and what a careful person does by hand.

    export G3NN_DATA=FOLDER G3NN_GRAPHS=FOLDER
    python benchmarks/scarce.py --out results/scarce.jsonl --splits 5                # three labels of each class
    python benchmarks/scarce.py --out results/scarce.jsonl --labels 1 --methods default without-joint
    python benchmarks/scarce.py --out results/scarce.jsonl --labels 20 --unlinked    # no test node has an edge
    python benchmarks/scarce.py --out results/scarce.jsonl --graphs cora citeseer pubmed --methods models --splits 5
    python benchmarks/scarce.py --table results/scarce.jsonl

`--labels` nodes of each class are drawn at random, nothing else is known, and all others (at most 2,000) test. Methods:
`default` and `quick` are efforts; `without-joint` is the default whose joint models are replaced by their networks
alone. mlp, gcn, appnp and grand (with its published settings) are trained for 200 epochs on all labels, three replicas
averaged; label-propagation and linear, a logistic regression on own features, need no validation either. `models` are
the joint models of the panel and, with the same options and seed, their networks without a likelihood: 200 epochs, one
replica, and the last parameters answer. A run that is in the file is not repeated.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from records import tell
from sklearn.linear_model import LogisticRegression

import g3nn
from g3nn.estimator.panel import Candidate, networks_alone, panel_of
from g3nn.graph.calibrate import expected_calibration_error
from g3nn.graph.datasets import load
from g3nn.graph.datasets.scarce import few_known
from g3nn.graph.outcomes import OUTCOMES
from g3nn.graph.task import NodeTask

GRAPHS = (
    *("cora", "citeseer", "pubmed", "acm", "amazon_photo", "dblp", "uai2010", "flickr_attr", "actor"),
    *("chameleon_filtered", "texas", "minesweeper", "twitch_engb", "fb_amherst41"),
)
EPOCHS, ALPHA = 200, 0.1
GRAND = {"order": 8, "dropout": 0.5, "feature_dropout": 0.5, "samples": 4, "consistency_weight": 1.0, "hidden": 32}
PEERS: dict[str, dict[str, Any]] = {
    **{name: {"hidden": 64} for name in ("mlp", "gcn", "appnp")},
    "grand": GRAND,
    "label-propagation": {},
}
METHODS = ("default", "without-joint", "quick", *PEERS, "linear")
TOLD = ("accuracy", "confidence", "ece", "coverage", "seconds")
Row = dict[str, Any]
Found = dict[tuple[Any, ...], dict[str, list[Row]]]


def fitted(task: NodeTask, method: str, seed: int, device: str) -> tuple[np.ndarray, Row]:
    """Probabilities of all nodes, and what else the estimator says."""
    shown = np.full(task.num_nodes, -1)
    shown[task.train] = task.labels[task.train]
    effort = "quick" if method == "quick" else "default"
    objective = "none" if method == "without-joint" else "auto"
    estimator = g3nn.G3NNClassifier(effort=effort, objective=objective, random_state=seed, device=device)
    estimator.fit(task.features, shown, task.edges)
    inside = estimator.predict_set(ALPHA)[task.test, task.labels[task.test]]
    return estimator.predict_proba(), {"coverage": float(inside.mean()), "chose": estimator.model_}


def peer(task: NodeTask, method: str, seed: int, device: str) -> np.ndarray:
    """Probabilities of all nodes."""
    if method == "linear":
        model = LogisticRegression(max_iter=1000)
        return np.asarray(model.fit(task.features[task.train], task.labels[task.train]).predict_proba(task.features))
    seeds = tuple(range(3 * seed, 3 * seed + 3))
    plan = Candidate(method, "elbo", PEERS[method]).plan({}, seeds, device).for_all_labels(EPOCHS)
    return np.exp(task.outcome_model().averaged(plan.fit(task, False).answers))


def joint_models(task: NodeTask) -> dict[str, Candidate]:
    """By a name: the joint models of the panel with so many labels, and their networks."""
    found = dict[str, Candidate]()
    for place, one in enumerate(panel_of(OUTCOMES["classes"], task.num_classes, 2.0, len(task.train))):
        joint = Candidate(*one)
        if "-" in joint.name:
            (network,) = networks_alone([joint], OUTCOMES["classes"])
            found[f"{place} {joint.name}"], found[f"{place} {network.name}"] = joint, network
    return found


def measure(task: NodeTask, method: str, seed: int, device: str) -> Row:
    began, more, test = time.monotonic(), Row(), task.test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", g3nn.G3NNWarning)
        if method[0].isdigit():
            plan = joint_models(task)[method].plan({}, (seed,), device).for_all_labels(EPOCHS)
            given = np.exp(task.outcome_model().averaged(plan.fit(task, False).answers))
        elif method in ("default", "without-joint", "quick"):
            given, more = fitted(task, method, seed, device)
        else:
            given = peer(task, method, seed, device)
    p, truth = given[test], task.labels[test]
    row = {"accuracy": float((p.argmax(1) == truth).mean()), "confidence": float(p.max(1).mean())}
    return row | {"ece": expected_calibration_error(p, truth), **more, "seconds": round(time.monotonic() - began, 1)}


def table(rows: list[Row]) -> str:
    """Means over splits, then over graphs; and the default less each method, paired by graphs."""
    found: Found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        setting = (row["labels"], "gone" if row["unlinked"] else "there")
        if not row["method"][0].isdigit():
            found[(*setting, row["method"])][row["graph"]].append(row)
    heads = (*("labels", "edges of test nodes", "method", "graphs", *TOLD), "default less this", "p", "worse by .01")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for (labels, edges, method), graphs in sorted(
        found.items(), key=lambda one: (*one[0][:2], METHODS.index(one[0][2]))
    ):
        own, gains = found.get((labels, edges, "default"), {}), []
        for graph in sorted(own.keys() & graphs.keys()):
            pairs = [{row["seed"]: row["accuracy"] for row in runs[graph]} for runs in (own, graphs)]
            gains.append(np.mean([pairs[0][seed] - pairs[1][seed] for seed in pairs[0].keys() & pairs[1].keys()]))
        cells = [labels, edges, method, len(graphs)]
        for name in TOLD:
            values = [
                np.mean([row[name] for row in runs]) for runs in graphs.values() if all(name in row for row in runs)
            ]
            cells.append(f"{np.mean(values):.0f}" if name == "seconds" else f"{np.mean(values):.3f}" if values else "-")
        compared = method != "default" and len(gains) > 1
        p = f"{scipy.stats.ttest_1samp(gains, 0).pvalue:.3f}" if compared else "-"
        cells += [f"{np.mean(gains):+.3f}", p, sum(gain < -0.01 for gain in gains)] if compared else ["-"] * 3
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join([*lines, "", *by_graph(found), "", *gains_of_models(rows)])


def by_graph(found: Found) -> list[str]:
    """The accuracy of each method on each graph."""
    names = sorted({graph for graphs in found.values() for graph in graphs}, key=GRAPHS.index)
    lines = [f"| labels | edges of test nodes | method | {' | '.join(names)} |", "|---" * (3 + len(names)) + "|"]
    for key, graphs in sorted(found.items(), key=lambda one: (*one[0][:2], METHODS.index(one[0][2]))):
        means = {graph: np.mean([row["accuracy"] for row in runs]) for graph, runs in graphs.items()}
        cells = (f"{means[name]:.3f}" if name in means else "-" for name in names)
        lines.append(f"| {' | '.join(map(str, key))} | {' | '.join(cells)} |")
    return lines


def gains_of_models(rows: list[Row]) -> list[str]:
    """Joint models less their networks, means over splits."""
    found: dict[tuple[Any, ...], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    names = {
        row["method"].split()[0]: row["method"].split()[1]
        for row in rows
        if " " in row["method"] and "-" in row["method"]
    }
    for row in rows:
        if row["method"][0].isdigit():
            place, name = row["method"].split()
            key = row["graph"], row["labels"], int(place), names[place]
            found[key]["joint" if "-" in name else "alone"][row["seed"]] = row["accuracy"]
    lines = ["| graph | labels | model | splits | alone | joint | gain |", "|---" * 7 + "|"]
    for (graph, labels, _, name), kinds in sorted(found.items()):
        if both := sorted(kinds["joint"].keys() & kinds["alone"].keys()):
            alone, joint = (np.mean([kinds[kind][seed] for seed in both]) for kind in ("alone", "joint"))
            lines.append(
                f"| {graph} | {labels} | {name} | {len(both)} | {alone:.3f} | {joint:.3f} | {joint - alone:+.3f} |"
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS, metavar="GRAPH")
    parser.add_argument("--methods", nargs="+", choices=(*METHODS, "models"), default=METHODS, metavar="METHOD")
    parser.add_argument("--labels", type=int, default=3)
    parser.add_argument("--unlinked", action="store_true")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first drawing")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="a file of JSON lines that is added to")
    parser.add_argument("--table", type=Path, help="print the tables of such a file")
    options = parser.parse_args()
    if options.table is not None:
        print(table([json.loads(line) for line in options.table.read_text().splitlines()]))
        return
    done = options.out.read_text().splitlines() if options.out is not None and options.out.exists() else []
    keys = ("graph", "labels", "unlinked", "method", "seed")
    known = {tuple(json.loads(line)[key] for key in keys) for line in done}
    for graph in options.graphs:
        for seed in range(options.first, options.first + options.splits):
            task = few_known(load(graph), options.labels, not options.unlinked, seed).task
            for method in options.methods:
                for one in joint_models(task) if method == "models" else (method,):
                    key = graph, options.labels, options.unlinked, one, seed
                    if key not in known:
                        row = measure(task, one, seed, options.device)
                        tell(dict(zip(keys, key, strict=True)) | row, options.out)


if __name__ == "__main__":
    main()
