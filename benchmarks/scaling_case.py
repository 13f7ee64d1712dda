"""One graph and one model, measured in a process of its own, because peak memory never goes down again.

python benchmarks/scaling_case.py '{"nodes": 1000, "edges": 9000, "features": 9, "classes": 5, "model": "sbm-gcn", ...}'

Takes the arguments of `measured` and prints a JSON record. The model `plain gcn` is a GCN of two layers in plain PyG,
without a likelihood.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from plain_pyg import Plain

import g3nn
from g3nn.model.generative import ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective
from g3nn.model.replicas import Replicas, Sizes
from g3nn.training import Stack, TrainingOptions

PLAIN = "plain gcn"
_WARM_UP = 5
"""Epochs before the clock starts: on a GPU the fourth is captured."""
_SECONDS = 3.0
"""About how long epochs are timed."""


def host_bytes() -> int:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def epoch_of(task: g3nn.NodeTask, model: str, device: str, pairs: int = 0) -> Callable[[], None]:
    """A function that trains for one epoch and evaluates. pairs: edges and non-edges of a step, 0 for all edges."""
    if model == PLAIN:
        return Plain(task, "gcn", device).epoch
    replicas = Replicas((0,))
    built = ModelSpec.parse(model).build(Sizes.of(task), replicas, {})
    endless = TrainingOptions(epochs=10**9, patience=10**9)
    return Stack(built, Objective.elbo(edges_per_step=pairs), Inputs.of(task, device), replicas, endless)._epoch


def seconds_per_epoch(epoch: Callable[[], None], device: str) -> float:
    def timed(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            epoch()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / count

    timed(_WARM_UP if device == "cuda" else 1)
    once = timed(1)
    return timed(max(2, min(50, round(_SECONDS / once))))


def measured(
    nodes: int,
    edges: int,
    features: int,
    classes: int,
    model: str,
    device: str,
    homophily: float = 0.8,
    pairs: int = 0,
) -> dict[str, Any]:
    """Seconds and memory; host memory without that of the loaded libraries and compiled kernels."""
    # Compiles the kernels.
    small = g3nn.synthetic(nodes=400, classes=classes, degree=4, features=8, labels_per_class=2, val=20)
    epoch_of(small, model, device)()
    libraries = host_bytes()
    start = time.perf_counter()
    graph = {"nodes": nodes, "classes": classes, "degree": 2 * edges / nodes, "homophily": homophily}
    task = g3nn.synthetic(**graph, features=features, labels_per_class=20, val=min(10_000, nodes // 10))
    made = time.perf_counter() - start
    record = {"edges": task.num_edges, "seconds_to_make": made, "host_gib_to_make": (host_bytes() - libraries) / 2**30}
    try:
        epoch = epoch_of(task, model, device, pairs)
        record["seconds_per_epoch"] = seconds_per_epoch(epoch, device)
    except torch.OutOfMemoryError as error:
        return {**record, "status": f"out of memory: {error}".splitlines()[0]}
    if device == "cuda":
        record["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
        record["reserved_gib"] = torch.cuda.max_memory_reserved() / 2**30
    else:
        record["peak_gib"] = (host_bytes() - libraries) / 2**30
    return {**record, "status": "done"}


if __name__ == "__main__":
    print(json.dumps(measured(**json.loads(sys.argv[1]))))
