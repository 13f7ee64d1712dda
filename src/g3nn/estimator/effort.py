"""Effort: how much a search tries, what its training may cost, and what fits into memory."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

from g3nn.base.errors import DeviceMemoryError
from g3nn.graph.task import NodeTask
from g3nn.training.memory import gib
from g3nn.training.plan import Plan
from g3nn.training.room import BATCH, LARGE, how_it_fits, near_labels

_WORK = 1e6
"""The work of a CPU on a graph with an extent of 1: a panel takes longer on a larger graph, but not in proportion."""
_FOR_TRAINING = 0.92
"""The share of a budget in which models are trained; the rest is for weights and calibration."""
_EACH_EPOCH = 11_000
"""The extent that an epoch adds on a CPU, however small the graph is."""
_TRIES = 4
"""On a large graph a single training could use up all the work of a CPU. The share for models is therefore enough for
this number of short ones."""
_FEWEST_SHORT, _FEWEST_LONG = 30, 100
"""Epochs that any training may take, short or to the end."""
SHORT = 150
"""Epochs after which a model that is tried is compared with others."""
MODELS = 0.36
"""The share of the limit until all models have been tried once."""
_COPIES = 3
"""How many times the memory of a whole graph there must be before what lies near labels is held beside it."""


@dataclass
class Effort:
    """models: how many models of the panel are tried. views: feature transforms, at most; all but the first are tried
    with the `leading` models. varied: how many of the best are tried again with other widths and less regularisation.
    kept: how many train to the end, with `replicas` each. work: of a CPU, relative to its default.

    A search is limited by `seconds`, by `most` work, or by neither. Work is epochs of all replicas times the extent of
    the graph times the price of a model. Unlike seconds it does not depend on how busy a machine is, so that a fit can
    be repeated. On a GPU there is no limit. large: whether the graph is so large that epochs are limited too.

    batched: by name, models that are trained in batches, since the whole graph does not fit into memory: how many bytes
    it takes, and may take. left_out: why others are not trained.
    """

    views: int
    models: int
    leading: int
    varied: int
    kept: int
    replicas: int
    work: float
    seconds: float | None = None
    most: float | None = None
    large: bool = False
    start: float = field(default_factory=time.monotonic, init=False)
    worked: float = field(default=0.0, init=False)
    batched: dict[str, tuple[int, int]] = field(default_factory=dict, init=False)
    left_out: dict[str, DeviceMemoryError] = field(default_factory=dict, init=False)

    def limited(self, budget: float | None, task: NodeTask, on_cpu: bool) -> Effort:
        """The same effort for one search: nothing is spent yet."""
        if budget is not None:
            return replace(self, seconds=_FOR_TRAINING * float(budget))
        if not on_cpu:
            return replace(self)
        # Beyond a large extent it would take hours: there the limit grows more slowly.
        grown = math.sqrt(min(task.extent, LARGE)) * max(1.0, task.extent / LARGE) ** 0.25
        return replace(self, most=self.work * _WORK * grown, large=task.extent > LARGE)

    def most_epochs(self, task: NodeTask, on_cpu: bool, usual: int) -> float:
        """About how many epochs of gcn a search takes at most. usual: of a training to its end."""
        limited = self.limited(None, task, on_cpu)
        limited.charge(1.0, 1, task)
        tried = self.models + self.leading * (self.views - 1) + 2 * self.varied
        every = tried * SHORT + self.kept * self.replicas * usual
        return every if limited.most is None else min(every, limited.most / limited.worked)

    def short_epochs(self, price: float, task: NodeTask, most: int) -> int:
        """How long a model is tried."""
        return self._epochs(MODELS / _TRIES, price, task, _FEWEST_SHORT, most)

    def long_epochs(self, price: float, task: NodeTask, most: int) -> int:
        """How long a model is trained to the end: on a large graph with what is left."""
        left = 1.0 - self.worked / self.most if self.most else 1.0
        return self._epochs(left, price, task, _FEWEST_LONG, most)

    def _epochs(self, share: float, price: float, task: NodeTask, fewest: int, most: int) -> int:
        if self.most is None or not self.large:
            return most
        return min(most, max(fewest, int(share * self.most / (price * (task.extent + _EACH_EPOCH)))))

    def charge(self, price: float, epochs: int, task: NodeTask) -> None:
        """For the epochs of all replicas together."""
        self.worked += price * epochs * (task.extent + _EACH_EPOCH)

    def allows(self, share: float = 1.0) -> bool:
        """Whether less than this share of the limit has been spent."""
        if self.seconds is not None:
            return time.monotonic() - self.start < share * self.seconds
        return self.most is None or self.worked < share * self.most

    def deadline(self, share: float) -> float | None:
        """When this share of the time will be over, on the clock of `time.monotonic`."""
        return None if self.seconds is None else self.start + share * self.seconds

    def fitting(self, plan: Plan, task: NodeTask) -> dict[str, object]:
        """Options with which a plan fits into memory. Raises an error if there are none."""
        try:
            batch, needed, usable = how_it_fits(plan, task)
        except DeviceMemoryError as error:
            self.left_out.setdefault(plan.spec.name, error)
            raise
        if batch != plan.training.batch:
            self.batched[plan.spec.name] = needed, usable
            return {"batch": batch}
        near = near_labels(plan, task) if _COPIES * needed <= usable else None
        return {} if near is None else {"batch": near.training.batch, "fan_out": near.training.fan_out}

    def memory_notes(self) -> list[str]:
        """Which models did not fit into memory as a whole, and what became of them."""
        if self.batched:
            needed, usable = min(self.batched.values())
            words = (
                f"the whole graph takes at least {gib(needed)} of memory and {gib(usable)} may be used: "
                f"{', '.join(self.batched)} trained in batches of {BATCH} labelled nodes"
            )
            return [f"{words}; {', '.join(self.left_out)} cannot be, and left out" if self.left_out else words]
        why = "; ".join(map(str, self.left_out.values()))
        return [f"left out for lack of memory: {why}"] if why else []


EFFORTS = {
    "quick": Effort(views=2, models=5, leading=3, varied=0, kept=3, replicas=1, work=0.55),
    "default": Effort(views=4, models=15, leading=8, varied=4, kept=8, replicas=3, work=2.2),
    "thorough": Effort(views=6, models=99, leading=16, varied=10, kept=14, replicas=5, work=22.0),
}
