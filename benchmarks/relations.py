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
directions), with all nodes and features. The others are in benchmarks/relations_peers.py.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import scipy.stats
import torch
from relations_peers import PEERS, PYG, answer, installed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, r2_score

import g3nn
from g3nn.base.errors import Problems
from g3nn.graph.datasets import load
from g3nn.graph.outcomes.labels import unlabelled
from g3nn.graph.relations import EDGE, read_relations
from g3nn.graph.tables.graph import TableGraph

Row = dict[str, Any]
METHODS = ("default", "quick", "untyped", "degrees", *PEERS)
MEASURES = {"classes": ("accuracy", "macro_f1"), "tags": ("macro_f1", "accuracy"), "real": ("r2", "coverage")}
"""The first is compared, the second is told."""
SHOWN, RARE, COVERED = 0.1, 100, 0.9
NUMBERS = ("title_year", "duration", "budget", "gross", "num_voted_users", "num_critic_for_reviews", "imdb_score")
TARGETS = ("income", "unemployment", "democrats")
DRAWN, ARCS, LABELLED, RIGHT = 400, 7, 120, 0.9
"""Of `direction`: nodes, edges for each, labels, and how many edges between classes point to class 1."""


@dataclass(frozen=True, eq=False)
class Case:
    """features: (n, d), NaN in gaps. edges: (2, E) as stated, with types (E,) and kinds (n,), None if all are alike.
    labels: (n,) classes, or (n, T). val: None unless the data set has validation nodes. tables: what the library is
    given where the data are tables."""

    features: Any
    edges: np.ndarray
    labels: np.ndarray
    train: np.ndarray
    test: np.ndarray
    outcome: str = "classes"
    types: np.ndarray | None = None
    kinds: np.ndarray | None = None
    val: np.ndarray | None = None
    directed: bool = False
    tables: TableGraph | None = None

    @property
    def shown(self) -> np.ndarray:
        """(n,) or (n, T): the labels that are given."""
        known = self.train if self.val is None else np.union1d(self.train, self.val)
        found = unlabelled(self.labels.shape, self.labels.dtype)
        found[known] = self.labels[known]
        return found

    def for_peers(self, seed: int) -> g3nn.NodeTask:
        """With a fifth of the labels for validation if nothing else is."""
        problems, kinds, relations = Problems(), self.kinds, None if self.tables is None else self.tables.relations
        if relations is None:
            types = np.full(self.edges.shape[1], EDGE) if self.types is None else self.types
            how = {"types": types, "kinds": kinds, "weights": False}
            relations = read_relations(self.edges, len(self.labels), self.directed, problems, **how)
        problems.raise_if_any()
        train, val = self.train, self.val
        if val is None:
            order = np.random.default_rng((seed, 2)).permutation(train)
            val, train = np.split(order, [round(len(order) / 5)])
        how = {"outcome": self.outcome, "relations": relations, "directed": self.directed, "weights": False}
        if self.outcome == "classes":
            how["num_classes"] = int(self.labels.max()) + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", g3nn.G3NNWarning)
            return g3nn.NodeTask.build(self._scaled(), self.edges, self.labels, train, val, self.test, **how)

    def _scaled(self) -> Any:
        """Columns of tables with the same spread, and their gaps filled with means; words as shares of a row."""
        if not self.features.shape[1]:
            return np.zeros((len(self.labels), 1))
        if self.tables is None:
            sums = np.asarray(abs(self.features).sum(axis=1)).ravel()
            return sp.csr_array(sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ self.features)
        dense = np.array(self.features.toarray() if sp.issparse(self.features) else self.features, dtype=np.float64)
        amounts = ~((dense >= 0) & (dense <= 1)).all(axis=0)
        part = dense[:, amounts]
        dense[:, amounts] = (part - np.nanmean(part, axis=0)) / np.maximum(np.nanstd(part, axis=0), 1e-9)
        dense = np.nan_to_num(dense)
        return sp.csr_array(dense) if sp.issparse(self.features) else dense


def heco(name: str, seed: int) -> Case:
    nodes, edges = tables_of(name)
    split = json.loads((Path(os.environ["G3NN_TYPED"]) / name / "splits.json").read_text())
    place = pd.Series(range(len(nodes)), nodes["id"])
    train, val, test = (np.sort(place[split[f"{part}_20"]].to_numpy()) for part in ("train", "val", "test"))
    labels = pd.Categorical(nodes["label"]).codes.astype(np.int64)
    features = sp.csr_array(sp.load_npz(Path(os.environ["G3NN_TYPED"]) / name / "features.npz"))
    pairs = np.stack([place[edges[end]].to_numpy() for end in ("source", "target")])
    types, kinds = edges["type"].to_numpy(dtype=object), nodes["kind"].to_numpy(dtype=object)
    return Case(features, pairs, labels, train, test, types=types, kinds=kinds, val=val)


