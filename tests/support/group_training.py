"""What the processes do in tests/integration/test_many_processes.py.

Each of those that torchrun started trains, and writes what it found.
Arguments: a folder for the findings, and a folder for checkpoints. With KILLED=1, the second process kills itself in
the first of its lives, in the middle of the training.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

import g3nn
from g3nn.training.batch_stack import BatchStack
from g3nn.training.workers import Workers, joined_by_torchrun

OPTIONS: dict[str, Any] = {"epochs": 12, "device": "cpu", "batch": 10, "fan_out": "4/3", "hidden": 8, "seed": 3}
STEPS: list[int] = []


def make_task() -> g3nn.NodeTask:
    return g3nn.synthetic(nodes=300, classes=3, degree=8, features=12, labels_per_class=15, val=50, seed=1)


def refusals(task: g3nn.NodeTask, folder: Path) -> list[str]:
    """What is said about trainings that cannot be."""
    wrong: list[dict[str, Any]] = [
        {"batch": 50},
        {"checkpoint": folder, "hidden": 9},
        {"checkpoint": folder / "absent" / "inner"},
    ]
    found = []
    for changes in wrong:
        try:
            g3nn.fit(task, "sbm-gcn", **{**OPTIONS, **changes})
        except g3nn.InputError as error:
            found.append(str(error))
    return found


def count_steps(rank: int) -> None:
    """Note the epoch of every step; one process ends without a word if it is to."""
    step, first_life = BatchStack.step, os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"

    def counted(self: BatchStack) -> None:
        if self.epoch == 7 and rank == 1 and first_life and os.environ.get("KILLED"):
            os.kill(os.getpid(), signal.SIGKILL)
        STEPS.append(self.epoch)
        step(self)

    BatchStack.step = counted  # type: ignore[method-assign]


def loaded_by_ray(folder: Path) -> g3nn.NodeTask:
    """The task; but the second process that reads it will be killed in the middle of the first training."""
    step, rank, mark = BatchStack.step, Workers.current().rank, folder / "killed"

    def deadly(self: BatchStack) -> None:
        with (folder / f"steps-{rank}").open("a") as file:
            file.write(f"{self.epoch} ")
        if self.epoch == 7 and rank == 1 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        step(self)

    BatchStack.step = deadly  # type: ignore[method-assign]
    return make_task()


def main(out: Path, folder: Path) -> None:
    task = make_task()
    with joined_by_torchrun("cpu") as workers:
        count_steps(workers.rank)
        result = g3nn.fit(task, "sbm-gcn", **OPTIONS, checkpoint=folder, checkpoint_every=0)
        steps = list(STEPS)
        arrays, said = {"answers": result.answers.numpy(), "history": result.history}, []
        if not os.environ.get("KILLED"):
            said = refusals(task, folder)
            # Its model of the graph has parameters without a gradient.
            edgeless = task.with_edges(np.zeros(task.num_edges, dtype=bool))
            arrays["bare"] = g3nn.fit(edgeless, "lsm-gcn", **{**OPTIONS, "epochs": 2}).answers.numpy()
    np.savez(out / f"rank-{workers.rank}.npz", **arrays)
    (out / f"rank-{workers.rank}.json").write_text(json.dumps({"steps": steps, "refusals": said}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
