"""Graphs with types of edges and kinds of nodes: the default beside itself without types, trees, and networks of PyG.

    export G3NN_DATA=FOLDER G3NN_TYPED=FOLDER
    python benchmarks/relations.py --out results/relations.jsonl --seeds 10
    python benchmarks/relations.py --out results/relations.jsonl --seeds 10 --only aifb --methods default han
    python benchmarks/relations.py --table results/relations.jsonl
    python benchmarks/relations.py --million

A run that is in the file already is not repeated; a method says nothing new of some cases and is left out there. All
methods have the same labels: where a data set has validation nodes of its own these validate everywhere, and elsewhere
each method splits off a fifth of the labels, or none. G3NN_DATA holds the Planetoid files, G3NN_TYPED a folder for each
of these:

heco_acm, heco_dblp: the published split with 20 labels of each class. Seeds are of the models alone.
aifb: seed 0 is the published split, the others are as large.
films-score, films-genres: a tenth of the films has a label. Directors, actors and keywords are columns of the films,
    whose cells name nodes. Genres are those of at least 100 films.
counties-income, -unemployment, -democrats: each from the other columns, for a tenth of the counties; one type.
direction: drawn, without features. An edge between classes points from class 0 to class 1 with probability .9, and
    nothing else depends on classes. The method `degrees` is logistic regression on a node's arcs out and in.
noise: Cora, and five further types that are its edges with shuffled ends. without-noise: Cora alone.

Methods: `default` and `quick` are efforts; `untyped` is the default without types and kinds (in `direction` without
directions), with all nodes and features. The others are in benchmarks/relations_peers.py; rgcn, hgt and han need PyG.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import torch
from records import tell
from relations_cases import CASES, Case
from relations_peers import PEERS, PYG, answer, installed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, r2_score

import g3nn

Row = dict[str, Any]
METHODS = ("default", "quick", "untyped", "degrees", *PEERS)
MEASURES = {"classes": ("accuracy", "macro_f1"), "tags": ("macro_f1", "accuracy"), "real": ("r2", "coverage")}
"""The first is compared, the second is told."""
COVERED = 0.9
"""By intervals."""


def fitted(case: Case, effort: str, typed: bool, seed: int, device: str) -> Any:
    """An estimator of the library."""
    made = g3nn.G3NNRegressor if case.outcome == "real" else g3nn.G3NNClassifier
    estimator = made(effort=effort, random_state=seed, device=device, directed=case.directed and typed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", g3nn.G3NNWarning)
        if case.tables is None:
            given = case.features if case.features.shape[1] else None
            types = {"edge_types": case.types, "node_kinds": case.kinds} if typed else {}
            return estimator.fit(given, case.shown, case.edges, val=case.val, **types)
        labels, relations = case.tables.labels, case.tables.relations if typed else None
        assert labels is not None
        shown = replace(labels, values=case.shown.reshape(labels.values.shape))
        return estimator.fit(replace(case.tables, labels=shown, relations=relations))


def says_nothing(name: str, method: str) -> bool:
    """Whether a method is left out in a case."""
    plain = name == "without-noise"
    without = {"degrees": name != "direction", "untyped": plain or name.startswith("counties")}
    return without.get(method, plain and method in PEERS)


def measure(name: str, method: str, seed: int, device: str) -> Row:
    case, began = CASES[name](seed), time.monotonic()
    more: Row = {"labels": len(case.train), "tested": len(case.test)}
    truth = case.labels[case.test]
    if method == "degrees":
        n = len(case.labels)
        columns = np.stack([np.bincount(end, minlength=n) for end in case.edges], axis=1)
        model = LogisticRegression().fit(columns[case.train], case.labels[case.train])
        given = model.predict_proba(columns)
    elif method in PEERS:
        given = answer(method, case.for_peers(seed), case.val is not None, seed, device)
    else:
        effort = "quick" if method == "quick" else "default"
        estimator = fitted(case, effort, method != "untyped", seed, device)
        more["chose"] = estimator.model_
        if case.outcome == "real":
            given = estimator.predict().reshape(-1, 1)
            low, high = (end.ravel()[case.test] for end in estimator.predict_interval(COVERED))
            more["coverage"] = float(((low <= truth[:, 0]) & (truth[:, 0] <= high)).mean())
        else:
            given = estimator.predict_proba()
    found, seconds = given[case.test], round(time.monotonic() - began, 1)
    if case.outcome == "real":
        more["r2"] = float(r2_score(truth, found))
    else:
        answers = found.argmax(1) if case.outcome == "classes" else (found > 0.5).astype(int)
        more["accuracy"] = float((answers == truth).mean())
        more["macro_f1"] = float(f1_score(truth, answers, average="macro", zero_division=0))
        if case.outcome == "classes":
            more["confidence"] = float(found.max(1).mean())
    return {"case": name, "method": method, "seed": seed, "seconds": seconds, **more}


def measures_of(name: str, row: Row) -> tuple[str, str]:
    if name.startswith("heco"):
        return "macro_f1", "accuracy"
    if name == "direction":
        return "accuracy", "confidence"
    return MEASURES["real" if "r2" in row else "tags" if "confidence" not in row else "classes"]


def table(rows: list[Row]) -> str:
    """Means over seeds; and the default less each method on the same seeds, with its standard error."""
    found: dict[str, dict[str, dict[int, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        found[row["case"]][row["method"]][row["seed"]] = row
    if "noise" in found and "without-noise" in found:
        found["noise"]["default of without-noise"] = found["without-noise"]["default"]
    heads = ("case", "method", "seeds", "measure", "mean", "also", "default less this", "p", "seconds")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, methods in found.items():
        own = methods.get("default", {})
        for method, runs in methods.items():
            if not runs:
                continue
            first, second = measures_of(name, next(iter(runs.values())))
            mean = np.mean([row[first] for row in runs.values()])
            told = [row[second] for row in runs.values() if second in row]
            also = f"{second} {np.mean(told):.3f}" if told else "-"
            both = sorted(own.keys() & runs.keys()) if method != "default" else []
            gains = np.array([own[seed][first] - runs[seed][first] for seed in both])
            gain, p = f"{gains.mean():+.3f}" if len(gains) else "-", "-"
            if len(gains) > 1:
                gain += f" ± {gains.std(ddof=1) / len(gains) ** 0.5:.3f}"
                p = f"{scipy.stats.ttest_1samp(gains, 0).pvalue:.3f}" if gains.std() else "-"
            seconds = np.mean([row["seconds"] for row in runs.values()])
            cells = (name, method, str(len(runs)), first, f"{mean:.3f}", also, gain, p, f"{seconds:.0f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def million(nodes: int, device: str) -> None:
    """Seconds of a quick fit on ten times as many edges, of one type and of five that are drawn."""
    for size in (1000, nodes):
        task = g3nn.synthetic(nodes=size, degree=20, features=32, labels_per_class=50, val=200)
        case = Case(task.features, task.edges, task.labels, np.union1d(task.train, task.val), task.test)
        types, seconds = np.random.default_rng(0).integers(0, 5, task.num_edges), list[float]()
        # The first, small graph only compiles what the other one uses.
        for one in (case, replace(case, types=types)):
            began = time.monotonic()
            model = fitted(one, "quick", True, 0, device)
            seconds.append(time.monotonic() - began)
            accuracy = float((model.predict()[one.test] == one.labels[one.test]).mean())
            if size == nodes:
                name = "one type" if one is case else "five types"
                print(f"{name}: {seconds[-1]:.1f} s, accuracy {accuracy:.3f}", flush=True)
    print(f"{nodes:,} nodes, {task.num_edges:,} edges: five types take {seconds[1] / seconds[0]:.2f} times as long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), default=tuple(CASES), metavar="CASE")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, metavar="METHOD")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="a file of JSON lines that is added to")
    parser.add_argument("--table", type=Path, help="print the table of such a file")
    parser.add_argument("--million", action="store_true", help="only compare the times on a large graph")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of that graph")
    options = parser.parse_args()
    if options.table is not None:
        print(table([json.loads(line) for line in options.table.read_text().splitlines()]))
        return
    if options.million:
        million(options.nodes, options.device)
        return
    methods = [method for method in options.methods if method not in PYG or installed()]
    if len(methods) < len(options.methods):
        print(f"torch_geometric is not installed: without {', '.join(set(options.methods) - set(methods))}")
    done = options.out.read_text().splitlines() if options.out is not None and options.out.exists() else []
    known = {(row["case"], row["method"], row["seed"]) for row in map(json.loads, done)}
    for name in options.only:
        for seed in range(options.seeds):
            for method in methods:
                if says_nothing(name, method) or (name, method, seed) in known:
                    continue
                row = measure(name, method, seed, options.device)
                tell(row, options.out)


if __name__ == "__main__":
    main()