def aifb(seed: int) -> Case:
    nodes, edges = tables_of("aifb")
    graph = read(nodes.drop(columns="kind"), edges, "label", outcome="classes")
    split = json.loads((Path(os.environ["G3NN_TYPED"]) / "aifb" / "splits.json").read_text())
    place = pd.Series(range(len(nodes)), nodes["id"])
    train, test = (place[split[part]].to_numpy() for part in ("train", "test"))
    if seed:
        order = np.random.default_rng((seed, 1)).permutation(np.concatenate([train, test]))
        train, test = np.split(order, [len(train)])
    return from_tables(graph, np.sort(train), np.sort(test))


def films(target: str, seed: int) -> Case:
    nodes, edges = tables_of("films")
    columns = edges.groupby(["source", "type"])["target"].agg("|".join).unstack().rename_axis("id").reset_index()
    nodes = nodes[nodes["kind"] == "film"].drop(columns="kind").merge(columns, on="id", how="left")
    nodes[list(NUMBERS)] = nodes[list(NUMBERS)].apply(pd.to_numeric, errors="coerce")
    named, label, outcome = columns.columns[1:].tolist(), ["imdb_score"], "real"
    if target == "genres":
        tags = nodes["genres"].str.get_dummies("|")
        tags = tags.loc[:, tags.sum() >= RARE]
        nodes, label, outcome = pd.concat([nodes.drop(columns="genres"), tags], axis=1), tags.columns.tolist(), "tags"
    graph = read(nodes, None, label, outcome=outcome, edges_from=named)
    return from_tables(graph, *drawn_split(len(nodes), seed))


def counties(target: str, seed: int) -> Case:
    nodes, edges = tables_of("counties")
    graph = read(nodes, edges[edges["source"] != edges["target"]], target, outcome="real")
    assert graph.labels is not None
    train, test = drawn_split(len(nodes), seed)
    known = graph.labels.labelled
    return from_tables(graph, np.intersect1d(train, known), np.intersect1d(test, known))


def direction(seed: int) -> Case:
    rng = np.random.default_rng((seed, 1))
    labels = rng.permutation(np.arange(DRAWN) % 2)
    pairs = np.stack(np.triu_indices(DRAWN, 1))
    pairs = pairs[:, rng.choice(pairs.shape[1], round(ARCS * DRAWN), replace=False)]
    first, second = labels[pairs]
    turned = rng.random(len(first)) < np.where(first == second, 0.5, np.where(first == 0, 1 - RIGHT, RIGHT))
    pairs[:, turned] = pairs[::-1, turned]
    train, test = np.split(rng.permutation(DRAWN), [LABELLED])
    return Case(np.zeros((DRAWN, 0)), pairs, labels, np.sort(train), np.sort(test), directed=True)


def cora(types: int, seed: int) -> Case:
    """types: of shuffled edges."""
    task, rng = load("cora"), np.random.default_rng((seed, 1))
    edges = [task.edges, *(np.stack([task.edges[0], rng.permutation(task.edges[1])]) for _ in range(types))]
    names = np.repeat(["cites", *(f"noise {place}" for place in range(types))], task.num_edges) if types else None
    more = {"types": names, "val": task.val}
    return Case(task.features, np.concatenate(edges, axis=1), task.labels, task.train, task.test, **more)


CASES: dict[str, Callable[[int], Case]] = {
    "heco_acm": partial(heco, "heco_acm"),
    "heco_dblp": partial(heco, "heco_dblp"),
    "aifb": aifb,
    "films-score": partial(films, "score"),
    "films-genres": partial(films, "genres"),
    **{f"counties-{target}": partial(counties, target) for target in TARGETS},
    "direction": direction,
    "noise": partial(cora, 5),
    "without-noise": partial(cora, 0),
}


def tables_of(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = Path(os.environ["G3NN_TYPED"]) / name
    return pd.read_parquet(folder / "nodes.parquet"), pd.read_parquet(folder / "edges.parquet")


def read(nodes: pd.DataFrame, edges: pd.DataFrame | None, label: str | list[str], **how: Any) -> TableGraph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", g3nn.G3NNWarning)
        return g3nn.read_tables(nodes, edges, id="id", label=label, **how)


def from_tables(graph: TableGraph, train: np.ndarray, test: np.ndarray) -> Case:
    assert graph.labels is not None
    more = {"outcome": graph.outcome, "tables": graph}
    values = graph.labels.values
    values = values[:, None] if graph.outcome == "real" and values.ndim == 1 else values
    return Case(graph.features.matrix, graph.edges, values, train, test, **more)


def drawn_split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    train, test = np.split(np.random.default_rng((seed, 1)).permutation(n), [round(SHOWN * n)])
    return np.sort(train), np.sort(test)


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
                print(f"{'one type' if one is case else 'five types'}: {seconds[-1]:.1f} s, accuracy {accuracy:.3f}")
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
                print(json.dumps(row), flush=True)
                if options.out is not None:
                    with options.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
