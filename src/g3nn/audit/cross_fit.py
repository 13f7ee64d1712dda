"""Fits the graph models, one for each part of the edges, so that no edge vouches for itself."""

from __future__ import annotations

import numpy as np
import torch

from g3nn.audit.coordinates import View, coordinates
from g3nn.audit.latent import LatentGraph
from g3nn.audit.options import AuditOptions
from g3nn.audit.pair_model import Lesson, PairModel, train
from g3nn.kernels import FreePairs
from g3nn.replicas import Sizes
from g3nn.task import NodeTask


def split_edges(count: int, folds: int, seed: int) -> np.ndarray:
    """(count,): the part, 0 .. folds - 1, of each edge; parts are random and of equal size."""
    folds = min(folds, count)
    return np.random.default_rng(seed).permutation(np.arange(count, dtype=np.int64) % folds)


def cross_fit(
    task: NodeTask, q: np.ndarray, fold: np.ndarray, options: AuditOptions, seed: int, device: torch.device
) -> LatentGraph:
    """One model for each part of the edges, with q (n, K) held fixed.

    The model of part f never sees the edges of f. It learns those of another part g from nodes as they look without f
    and g: a pair must not be recognised by what its own edge did to its ends. One part g tells when to stop.
    """
    positions = coordinates(task.features, options.coordinates)
    arcs = task.edges if task.directed else np.concatenate([task.edges, task.edges[::-1]], axis=1)
    free = FreePairs(torch.from_numpy(arcs).to(device), task.num_nodes)
    beliefs = torch.from_numpy(q.astype(np.float32)).to(device)
    folds = int(fold.max()) + 1
    sizes = Sizes((1 + options.hops) * positions.shape[1], task.num_classes, task.directed)

    def lesson(hidden: tuple[int, ...], taught: int) -> Lesson:
        known = task.edges[:, ~np.isin(fold, hidden)]
        share = 1 - len(hidden) / folds
        view = View.of(positions, known, options.hops, task.directed, share)
        return Lesson.of(view, task.edges[:, fold == taught], device)

    found: list[tuple[torch.Tensor, ...]] = []
    for f, own_seed in enumerate(np.random.default_rng(seed).integers(2**62, size=folds).tolist()):
        others = [(f + step) % folds for step in range(1, folds)]
        test, *lessons = (lesson((f, g), g) for g in others)
        model = PairModel(sizes, options, own_seed).to(device)
        train(model, lessons, test, beliefs, free, own_seed)
        with torch.no_grad():
            found.append((*model.ends(lesson((f,), f), None), model.table()))
    left, right, table = (torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True))
    return LatentGraph(left, right, table)
