"""Our stacks against plain PyG, interleaved in one process; every figure is a ratio within one run.

    python benchmarks/speed.py [--quick] [--json] [--device cuda] [--only cora/lsm-gcn]

A ratio is the time per epoch of one plain training divided by the time per replica and epoch of a stack of R, the
median over rounds in which the two alternate. Both use the loss of the authors' code and hidden 16, and evaluate after
every epoch. Both are also trained for some epochs, to check that the fast one learns the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable

import torch
from plain_pyg import Plain

import g3nn
from g3nn.model.generative import ModelSpec
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective
from g3nn.model.replicas import Replicas, Sizes
from g3nn.training import Stack, TrainingOptions
from g3nn.training.plan import RELEASED_OPTIONS

CASES = {
    "cpu": {"cora/lsm-gcn": (1, 10), "citeseer/sbm-gat": (1, 10), "pubmed/lsm-gcn": (1, 10)},
    "cuda": {"cora/lsm-gcn": (1, 10, 300), "pubmed/sbm-gat": (1, 10)},
}
SAME = 0.03
"""Largest difference in mean test accuracy that counts as the same; a single trial varies by about 0.01."""


def make_stack(task: g3nn.NodeTask, model: str, R: int, device: str) -> Stack:
    """A stack without early stopping."""
    replicas = Replicas(tuple(range(R)))
    options = {**RELEASED_OPTIONS, "hidden": 16}
    sizes = Sizes(task.num_features, task.num_classes)
    built = ModelSpec.parse(model).build(sizes, replicas, options)
    endless = TrainingOptions(epochs=10**9, patience=10**9)
    return Stack(built, Objective.released(), Inputs.of(task, device), replicas, endless)


def timed(function: Callable[[], object], epochs: int, device: str) -> float:
    """Seconds per epoch."""
    start = time.perf_counter()
    function()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / epochs


def run_stack(stack: Stack, epochs: int) -> int:
    begin = stack.epoch
    while stack.epoch - begin < epochs:
        stack.step()
    return stack.epoch - begin


def compare(name: str, sizes: tuple[int, ...], device: str, rounds: int, epochs: int) -> dict[str, float]:
    """Plain time divided by ours, for each R."""
    dataset, model = name.split("/")
    task = g3nn.load(dataset)
    plain = Plain(task, model, device)
    stacks = {R: make_stack(task, model, R, device) for R in sizes}
    for stack in stacks.values():
        run_stack(stack, 50 if device == "cuda" else 3)
    plain.epoch()
    ratios: dict[int, list[float]] = {R: [] for R in sizes}
    for _ in range(rounds):
        for R, stack in stacks.items():
            reference = timed(lambda: [plain.epoch() for _ in range(epochs)], epochs, device)
            count = epochs if device == "cpu" else 100
            count = -(-count // stack._stride) * stack._stride
            ours = timed(lambda stack=stack, count=count: run_stack(stack, count), count, device)
            ratios[R].append(reference * R / ours)
            note = f"  {name} R={R}: plain {1e3 * reference:.2f} ms, stack {1e3 * ours:.3f} ms per epoch"
            print(f"{note}, ratio {ratios[R][-1]:.1f}", file=sys.stderr, flush=True)
    return {str(R): round(statistics.median(values), 2) for R, values in ratios.items()}


def accuracies(name: str, device: str, epochs: int, seeds: int) -> dict[str, float]:
    """Mean test accuracy of both after the same number of epochs, at the best validation loss."""
    dataset, model = name.split("/")
    task = g3nn.load(dataset)
    options = {"trials": seeds, "hidden": 16, "epochs": epochs, "patience": epochs, "device": device}
    ours = g3nn.fit(task, model, "released", **options).test_accuracy.mean()
    found = []
    for seed in range(seeds):
        plain = Plain(task, model, device, seed=seed)
        for _ in range(epochs):
            plain.epoch()
        found.append(plain.best_test)
    return {"plain": round(statistics.mean(found), 4), "ours": round(float(ours), 4)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and epochs")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", help="one case, such as cora/lsm-gcn")
    arguments = parser.parse_args()
    device = arguments.device
    rounds, epochs = (3, 5 if device == "cpu" else 20) if arguments.quick else (7, 20)
    learning, seeds = (60, 2) if arguments.quick else (200, 3)
    results: dict[str, dict[str, dict[str, float]]] = {"ratios": {}, "accuracy": {}}
    for name, sizes in CASES[device].items():
        if arguments.only in (None, name):
            results["ratios"][name] = compare(name, sizes, device, rounds, epochs)
            results["accuracy"][name] = accuracies(name, device, learning, seeds)
    different = [name for name, both in results["accuracy"].items() if abs(both["plain"] - both["ours"]) > SAME]
    title = torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} threads"
    if arguments.json:
        print(json.dumps({"device": title, **results}))
    else:
        print(f"plain PyG time over ours, per replica and epoch, on {title}")
        for name, ratios in results["ratios"].items():
            both = results["accuracy"][name]
            cells = "  ".join(f"R={R}: {ratio:.1f}x" for R, ratio in ratios.items())
            print(f"  {name:18} {cells}   accuracy after {learning} epochs: plain {both['plain']}, ours {both['ours']}")
    if different:
        raise SystemExit(f"the two do not learn the same: {', '.join(different)}")


if __name__ == "__main__":
    main()
