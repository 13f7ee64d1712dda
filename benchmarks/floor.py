"""Whether a simple model beats the default: each on the same labelled nodes, tested on all others.

    export G3NN_GRAPHS=FOLDER G3NN_TYPED=FOLDER
    python benchmarks/floor.py --data texas acm --efforts quick default --splits 5 --out floor.jsonl
    python benchmarks/floor.py --table floor.jsonl
    python benchmarks/floor.py --pack FOLDER --data example-wine counties-income   # where pandas is missing:
    G3NN_FLOOR=FOLDER python benchmarks/floor.py --data example-wine ...           # read as arrays

Data are graphs by name, `counties-income`, `films` and `aifb` of the folder G3NN_TYPED, and the ten example tables
(`example-wine`, made by examples/tables/make.py). A run that is in the file already is not repeated. Simple models are
those of scikit-learn as they come, on the features as g3nn reads them, also with the mean, largest and smallest value
among neighbours and their number; and label propagation. Nothing is chosen by test labels: the best simple model is
the one with the best mean over the splits, which flatters it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from records import tell
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import g3nn
from g3nn.graph.datasets import load
from g3nn.kernels.sparse import neighbour_mean

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
RARE = 0.1
"""Below this share of one of two classes the measure is average precision."""
MOST_COLUMNS = 2000
SPREAD, STEPS = 0.9, 50
"""Of label propagation."""
EXAMPLES = Path(__file__).parents[1] / "examples" / "tables"


@dataclass(frozen=True, eq=False)
class Data:
    """features: (n, d). labels: (n,) classes, -1 where unknown, or numbers, NaN where unknown. shown: the share, or
    the number for each class, of the labels that is known. tables: nodes, edges, the columns of ids and labels; what
    g3nn is given where the data are tables."""

    features: Any
    edges: np.ndarray
    labels: np.ndarray
    shown: float
    tables: tuple[pd.DataFrame, pd.DataFrame, str, str] | None = None

    @property
    def classes(self) -> bool:
        return self.labels.dtype.kind == "i"

    def split(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes with a known label, at least two of each class, and test nodes."""
        known = np.flatnonzero(self.labels >= 0 if self.classes else ~np.isnan(self.labels))
        # A stream of its own: some published graphs were drawn by the first numbers of a small seed.
        order = np.random.default_rng((seed, 1)).permutation(known)
        shown = order[: round(self.shown * len(order))]
        if self.classes:
            parts = [order[self.labels[order] == k][:2] for k in np.unique(self.labels[order])]
            shown = np.union1d(shown, np.concatenate(parts))
        return shown, np.setdiff1d(known, shown)

    def score(self, given: np.ndarray, nodes: np.ndarray) -> float:
        """given: (n, K) probabilities or (n,) numbers."""
        truth = self.labels[nodes]
        if not self.classes:
            return float(r2_score(truth, given[nodes]))
        if given.shape[1] == 2 and (rare := int(truth.mean() < RARE) or -int(truth.mean() > 1 - RARE)):
            place = 1 if rare > 0 else 0
            return float(average_precision_score(truth == place, given[nodes, place]))
        return float((given[nodes].argmax(1) == truth).mean())


def from_tables(nodes: pd.DataFrame, edges: pd.DataFrame, id: str, label: str, shown: float) -> Data:
    from g3nn.graph.tables.graph import read_tables

    graph = read_tables(nodes, edges, id=id, label=label)
    assert graph.labels is not None
    values = graph.labels.values
    values = values[:, 0] if values.ndim == 2 else values
    return Data(graph.features.matrix, graph.edges, values, shown, (nodes, edges, id, label))


def typed(name: str) -> Data:
    import pandas as pd

    folder, _, target = name.partition("-")
    place = Path(os.environ["G3NN_TYPED"]) / folder
    nodes, edges = (pd.read_parquet(place / f"{part}.parquet") for part in ("nodes", "edges"))
    edges = edges[edges["source"] != edges["target"]]
    if folder == "counties":
        others = [one for one in ("income", "unemployment", "democrats") if one != target]
        return from_tables(nodes.drop(columns=others), edges[["source", "target"]], "id", target, 0.2)
    if folder == "films":
        nodes["imdb_score"] = pd.to_numeric(nodes["imdb_score"])
        columns = ["movie_title", "genres"]
        return from_tables(nodes.drop(columns=columns), edges[["source", "target"]], "id", "imdb_score", 0.2)
    return from_tables(nodes.drop(columns="kind"), edges[["source", "target"]], "id", "label", 0.8)


