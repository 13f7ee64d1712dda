"""Conformal sets of g3nn and of TorchCP (APS, DAPS, SNAPS), from the same calibration nodes."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
import torch

from g3nn.graph.calibrate import conformal_sets, conformal_threshold
from g3nn.graph.datasets import load

LEVELS = (0.9, 0.95)
NEAREST, AT_ONCE = 20, 1000
"""As many nodes with like features as SNAPS takes, and for how many rows they are looked up at once."""


class Answers(Protocol):
    @property
    def labels(self) -> np.ndarray: ...
    @property
    def edges(self) -> np.ndarray: ...


def sets_of(
    given: Mapping[str, np.ndarray], one: Answers, graph: str, nodes: np.ndarray, rest: np.ndarray, seed: int
) -> Iterator[dict[str, Any]]:
    """Coverage and size at each level, among the nodes `rest`; nodes: those of the calibration. given: probabilities
    (n, K) by name, of which the first are also those of TorchCP."""
    truth, labels = one.labels[nodes], one.labels[rest]
    peers = {} if importlib.util.find_spec("torchcp") is None else torchcp_scores(graph)
    log_prob = torch.from_numpy(np.log(next(iter(given.values())))).float()
    torch.manual_seed(seed)
    scores = {name: make(log_prob).numpy() for name, make in peers.items()}
    for level in LEVELS:
        made = {name: conformal_sets(p[rest], 1 - p[nodes, truth], round(1 - level, 10)) for name, p in given.items()}
        for name, score in scores.items():
            made[name] = score[rest] <= conformal_threshold(score[nodes, truth], round(1 - level, 10))
        for name, found in made.items():
            coverage = float(found[np.arange(len(rest)), labels].mean())
            yield {"method": name, "level": level, "coverage": coverage, "size": float(found.sum(1).mean())}


def _part(name: str) -> ModuleType:
    """A module of TorchCP. The package itself would import everything, such as models of language."""
    for place in ("torchcp", "torchcp.graph", "torchcp.classification"):
        if place not in sys.modules or not hasattr(sys.modules[place], "bare"):
            root = next(Path(path) for path in sys.path if (Path(path) / "torchcp").is_dir())
            bare = ModuleType(place)
            bare.__path__ = [str(root / place.replace(".", "/"))]
            bare.bare = True  # type: ignore[attr-defined]
            bare.__spec__ = importlib.util.spec_from_loader(place, loader=None)
            sys.modules[place] = bare
    return importlib.import_module(f"torchcp.{name}")


@cache
def torchcp_scores(graph: str) -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    """For log-probabilities (n, K) the scores (n, K)."""
    aps, daps, snaps = (
        _part("classification.score.aps").APS,
        _part("graph.score.daps").DAPS,
        _part("graph.score.snaps").SNAPS,
    )
    task = load(graph)
    both = np.concatenate([task.edges, task.edges[::-1]], axis=1)
    data = SimpleNamespace(num_nodes=task.num_nodes, edge_index=torch.from_numpy(both), edge_weight=None, x=None)
    places, values = nearest(task.features)
    like = {"knn_edge": torch.from_numpy(places), "knn_weight": torch.from_numpy(values)}
    return {"APS": aps(), "DAPS": daps(data, aps()), "SNAPS": snaps(data, aps(), **like)}


def nearest(features: Any) -> tuple[np.ndarray, np.ndarray]:
    """(2, 20 n) pairs of a node and one of those with the most similar features, and their cosines."""
    rows = sp.csr_array(features).astype(np.float32)
    norm = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    rows = sp.csr_array(sp.diags_array(1 / np.maximum(norm, 1e-12)) @ rows)
    places, values = [], []
    for start in range(0, rows.shape[0], AT_ONCE):
        cosines = (rows[start : start + AT_ONCE] @ rows.T).toarray()
        own = np.arange(len(cosines))
        cosines[own, own + start] = 0.0
        top = np.argpartition(-cosines, NEAREST, axis=1)[:, :NEAREST]
        places.append(np.stack([np.repeat(own + start, NEAREST), top.ravel()]))
        values.append(np.take_along_axis(cosines, top, 1).ravel())
    return np.concatenate(places, axis=1), np.concatenate(values)
