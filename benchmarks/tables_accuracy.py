"""Whether tables lose anything: `g3nn fit` on exported tables beside `g3nn train` on the dataset itself.

    python benchmarks/tables_accuracy.py --out tables-accuracy.json
    python benchmarks/tables_accuracy.py --table tables-accuracy.json

Both run on the command line with the same model, objective, options and seeds, one replica at a time. `train` reports
the likeliest class of the replica; `fit` reads the tables, encodes their columns, and calibrates, which may move the
border between two classes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

DATASETS = ("cora", "citeseer")
MODEL = ("--model", "sbm-gcn", "--objective", "released")
TRAINING = ("--hidden", "16", "--lr", "0.01", "--weight-decay", "0.0005", "--epochs", "1000", "--patience", "100")
"""What `g3nn fit` does by itself."""

Row = dict[str, Any]


def command(*words: str) -> dict[str, Any]:
    """What a g3nn command prints as JSON."""
    ran = subprocess.run([sys.executable, "-m", "g3nn", *words, "--json"], check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def replica_seed(seed: int) -> int:
    """The seed of the first replica of a classifier with this random state and given validation nodes."""
    return int(np.random.RandomState(seed).randint(2**31 - 1))


def measure(dataset: str, seeds: range, device: str, folder: Path) -> Row:
    """Test accuracy of both ways, one for each seed."""
    tables, place = folder / dataset, ("--device", device)
    command("datasets", dataset, "--export", str(tables))
    columns = ("--nodes", str(tables / "nodes.parquet"), "--edges", str(tables / "edges.csv"))
    columns = (*columns, "--id", "id", "--label", "label")
    truth = {id: label for id, label in _rows(tables / "answers.parquet")}
    trained, fitted = [], []
    for seed in seeds:
        out = folder / f"{dataset}-{seed}"
        command("fit", *columns, *MODEL, "--ensemble", "1", "--seed", str(seed), *place, "--out", str(out))
        answers = dict(_rows(out / "predictions.parquet"))
        fitted.append(float(np.mean([str(answers[id]) == str(label) for id, label in truth.items()])))
        same = ("--trials", "1", "--seed", str(replica_seed(seed)))
        trained += command("train", dataset, *MODEL, *TRAINING, *same, *place)["test_accuracy"]
    return {"dataset": dataset, "seeds": list(seeds), "train": trained, "fit": fitted}


def _rows(file: Path) -> list[tuple[Any, Any]]:
    import pyarrow.parquet as parquet

    table = parquet.read_table(file, columns=["id", "label"]).to_pydict()
    return list(zip(table["id"], table["label"], strict=True))


HEAD = "| data | seeds | g3nn train | g3nn fit on tables | difference |\n|---|---|---|---|---|"


def line(row: Row) -> str:
    one, other = np.mean(row["train"]), np.mean(row["fit"])
    return f"| {row['dataset']} | {len(row['seeds'])} | {one:.4f} | {other:.4f} | {other - one:+.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=DATASETS)
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="write the records here as JSON")
    parser.add_argument("--table", type=Path, help="print stored records instead of measuring")
    arguments = parser.parse_args()
    print(HEAD, flush=True)
    if arguments.table:
        print("\n".join(line(row) for row in json.loads(arguments.table.read_text())))
        return
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for dataset in arguments.datasets:
            found.append(measure(dataset, range(arguments.seeds), arguments.device, Path(folder)))
            print(line(found[-1]), flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
