"""How time and memory grow with edges and replicas, and how close we are to the memory bandwidth.

python benchmarks/scaling.py edges [--largest 10000000]     # one training step of sbm-gcn on synthetic graphs
python benchmarks/scaling.py replicas [--device cuda]       # time per replica and epoch, Cora lsm-gcn
python benchmarks/scaling.py roofline [--device cuda]       # bytes that must move, and how fast they move
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
import torch
from speed import make_stack, run_stack, timed

import g3nn
from g3nn.inputs import Inputs
from g3nn.model import ModelSpec
from g3nn.objective import Objective
from g3nn.replicas import Replicas, Sizes
from g3nn.training import Stack, TrainingOptions

DEGREE = 20
FEATURES = 128


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one_size(edges: int) -> dict[str, float]:
    """Seconds per epoch and peak memory for one number of edges; memory without that of the loaded libraries."""
    small = g3nn.synthetic(nodes=200, degree=4, features=8, labels_per_class=5, val=20)
    g3nn.fit(small, "sbm-gcn", epochs=2, device="cpu")
    libraries = peak_bytes()
    nodes = 2 * edges // DEGREE
    start = time.perf_counter()
    task = g3nn.synthetic(nodes=nodes, classes=5, degree=DEGREE, features=FEATURES, labels_per_class=20, val=500)
    made = time.perf_counter() - start
    replicas = Replicas((0,))
    model = ModelSpec.parse("sbm-gcn").build(Sizes(FEATURES, 5), replicas, {})
    endless = TrainingOptions(epochs=10**9, patience=10**9)
    stack = Stack(model, Objective.elbo(), Inputs.of(task), replicas, endless)
    stack.step()
    epochs = max(3, min(50, 10**6 // edges))
    seconds = timed(lambda: run_stack(stack, epochs), epochs, "cpu")
    return {
        "nodes": nodes,
        "edges": task.num_edges,
        "seconds_per_epoch": seconds,
        "seconds_to_make": made,
        "peak_gib": peak_bytes() / 2**30,
        "working_gib": (peak_bytes() - libraries) / 2**30,
    }


def exponent(rows: list[dict[str, float]], value: str) -> float:
    """Slope of log(value) against log(edges), least squares."""
    x, y = (np.log([row[key] for row in rows]) for key in ("edges", value))
    return float(np.polyfit(x, y, 1)[0])


def edges(largest: int) -> None:
    rows = []
    size = 10**4
    while size <= largest:
        # In a separate process, because peak memory never goes down again.
        command = [sys.executable, __file__, "one-size", str(size)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        row = rows[-1]
        sizes = f"{row['edges']:>10.0f} edges, {row['nodes']:>8.0f} nodes"
        memory = f"{row['working_gib']:6.2f} GiB beyond the libraries, {row['peak_gib']:5.2f} GiB in all"
        print(f"{sizes}: {1e3 * row['seconds_per_epoch']:9.1f} ms per epoch, {memory}", flush=True)
        size *= 10
    # From 10^5 edges on; below that, fixed costs make the exponent look better.
    for what, chosen in (("all sizes", rows), ("10^5 edges and more", [row for row in rows if row["edges"] > 5e4])):
        time_, memory = (exponent(chosen, value) for value in ("seconds_per_epoch", "working_gib"))
        print(f"exponent over {what}: time {time_:.2f}, memory {memory:.2f}")


def replicas(device: str) -> None:
    task = g3nn.load("cora")
    for R in (1, 2, 4, 8, 16, 32) if device == "cpu" else (1, 3, 10, 30, 100, 300, 1000):
        stack = make_stack(task, "lsm-gcn", R, device)
        run_stack(stack, 50 if device == "cuda" else 3)
        count = 100 if device == "cuda" else max(5, 60 // R)
        seconds = timed(lambda stack=stack, count=count: run_stack(stack, count), count, device)
        print(f"R = {R:4}: {1e6 * seconds / R:9.1f} microseconds per replica and epoch", flush=True)


def roofline(device: str) -> None:
    """Cora lsm-gcn: parameters, gradients and moments pass once through Adam; activations are written and read once,
    forwards and backwards; each product reads the indices of both sparse matrices once. Nothing is read twice."""
    task = g3nn.load("cora")
    n, d, K, h, u = task.num_nodes, task.num_features, task.num_classes, 16, 8
    parameters = 2 * (d * h + h * K) + d * u
    activations = 2 * (2 * n * h + 2 * n * K) + n * u + 4 * task.num_edges
    R = 300 if device == "cuda" else 10
    shared = 8 * (7 * task.features.nnz + 6 * (2 * task.num_edges + n))
    per_replica = 4 * (7 * parameters + 2 * parameters + 4 * activations)
    must_move = R * per_replica + shared
    block = torch.empty(2**28 if device == "cuda" else 2**26, device=device)
    other = torch.empty_like(block)
    best = min(timed(lambda: other.copy_(block), 1, device) for _ in range(10))
    bandwidth = 2 * block.numel() * 4 / best
    stack = make_stack(task, "lsm-gcn", R, device)
    run_stack(stack, 50 if device == "cuda" else 3)
    count = 200 if device == "cuda" else 10
    seconds = timed(lambda: run_stack(stack, count), count, device)
    floor = must_move / bandwidth
    print(f"{R} replicas must move {must_move / 1e6:.0f} MB per epoch; copies run at {bandwidth / 1e9:.0f} GB/s")
    each = f"floor {1e6 * floor / R:.1f}, measured {1e6 * seconds / R:.1f}"
    print(f"microseconds per replica and epoch: {each}: {floor / seconds:.0%} of the bandwidth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("edges").add_argument("--largest", type=int, default=10**7)
    commands.add_parser("one-size").add_argument("size", type=int)
    for name in ("replicas", "roofline"):
        default = "cuda" if torch.cuda.is_available() else "cpu"
        commands.add_parser(name).add_argument("--device", default=default, choices=("cpu", "cuda"))
    arguments = parser.parse_args()
    if arguments.command == "edges":
        edges(arguments.largest)
    elif arguments.command == "one-size":
        print(json.dumps(one_size(arguments.size)))
    else:
        {"replicas": replicas, "roofline": roofline}[arguments.command](arguments.device)


if __name__ == "__main__":
    main()
