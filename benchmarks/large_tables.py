"""Two large tables through `g3nn fit` as anybody would call it: how long, how much memory, how well.

python benchmarks/large_tables.py --out F [--nodes 1000000] [--degree 20] [--folder DIR] [--arguments --effort quick]

Node ids are words, features are 30 columns of numbers and one of categories, one node in a hundred has a label and one
edge in ten joins two nodes at random. Records go to a file.
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
import pyarrow.parquet as pq
from records import Record, records_to_extend, write_records

import g3nn
from g3nn.base.errors import Problems

CLASSES = 8


def write_tables(folder: Path, nodes: int, degree: float) -> np.ndarray:
    """nodes.parquet and edges.parquet; the true classes."""
    task = g3nn.synthetic(
        nodes=nodes, degree=degree, classes=CLASSES, features=30, homophily=0.5, edge_noise=0.1, signal=1.0
    )
    rng = np.random.default_rng(1)
    labelled = rng.choice(nodes, nodes // 100, replace=False)
    ids = np.array([f"node-{number:08d}" for number in rng.permutation(nodes)])
    labels = np.full(nodes, None, dtype=object)
    labels[labelled] = [f"class {label}" for label in task.labels[labelled]]
    told = np.where(rng.random(nodes) < 0.3, task.labels, rng.integers(CLASSES, size=nodes))
    columns = {f"x{place}": column for place, column in enumerate(np.asarray(task.features).T)}
    kinds = np.array([f"kind {place}" for place in range(CLASSES)])
    pq.write_table(pa.table({"id": ids, **columns, "kind": kinds[told], "label": labels}), folder / "nodes.parquet")
    source, target = (ids[end] for end in task.edges)
    pq.write_table(pa.table({"source": source, "target": target}), folder / "edges.parquet")
    return kinds_of(task.labels, labelled)


def kinds_of(labels: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """The true label of each node, empty where the table has it."""
    true = np.array([f"class {label}" for label in labels])
    true[labelled] = ""
    return true


def measured(folder: Path, nodes: int, degree: float, arguments: list[str]) -> Record:
    true = write_tables(folder, nodes, degree)
    command = [sys.executable, "-m", "g3nn", "fit", "--id", "id", "--label", "label", "--out", str(folder / "out")]
    tables = ["--nodes", str(folder / "nodes.parquet"), "--edges", str(folder / "edges.parquet")]
    start = time.perf_counter()
    subprocess.run([*command, *tables, *arguments], check=True)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    answers = pq.read_table(folder / "out" / "predictions.parquet", columns=["label"])["label"]
    hidden = true != ""
    right = float(np.mean(answers.to_numpy()[hidden] == true[hidden]))
    edges = pq.read_metadata(folder / "edges.parquet").num_rows
    audited = (folder / "out" / "edges.parquet").exists()
    sizes = {"nodes": nodes, "edges": edges, "arguments": arguments, "audited": audited}
    return {**sizes, "seconds": seconds, "peak_gib": peak / 2**30, "accuracy": right}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file of records")
    parser.add_argument("--nodes", type=int, default=10**6)
    parser.add_argument("--degree", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, help="where the tables are written; by default a temporary one")
    parser.add_argument("--arguments", nargs=argparse.REMAINDER, default=[], help="of g3nn fit, last")
    given = parser.parse_args()
    problems = Problems()
    records = records_to_extend(given.out, lambda record: record["nodes"], problems)
    problems.raise_if_any()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        records.append(measured(Path(folder), given.nodes, given.degree, given.arguments))
    print(json.dumps(records[-1]))
    write_records(given.out, records)


if __name__ == "__main__":
    main()
