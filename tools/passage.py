"""What an answer passes on its way from `fit` to `predict_proba`: every file of g3nn in which a function runs, and
every type of g3nn in which it is handed on: what methods belong to, what functions are given and what they return.

    python tools/passage.py

Components (likelihoods, priors, posteriors, channels, outcomes and the networks they are built from), kernels and the
sparse matrices on them are left out: an answer is computed there, and each is chosen by name. So are errors, declared
options, checks of arguments, progress bars and the number of threads, through which no answer passes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import g3nn

ROOT = Path(g3nn.__file__).parent
COMPUTED = (
    "kernels",
    "graph/outcomes",
    *(f"model/{part}" for part in ("networks", "likelihoods", "priors", "posteriors", "channels")),
)
BESIDE = ("base/errors", "base/options", "training/checks", "training/progress", "base/threads")


class Passage(NamedTuple):
    """Files and types, each in the order in which they are first met."""

    files: list[str]
    types: list[str]


def passed(nodes: int = 120) -> Passage:
    """Of a quick fit to a small graph."""
    task = g3nn.synthetic(nodes=nodes, classes=3, degree=4, features=6, labels_per_class=8, val=30, test=30, seed=1)
    y = np.full(nodes, -1)
    labelled = np.concatenate([task.train, task.val])
    y[labelled] = task.labels[labelled]
    files: dict[str, None] = {}
    types: dict[type, None] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event not in ("call", "return") or frame.f_code.co_name == "<module>" or not path.is_relative_to(ROOT):
            return
        file = path.relative_to(ROOT).as_posix().removesuffix(".py")
        if counted(file):
            files.setdefault(file)
            types.update(dict.fromkeys([type(argument)] if event == "return" else map(type, given(frame))))

    def run() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = g3nn.G3NNClassifier(epochs=3, ensemble=2, device="cpu")
            classifier.fit(task.features, y, task.edges, val=task.val).predict_proba()

    run()  # Kernels are compiled before anything is noted, which takes long while it is.
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return Passage(list(files), [f"{one.__module__}.{one.__qualname__}" for one in types if is_own(one)])


def counted(file: str) -> bool:
    """Whether a file below g3nn, without its ending, is one that an answer passes."""
    return not file.startswith(COMPUTED) and file not in BESIDE


def given(frame: FrameType) -> Iterator[object]:
    """The arguments of the function that runs in a frame."""
    count = frame.f_code.co_argcount + frame.f_code.co_kwonlyargcount
    return (frame.f_locals[name] for name in frame.f_code.co_varnames[:count] if name in frame.f_locals)


def is_own(kind: type) -> bool:
    """Whether a type is one of g3nn, outside of what is left out."""
    package, _, module = kind.__module__.partition(".")
    return package == "g3nn" and counted(module.replace(".", "/"))


def main() -> None:
    for title, names in passed()._asdict().items():
        print(f"{len(names)} {title}")
        for number, name in enumerate(names, 1):
            print(f"{number:3} {name}")


if __name__ == "__main__":
    main()
