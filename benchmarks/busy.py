"""Small fits beside busy processes: does a machine with other work slow us down by more than our share of it?

    python benchmarks/busy.py [--quick] [--json]

Two fixed trainings in a process of their own: a table-like graph of 120 nodes, and Cora
with gcn and sbm-gcn. Each runs with 0, 1 and 2 other processes that only count. With b of them on c cores, a fair share
is max(1, (b + 1) / c) times the time without; a figure is the least time of several rounds divided by that. Everything
alternates within one run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

BUSY = (0, 1, 2)
TARGET = 1.5
_COUNT = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(10000))"
"""Until its parent is gone, however that ended."""


def trainings(quick: bool) -> dict[str, list[tuple[object, str, int]]]:
    """Task, model and epochs of what is timed together."""
    import numpy as np

    import g3nn

    rng = np.random.default_rng(0)
    labels = np.arange(120) % 3
    edges = np.stack([rng.integers(120, size=300), rng.integers(120, size=300)])
    edges = edges[:, edges[0] != edges[1]]
    features = rng.normal(size=(120, 12)) + labels[:, None]
    table = g3nn.NodeTask.build(features, edges, labels, np.arange(30), np.arange(30, 60), num_classes=3)
    cora, count = g3nn.load("cora"), 50 if quick else 150
    return {
        "120 nodes": [(table, model, 2 * count) for model in ("mlp", "gcn", "sbm-gcn")],
        "cora": [(cora, model, count // 4) for model in ("gcn", "sbm-gcn")],
    }


def worker(quick: bool) -> None:
    """Times a case whenever a line asks for it."""
    import g3nn

    warnings.simplefilter("ignore")
    cases = trainings(quick)
    # The first time all of them run, so that nothing is compiled while the clock runs.
    for asked in chain([""], (line.strip() for line in iter(sys.stdin.readline, ""))):
        start = time.perf_counter()
        for task, model, epochs in cases[asked] if asked else [one for case in cases.values() for one in case]:
            g3nn.fit(task, model, trials=5, epochs=epochs, patience=epochs, device="cpu", progress=False)
        print(json.dumps({"seconds": time.perf_counter() - start, "cases": list(cases)}), flush=True)


@contextmanager
def busy(count: int) -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", _COUNT]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(rounds: int, quick: bool) -> dict[str, dict[str, float]]:
    """Seconds by case and number of busy processes."""
    command = [sys.executable, __file__, "--worker", *(["--quick"] if quick else [])]
    fitting = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert fitting.stdin is not None
    assert fitting.stdout is not None
    cases = json.loads(fitting.stdout.readline())["cases"]
    seconds: dict[str, dict[str, float]] = {case: {} for case in cases}
    for _ in range(rounds):
        for count in BUSY:
            with busy(count):
                for case in cases:
                    print(case, file=fitting.stdin, flush=True)
                    taken = json.loads(fitting.stdout.readline())["seconds"]
                    seconds[case][str(count)] = min(taken, seconds[case].get(str(count), taken))
                    print(f"  {case}, {count} busy: {taken:.2f} s", file=sys.stderr, flush=True)
    fitting.stdin.close()
    fitting.wait()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and epochs")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker(given.quick)
        return
    from g3nn.base.threads import cores

    seconds = measure(2 if given.quick else 5, given.quick)
    fair = {str(count): max(1.0, (count + 1) / cores()) for count in BUSY}
    ratios = {
        case: {count: round(taken / (times["0"] * fair[count]), 2) for count, taken in times.items() if count != "0"}
        for case, times in seconds.items()
    }
    free = {case: round(times["0"], 3) for case, times in seconds.items()}
    if given.json:
        print(json.dumps({"cores": cores(), "target": TARGET, "free_seconds": free, "ratios": ratios}))
        return
    for case, own in ratios.items():
        cells = ", ".join(f"{count} busy: {ratio:.2f}" for count, ratio in own.items())
        print(f"{case:10} free {free[case]:.2f} s; times the fair share: {cells}")


if __name__ == "__main__":
    main()
