"""A short tour on real data: two tables in; labels, suspicious edges and a page out.

Citeseer is written as tables first: 3,327 papers, of which 620 have a label. `g3nn fit` sees only these tables. It runs
with its defaults, except that it may spend a minute on trying models instead of as long as it takes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

import g3nn
from g3nn.graph.tables.frames import export

PAPER = 0.745
"""Accuracy of the paper's best model on this split."""


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="g3nn-demo-"))
    tables, result = folder / "tables", folder / "result"
    export(g3nn.load("citeseer"), tables)
    print(f"Wrote nodes.parquet, edges.csv and answers.parquet to {tables}. The model never sees answers.parquet.\n")
    inputs = ["--nodes", str(tables / "nodes.parquet"), "--edges", str(tables / "edges.csv")]
    columns = ["--id", "id", "--label", "label"]
    command = ["fit", *inputs, *columns, "--budget", "60", "--out", str(result)]
    print("g3nn", " ".join(command), flush=True)
    subprocess.run([sys.executable, "-m", "g3nn", *command], check=True)
    answers = parquet.read_table(tables / "answers.parquet")
    predictions = parquet.read_table(result / "predictions.parquet", columns=["id", "label"]).to_pydict()
    predicted = dict(zip(predictions["id"], predictions["label"], strict=True))
    truth = answers.to_pydict()
    right = [str(predicted[id]) == str(label) for id, label in zip(truth["id"], truth["label"], strict=True)]
    print(
        f"\nAccuracy on the {answers.num_rows:,} hidden labels: {np.mean(right):.3f} (best model of the paper: {PAPER})"
    )
    print(f"Open {(result / 'report.html').as_uri()} in a browser.")


if __name__ == "__main__":
    main()
