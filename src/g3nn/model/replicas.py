"""R replicas of one architecture: their seeds, their initial parameters and their noise.

Everything random about a replica depends only on its own seed and the step, never on the other replicas of the stack.
So a stack of ten gives the same results as ten separate trainings, replicas can leave early, and stacks can be split.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from g3nn.graph.outcomes import Outcome
from g3nn.graph.outcomes.classes import Classes
from g3nn.graph.task import NodeTask
from g3nn.kernels import Draw, dropout, uniform_bits, uniform_integers

Scalar = float | Sequence[float]
"""A hyper-parameter that may differ between the replicas of a stack: one number for all, or one for each replica."""

_DRAWS_PER_PAGE = 256
"""How many draws of a step have consecutive numbers; the numbers after them belong to the next step."""
_FURTHER_PAGES = 1 << 40
"""Where further draws of a step, as a deep network may need, are numbered: beyond the first pages of all steps."""


@dataclass(frozen=True)
class Sizes:
    """What a component must know about the task: d features, K classes (or T numbers), whether edges are directed.

    kind: the outcome, by default classes. nodes: n, for posteriors with parameters for each node. types: by type of
    edges, if there are several, whether they are directed. marked: whether columns say something about edges.
    """

    features: int
    classes: int
    directed: bool = False
    kind: Outcome | None = None
    nodes: int = 0
    types: tuple[tuple[str, bool], ...] = ()
    marked: bool = False

    @classmethod
    def of(cls, task: NodeTask, options: Mapping[str, object] | None = None) -> Sizes:
        """The sizes of a task; `options` may contain those of its outcome."""
        batched = options is not None and bool(options.get("batch"))  # There edges are drawn whatever they hold.
        types = () if task.relations is None or batched else task.relations.directions
        outcome = task.outcome_model(options)
        marked = task.marks is not None and not batched and outcome.exclusive
        return cls(task.num_features, task.num_classes, task.directed, outcome, task.num_nodes, types, marked)

    @property
    def outcome(self) -> Outcome:
        return self.kind or Classes(self.classes)

    @property
    def scores(self) -> int:
        """The number of scores that a network computes for each node."""
        return self.outcome.num_scores


@dataclass(frozen=True)
class Replicas:
    """The seeds of a stack, and initial parameters drawn from them, each with a leading dimension R.

    most: how many numbers a parameter may have, where sizes come from a file that may ask for anything.
    """

    seeds: tuple[int, ...]
    scope: str = ""
    most: int | None = None

    @property
    def size(self) -> int:
        return len(self.seeds)

    def within(self, scope: str) -> Replicas:
        """The same replicas with an independent random stream, named after the component that uses it."""
        return replace(self, scope=f"{self.scope}/{scope}")

    def _check(self, shape: tuple[int, ...]) -> None:
        if self.most is not None and math.prod((self.size, *shape)) > self.most:
            raise ValueError(f"a parameter of shape {(self.size, *shape)}; none has more than {self.most} numbers")

    def _uniform(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """(R, *shape) uniform in [0, 1). numpy uses the whole seed, torch's CPU generator only 32 bits of it."""
        self._check(shape)
        stream = zlib.crc32(f"{self.scope}/{name}".encode())
        generators = (np.random.default_rng([seed % 2**64, stream]) for seed in self.seeds)
        return torch.from_numpy(np.stack([generator.random(shape, dtype=np.float32) for generator in generators]))

    def glorot(self, name: str, fan_in: int, fan_out: int, *shape: int) -> torch.nn.Parameter:
        """(R, fan_in, fan_out), or (R, *shape) if given: uniform with variance 2 / (fan_in + fan_out)."""
        bound = math.sqrt(6.0 / (fan_in + fan_out))
        return torch.nn.Parameter((2 * self._uniform(name, shape or (fan_in, fan_out)) - 1) * bound)

    def zeros(self, *shape: int) -> torch.nn.Parameter:
        self._check(shape)
        return torch.nn.Parameter(torch.zeros(self.size, *shape))

    def scalar(self, value: Scalar) -> Tensor:
        """(R,): from one number for all replicas, or a sequence with one for each."""
        values = torch.as_tensor(value, dtype=torch.float32)
        return values.expand(self.size).clone()


class Noise:
    """The randomness of one training step: an independent stream for every draw, reproducible from (seeds, step).

    seeds: (R,) int64, on the device of the computation. step: an int, or a 0-d tensor if it must stay on the device.
    """

    def __init__(self, seeds: Tensor, step: int | Tensor) -> None:
        self.seeds = seeds
        self.step = step
        self._counters: Any
        if isinstance(step, Tensor):
            # All counters of the step at once: one at a time, each would cost a kernel launch.
            self._counters = step * _DRAWS_PER_PAGE + torch.arange(_DRAWS_PER_PAGE, device=step.device)
        else:
            self._counters = range(step * _DRAWS_PER_PAGE, (step + 1) * _DRAWS_PER_PAGE)
        self._used = 0

    def next_counter(self) -> int | Tensor:
        """The number of the next draw."""
        self._used += 1
        page, place = divmod(self._used, _DRAWS_PER_PAGE)
        counter: int | Tensor = self._counters[place]
        return counter + page * _FURTHER_PAGES if page else counter

    def draw(self, rate: float) -> Draw:
        return Draw(self.seeds, self.next_counter(), rate)

    def dropout(self, x: Tensor, rate: float) -> Tensor:
        """Dropout on x (R, ...), independent for every replica."""
        return dropout(x, self.draw(rate)) if rate > 0 else x

    def integers(self, high: int, count: int) -> Tensor:
        """(R, count) int64, uniform in 0 .. high - 1."""
        return uniform_integers(self.seeds, self.next_counter(), high, count)

    def normal(self, like: Tensor) -> Tensor:
        """(R, ...) standard normal numbers in the shape of `like`, by the inverse of the distribution function."""
        bits = uniform_bits(self.seeds, self.next_counter(), like[0].numel())
        return torch.special.ndtri((bits.double() + 0.5) * 2.0**-32).to(like.dtype).view_as(like)


def optional_dropout(noise: Noise | None, x: Tensor, rate: float) -> Tensor:
    """Dropout in training, where there is noise; x itself at evaluation."""
    return x if noise is None else noise.dropout(x, rate)


def optional_draw(noise: Noise | None, rate: float) -> Draw | None:
    """A draw for dropout inside another operation, or None if nothing is dropped."""
    return None if noise is None or rate == 0 else noise.draw(rate)
