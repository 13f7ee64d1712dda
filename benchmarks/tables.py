"""Reading and checking large tables: seconds and peak memory.

python benchmarks/tables.py [--nodes 1000000] [--edges 10000000] [--format parquet csv] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from g3nn.base.parse import read_edges
from g3nn.graph.tables.edge_table import EdgeColumns, join, load_edges
from g3nn.graph.tables.graph import NodeColumns, load_nodes
from g3nn.graph.tables.labels import check_split
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.tables.schema import FeatureSchema

NUMBERS = 10
CITIES = 40
CLASSES = 5


def make(folder: Path, nodes: int, edges: int, form: str) -> None:
    """Text ids, ten columns of numbers (some missing), a boolean and a category; one node in a hundred is labelled."""
    rng = np.random.default_rng(0)
    ids = pa.array([f"node-{number}" for number in range(nodes)])
    columns: dict[str, pa.Array] = {"id": ids}
    labelled = rng.random(nodes) < 0.01
    columns["label"] = pa.array([f"class-{label}" for label in range(CLASSES)]).take(
        pa.array(rng.integers(0, CLASSES, nodes), mask=~labelled)
    )
    for number in range(NUMBERS):
        columns[f"x{number}"] = pa.array(rng.standard_normal(nodes), mask=rng.random(nodes) < 0.05)
    columns["active"] = pa.array(rng.random(nodes) < 0.5)
    columns["city"] = pa.array([f"city-{city}" for city in range(CITIES)]).take(
        pa.array(rng.integers(0, CITIES, nodes))
    )
    ends = {name: ids.take(pa.array(rng.integers(0, nodes, edges))) for name in ("source", "target")}
    files = folder / f"nodes.{form}", folder / f"edges.{form}"
    for file, table in zip(files, (pa.table(columns), pa.table(ends)), strict=True):
        if form == "parquet":
            pa_parquet.write_table(table, file)
        else:
            pa_csv.write_csv(table, file)


def read(nodes_file: Path, edges_file: Path) -> dict[str, float]:
    """Everything that `g3nn fit` does before it trains."""
    times = {"libraries_gib": peak_gib()}

    def lap(name: str) -> None:
        times[name] = time.perf_counter() - start - sum(times[key] for key in times if key.endswith("_s"))

    start, remarks = time.perf_counter(), Remarks()
    nodes = load_nodes(nodes_file, NodeColumns("id", ("label",)), remarks)
    assert nodes is not None
    assert nodes.labels is not None
    check_split(nodes.name, nodes.labels, nodes.split, nodes.columns.outcome, remarks)
    lap("read_nodes_s")
    how = nodes.columns
    schema = FeatureSchema.fit(nodes.name, nodes.features, nodes.typed, how.chosen, how.nulls, remarks)
    features = schema.encode(nodes.features)
    lap("features_s")
    edges = load_edges(edges_file, EdgeColumns(), remarks)
    assert edges is not None
    lap("read_edges_s")
    pairs, _ = join(edges, nodes.ids, nodes.typed, remarks)
    lap("join_s")
    unique = read_edges(pairs, nodes.num_nodes, False, remarks)
    lap("unique_edges_s")
    remarks.raise_if_any()
    return {
        "nodes": nodes.num_nodes,
        "features": int(features.matrix.shape[1]),
        "edges": len(edges.source),
        "unique_edges": unique.shape[1],
        **times,
        "total_s": time.perf_counter() - start,
        "peak_gib": peak_gib(),
    }


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def child(*words: str) -> str:
    command = [sys.executable, "-W", "ignore", __file__, *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for form in arguments.format:
            # Processes of their own: peak memory never goes down again, and is handed on to a child.
            sizes = ["--nodes", str(arguments.nodes), "--edges", str(arguments.edges)]
            child("--make", folder, "--format", form, *sizes)
            files = [Path(folder) / f"{name}.{form}" for name in ("nodes", "edges")]
            size = sum(file.stat().st_size for file in files) / 2**20
            row = json.loads(child("--read", *map(str, files)))
            print(f"{form}: {row['nodes']:,} nodes, {row['edges']:,} edges, {size:.0f} MiB of files")
            print("  " + ", ".join(f"{key[:-2].replace('_', ' ')} {row[key]:.1f} s" for key in row if key[-2:] == "_s"))
            print(
                f"  peak memory {row['peak_gib']:.2f} GiB, of which {row['libraries_gib']:.2f} GiB libraries",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10**6)
    parser.add_argument("--edges", type=int, default=10**7)
    parser.add_argument("--format", nargs="+", choices=("parquet", "csv"), default=["parquet", "csv"])
    parser.add_argument("--folder", type=Path, help="Where to put the tables for the time of the run.")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--read", nargs=2, type=Path, metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        print(json.dumps(read(*arguments.read)))
    elif arguments.make:
        make(arguments.make, arguments.nodes, arguments.edges, arguments.format[0])
    else:
        run(arguments)


if __name__ == "__main__":
    main()
