"""Compile the kernels that most trainings use, as the first of them would: a minute that can be spent while packages
are installed, or when an image is built.

python tools/warm.py
"""

from __future__ import annotations

import argparse

import numpy as np

import g3nn


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    task = g3nn.synthetic(nodes=120, classes=3, degree=4, features=6, labels_per_class=10, val=20)
    for model in ("sbm-gcn", "lsm-gat", "dcsbm-sage"):
        g3nn.fit(task, model, epochs=2, device="cpu")
    g3nn.fit(task, "sbm-gcn", epochs=2, batch=20, device="cpu")
    labels = np.full(task.num_nodes, None, dtype=object)
    labels[task.train] = task.labels[task.train]
    classifier = g3nn.G3NNClassifier("sbm-gcn", epochs=2, ensemble=1, device="cpu")
    classifier.fit(task.features, labels, task.edges).audit(5)


if __name__ == "__main__":
    main()
