"""A data scientist's day on real data: two tables in, labels, suspicious edges and a page out.

Citeseer is written as tables first: 3,327 papers, of which 620 have a label. `g3nn fit` then knows the tables alone.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

import g3nn
from g3nn.data.tables.export import export

PAPER = 0.745
"""The paper's best model on this split."""


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="g3nn-demo-"))
    tables, result = folder / "tables", folder / "result"
    export(g3nn.load("citeseer"), tables)
    print(f"tables in {tables}: nodes.parquet, edges.csv, and answers.parquet, which stays hidden from the model\n")
    given = ["--nodes", str(tables / "nodes.parquet"), "--edges", str(tables / "edges.csv")]
    named = ["--id", "id", "--label", "label", "--model", "sbm-gcn", "--objective", "released", "--out", str(result)]
    command = ["fit", *given, *named]
    print("g3nn", " ".join(command), flush=True)
    subprocess.run([sys.executable, "-m", "g3nn", *command], check=True)
    answers = parquet.read_table(tables / "answers.parquet")
    predictions = parquet.read_table(result / "predictions.parquet", columns=["id", "label"]).to_pydict()
    found = dict(zip(predictions["id"], predictions["label"], strict=True))
    truth = answers.to_pydict()
    right = np.mean([str(found[id]) == str(label) for id, label in zip(truth["id"], truth["label"], strict=True)])
    print(f"\naccuracy on the {answers.num_rows:,} hidden answers: {right:.3f} (the paper's best: {PAPER})")
    print(f"open {(result / 'report.html').as_uri()}")


if __name__ == "__main__":
    main()
