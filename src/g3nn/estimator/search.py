"""The search: many candidates for a short time, the best varied, and the few that are worth it trained to the end."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from g3nn.calibrate import Scaling
from g3nn.errors import DeviceMemoryError, G3NNWarning, TrainingError
from g3nn.estimator.beliefs import with_belief_columns
from g3nn.estimator.effort import FIRST, VARIED, WHOLE, Effort, Spending
from g3nn.estimator.ensemble import member_weights
from g3nn.estimator.panel import AnyCandidate, Candidate, Options, TableCandidate, Trial, usable
from g3nn.estimator.views import View
from g3nn.outcomes import Outcome
from g3nn.sparse import neighbour_mean
from g3nn.task import NodeTask
from g3nn.training import FitResult
from g3nn.training.progress import Course

_FIRST_EPOCHS, _FIRST_PATIENCE = 150, 50
"""The first stage only drops what is hopeless: some of the best models learn slowly."""

_PROBE = Candidate("mlp", "elbo", {"hidden": 64})
_PROBE_EPOCHS = 100
"""Which views suit a graph is found out with a network that is quickly trained: on labelled nodes alone."""

_CLOSE_ENOUGH = 1.1
"""Who trains to the end has a loss of at most this many times the lowest one, or a weight in the mixture."""

_FIXED_EPOCHS = 200
_WITHOUT_VALIDATION = {"sbm-appnp": 0, "gcn": 1}
"""Where nothing can be validated: how long a model trains, and which of a panel."""


@dataclass(frozen=True, eq=False)
class Search:
    """Tries candidates on the validation nodes of a task.

    task: with features as the views take them. common: options that all candidates share. seeds: one for each replica
    of a model that is asked for alone. weights: (n,), how often the label of each node counts in training.
    """

    task: NodeTask
    views: Mapping[str, View]
    common: Options
    device: str
    seeds: tuple[int, ...]
    effort: Effort
    spending: Spending
    progress: Course = field(default_factory=Course)
    weights: np.ndarray | None = None
    at_once: int = 1
    """How many replicas are trained in one stack before the next candidate gets its turn."""

    @cached_property
    def outcome(self) -> Outcome:
        return self.task.outcome_model()

    @cached_property
    def _tasks(self) -> dict[tuple[str, bool], NodeTask]:
        return {}

    def seen(self, view: str, beliefs: bool = False) -> NodeTask:
        """The task with one view of its features, and if that is wanted with beliefs as additional columns."""
        key = view, beliefs
        if key not in self._tasks:
            task = replace(self.task, features=self.views[view].apply(self.task.features))
            self._tasks[key] = with_belief_columns(task, self.outcome) if beliefs else task
        return self._tasks[key]

    def alone(self, model: Candidate) -> Trial:
        """One model that was asked for, on the view that suits it best, with all replicas."""
        views = list(self.views)
        if len(views) > 1:
            self.progress.stage("trying forms of the features", 0.3, len(views))
            tried = [self._short(replace(model, view=view), FIRST) for view in views]
            views = [min(tried, key=lambda trial: trial.loss).candidate.view]
        self.progress.stage("training the model", 0.9, 1)
        trial = self._long(replace(model, view=views[0]), self.seeds, None)
        if not math.isfinite(trial.loss):
            raise _diverged()
        return trial

    def panel(self, models: Sequence[AnyCandidate]) -> list[Trial]:
        """Every candidate that was tried, at least one of them trained to the end."""
        trials: dict[int, Trial] = {}

        def run(words: str, until: float, share: float, waiting: Iterable[AnyCandidate]) -> None:
            todo = list(waiting)
            self.progress.stage(words, until, max(len(todo), 1))
            for one in todo:
                if trials and not self.spending.allows(share):
                    break
                nothing = Trial(one, None, np.zeros(0), math.inf, 0.0, 1.0, False)
                trials[id(one)] = _unless_too_large(partial(self._short, one, share), nothing)

        best = self._ranked_views()[: self.effort.views]
        networks = [one for one in models if isinstance(one, Candidate)]
        # A view that looks like the first one is left out; models of tables then take that one.
        plain = "given" if "given" in self.views else next(iter(self.views))
        first = [replace(one, view=best[0] if isinstance(one, Candidate) else plain) for one in models]
        later = [replace(one, view=view) for view in best[1:] for one in networks]
        run("trying models", 0.45, FIRST, [*first, *later])
        leading = sorted(trials.values(), key=lambda trial: trial.loss)[: self.effort.varied]
        run("trying other sizes", 0.55, VARIED, [new for trial in leading for new in trial.candidate.variants()])
        found = self._finished(list(trials.values()))
        if not any(trial.complete and math.isfinite(trial.loss) for trial in found):
            raise _diverged()
        return found

    def unvalidated(self, models: Sequence[Candidate]) -> Trial:
        """Where there is nothing to validate on: one model for a fixed number of epochs.

        Of several, the one that makes most of few labels if edges link nodes of a class, as they mostly do: its prior
        and its likelihood learn from the unlabelled nodes too, and it spreads labels far. Otherwise a plain network.
        """
        chosen = min(models, key=lambda one: _WITHOUT_VALIDATION.get(one.name, len(_WITHOUT_VALIDATION)))
        chosen = replace(chosen, view=next(iter(self.views)))
        plan = chosen.plan(self.common, self.seeds, self.device)
        plan = plan.for_all_labels(min(_FIXED_EPOCHS, int(self.common["epochs"])))
        # The validation loss is recorded, but nothing depends on it.
        task = self.seen(chosen.view, chosen.beliefs)
        result = usable(plan.fit(replace(task, val=task.train), self.progress, self.weights))
        if not result.trials:
            raise _diverged()
        return Trial(chosen, result, self.outcome.averaged(result.answers), math.nan, math.nan, 1.0, True)

    def _ranked_views(self) -> list[str]:
        """The views, that with the lowest loss first.

        A perceptron on the features of a node and their mean over its neighbours, which needs the labelled nodes only.
        """
        if len(self.views) == 1:
            return list(self.views)
        task, losses = self.task, dict[str, float]()
        self.progress.stage("trying forms of the features", 0.05, len(self.views))
        nodes = np.union1d(task.train, task.val)
        around = neighbour_mean(task.edges, task.num_nodes, task.weights)[nodes]
        labelled = replace(
            task,
            edges=task.edges[:, :0],
            weights=None,
            beliefs=None,
            labels=task.labels[nodes],
            train=np.searchsorted(nodes, task.train),
            val=np.searchsorted(nodes, task.val),
        )
        plan = _PROBE.plan(
            {**self.common, "epochs": min(_PROBE_EPOCHS, int(self.common["epochs"]))}, (self.seeds[0],), self.device
        )
        for view in self.views:
            features = self.seen(view).features
            stacked = sp.hstack if sp.issparse(features) else np.hstack
            near = stacked([features[nodes], around @ features])
            near = sp.csr_array(near) if sp.issparse(near) else near.astype(np.float32)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="the graph has no edges", category=G3NNWarning)
                found = plan.fit(replace(labelled, features=near), self.progress, None)
            losses[view] = float(found.val_loss[0]) if np.isfinite(found.val_loss[0]) else math.inf
        return sorted(losses, key=lambda view: losses[view])

    def _finished(self, trials: list[Trial]) -> list[Trial]:
        """Those that are worth it are trained to the end, in the order of their promise."""
        kept = self._promising(trials)
        rounds = max(1, -(-min(self.effort.replicas, len(self.seeds)) // self.at_once))
        self.progress.stage("training the best models", 0.9, max(len(kept) * rounds, 1))
        for turn in range(rounds):
            seeds = self.seeds[turn * self.at_once : min((turn + 1) * self.at_once, self.effort.replicas)]
            for place in kept:
                trial = trials[place]
                done = any(one.complete for one in trials)
                if isinstance(trial.candidate, TableCandidate) or (done and not self.spending.allows(WHOLE)):
                    continue
                if turn == 0 and self.at_once == 1 and trial.complete:
                    continue
                trials[place] = _unless_too_large(partial(self._long, trial.candidate, seeds, trial), trial)
        return trials

    def _promising(self, trials: Sequence[Trial]) -> list[int]:
        """Those with a weight in the mixture of all, then those whose loss is close to the lowest."""
        finite = [place for place, trial in enumerate(trials) if math.isfinite(trial.loss)]
        if not finite:
            return list(range(min(1, len(trials))))
        labels = self.task.labels[self.task.val]
        scaled = [self._scaled(trials[place]) for place in finite]
        weights = member_weights(np.stack([self.outcome.label_log_prob(one, labels) for one in scaled]), most=99)
        lowest = min(trials[place].loss for place in finite)
        order = sorted(zip(finite, weights, strict=True), key=lambda one: (-one[1], trials[one[0]].loss))
        near = lowest + (_CLOSE_ENOUGH - 1) * abs(lowest)
        return [place for place, weight in order if weight > 0 or trials[place].loss <= near][: self.effort.kept]

    def _scaled(self, trial: Trial) -> np.ndarray:
        """(m, width): the answers for the validation nodes, at the temperature of the trial."""
        return self.outcome.scaled(trial.answer[self.task.val], Scaling(trial.temperature))

    def _short(self, candidate: AnyCandidate, share: float) -> Trial:
        """One replica for few epochs, until this share of what may be spent is spent."""
        if isinstance(candidate, TableCandidate):
            task = self.seen(candidate.view)
            learned = candidate.train(task, self.outcome, self.seeds[0], self.weights)
            self.spending.worked += candidate.work(task)
            answer = learned.answers(task, None, None).answer  # type: ignore[arg-type]
            return self._judged(candidate, learned, answer, complete=True)
        limits = {"epochs": _FIRST_EPOCHS, "patience": _FIRST_PATIENCE}
        common = {**self.common, **{name: min(limit, int(self.common[name])) for name, limit in limits.items()}}
        trial = self._trained(candidate, self.seeds[:1], common, share, complete=False)
        assert isinstance(trial.learned, FitResult)
        # Who has stopped by then has nothing more to learn, unless time was over.
        stopped = trial.replicas > 0 and trial.learned.status[0] == "stopped" and self.spending.seconds is None
        return replace(trial, complete=stopped and self.at_once == 1)

    def _long(self, candidate: AnyCandidate, seeds: Sequence[int], before: Trial | None) -> Trial:
        """All epochs for these seeds, together with the replicas that have been trained as long before."""
        assert isinstance(candidate, Candidate)
        trial = self._trained(candidate, seeds, self.common, WHOLE, complete=True)
        if before is None or not before.complete or not isinstance(before.learned, FitResult):
            return trial
        if not trial.replicas:
            return before
        assert isinstance(trial.learned, FitResult)
        result = FitResult.join([before.learned, trial.learned])
        return self._judged(candidate, result, self.outcome.averaged(result.answers), complete=True)

    def _trained(
        self, candidate: Candidate, seeds: Sequence[int], common: Options, share: float, *, complete: bool
    ) -> Trial:
        task = self.seen(candidate.view, candidate.beliefs)
        plan = candidate.plan(common, seeds, self.device)
        deadline = self.spending.deadline(share)
        result = usable(plan.fit(task, self.progress, self.weights, deadline))
        self.spending.charge(candidate.price, int(result.epochs.sum()), task)
        if not result.trials:
            return Trial(candidate, result, np.zeros(0), math.inf, 0.0, 1.0, complete)
        return self._judged(candidate, result, result.outcome.averaged(result.answers), complete=complete)

    def _judged(self, candidate: AnyCandidate, learned: object, answer: np.ndarray, *, complete: bool) -> Trial:
        """How well the mean of the replicas does on the validation nodes."""
        labels, own = self.task.labels[self.task.val], answer[self.task.val]
        temperature = self.outcome.temperature(own, labels)
        loss, score = self.outcome.loss_and_score(self.outcome.scaled(own, Scaling(temperature)), labels)
        return Trial(candidate, learned, answer, loss, score, temperature, complete)  # type: ignore[arg-type]


def _unless_too_large(train: Callable[[], Trial], otherwise: Trial) -> Trial:
    """What was trained, or what there is without. Others of a panel may be smaller."""
    try:
        return train()
    except (DeviceMemoryError, MemoryError) as error:
        name = otherwise.candidate.name
        warnings.warn(f"{name} does not fit into memory: {error}", G3NNWarning, stacklevel=2)
        return otherwise


def _diverged() -> TrainingError:
    return TrainingError("no model could be trained: every replica diverged. A lower lr usually helps")
