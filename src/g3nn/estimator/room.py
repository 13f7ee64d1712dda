"""Where a whole graph does not fit into memory: models are trained in batches, those that cannot be are left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace

from g3nn.errors import DeviceMemoryError, G3NNWarning
from g3nn.estimator.panel import Candidate, Options
from g3nn.task import NodeTask
from g3nn.training.room import BATCH, Fit, gib, how_it_fits


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
            return one
        self.batched[one.name] = fit
        return replace(one, options={**one.options, "batch": fit.batch})

    def note(self) -> None:
        """Say what was decided and why."""
        if not self.batched:
            return
        least, usable = min(fit.needed for fit in self.batched.values()), next(iter(self.batched.values())).usable
        words = (
            f"the whole graph takes at least {gib(least)} of memory and {gib(usable)} may be used: "
            f"{', '.join(self.batched)} trained in batches of {BATCH} labelled nodes"
        )
        if self.left_out:
            words += f"; {', '.join(self.left_out)} cannot be, and left out"
        warnings.warn(words, G3NNWarning, stacklevel=2)
