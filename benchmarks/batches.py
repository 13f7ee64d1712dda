"""Training in batches: the time of an epoch, accuracies beside those of the whole graph, features larger than memory.

    python benchmarks/batches.py epoch --device cuda --out batches.json     # a graph of the shape of ogbn-products
    python benchmarks/batches.py accuracy --graphs DIR --out batches.json   # Pubmed, amazon_photo, 10^6 drawn nodes
    python benchmarks/batches.py disk --folder DIR --out batches.json       # 20 GB of features in a file
    python benchmarks/batches.py memory --out batches.json                  # a graph that stays in memory
    python benchmarks/batches.py --table batches.json

- epoch: 2.45 M nodes, 61.9 M edges, 100 features, 47 classes, 200,000 training nodes; SAGE of three layers with 256
  units, batches of 1,024, at most 15, 10 and 5 neighbours, and the same as posterior of `sbm-sage`. Validation, of
  39,000 nodes, is timed apart.
- accuracy: 20 labels of each class on Pubmed (public split), amazon_photo and a drawn graph of 10^6 nodes and 10^7
  edges; features of a node sum to 1 in the first two. Batches of 256, by how many neighbours are drawn.
- disk: 10 M nodes with 500 features each; the most memory that the process ever had, mapped pages included.
- memory: 10 M nodes, 100 M edges, 64 features; the time and memory that it takes to find the neighbours of all nodes,
  and the time of a batch of 1,024 labelled nodes, drawn by the CPU.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch
from any_graph import load
from records import Record, records_to_extend, stored, write_records

import g3nn
from g3nn.base.errors import Problems
from g3nn.graph.task import NodeTask
from g3nn.model.generative import ModelSpec
from g3nn.model.objective import Objective
from g3nn.model.replicas import Noise, Replicas, Sizes
from g3nn.training.batch_stack import BatchStack
from g3nn.training.batches.source import BatchSource
from g3nn.training.options import TrainingOptions

PRODUCTS = {"nodes": 2_450_000, "degree": 2 * 61.86e6 / 2.45e6, "features": 100, "classes": 47, "val": 39_000}
LABELLED = 200_000
BATCH, FAN_OUT, HIDDEN, LAYERS = 1024, "15/10/5", 256, 3


def epoch(device: str, shape: dict[str, float], labelled: int, epochs: int) -> Iterator[Record]:
    place = torch.device(device)
    task = g3nn.synthetic(**shape, labels_per_class=labelled // shape["classes"])  # type: ignore[arg-type]
    for name in ("sage", "sbm-sage"):
        options = {"hidden": HIDDEN, "layers": LAYERS}
        replicas = Replicas((0,))
        model = ModelSpec.parse(name).build(Sizes.of(task), replicas, options)
        fan_out = tuple(int(most) for most in FAN_OUT.split("/"))
        source = BatchSource(task, task.outcome_model(), fan_out, place)
        training = TrainingOptions(epochs=10**9, patience=10**9, batch=BATCH, fan_out=FAN_OUT)
        stack = BatchStack(model, Objective.elbo(), source, replicas, training)
        learn, check = [], []
        for turn in range(1 + epochs):
            begun = _now(place)
            stack._learn(turn)
            learned = _now(place)
            with torch.no_grad():
                _, score = stack._validated()
            stack.epoch += 1
            if turn:
                learn.append(learned - begun)
                check.append(_now(place) - learned)
        memory = torch.cuda.max_memory_allocated() if place.type == "cuda" else _peak()
        sizes = {"nodes": task.num_nodes, "edges": task.num_edges, "labelled": len(task.train)}
        seconds = {"seconds": float(np.median(learn)), "validation_seconds": float(np.median(check))}
        found = {"gib": memory / 2**30, "val_accuracy": float(score), "batch": BATCH, "fan_out": FAN_OUT}
        yield {"what": "epoch", "model": name, "device": device, **sizes, **seconds, **found}


def _now(place: torch.device) -> float:
    if place.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def accuracy(
    name: str, task: NodeTask, model: str, fan_outs: list[str], device: str, seeds: int, epochs: int
) -> Iterator[Record]:
    """Test accuracies of the whole graph in every step, and of batches of 256 labels, if there are so many."""
    options = {"epochs": epochs, "trials": seeds, "device": device, "hidden": 64}
    sizes = {"nodes": task.num_nodes, "edges": task.num_edges, "seeds": seeds, "epochs": epochs}
    for fan_out in ["whole", *fan_outs]:
        found = g3nn.fit(task, model, **options, **({} if fan_out == "whole" else {"batch": 256, "fan_out": fan_out}))
        test = found.test_score
        scores = {"accuracy": float(test.mean()), "deviation": float(test.std(ddof=1)) if seeds > 1 else 0.0}
        case = {"what": "accuracy", "graph": name, "model": model, "device": device, "fan_out": fan_out}
        yield {**case, **sizes, **scores, "val_accuracy": float(found.val_score.mean()), "seconds": found.seconds}


def graph_of(name: str, folder: Path | None, nodes: int) -> NodeTask:
    if name == "synthetic":
        return g3nn.synthetic(nodes=nodes, degree=20, classes=10, features=32, homophily=0.3, signal=1.5, val=500)
    task = load(name, "public" if name == "pubmed" else "20", 0, folder)
    sums = np.asarray(task.features.sum(1)).ravel()
    rows = sp.diags_array(1 / np.where(sums > 0, sums, 1)) @ task.features
    return replace(task, features=sp.csr_array(rows).astype(np.float32))


def disk(folder: Path, nodes: int, features: int, epochs: int) -> Record:
    drawn = g3nn.synthetic(nodes=nodes, classes=5, degree=4, features=1, labels_per_class=200, val=1000, test=10_000)
    path = folder / "features.npy"
    try:
        _write_features(path, drawn.labels, features)
        task = NodeTask.build(path, drawn.edges, drawn.labels, drawn.train, drawn.val, drawn.test)
        size = path.stat().st_size
        del drawn
        found = g3nn.fit(task, "sbm-sage", epochs=epochs, batch=500, fan_out="10/5", device="cpu")
    finally:
        path.unlink(missing_ok=True)
    sizes = {"nodes": nodes, "edges": task.num_edges, "features": features, "epochs": epochs}
    measured = {"file_gb": size / 1e9, "gib": _peak() / 2**30, "seconds": found.seconds}
    return {"what": "disk", "model": "sbm-sage", **sizes, **measured, "accuracy": float(found.test_score[0])}


def memory(nodes: int, batches: int = 20) -> Record:
    task = g3nn.synthetic(nodes=nodes, degree=20, classes=10, features=64, labels_per_class=BATCH, val=100)
    fan_out = tuple(int(most) for most in FAN_OUT.split("/"))
    begun, before = time.perf_counter(), _peak()
    source = BatchSource(task, task.outcome_model(), fan_out, torch.device("cpu"))
    built = time.perf_counter() - begun
    labelled = torch.from_numpy(task.train[:BATCH])
    seconds = []
    for turn in range(1 + batches):
        begun = time.perf_counter()
        source.labelled(labelled, Noise(torch.tensor([7]), turn))
        seconds.append(time.perf_counter() - begun)
    graph = {"nodes": task.num_nodes, "edges": task.num_edges, "edge_gb": task.edges.nbytes / 1e9}
    rows = source.rows.pattern
    found = {"rows_gb": (rows.rowptr.nbytes + rows.col.nbytes) / 1e9, "seconds_to_build": built, "gib": _peak() / 2**30}
    return {
        **{"what": "memory", "model": "none", "device": "cpu", "cores": os.cpu_count(), "fan_out": FAN_OUT},
        **{**graph, **found, "gib_before": before / 2**30},
        "seconds_to_draw": float(np.median(seconds[1:])),
    }


def _write_features(path: Path, labels: np.ndarray, features: int) -> None:
    """A faint centre for each class and noise, some rows at a time."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((labels.max() + 1, features), dtype=np.float32) / 10
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(labels), features)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(labels), 100_000):
            part = labels[start : start + 100_000]
            file.write((centres[part] + rng.standard_normal((len(part), features), dtype=np.float32)).tobytes())


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def key_of(record: Record) -> tuple[str, ...]:
    return tuple(str(record.get(name)) for name in ("what", "graph", "model", "device", "nodes", "fan_out"))


