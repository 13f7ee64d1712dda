"""Checkpoints: what a training needs to go on after an interruption, in one file that is replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from g3nn.base.errors import DataError, G3NNError, Problems, refuse, warn_caller
from g3nn.base.folders import replacing, tidy, try_writing
from g3nn.graph.task import NodeTask
from g3nn.training.stack import Stack
from g3nn.training.workers import Workers

EVERY = 60.0
"""Seconds between two checkpoints, at least."""
_FORMAT = "g3nn checkpoint 2"
_PIECES, _LENGTH = 64, 1 << 18
"""How many pieces of a large array enter a digest, spread evenly, and the length of each."""


@dataclass
class Checkpoints:
    """The last state of each replica of a training, in a folder. The first process reads and writes for all.

    training: what must be alike for a training to go on, by its name. every: seconds between two states, at least.
    """

    folder: Path
    training: dict[str, object]
    every: float = EVERY
    workers: Workers = field(default_factory=Workers.current)
    _written: float = field(default_factory=time.monotonic)
    _warned: bool = False

    def resume(self, stack: Stack, replica: int) -> None:
        """Go on where the replica was, if it has a checkpoint."""
        if state := self.workers.told(lambda: self._read(replica)):
            stack.resume(state)

    def save(self, stack: Stack, replica: int) -> None:
        """Write the state after an epoch, if it is time to."""
        if not self.workers.leads or time.monotonic() - self._written < self.every:
            return
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in stack.state().items()}
        content = save(tensors, {"format": _FORMAT, "training": json.dumps(self.training)})
        try:
            with replacing(self._file(replica)) as draft:
                draft.write_bytes(content)
        except DataError as error:
            if not self._warned:
                text = f"{error} Training goes on, and the last checkpoint that was written stays"
                warn_caller(text)
            self._warned = True
        self._written = time.monotonic()

    def _file(self, replica: int) -> Path:
        return self.folder / f"replica-{replica}.safetensors"

    def _read(self, replica: int) -> dict[str, Tensor] | None:
        file = self._file(replica)
        tidy(file)
        if not file.exists():
            return None
        try:
            with safe_open(file, "pt") as stored:
                about = stored.metadata() or {}
                if about.get("format") != _FORMAT:
                    raise DataError(f"{file}: no checkpoint of this version. Delete it, or name another folder.")
                self._compare(json.loads(about["training"]))
                return {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 - no mapping
        except G3NNError:
            raise
        except (AttributeError, LookupError, OSError, RecursionError, SafetensorError, TypeError, ValueError) as error:
            raise DataError(f"{file}: cannot be read: {error}. Delete it to begin anew.") from None

    def _compare(self, stored: Mapping[str, object]) -> None:
        """Refuse a checkpoint of another training, and say what differs."""
        now = json.loads(json.dumps(self.training))
        names = [name for name in {**stored, **now} if stored.get(name) != now.get(name)]
        if not names:
            return
        differ = ", ".join(f"{name} {_shown(stored.get(name))} (now {_shown(now.get(name))})" for name in names)
        advice = "Start it as it was started before, or name another folder to begin anew."
        given = f"{self.folder}, which holds a training with {differ}"
        refuse("checkpoint", given, "the same training", advice)


def check_folder(folder: str | Path, every: object) -> None:
    """Make the folder, unless it is there, and try to write into it."""
    with Problems() as problems:
        if not isinstance(every, int | float) or isinstance(every, bool) or not every >= 0:
            problems.add("checkpoint_every", repr(every), "a number of seconds, at least 0")
        path = Path(folder)
        try:
            path.mkdir(exist_ok=True)
            try_writing(path)
        except FileNotFoundError:
            problems.add("checkpoint", path, "a folder inside one that exists")
        except OSError as error:
            problems.add("checkpoint", f"{path}: {error.strerror}", "a folder that can be written")


def described(task: NodeTask) -> dict[str, object]:
    """What distinguishes a task from others."""
    sizes = {"nodes": task.num_nodes, "edges": task.num_edges, "features": task.num_features}
    split = {"training nodes": len(task.train), "validation nodes": len(task.val)}
    return {**sizes, "classes or columns": task.num_classes, **split, "digest of the data": _digest(task)}


def _digest(task: NodeTask) -> str:
    digest = hashlib.sha256()
    x = task.features
    features = (x.indptr, x.indices, x.data) if sp.issparse(x) else (x,)
    marks = () if task.marks is None else (task.marks.values, task.marks.pairs, task.marks.types)
    parts = (*features, task.edges, task.labels, task.train, task.val, task.weights, task.beliefs, *marks)
    for array in (part for part in parts if part is not None):
        flat = array.ravel(order="K")
        for start in np.unique(np.linspace(0, max(flat.size - _LENGTH, 0), _PIECES).astype(np.int64)):
            digest.update(flat[start : start + _LENGTH].tobytes())
    return digest.hexdigest()[:16]


def _shown(value: object) -> str:
    return "not set" if value is None else str(value)
