"""How well calibrated probabilities are, and how large conformal sets, beside published methods on the same answers.

    export G3NN_DATA=FOLDER G3NN_GRAPHS=FOLDER
    python benchmarks/calibration.py --answers FOLDER --out results/calibration.json    # both tables
    python benchmarks/calibration.py --table results/calibration.json                   # of a record

Methods are temperature scaling, what g3nn does with the answers of one model, the same after probabilities are mixed
with those of neighbours, and temperatures of nodes as published. Splits are those of GATS (per class 10 % for
training, 5 % for validation) or random (20 % and 10 %); all other nodes are for test. Answers of a model on a split
are trained once and kept in the folder `--answers`. A figure that is in the record already is not computed again.
With `torchcp` on the path (`pip download --no-deps torchcp`, unpacked), sets are also made by its APS, DAPS and SNAPS
with the values it comes with, from the same probabilities. Its scores need no more than torch.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from calibration_peers import PEERS, scaled_by, smoothed_by_neighbours
from calibration_sets import sets_of

import g3nn
from g3nn.graph.calibrate import (
    Scaling,
    Validated,
    brier_score,
    expected_calibration_error,
    fit_scaling,
    fit_temperature,
    negative_log_likelihood,
    with_doubt,
)
from g3nn.graph.datasets import load

GRAPHS = ("cora", "citeseer", "pubmed", "texas", "acm", "twitch_engb")
SPLITS = ("gats", "20-10-70")
MODELS = ("gcn", "quick")
EPOCHS, PATIENCE = 600, 60
OURS, NEIGHBOURS = "g3nn", "neighbours, then g3nn"
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Answered:
    """Log-probabilities (n, K) of a model before calibration, with what it was trained on."""

    log_prob: np.ndarray
    labels: np.ndarray
    edges: np.ndarray
    train: np.ndarray
    val: np.ndarray
    test: np.ndarray


def split(labels: np.ndarray, kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    known = np.flatnonzero(labels >= 0)
    order = np.random.default_rng(seed).permutation(known)
    if kind == "gats":
        groups = [order[labels[order] == k] for k in np.unique(labels[known])]
        sizes = [[max(round(share * len(group)), 1) for share in (0.1, 0.05)] for group in groups]
    else:
        groups, first = [order], round(0.2 * len(order))
        sizes = [[first, round(0.3 * len(order)) - first]]
    cut = list(zip(groups, sizes, strict=True))
    train = np.sort(np.concatenate([group[:first] for group, (first, _) in cut]))
    val = np.sort(np.concatenate([group[first : first + second] for group, (first, second) in cut]))
    return train, val, np.setdiff1d(known, np.union1d(train, val))


def answered(graph: str, kind: str, seed: int, model: str, folder: Path) -> Answered:
    """Trained now, unless the folder has it."""
    path = folder / f"{graph}-{kind}-{seed}-{model}.npz"
    if path.exists():
        return Answered(**np.load(path))
    task = load(graph)
    train, val, test = split(task.labels, kind, seed)
    if model == "gcn":
        task = replace(task, train=train, val=val, test=test)
        options = {"epochs": EPOCHS, "patience": PATIENCE, "device": "cpu", "progress": False}
        found = g3nn.fit(task, "gcn", seed=seed, **options).probabilities[0].astype(np.float64)
        found = np.log(np.maximum(found, 1e-300))
    else:
        shown = np.where(np.isin(np.arange(task.num_nodes), np.union1d(train, val)), task.labels, -1)
        clf = g3nn.G3NNClassifier(effort="quick", label_noise=False, random_state=seed, device="cpu")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", g3nn.G3NNWarning)
            clf.fit(task.features, shown, task.edges, val=val)
        found = clf.fitted_.answerer(clf.task_).answer
    parts = {"labels": task.labels, "edges": task.edges, "train": train, "val": val, "test": test}
    np.savez(path, log_prob=found, **parts)
    return Answered(found, **parts)


def scaled(log_prob: np.ndarray, labels: np.ndarray, val: np.ndarray) -> np.ndarray:
    """As an estimator does it that has tried one model."""
    scaling = fit_scaling(log_prob[val], labels[val])
    return with_doubt(scaling, Validated(log_prob[val], labels[val]), 1)(log_prob)


def calibrated(one: Answered, method: str) -> np.ndarray:
    log_prob = Scaling()(np.maximum(one.log_prob.astype(np.float64), -700.0))
    if method == "temperature":
        return Scaling(fit_temperature(log_prob[one.val], one.labels[one.val]))(log_prob)
    if method == NEIGHBOURS:
        log_prob = smoothed_by_neighbours(log_prob, one.edges, one.labels, one.val)
    if method in (OURS, NEIGHBOURS):
        return scaled(log_prob, one.labels, one.val)
    if method in PEERS:
        return scaled_by(method, log_prob, one.edges, one.labels, one.train, one.val)
    return log_prob


def figures(one: Answered, method: str) -> Row:
    found, labels = calibrated(one, method)[one.test], one.labels[one.test]
    probabilities = np.exp(found)
    return {
        "ece": expected_calibration_error(probabilities, labels),
        "nll": negative_log_likelihood(np.maximum(found, -50.0), labels),
        "brier": brier_score(probabilities, labels),
        "accuracy": float((probabilities.argmax(1) == labels).mean()),
    }


def set_figures(one: Answered, graph: str, seed: int, draws: int) -> Iterator[Row]:
    """Sets by random calibration nodes, as many as there are validation nodes, among all that were not trained on."""
    log_prob = Scaling()(np.maximum(one.log_prob.astype(np.float64), -700.0))
    pool, rng = np.union1d(one.val, one.test), np.random.default_rng(seed)
    for draw in range(draws):
        order = rng.permutation(pool)
        nodes, rest = np.sort(order[: len(one.val)]), np.sort(order[len(one.val) :])
        smooth = smoothed_by_neighbours(log_prob, one.edges, one.labels, nodes)
        given = {OURS: log_prob, NEIGHBOURS: smooth}
        made = {name: np.exp(scaled(each, one.labels, nodes)) for name, each in given.items()}
        for row in sets_of(made, one, graph, nodes, rest, draw):
            yield {"draw": draw, **row}


def measure(options: argparse.Namespace, known: list[Row]) -> Iterator[Row]:
    done = {(row["graph"], row["split"], row["seed"], row["model"], row["method"]) for row in known}
    for graph in options.graphs:
        for kind in options.kinds:
            for seed in options.seeds:
                for model in options.models:
                    key = (graph, kind, seed, model)
                    row = dict(zip(("graph", "split", "seed", "model"), key, strict=True))
                    methods = ["raw", "temperature", OURS, NEIGHBOURS]
                    methods += list(PEERS) if graph in options.peers and seed in options.peer_seeds else []
                    missing = [method for method in methods if (*key, method) not in done]
                    wants_sets = graph in options.sets and (*key, "sets") not in done
                    if not missing and not wants_sets:
                        continue
                    one = answered(*key, options.answers)
                    for method in missing:
                        yield {**row, "method": method, **figures(one, method)}
                    if wants_sets:
                        rows = list(set_figures(one, graph, seed, options.draws))
                        parts = sorted({(part["method"], part["level"]) for part in rows})
                        yield {**row, "method": "sets", "sets": [mean_of(rows, *part) for part in parts]}


def mean_of(rows: list[Row], method: str, level: float) -> Row:
    own = [row for row in rows if (row["method"], row["level"]) == (method, level)]
    means = {name: float(np.mean([row[name] for row in own])) for name in ("coverage", "size")}
    return {"method": method, "level": level, "draws": len(own), **means}


def table(rows: list[Row]) -> str:
    """Errors of each method, means over splits; then coverage and size of sets."""
    lines = ["| model | graph | split | seeds | method | ECE | log-loss | Brier | accuracy |", "|" + "---|" * 9]
    groups: dict[tuple[str, ...], list[Row]] = {}
    sets: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        key = (row["model"], row["graph"], row["split"])
        for part in row.get("sets", ()):
            sets.setdefault((*key, part["level"], part["method"]), []).append(part)
        if "sets" not in row:
            groups.setdefault((*key, row["method"]), []).append(row)
    for key, own in sorted(groups.items()):
        means = [float(np.mean([row[name] for row in own])) for name in ("ece", "nll", "brier", "accuracy")]
        lines.append(f"| {' | '.join(key[:3])} | {len(own)} | {key[3]} | {' | '.join(f'{x:.3f}' for x in means)} |")
    lines += ["", gains(rows), "", "| model | graph | split | level | method | coverage | size |", "|" + "---|" * 7]
    for key, own in sorted(sets.items()):
        means = [float(np.mean([part[name] for part in own])) for name in ("coverage", "size")]
        lines.append(f"| {' | '.join(map(str, key))} | {means[0]:.3f} | {means[1]:.3f} |")
    return "\n".join([*lines, "", set_means(sets)])


def gains(rows: list[Row]) -> str:
    """The difference that smoothing over neighbours makes, over all splits, with its standard error."""
    found = {(row["graph"], row["split"], row["seed"], row["model"], row["method"]): row for row in rows}
    pairs = [(row, found.get((*key[:4], OURS))) for key, row in found.items() if key[4] == NEIGHBOURS]
    lines = []
    for name in ("ece", "nll", "brier", "accuracy"):
        each = np.array([after[name] - before[name] for after, before in pairs if before is not None])
        error = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
        lines.append(f"{name}: {each.mean():+.4f} ± {error:.4f} by neighbours, {len(each)} splits")
    return "\n".join(lines)


def set_means(sets: dict[tuple[Any, ...], list[Row]]) -> str:
    sizes: dict[tuple[float, str], list[float]] = {}
    for key, own in sets.items():
        sizes.setdefault(key[3:], []).append(float(np.mean([part["size"] for part in own])))
    return "\n".join(f"{level}: {method} {np.mean(own):.3f}" for (level, method), own in sorted(sizes.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=list(GRAPHS))
    parser.add_argument("--kinds", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--models", nargs="+", default=["gcn"], choices=MODELS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--peers", nargs="*", default=["cora", "citeseer", "pubmed"], help="graphs for rebuilt peers")
    parser.add_argument("--peer-seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--sets", nargs="*", default=["cora", "citeseer"], help="graphs for conformal sets")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--answers", type=Path, help="a folder for trained answers")
    parser.add_argument("--out", type=Path, help="a record that is added to")
    parser.add_argument("--table", type=Path, help="print the tables of such a record")
    options = parser.parse_args()
    if options.table is not None:
        print(table(json.loads(options.table.read_text())))
        return
    if options.answers is None or options.out is None:
        parser.error("name a folder with --answers and a record with --out")
    options.answers.mkdir(parents=True, exist_ok=True)
    rows = json.loads(options.out.read_text()) if options.out.exists() else []
    for row in measure(options, rows):
        print(json.dumps(row), file=sys.stderr, flush=True)
        rows.append(row)
        options.out.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(table(rows))


if __name__ == "__main__":
    main()