def example(name: str) -> Data:
    sys.path.insert(0, str(EXAMPLES))
    import make  # type: ignore[import-not-found]

    one = getattr(make, name.replace("-", "_"))()
    # The same number may be an id in two forms.
    names = {str(value).removesuffix(".0"): f"node {place}" for place, value in enumerate(one.nodes[one.id])}
    ends = {column: one.edges[column].map(lambda value: names[str(value)]) for column in one.edges.columns[:2]}
    nodes, edges = one.nodes.assign(**{one.id: list(names.values())}), one.edges.assign(**ends)
    return from_tables(nodes, edges, one.id, one.label, one.shown)


def pack(name: str, folder: Path) -> None:
    one = data(name)
    features = one.features.toarray() if sp.issparse(one.features) else one.features
    parts = {"features": features, "edges": one.edges, "labels": one.labels, "shown": one.shown}
    np.savez_compressed(folder / f"{name}.npz", **parts)


def packed(name: str) -> Path:
    return Path(os.environ.get("G3NN_FLOOR", ".")) / f"{name}.npz"


def data(name: str) -> Data:
    if "G3NN_FLOOR" in os.environ and packed(name).is_file():
        with np.load(packed(name)) as parts:
            return Data(parts["features"], parts["edges"], parts["labels"], float(parts["shown"]))
    if name.startswith("example-"):
        return example(name.removeprefix("example-"))
    if name.partition("-")[0] in ("counties", "films", "aifb"):
        return typed(name)
    task = load(name)
    return Data(task.features, task.edges, task.labels, 0.1 if task.num_nodes > 1000 else 0.3)


def around(features: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Own values, their mean, largest and smallest value among neighbours, and the number of those."""
    n = len(features)
    mean = neighbour_mean(edges, n)
    degree = np.diff(mean.indptr)
    parts, linked = [features, mean @ features], np.flatnonzero(degree)
    if features.shape[1] <= 200 and len(linked):
        for extreme in (np.maximum, np.minimum):
            found = np.zeros_like(features)
            for column in range(features.shape[1]):
                found[linked, column] = extreme.reduceat(features[mean.indices, column], mean.indptr[linked])
            parts.append(found)
    return np.concatenate([*parts, degree[:, None]], axis=1)


def dense(features: Any, shown: np.ndarray) -> np.ndarray:
    """The columns with most values among the nodes with labels; gaps are filled with means."""
    if features.shape[1] > MOST_COLUMNS:
        filled = np.asarray((features[shown] != 0).sum(axis=0)).ravel()
        features = features[:, np.sort(np.argsort(-filled, kind="stable")[:MOST_COLUMNS])]
    columns = np.asarray(features.toarray() if sp.issparse(features) else features, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        means = np.nan_to_num(np.nanmean(columns, axis=0))
    return np.where(np.isnan(columns), means, columns)


def simple(one: Data, shown: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The answers of each simple model for all nodes."""
    labels, n = one.labels[shown], len(one.labels)
    if one.classes:
        shares = np.bincount(labels) / len(labels)
        yield "base-rate", np.tile(shares, (n, 1))
        yield "label-propagation", spread(one, shown)
        models: dict[str, BaseEstimator] = {
            "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
            "trees": HistGradientBoostingClassifier(random_state=0),
        }
    else:
        yield "base-rate", np.full(n, labels.mean())
        models = {
            "linear": make_pipeline(StandardScaler(), Ridge()),
            "trees": HistGradientBoostingRegressor(random_state=0),
        }
    own = dense(one.features, shown) if one.features.shape[1] else np.zeros((n, 1))
    for columns, suffix in ((own, ""), (around(own, one.edges), "-neighbours")):
        for name, model in models.items():
            fitted = model.fit(columns[shown], labels)
            yield name + suffix, fitted.predict_proba(columns) if one.classes else fitted.predict(columns)


def spread(one: Data, shown: np.ndarray) -> np.ndarray:
    """Label propagation."""
    n, classes = len(one.labels), int(one.labels.max()) + 1
    matrix = sp.coo_array((np.ones(one.edges.shape[1]), tuple(one.edges)), shape=(n, n))
    matrix = sp.csr_array(((matrix + matrix.T) > 0).astype(np.float64))
    degree = np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1.0)
    scale = sp.diags_array(degree**-0.5)
    start = np.zeros((n, classes))
    start[shown, one.labels[shown]] = 1.0
    found = start
    for _ in range(STEPS):
        found = SPREAD * (scale @ (matrix @ (scale @ found))) + (1 - SPREAD) * start
    return (found + 1e-9) / (found + 1e-9).sum(axis=1, keepdims=True)


