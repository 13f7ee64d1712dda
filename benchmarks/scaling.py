"""How time and memory grow with edges and replicas, and how close we are to the memory bandwidth.

python benchmarks/scaling.py edges --out F [--largest 10000000] [--device cuda]   # sbm-gcn, and a GCN in plain PyG
python benchmarks/scaling.py shapes --out F [--only products] [--device cuda]     # graphs of the shape of known ones
python benchmarks/scaling.py replicas [--device cuda]       # time per replica and epoch, Cora lsm-gcn
python benchmarks/scaling.py roofline [--device cuda]       # bytes that must move, and how fast they move
python benchmarks/scaling.py drawing scale.json scale.svg   # what `edges` found

Graphs are synthetic, and an epoch is full batch with evaluation. Records go to a file, and what is there already is not
measured again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from records import Record, records_to_extend, stored, write_records
from scaling_case import PLAIN
from speed import make_stack, run_stack, timed
from svg import Panel, curves

import g3nn
from g3nn.base.errors import G3NNError, Problems
from g3nn.base.folders import replacing

SHAPES: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "products": (
        {"nodes": 2_449_029, "edges": 61_859_140, "features": 100, "classes": 47},
        ("sbm-gcn", "sbm-sage", "sbm-gat", "gcn", PLAIN),
    ),
    "billion": ({"nodes": 10**8, "edges": 10**9, "features": 64, "classes": 5, "pairs": 10**7}, ("sbm-gcn",)),
}
"""Sizes, and the models that are measured on them."""

FOUND = ("seconds_per_epoch", "peak_gib")
DRAWN = {
    "seconds for an epoch, one GPU": ("cuda", "seconds_per_epoch"),
    "GiB, one GPU": ("cuda", "peak_gib"),
    "seconds for an epoch, CPU": ("cpu", "seconds_per_epoch"),
}
"""What is drawn, and where it is found."""


def key(record: Record) -> tuple[Any, ...]:
    """What tells a record from the others; a record without it is damaged."""
    return record["what"], record["model"], record["device"], record["wanted"]


def growing(largest: int) -> list[dict[str, int]]:
    """One node for ten edges, from ten thousand edges on."""
    sizes = [10**power for power in range(4, 12) if 10**power <= largest]
    return [{"nodes": edges // 10, "edges": edges, "features": 64, "classes": 5} for edges in sizes]


def measure(what: str, sizes: dict[str, int], model: str, device: str) -> Record:
    case = Path(__file__).with_name("scaling_case.py")
    command = [sys.executable, str(case), json.dumps({**sizes, "model": model, "device": device})]
    done = subprocess.run(command, capture_output=True, text=True)
    record = {"what": what, "wanted": sizes["edges"], "model": model, "device": device, **sizes}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return {**record, "status": f"failed: {lines[-1]}"}
    return {**record, **json.loads(done.stdout.splitlines()[-1])}


def measure_all(out: Path | None, cases: list[tuple[str, dict[str, int], str]], device: str) -> list[Record]:
    """The records of these cases, measured unless they are in the file."""
    problems = Problems()
    records = records_to_extend(out, key, problems)
    problems.raise_if_any()
    assert out is not None
    chosen = []
    for what, sizes, model in cases:
        wanted = (what, model, device, sizes["edges"])
        found = [record for record in records if key(record) == wanted]
        if not found:
            found = [measure(what, sizes, model, device)]
            records += found
            write_records(out, records)
        print(line(found[0]), flush=True)
        chosen += found
    return chosen


def line(record: Record) -> str:
    title = f"{record['what']:9} {record['edges']:>11} edges, {record['nodes']:>9} nodes, {record['model']:9}"
    if record["status"] != "done":
        return f"{title}: {record['status']}"
    seconds, memory = (record[name] for name in FOUND)
    return f"{title}: {1e3 * seconds:9.1f} ms per epoch, {memory:6.2f} GiB, made in {record['seconds_to_make']:.1f} s"


def exponent(rows: list[Record], value: str) -> float:
    """Slope of log(value) against log(edges), least squares."""
    x, y = (np.log([row[name] for row in rows]) for name in ("edges", value))
    return float(np.polyfit(x, y, 1)[0])


def edges(out: Path | None, largest: int, device: str) -> None:
    models = ("sbm-gcn", PLAIN)
    records = measure_all(out, [("edges", sizes, model) for sizes in growing(largest) for model in models], device)
    for model in models:
        # From 10^5 edges on; below that, fixed costs make the exponent look better.
        rows = [row for row in records if row["model"] == model and row["wanted"] >= 10**5 and row["status"] == "done"]
        if len(rows) > 1:
            time, memory = (exponent(rows, value) for value in FOUND)
            print(f"{model}, exponents from 10^5 edges on: time {time:.2f}, memory {memory:.2f}")


def drawing(records: list[Record]) -> str:
    """An SVG: time and memory against edges, from 10^5 on."""
    panels = []
    for title, (device, value) in DRAWN.items():
        lines: dict[str, tuple[list[float], list[float]]] = {"sbm-gcn": ([], []), PLAIN: ([], [])}
        for row in sorted(records, key=lambda row: row["wanted"]):
            if (
                row["what"] == "edges"
                and row["device"] == device
                and row["wanted"] >= 10**5
                and row["status"] == "done"
            ):
                across, up = lines[row["model"]]
                across.append(np.log10(row["wanted"]))
                up.append(np.log10(row[value]))
        panels.append(Panel(title, lines, powers=True))
    return curves("Time and memory of an epoch against edges, ten for each node", panels, "sbm-gcn")


def shapes(out: Path | None, only: str | None, device: str) -> None:
    chosen = {only: SHAPES[only]} if only else SHAPES
    measure_all(out, [(what, sizes, model) for what, (sizes, models) in chosen.items() for model in models], device)


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
    default = "cuda" if torch.cuda.is_available() else "cpu"
    for name in ("edges", "shapes", "replicas", "roofline"):
        commands.add_parser(name).add_argument("--device", default=default, choices=("cpu", "cuda"))
    for name in ("edges", "shapes"):
        commands.choices[name].add_argument("--out", type=Path)
    commands.choices["edges"].add_argument("--largest", type=int, default=10**7)
    commands.choices["shapes"].add_argument("--only", choices=tuple(SHAPES))
    commands.add_parser("drawing").add_argument("records", type=Path)
    commands.choices["drawing"].add_argument("svg", type=Path)
    given = parser.parse_args()
    try:
        if given.command == "drawing":
            text = drawing(stored(given.records, "records", key))
            with replacing(given.svg) as draft:
                draft.write_text(text, encoding="utf-8")
        elif given.command == "edges":
            edges(given.out, given.largest, given.device)
        elif given.command == "shapes":
            shapes(given.out, given.only, given.device)
        else:
            {"replicas": replicas, "roofline": roofline}[given.command](given.device)
    except G3NNError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
