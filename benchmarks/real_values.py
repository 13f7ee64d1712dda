"""Numbers beside boosted trees on the number and on its logarithm: error, negative answers, and intervals.

    python benchmarks/real_values.py --data FOLDER --splits 2 --json FILE

FOLDER holds counties and films (nodes.parquet and edges.parquet each); without it only drawn values are tried.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_absolute_error, r2_score

from g3nn import G3NNRegressor

LABELLED = 0.2
Problem = tuple[str, np.ndarray, np.ndarray, np.ndarray]
"""A name, features (n, d), edges (2, E), and values (n,), NaN where none is known."""


def drawn(nodes: int = 2000, seed: int = 0) -> Problem:
    """Positive values with a heavy tail: their logarithms follow from features, from neighbours, and from chance."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(nodes, 8))
    place = x[:, :2] + 0.3 * rng.normal(size=(nodes, 2))
    near = np.argsort(((place[:, None] - place[None]) ** 2).sum(2), axis=1)[:, 1:5]
    edges = np.stack([np.repeat(np.arange(nodes), 4), near.ravel()])
    level = np.sin(2 * x[:, 0]) + 0.7 * x[:, 2] + 0.4 * x[:, 3] * x[:, 4] + place[near].mean(1)[:, 1]
    return "drawn", x, edges, np.exp(3 + level + 0.5 * rng.normal(size=nodes))


def counties(folder: Path) -> Iterator[Problem]:
    """Each of three columns from the others."""
    nodes, edges = (pd.read_parquet(folder / "counties" / f"{part}.parquet") for part in ("nodes", "edges"))
    places = pd.Series(range(len(nodes)), nodes["id"])
    pairs = np.stack([places[edges[end]].to_numpy() for end in ("source", "target")])
    numbers = nodes.select_dtypes("number")
    for target in ("income", "unemployment", "democrats"):
        yield target, numbers.drop(columns=target).to_numpy(float), pairs, numbers[target].to_numpy(float)


def films(folder: Path) -> Iterator[Problem]:
    """Films are linked by the persons that they share."""
    nodes, edges = (pd.read_parquet(folder / "films" / f"{part}.parquet") for part in ("nodes", "edges"))
    nodes = nodes[nodes["kind"] == "film"].reset_index(drop=True)
    edges = edges[edges["type"] != "about"]
    places = pd.Series(range(len(nodes)), nodes["id"])[edges["source"]].to_numpy()
    persons = edges["target"].astype("category").cat.codes.to_numpy()
    seen = sp.csr_array((np.ones(len(edges)), (places, persons)), shape=(len(nodes), persons.max() + 1))
    pairs = np.stack(sp.triu(seen @ seen.T, 1).nonzero())
    names = ["title_year", "duration", "budget", "gross", "num_voted_users", "num_critic_for_reviews", "imdb_score"]
    numbers = nodes[names].apply(pd.to_numeric, errors="coerce")
    for target in ("imdb_score", "gross", "num_voted_users"):
        yield target, numbers.drop(columns=target).to_numpy(float), pairs, numbers[target].to_numpy(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="names of targets")
    parser.add_argument("--json", type=Path, help="write all figures to FILE")
    arguments = parser.parse_args()
    problems = [drawn()]
    if arguments.data is not None:
        problems += [*counties(arguments.data), *films(arguments.data)]
    print(f"{'target':16}{'model':12}{'R2':>8}{'MAE':>12}{'below 0':>9}{'ends below 0':>14}{'coverage':>10}")
    records: list[dict[str, object]] = []
    for name, x, edges, y in problems:
        if not arguments.only or name in arguments.only:
            for split in range(arguments.splits):
                records += compare(name, x, edges, y, split)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(records, indent=1) + "\n")


def compare(name: str, x: np.ndarray, edges: np.ndarray, y: np.ndarray, seed: int) -> Iterator[dict[str, object]]:
    known = np.random.default_rng(seed).permutation(np.flatnonzero(~np.isnan(y)))
    train, test = np.split(known, [round(LABELLED * len(known))])
    given = np.full(len(y), np.nan)
    given[train] = y[train]
    trees = HistGradientBoostingRegressor(random_state=seed)
    on_log = TransformedTargetRegressor(trees, func=np.log1p, inverse_func=np.expm1)
    answers = {
        label: one.fit(x[train], y[train]).predict(x[test]) for label, one in [("trees", trees), ("log", on_log)]
    }
    model = G3NNRegressor(effort="quick", missing="impute", device="cpu", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, given, edges)
    answers["g3nn"], (low, high) = model.predict()[test], model.predict_interval()[:, test]
    intervals = {"ends_below_0": int((low < 0).sum()), "coverage": float(((low <= y[test]) & (y[test] <= high)).mean())}
    for label, answer in answers.items():
        r2, error, below = r2_score(y[test], answer), mean_absolute_error(y[test], answer), int((answer < 0).sum())
        of_intervals = intervals if label == "g3nn" else {}
        ends = "{ends_below_0:14}{coverage:10.3f}".format(**intervals) if of_intervals else ""
        print(f"{name:16}{label:12}{r2:8.3f}{error:12.4g}{below:9}{ends}", flush=True)
        scores = {"r2": r2, "error": error, "below_0": below}
        yield {"target": name, "model": label, "split": seed, **scores, **of_intervals}


if __name__ == "__main__":
    main()
