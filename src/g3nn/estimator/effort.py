"""How much a panel tries: three levels of effort, and what it may spend."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from g3nn.graph.task import NodeTask
from g3nn.training.room import LARGE


@dataclass(frozen=True)
class Effort:
    """models: how many of those that an outcome lists are tried. views: of the features, at most; all but the first are
    tried with the `leading` models. varied: how many of the best are tried again with other widths and less
    regularisation. kept: how many train to the end, with `replicas` each. work: how much a CPU does; see `Spending`."""

    views: int
    models: int
    leading: int
    varied: int
    kept: int
    replicas: int
    work: float


EFFORTS = {
    "quick": Effort(views=2, models=5, leading=3, varied=0, kept=3, replicas=1, work=0.55),
    "default": Effort(views=4, models=15, leading=8, varied=4, kept=8, replicas=3, work=2.2),
    "thorough": Effort(views=6, models=99, leading=16, varied=10, kept=14, replicas=5, work=22.0),
}

_WORK = 1e6
"""What a CPU may do on a graph with an extent of 1: a panel takes longer on a larger graph, but not in proportion."""

_FOR_TRAINING = 0.92
"""The share of a budget in which models are trained; the rest is for weights and calibration."""

_EACH_EPOCH = 11_000
"""The extent that an epoch seems to have on a CPU, whatever the graph is like."""

_TRIES = 4
"""On a large graph one training could take all that a CPU may do. So in the share for models there is room for so many
short ones."""

_FEWEST_SHORT, _FEWEST_LONG = 30, 100
"""Epochs that any training may take, short or to the end."""

MODELS, DOUBTED, VIEWS, VARIED, WHOLE = 0.36, 0.42, 0.48, 0.55, 1.0
"""Shares of what may be spent: until all models have been tried once, until the best have been tried with edges that
are doubted, on other views, and varied, and in all."""


@dataclass
class Spending:
    """What trainings have cost, and what may be spent: seconds, or work, or as much as they take.

    Work is epochs of all replicas times the extent of the graph times the price of a model. Other than seconds it does
    not depend on how busy a machine is, so that the same fit takes the same decisions again. A GPU has no limit.
    """

    seconds: float | None = None
    work: float | None = None
    large: bool = False
    start: float = field(default_factory=time.monotonic)
    worked: float = 0.0

    @classmethod
    def of(cls, effort: Effort, budget: float | None, task: NodeTask, on_cpu: bool) -> Spending:
        if budget is not None:
            return cls(seconds=_FOR_TRAINING * float(budget))
        if not on_cpu:
            return cls()
        # Beyond what is large, hours would be spent: there it grows more slowly.
        grown = math.sqrt(min(task.extent, LARGE)) * max(1.0, task.extent / LARGE) ** 0.25
        return cls(work=effort.work * _WORK * grown, large=task.extent > LARGE)

    def short_epochs(self, price: float, task: NodeTask, most: int) -> int:
        """How long a model is tried."""
        return self._epochs(MODELS / _TRIES, price, task, _FEWEST_SHORT, most)

    def long_epochs(self, price: float, task: NodeTask, most: int) -> int:
        """How long a model is trained to the end: on a large graph with what is left."""
        left = WHOLE - self.worked / self.work if self.work else WHOLE
        return self._epochs(left, price, task, _FEWEST_LONG, most)

    def _epochs(self, share: float, price: float, task: NodeTask, fewest: int, most: int) -> int:
        if self.work is None or not self.large:
            return most
        return min(most, max(fewest, int(share * self.work / (price * (task.extent + _EACH_EPOCH)))))

    def charge(self, price: float, epochs: int, task: NodeTask) -> None:
        """For so many epochs, all replicas counted."""
        self.worked += price * epochs * (task.extent + _EACH_EPOCH)

    def allows(self, share: float) -> bool:
        """Whether less than this share of the whole has been spent."""
        if self.seconds is not None:
            return time.monotonic() - self.start < share * self.seconds
        return self.work is None or self.worked < share * self.work

    def deadline(self, share: float = WHOLE) -> float | None:
        """When this share of the time will be over, on the clock of `time.monotonic`."""
        return None if self.seconds is None else self.start + share * self.seconds
