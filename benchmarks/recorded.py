"""Ten short trainings and a hash of every number in them: two versions of the code agree to the last bit, or not.

    python benchmarks/recorded.py --write before.json      # with one version
    python benchmarks/recorded.py --compare before.json    # with another, on the same machine

Five models on two citation graphs, two trials each, on the CPU. The numbers depend on the machine and on the versions
of its libraries, so a record is compared on the machine where it was made. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import g3nn

MODELS: dict[str, dict[str, Any]] = {
    "gcn": {},
    "sbm-gcn": {"objective": "elbo"},
    "lsm-gat": {"objective": "released", "eta": 0.5},
    "blsm-appnp": {"objective": "elbo", "entropy_weight": 0.5},
    "dcsbm-grand": {"objective": "elbo", "samples": 2, "consistency_weight": 1.0, "warm_up": 5},
}
DATASETS = ("cora", "citeseer")
TRAINING = {"trials": 2, "epochs": 30, "patience": 10, "device": "cpu", "progress": False}


def hashed(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def record(dataset: str, model: str) -> dict[str, Any]:
    result = g3nn.fit(g3nn.load(dataset), model, **TRAINING, **MODELS[model])
    state = result.model.state_dict()
    return {
        "test_accuracy": result.test_accuracy.tolist(),
        "val_loss": result.val_loss.tolist(),
        "epochs": result.epochs.tolist(),
        "history": hashed(result.history),
        "probabilities": hashed(result.probabilities),
        "parameters": hashed(*(state[name].numpy() for name in sorted(state))),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the record here")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with a record written before")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    records = {f"{dataset}/{model}": record(dataset, model) for dataset in DATASETS for model in MODELS}
    if given.write:
        given.write.write_text(json.dumps(records, indent=1) + "\n")
    before = json.loads(given.compare.read_text()) if given.compare else records
    same = {name: before.get(name) == one for name, one in records.items()}
    for name, one in records.items():
        word = "same" if same[name] else "DIFFERS"
        print(f"{name:22} {one['history']} {one['probabilities']} {one['parameters']} {word if given.compare else ''}")
    sys.exit(0 if all(same.values()) else 1)


if __name__ == "__main__":
    main()
