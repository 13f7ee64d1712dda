"""Where a whole graph does not fit into memory: models are trained in batches, those that cannot be are left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

from g3nn.base.errors import DeviceMemoryError, G3NNWarning
from g3nn.estimator.panel import Candidate, Options
from g3nn.graph.task import NodeTask
from g3nn.training.memory import gib
from g3nn.training.plan import Plan
from g3nn.training.room import BATCH, Fit, how_it_fits, near_labels

_COPIES = 3
"""How many times the memory of a whole graph there must be before what lies near labels is held beside it."""


@dataclass
class Room:
    """Remembers which models are trained in batches, and why others are not trained."""

    batched: dict[str, Fit] = field(default_factory=dict)
    left_out: dict[str, DeviceMemoryError] = field(default_factory=dict)

    def sized(self, one: Candidate, task: NodeTask, common: Options, device: str) -> Candidate:
        """The candidate, in batches if it has to be. Raises an error if it does not fit in any way."""
        plan = one.plan(common, (0,), device)
        try:
            fit = how_it_fits(plan, task)
        except DeviceMemoryError as error:
            self.left_out.setdefault(one.name, error)
            raise
        if fit.batch == plan.training.batch:
            near = near_labels(plan, task) if _COPIES * fit.needed <= fit.usable else None
            return one if near is None else replace(one, options={**one.options, **_batches(near)})
        self.batched[one.name] = fit
        return replace(one, options={**one.options, "batch": fit.batch})

    def note(self) -> None:
        """Say what was decided and why."""
        if self.batched:
            fits = list(self.batched.values())
            words = (
                f"the whole graph takes at least {gib(min(fit.needed for fit in fits))} of memory and "
                f"{gib(fits[0].usable)} may be used: {', '.join(self.batched)} trained in batches of {BATCH} labelled "
                "nodes"
            )
            words += f"; {', '.join(self.left_out)} cannot be, and left out" if self.left_out else ""
        elif self.left_out:
            words = f"left out for lack of memory: {'; '.join(map(str, self.left_out.values()))}"
        else:
            return
        warnings.warn(words, G3NNWarning, stacklevel=2)


def _batches(plan: Plan) -> dict[str, Any]:
    return {"batch": plan.training.batch, "fan_out": plan.training.fan_out}