def answered(one: Data, shown: np.ndarray, effort: str, seed: int, device: str) -> tuple[np.ndarray, Any]:
    """What g3nn says about all nodes, and the estimator."""
    kind = g3nn.G3NNClassifier if one.classes else g3nn.G3NNRegressor
    estimator = kind(effort=effort, random_state=seed, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", g3nn.G3NNWarning)
        if one.tables is None:
            unknown = -1 if one.classes else np.nan
            labels = np.where(np.isin(np.arange(len(one.labels)), shown), one.labels, unknown)
            estimator.fit(one.features if one.features.shape[1] else None, labels, one.edges)
        else:
            nodes, edges, id, label = one.tables
            hidden = nodes.copy()
            hidden.loc[~np.isin(np.arange(len(nodes)), shown), label] = None
            estimator.fit(hidden, label, edges, id=id)
    return estimator.predict_proba() if one.classes else np.asarray(estimator.predict()).ravel(), estimator


def measure(name: str, efforts: list[str], seed: int, device: str) -> Iterator[Row]:
    one = data(name)
    shown, test = one.split(seed)
    row = {"data": name, "split": seed, "labels": len(shown)}
    for model, given in simple(one, shown):
        yield {**row, "model": model, "score": one.score(given, test)}
    for effort in efforts:
        began = time.monotonic()
        given, estimator = answered(one, shown, effort, seed, device)
        seconds = round(time.monotonic() - began, 1)
        more = {"seconds": seconds, "chose": estimator.model_, "val_score": estimator.fitted_.val_score}
        if one.classes:
            more["confidence"] = float(given[test].max(1).mean())
            more["accuracy"] = float((given[test].argmax(1) == one.labels[test]).mean())
        yield {**row, "model": effort, "score": one.score(given, test), **more}


def table(rows: list[Row], efforts: list[str]) -> str:
    """For each data set the mean score of the best simple model and of each effort."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        scores[row["data"]][row["model"]].append(row["score"])
    lines = [f"| data | splits | best simple model | {' | '.join(efforts)} |", "|---|---|---|" + "---|" * len(efforts)]
    gains: dict[str, list[float]] = defaultdict(list)
    for name, found in scores.items():
        means = {model: float(np.mean(values)) for model, values in found.items()}
        best = max((model for model in means if model not in efforts), key=lambda model: means[model])
        cells = []
        for effort in efforts:
            if effort in means:
                gains[effort].append(means[effort] - means[best])
            cells.append(f"{means[effort]:.3f} ({means[effort] - means[best]:+.3f})" if effort in means else "")
        lines.append(f"| {name} | {len(found[best])} | {best} {means[best]:.3f} | {' | '.join(cells)} |")
    ends = [f"{np.mean(gains[one]):+.3f}, worst {min(gains[one]):+.3f}" if gains[one] else "" for one in efforts]
    return "\n".join([*lines, f"| mean gain | | | {' | '.join(ends)} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[])
    parser.add_argument("--efforts", nargs="+", default=["quick", "default"])
    parser.add_argument("--splits", type=int, nargs="+", default=[0], help="their numbers")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="a file of JSON lines that is added to")
    parser.add_argument("--table", type=Path, help="print the table of such a file")
    parser.add_argument("--pack", type=Path, metavar="FOLDER", help="write the data as arrays instead")
    options = parser.parse_args()
    if options.pack is not None:
        for name in options.data:
            pack(name, options.pack)
        return
    if options.table is not None:
        print(table([json.loads(line) for line in options.table.read_text().splitlines()], options.efforts))
        return
    done = options.out.read_text().splitlines() if options.out is not None and options.out.exists() else []
    known = {(row["data"], row["split"], row["model"]) for row in map(json.loads, done)}
    for name in options.data:
        for split in options.splits:
            waiting = [effort for effort in options.efforts if (name, split, effort) not in known]
            for row in measure(name, waiting, split, options.device) if waiting else ():
                if (name, split, row["model"]) in known:
                    continue
                tell(row, options.out)


if __name__ == "__main__":
    main()