def table(records: list[Record]) -> str:
    lines = []
    for one in records:
        named = [
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in one.items()
        ]
        lines.append("- " + ", ".join(named[1:]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("epoch", "accuracy", "disk", "memory"))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--graphs", type=Path, metavar="DIR", help="a folder of .npz files")
    parser.add_argument("--folder", type=Path, default=Path(), help="where there is room for the file")
    parser.add_argument("--only", nargs="+", default=["pubmed", "amazon_photo", "synthetic"], metavar="GRAPH")
    parser.add_argument("--models", nargs="+", default=["gcn", "sbm-gcn"])
    parser.add_argument("--fan-outs", nargs="+", default=["15/10", "0/0"], metavar="M/M", help="0 takes all neighbours")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--nodes", type=int, help="instead of those above")
    parser.add_argument("--features", type=int, default=500, help="of a node in the file")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file of records, written after every one")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print stored records instead of measuring")
    given = parser.parse_args()
    if given.table is not None:
        print(table(stored(given.table, "--table", key_of)))
        return
    problems = Problems()
    done = records_to_extend(given.out, key_of, problems)
    problems.raise_if_any()

    def keep(record: Record) -> None:
        done[:] = [one for one in done if key_of(one) != key_of(record)] + [record]
        print(table([record]), flush=True)
        write_records(given.out, done)

    if given.what == "epoch":
        shape = PRODUCTS if given.nodes is None else {**PRODUCTS, "nodes": given.nodes, "degree": 10.0, "val": 100}
        for record in epoch(given.device, shape, LABELLED * shape["nodes"] // PRODUCTS["nodes"], min(given.epochs, 3)):
            keep(record)
    elif given.what == "accuracy":
        for name in given.only:
            task = graph_of(name, given.graphs, given.nodes or 10**6)
            for model in given.models:
                for record in accuracy(name, task, model, given.fan_outs, given.device, given.seeds, given.epochs):
                    keep(record)
    elif given.what == "disk":
        keep(disk(given.folder, given.nodes or 10**7, given.features, min(given.epochs, 20)))
    elif given.what == "memory":
        keep(memory(given.nodes or 10**7))
    else:
        parser.error("say what to measure: epoch, accuracy, disk or memory")


if __name__ == "__main__":
    main()
