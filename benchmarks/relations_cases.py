"""The data of benchmarks/relations.py, where they are described, each with the split of a seed."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import g3nn
from g3nn.base.errors import Problems
from g3nn.graph.datasets import load
from g3nn.graph.outcomes.labels import unlabelled
from g3nn.graph.relations import EDGE, read_relations
from g3nn.graph.tables.graph import TableGraph

SHOWN, RARE = 0.1, 100
"""The share of labels where no split is published, and how many films a genre has at least."""
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
