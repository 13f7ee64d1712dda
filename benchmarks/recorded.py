"""Ten short trainings and a hash of every number in them: two versions of the code agree to the last bit, or not.

    python benchmarks/recorded.py --write before.json      # with one version
    python benchmarks/recorded.py --compare before.json    # with another, on the same machine
    python benchmarks/recorded.py --defaults cora texas --device cuda --write before.json

Five models on two citation graphs, two trials each; or, with --defaults, a default fit of the estimator to each of the
datasets, with its accuracy and its time. The numbers depend on the machine and on the versions of its libraries, so a
record is compared on the machine where it was made. Exit code 1 if anything but the time differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
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
TRAINING = {"trials": 2, "epochs": 30, "patience": 10, "progress": False}


def hashed(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def record(dataset: str, model: str, device: str) -> dict[str, Any]:
    result = g3nn.fit(g3nn.load(dataset), model, device=device, **TRAINING, **MODELS[model])
    state = result.model.state_dict()
    return {
        "test_accuracy": result.test_accuracy.tolist(),
        "val_loss": result.val_loss.tolist(),
        "epochs": result.epochs.tolist(),
        "history": hashed(result.history),
        "probabilities": hashed(result.probabilities),
        "parameters": hashed(*(state[name].cpu().numpy() for name in sorted(state))),
    }


def record_default(dataset: str, device: str) -> dict[str, Any]:
    task, start = g3nn.load(dataset), time.perf_counter()
    labelled = np.concatenate([task.train, task.val])
    y = np.full(task.num_nodes, -1)
    y[labelled] = task.labels[labelled]
    classifier = g3nn.G3NNClassifier(random_state=0, device=device).fit(task.features, y, task.edges, val=task.val)
    probabilities = classifier.predict_proba()
    right = probabilities[task.test].argmax(1) == task.labels[task.test]
    return {
        "test_accuracy": float(right.mean()),
        "probabilities": hashed(probabilities),
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the record here")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with a record written before")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--defaults", nargs="+", metavar="DATASET", help="default fits to these instead of trainings")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.defaults:
        records = {f"{dataset}/default": record_default(dataset, given.device) for dataset in given.defaults}
    else:
        records = {
            f"{dataset}/{model}": record(dataset, model, given.device) for dataset in DATASETS for model in MODELS
        }
    if given.write:
        given.write.write_text(json.dumps(records, indent=1) + "\n")
    before = json.loads(given.compare.read_text()) if given.compare else records
    same = {name: {**before.get(name, {}), "seconds": 0} == {**one, "seconds": 0} for name, one in records.items()}
    for name, one in records.items():
        word = "same" if same[name] else "DIFFERS"
        print(name.ljust(26), *one.values(), word if given.compare else "")
    sys.exit(0 if all(same.values()) else 1)


if __name__ == "__main__":
    main()
