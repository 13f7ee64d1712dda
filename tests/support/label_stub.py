"""Learners that take no time, for processes that start quickly: nothing here loads torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from g3nn.labelling.learner import Beliefs, Doubts, Why
from g3nn.labelling.tables import Known


class Counting:
    """Believes of every node that its class is as frequent as among all labels. Rows take turns with the classes: who
    says something else is doubted."""

    TURNS = ("art", "law", "tea")

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes

    def learn(self, known: Known) -> Beliefs:
        classes, counts = np.unique(list(known.labels.values()), return_counts=True)
        p = np.tile(counts / counts.sum(), (self.nodes, 1)).astype(np.float32)
        order = np.setdiff1d(np.arange(self.nodes), list(known.labels))
        turns = {row: (label, self.TURNS[row % 3], 0.75) for row, label in known.labels.items()}
        doubted = {row: doubt for row, doubt in turns.items() if doubt[0] != doubt[1]}
        return Beliefs(classes.tolist(), p, order, len(known.labels), doubted)

    def why(self, row: int) -> Why:
        return Why([((row + 3) % self.nodes, 0.5)], [("<i>age</i>", -0.25)])

    def doubts(self) -> Doubts:
        return {"suspicious": [(0, 1, 0.1)], "missing": [(0, 2, 0.9)]}

    def write(self, known: Known, out: Path, effort: str) -> dict[str, Any]:
        out.mkdir(exist_ok=True)
        (out / "labels").write_text(str(len(known.labels)))
        return {"out": str(out), "labels": len(known.labels), "model": effort}


class Failing(Counting):
    """Fails, or takes its process with it, when a label says so."""

    def __init__(self) -> None:
        super().__init__(3)

    def learn(self, known: Known) -> Beliefs:
        if "die" in known.labels.values():
            os._exit(1)
        if "fail" in known.labels.values():
            raise ValueError("cannot")
        return super().learn(known)
