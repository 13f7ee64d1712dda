"""What the reader of README and docs is supposed to have, small: tables, stored results and arrays."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from small_tables import edge_columns, node_columns, write

import g3nn

RESULTS = Path(__file__).parents[2] / "results"


def small_tables(folder: Path) -> None:
    """Of the tables just exported, 150 nodes, 60 words and the edges between these nodes."""
    nodes = pyarrow.parquet.read_table(folder / "tables/nodes.parquet").slice(0, 150)
    nodes = nodes.select(nodes.column_names[:63])
    edges = pyarrow.csv.read_csv(folder / "tables/edges.csv")
    inside = [pc.is_in(edges[end], value_set=nodes["id"].combine_chunks()) for end in ("source", "target")]
    pyarrow.parquet.write_table(nodes, folder / "tables/nodes.parquet")
    pyarrow.csv.write_csv(edges.filter(pc.and_(*inside)), folder / "tables/edges.csv")


def new_tables(folder: Path) -> None:
    """Three new nodes, two of which are linked to one of the fit."""
    nodes = pyarrow.parquet.read_table(folder / "tables/nodes.parquet").slice(0, 3)
    ids = pa.array(["new0", "new1", "new2"])
    old = nodes["id"][0].as_py()
    pyarrow.parquet.write_table(nodes.set_column(0, "id", ids), folder / "new.parquet")
    pyarrow.csv.write_csv(pa.table({"source": ["new0", "new1"], "target": [old, old]}), folder / "new.csv")


def places(folder: Path) -> None:
    """Sixty homes, shops and flats in a row: prices, numbers of visits and two flags, unknown for every fourth."""
    rng = np.random.default_rng(0)
    ids = [f"h{i}" for i in range(60)]
    files = {
        "homes.csv": {"price": rng.normal(300, 50, 60)},
        "shops.csv": {"visits": rng.poisson(4, 60)},
        "flats.csv": {"garden": rng.integers(0, 2, 60), "lift": rng.integers(0, 2, 60)},
    }
    for name, labels in files.items():
        columns = {label: np.where(np.arange(60) % 4 > 0, values, np.nan) for label, values in labels.items()}
        known = {label: pa.array(values, from_pandas=True) for label, values in columns.items()}
        pyarrow.csv.write_csv(pa.table({"id": ids, "area": rng.normal(80, 20, 60), **known}), folder / name)
    links = {"source": ids[:57], "target": ids[3:]}
    pyarrow.csv.write_csv(pa.table(links), folder / "near.csv")


def bad_shops(folder: Path) -> None:
    """The shops again, two of them with visits that are no counts."""
    shops = pyarrow.csv.read_csv(folder / "shops.csv")
    visits = shops["visits"].to_pylist()
    visits[1:3] = [-1.0, 2.5]
    pyarrow.csv.write_csv(shops.set_column(2, "visits", pa.array(visits)), folder / "shops.csv")


def bad_people(folder: Path) -> None:
    """Two people have a second row, and two links lead to ids that no one has."""
    people, links = node_columns(), edge_columns()
    write(folder / "people.csv", {name: [*column, *column[:2]] for name, column in people.items()})
    write(folder / "links.csv", {name: [*column, "zz", "yy"] for name, column in links.items()})


def stored_results(folder: Path) -> None:
    """The stores of our own runs."""
    shutil.copytree(RESULTS, folder / "results", dirs_exist_ok=True)


def reader_names() -> dict[str, Any]:
    """The arrays that examples take as given: a graph of 60 nodes with labels of every kind."""
    task = g3nn.synthetic(nodes=60, classes=3, degree=4, features=8, labels_per_class=10, val=15, seed=1)
    rng = np.random.default_rng(0)
    y = np.array(task.labels)
    y[40:] = -1
    numbers = np.where(y < 0, np.nan, y + rng.normal(0, 0.1, 60))
    tags = np.stack([y == 0, y == 1], axis=1).astype(float)
    tags[y < 0] = np.nan
    names = {"X": task.features.toarray() if hasattr(task.features, "toarray") else task.features, "edges": task.edges}
    names |= {"y": y, "labelled": np.arange(40), "unlabelled": np.arange(40, 60), "nodes": np.arange(5, 15)}
    names |= {"prices": numbers, "visits": np.where(y < 0, np.nan, y), "tags": tags}
    names |= {"train": np.arange(15), "val": np.arange(15, 30), "test": np.arange(30, 40)}
    names |= {"X_new": names["X"][:2] + 0.1, "edges_new": np.array([[60, 61, 61], [0, 1, 60]])}
    names |= {"pairs": task.edges[:, :4]}
    return names
