"""The panel: candidates are trained as stacks, compared by validation loss, and the best is chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from g3nn.calibrate import Scaling
from g3nn.errors import Problem, Problems, TrainingError, suggestion
from g3nn.model import ModelSpec, registered_options
from g3nn.objective import OBJECTIVES, Objective
from g3nn.options import known_names
from g3nn.outcomes import Outcome, PanelModel
from g3nn.task import NodeTask
from g3nn.training import FitResult, TrainingOptions
from g3nn.training.checks import check_outcome, checked_spec
from g3nn.training.plan import Plan
from g3nn.training.progress import Course

Options = Mapping[str, Any]

_FIRST_EPOCHS, _FIRST_KEPT = 150, 4
"""The first stage only drops what is hopeless: some of the best models learn slowly."""

_CLOSE_ENOUGH = 1.02
"""After full training a candidate advances only if its loss is at most this many times the lowest one: other seeds
would not help it."""

_FIXED_EPOCHS = 200
_WITHOUT_VALIDATION = {"sbm-appnp": 0, "gcn": 1}
"""Where nothing can be validated: how long a model trains, and which of a panel."""


_FIRST_UNTIL, _STAGE_SHARE, _UNTIL = 0.3, 0.2, 0.9
"""Shares of the time of a fit: after the first stage, of each later one, and after all."""


@dataclass(frozen=True)
class Stage:
    """The remaining candidates train up to `replicas`; the best `kept` advance."""

    replicas: int
    kept: int


STAGES = (Stage(1, 2), Stage(3, 1))
"""After the first. The last candidate trains all its replicas; none is trained twice."""


@dataclass(frozen=True)
class Candidate:
    """A model, an objective, and the options that set it apart. All as `g3nn.fit` takes them."""

    model: str | ModelSpec
    objective: str | Objective
    options: Options
    prior: Any = "mlp"

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    def declared(self, outcome: type[Outcome] | None = None) -> set[str]:
        """The names of all options that mean something to this model."""
        spec = checked_spec(self.model, "mlp", Problems())
        parts = registered_options() if spec is None else spec.option_groups()
        own = [] if outcome is None else [outcome.Options]
        names = set(known_names([*parts, Objective, TrainingOptions, *own]))
        return names - {"refine"} if spec is not None and spec.likelihood is None else names

    def plan(self, common: Options, seeds: Sequence[int], device: str) -> Plan:
        """A checked plan for as many replicas as seeds. `common` options are left out where they mean nothing."""
        fitting = {name: value for name, value in common.items() if name != "hidden" or name in self.declared()}
        options = {**fitting, **self.options}
        return Plan.check(self.model, self.objective, len(seeds), seeds, self.prior, device, options)


@dataclass(frozen=True)
class PanelEntry:
    """How one candidate did. val_loss: of its averaged replicas after temperature scaling, by which the choice is made.

    Each candidate gets the same single parameter, so that is fair, and it is close to what the answers will be like. A
    candidate that was dropped early has few replicas, and after the first stage few epochs.
    """

    model: str
    objective: str
    options: Mapping[str, Any]
    val_loss: float
    val_score: float
    epochs: int
    chosen: bool = False
    replicas: int = 1


def candidates(
    model: Any,
    objective: Any,
    options: Options,
    panel: Sequence[PanelModel],
    problems: Problems,
    outcome: type[Outcome],
) -> tuple[Candidate, ...]:
    """The one model asked for, or the panel. An option goes to every model that declares it, and must go to one."""
    given = dict(options)
    prior = given.pop("prior", "mlp")
    automatic = isinstance(objective, str) and objective == "auto"
    if not (isinstance(model, str) and model == "auto"):
        return (Candidate(model, "elbo" if automatic else objective, given, prior),)
    everyone = tuple(Candidate(*one) for one in panel)
    if objective in OBJECTIVES:
        everyone = tuple(
            replace(one, objective=objective) for one in everyone if one.objective == objective or "-" not in one.name
        )
    elif not automatic:
        problems.name("objective", objective, ("auto", *OBJECTIVES))
    declared = [one.declared(outcome) for one in everyone]
    names = set().union(*declared)
    for name in sorted(given.keys() - names):
        allowed = f"one of the options {', '.join(sorted(names))}"
        problems.add(name, repr(given[name]), allowed, suggestion(name, names))
    return tuple(
        replace(one, options={**one.options, **{name: given[name] for name in given.keys() & own}}, prior=prior)
        for one, own in zip(everyone, declared, strict=True)
    )


def check_candidates(
    tried: Sequence[Candidate], common: Options, device: str, problems: Problems, outcome: type[Outcome]
) -> None:
    """Whether each could be trained; a problem that several share is reported once."""
    shared: dict[Problem, None] = {}
    for one in tried:
        own = Problems()
        with own.gathered():
            plan = one.plan(common, (0,), device)
            check_outcome(outcome.name, plan.spec, plan.objective, plan.options, own)
        shared.update(dict.fromkeys(own.found))
    problems.found.extend(problem for problem in shared if problem not in problems.found)


@dataclass(frozen=True, eq=False)
class Search:
    """Chooses among candidates by the validation nodes of a task."""

    task: NodeTask
    common: Options
    """Options that all candidates share."""
    device: str
    seeds: tuple[int, ...]
    """One for each replica of the chosen candidate."""
    progress: Course = field(default_factory=Course)
    weights: np.ndarray | None = None
    """(n,): how often the label of each node counts in training."""

    def run(self, tried: Sequence[Candidate]) -> tuple[Candidate, FitResult, tuple[PanelEntry, ...]]:
        """The chosen candidate, its replicas that did not diverge, and how all candidates did, in the order given."""
        left, entries = list(range(len(tried))), dict[int, PanelEntry]()
        if len(left) > _FIRST_KEPT:
            epochs = min(_FIRST_EPOCHS, int(self.common["epochs"]))
            self.progress.stage("trying models", _FIRST_UNTIL, len(left))
            first = self._train(tried, left, self.seeds[:1], {**self.common, "epochs": epochs})
            left = self._best(tried, first, _FIRST_KEPT, entries)
        results, done = dict[int, FitResult](), 0
        stages = [stage for stage in STAGES if stage.kept < len(left) and stage.replicas < len(self.seeds)]
        for later, stage in zip(range(len(stages), -1, -1), (*stages, Stage(len(self.seeds), 1)), strict=True):
            if len(left) > 1 or stage.replicas == len(self.seeds):
                words = "trying models" if len(left) > 1 else "training the best model"
                until = _UNTIL - later * _STAGE_SHARE
                self.progress.stage(words if len(tried) > 1 else "training the model", until, len(left))
                new = self._train(tried, left, self.seeds[done : stage.replicas], self.common)
                results = {p: FitResult.join([results[p], one]) if p in results else one for p, one in new.items()}
                left, done = self._best(tried, results, stage.kept, entries, _CLOSE_ENOUGH), stage.replicas
        (best,) = left
        if not math.isfinite(entries[best].val_loss):
            raise TrainingError("no model could be trained: every replica diverged. A lower lr usually helps")
        panel = tuple(replace(entries[p], chosen=p == best) for p in range(len(tried)))
        return tried[best], usable(results[best]), panel

    def unvalidated(self, tried: Sequence[Candidate]) -> tuple[Candidate, FitResult, tuple[PanelEntry, ...]]:
        """As `run`, where there is nothing to validate on: one model for a fixed number of epochs.

        Of several, the one that makes most of few labels if edges link nodes of a class, as they mostly do: its prior
        and its likelihood learn from the unlabelled nodes too, and it spreads labels far. Otherwise a plain network.
        """
        chosen = min(tried, key=lambda one: _WITHOUT_VALIDATION.get(one.name, len(_WITHOUT_VALIDATION)))
        plan = chosen.plan(self.common, self.seeds, self.device)
        plan = plan.for_all_labels(min(_FIXED_EPOCHS, int(self.common["epochs"])))
        # The validation loss is recorded, but nothing depends on it.
        result = usable(plan.fit(replace(self.task, val=self.task.train), self.progress, self.weights))
        if not result.trials:
            raise TrainingError("no model could be trained: every replica diverged. A lower lr usually helps")
        epochs, options = int(result.epochs.max()), dict(chosen.options)
        entry = PanelEntry(
            chosen.name, result.objective, options, math.nan, math.nan, epochs, True, replicas=result.trials
        )
        return chosen, result, (entry,)

    def _best(
        self,
        tried: Sequence[Candidate],
        results: Mapping[int, FitResult],
        kept: int,
        entries: dict[int, PanelEntry],
        close: float = math.inf,
    ) -> list[int]:
        """Those with the lowest loss, in the order given; how each did goes into `entries`."""
        entries.update({p: self._entry(tried[p], result) for p, result in results.items()})
        first, *others = sorted(results, key=lambda p: entries[p].val_loss)[:kept]
        near = [p for p in others if entries[p].val_loss <= close * entries[first].val_loss]
        return sorted([first, *near])

    def _entry(self, candidate: Candidate, result: FitResult) -> PanelEntry:
        """How well the mean of the replicas does on the validation nodes."""
        loss, score, result = math.inf, 0.0, usable(result)
        if result.trials:
            labels, outcome = self.task.labels[self.task.val], result.outcome
            mean = outcome.averaged(result.answers[:, self.task.val])
            scaling = Scaling(outcome.temperature(mean, labels))
            loss, score = outcome.loss_and_score(outcome.scaled(mean, scaling), labels)
        epochs = int(result.epochs.max(initial=0))
        options = dict(candidate.options)
        return PanelEntry(candidate.name, result.objective, options, loss, score, epochs, replicas=result.trials)

    def _train(
        self, tried: Sequence[Candidate], left: Sequence[int], seeds: Sequence[int], common: Options
    ) -> dict[int, FitResult]:
        """A replica for each seed of every remaining candidate, in one stack for each candidate."""
        return {p: tried[p].plan(common, seeds, self.device).fit(self.task, self.progress, self.weights) for p in left}


def usable(result: FitResult) -> FitResult:
    """Without the replicas that diverged before their first usable epoch."""
    finite = np.flatnonzero(np.isfinite(result.val_loss))
    return result if len(finite) == result.trials else result.select(finite)
