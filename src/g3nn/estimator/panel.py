"""The panel: candidates are trained as stacks, compared on the validation nodes, and the best is chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from g3nn.errors import TrainingError
from g3nn.estimator.candidates import Candidate, Options
from g3nn.estimator.trained import PanelEntry, Trained
from g3nn.task import NodeTask

TRIAL_EPOCHS, TRIAL_KEPT = 150, 4
"""A first round, which only leaves out what is hopeless: some of the best models learn slowly."""


@dataclass(frozen=True)
class Round:
    """Whoever is left trains until it has so many replicas; the best of them go on."""

    replicas: int
    kept: int


ROUNDS = (Round(1, 2), Round(3, 1))
"""After the first. The one that is left trains all its replicas; none is trained twice."""

CLOSE = 1.02
"""With full training, whoever has a loss more than this many times the lowest is out: other seeds would not help it."""


@dataclass(frozen=True, eq=False)
class Search:
    """Chooses among candidates on the validation nodes of a task."""

    task: NodeTask
    common: Options
    """Options that all candidates share."""
    device: str
    seeds: tuple[int, ...]
    """One for each replica of the chosen one."""
    progress: bool | None = False

    def run(self, tried: Sequence[Candidate]) -> tuple[Trained, tuple[PanelEntry, ...]]:
        """The chosen one, and how all did, in the order given."""
        left, entries = dict(enumerate(tried)), dict[int, PanelEntry]()
        if len(left) > TRIAL_KEPT:
            epochs = min(TRIAL_EPOCHS, int(self.common["epochs"]))
            trial = self._train(left, self.seeds[:1], {**self.common, "epochs": epochs})
            left = self._best(trial, TRIAL_KEPT, entries)
        found, done = dict[int, Trained](), 0
        rounds = [one for one in ROUNDS if one.kept < len(left) and one.replicas < len(self.seeds)]
        for stage in (*rounds, Round(len(self.seeds), 1)):
            if len(left) > 1 or stage.replicas == len(self.seeds):
                fresh = self._train(left, self.seeds[done : stage.replicas], self.common)
                found = {p: found[p].joined(one) if p in found else one for p, one in fresh.items()}
                left, done = self._best(found, stage.kept, entries, CLOSE), stage.replicas
        (best,) = left
        if not math.isfinite(entries[best].val_loss):
            raise TrainingError("no model could be trained: every replica diverged. A lower lr usually helps")
        panel = tuple(replace(entries[p], chosen=p == best) for p in range(len(tried)))
        return found[best], panel

    def _best(
        self, found: dict[int, Trained], kept: int, entries: dict[int, PanelEntry], close: float = math.inf
    ) -> dict[int, Candidate]:
        """Those with the lowest loss, in the order given; how each did goes into `entries`."""
        labels = self.task.labels[self.task.val]
        entries.update({p: one.entry(labels) for p, one in found.items()})
        first, *others = sorted(found, key=lambda p: entries[p].val_loss)[:kept]
        near = [p for p in others if entries[p].val_loss <= close * entries[first].val_loss]
        return {p: found[p].candidate for p in sorted([first, *near])}

    def _train(self, tried: Mapping[int, Candidate], seeds: Sequence[int], common: Options) -> dict[int, Trained]:
        """A replica of each candidate for each seed, in one stack for each candidate."""
        found = {}
        for p, one in tried.items():
            result = one.plan(common, seeds, self.device).fit(self.task, self.progress)
            found[p] = Trained.of(one, result, np.arange(len(seeds)), self.task)
        return found
