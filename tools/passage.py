"""Which files an answer passes on its way from `fit` to `predict_proba`: every file of g3nn in which a function runs.

    python tools/passage.py

Components (likelihoods, priors, posteriors, channels, outcomes and the networks they are built from), kernels and the
sparse matrices on them are left out: an answer is computed there, and each is chosen by name. So are errors, declared
options, checks of arguments, progress bars and the number of threads, through which no answer passes.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import g3nn

ROOT = Path(g3nn.__file__).parent
COMPUTED = (
    "kernels",
    "graph/outcomes",
    *(f"model/{part}" for part in ("networks", "likelihoods", "priors", "posteriors", "channels")),
)
BESIDE = ("base/errors", "base/options", "training/checks", "training/progress", "base/threads")


def passed(nodes: int = 120) -> list[str]:
    """The files, in the order in which they are first entered."""
    task = g3nn.synthetic(nodes=nodes, classes=3, degree=4, features=6, labels_per_class=8, val=30, test=30, seed=1)
    y = np.full(nodes, -1)
    labelled = np.concatenate([task.train, task.val])
    y[labelled] = task.labels[labelled]
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and path.is_relative_to(ROOT):
            files.setdefault(path.relative_to(ROOT).as_posix())

    classifier = g3nn.G3NNClassifier(epochs=3, ensemble=2, device="cpu")
    sys.setprofile(note)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier.fit(task.features, y, task.edges, val=task.val)
        classifier.predict_proba()
    finally:
        sys.setprofile(None)
    names = [file.removesuffix(".py") for file in files]
    return [name for name in names if not name.startswith(COMPUTED) and name not in BESIDE]


if __name__ == "__main__":
    for number, file in enumerate(passed(), 1):
        print(f"{number:3} {file}")
