"""The search: many candidates for a short time, the best varied, and the few that are worth it trained to the end."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import DeviceMemoryError, G3NNWarning, InputError, TrainingError
from g3nn.estimator.answers import member_weights
from g3nn.estimator.effort import MODELS, SHORT, Effort
from g3nn.estimator.members import (
    PROPAGATION,
    Member,
    Parameters,
    Surroundings,
    surroundings_of,
    with_belief_columns,
)
from g3nn.estimator.panel import Candidate, Trial, usable, worth_doubting
from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import Outcome
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import FeatureTransform
from g3nn.graph.weights import repeated
from g3nn.kernels.sparse import is_identity, neighbour_mean
from g3nn.model.inputs import Part
from g3nn.model.tabular import CrossFitted
from g3nn.queries.edge_trust import NONE, SHARES, EdgeTrust, edge_trust
from g3nn.queries.wrong_labels import JudgedLabels
from g3nn.training import FitResult
from g3nn.training.plan import Plan
from g3nn.training.progress import Course, Interrupted

_FIRST_EPOCHS, _FIRST_PATIENCE = SHORT, 50
"""The first stage only drops what is hopeless: some of the best models learn slowly."""
_CLOSE_ENOUGH = 1.1
"""Candidates train to the end if their loss is at most this many times the lowest, or if they have a weight in the
mixture."""
_DOUBTERS, _LISTENS = 3, "sbm-appnp"
"""How many of the best networks are tried with edges that are doubted, and one that always is: where many edges are
false the best may be those that do not listen to them."""
_FEWEST_IN_FOLD, _MOST_FOLDS = 60, 3
"""Where some labels are wrong: fewer are not enough for a replica to validate on; and in how many folds, so that there
are labels by which no replica validates."""
FIXED_EPOCHS = 200
"""How long a model trains where no label can say when to stop."""
_PROBE, _PROBE_EPOCHS = Candidate("mlp", "elbo", {"hidden": 64}), 100
"""Which views suit a graph is found out with a network that is quickly trained: on labelled nodes alone."""
_DIVERGED = "no model could be trained: every replica diverged. A lower lr usually helps"

Trials = dict[str, Trial]
"""By the keys of their candidates, in the order in which they were tried."""


_STAGES = {
    "simple": ("trying simple models", 0.06, 0.25, 99),
    "models": ("trying models", 0.3, MODELS, 0),
    "fixed": ("training models", 0.9, 1.0, 1),
    "propagation": ("doubting edges", 0.32, 0.42, len(SHARES)),
    "doubting": ("doubting edges", 0.36, 0.42, len(SHARES)),
    "doubting more": ("doubting edges", 0.4, 0.42, 0),
    "views": ("trying other forms of the features", 0.45, 0.48, 0),
    "sizes": ("trying other sizes", 0.55, 0.55, 0),
}
"""The parts of a search: what progress says, and how far it is at the end; the share of the limit that may be spent by
then; and how many candidates are tried in any case, unless time is limited."""


@dataclass(frozen=True, eq=False)
class Search:
    """Tries candidates on the validation nodes of a task.

    task: with features as the views take them. common: options that all candidates share. seeds: one for each replica
    of a model that is asked for alone. weights: (n,), how often the label of each node counts in training.
    """

    task: NodeTask
    views: Mapping[str, FeatureTransform]
    common: Parameters
    device: str
    seeds: tuple[int, ...]
    effort: Effort
    progress: Course = field(default_factory=Course)
    weights: np.ndarray | None = None
    at_once: int = 1
    """How many replicas are trained in one stack before the next candidate gets its turn."""
    denoise: bool | str = False
    """Whether edges may be doubted: "auto" lets validation decide, True always doubts them."""
    featureless: bool = False
    """Whether the features were made from the edges."""
    notes: list[str] = field(default_factory=list)
    """What the caller should know in the end."""
    corrected: JudgedLabels | None = None
    """How given labels were judged, where so many are wrong that they are corrected."""
    prior: CrossFitted | None = None
    """What an estimator that is the label prior learned; the beliefs of the task come from it."""
    folds: tuple[np.ndarray, ...] = ()
    """The validation nodes of the first replica, of the second, and so on; the task has the first. Empty if all
    replicas have those of the task."""
    others: tuple[JudgedLabels, ...] = ()
    """For each of the folds what the labels of the others probably are, judged without it; empty if all are right."""
    reserved: tuple[np.ndarray, ...] = ()
    """Folds whose labels choose nothing. The last seeds are for replicas that do not train on them and say how certain
    predictions may be."""
    given: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Validation nodes that the caller chose: no replica trains on them."""
    unused: tuple[str, ...] = ()
    """Types of edges that the task has no more."""
    fixed: bool = False
    """Whether every candidate is trained for as many epochs on every fold: labels are too few to say when a training
    should end, or which candidates are worth it."""

    def where_labels_are_wrong(self, judged: JudgedLabels, others: tuple[JudgedLabels, ...]) -> Search:
        """The same with wrong labels among those that judge. Networks train on what labels probably are, and validate
        on given labels that had no say in it: a fold for each replica, whatever was to be validated on. With few labels
        they train on given ones and validate as they would."""
        labelled = np.union1d(self.task.train, self.task.val)
        folds = tuple(np.setdiff1d(labelled, one.nodes) for one in others[: min(_MOST_FOLDS, len(self.seeds))])
        folds = tuple(repeated(fold, self.weights) for fold in folds)
        if not folds or min(len(np.unique(fold)) for fold in folds) < _FEWEST_IN_FOLD:
            every = (*self.folds, *self.reserved) if self.folds else ()
            return replace(self, corrected=judged, folds=every, reserved=())
        task = replace(self.task, train=np.setdiff1d(labelled, folds[0]), val=folds[0])
        judging = replace(self, task=task, corrected=judged, reserved=(), given=self.given[:0])
        return replace(judging, folds=folds, others=others, at_once=len(self.seeds))

    @property
    def choosing(self) -> tuple[int, ...]:
        """The seeds of replicas by whose validation candidates are compared."""
        return self.seeds[: len(self.seeds) - len(self.reserved)]

    @cached_property
    def _never_validate(self) -> np.ndarray:
        """The training nodes by which no replica validates: models that are not trained for each fold know them."""
        used = self.folds if self.others else self.folds[: min(self.effort.replicas, len(self.choosing))]
        return np.setdiff1d(self.task.train, np.concatenate(used)) if used else self.task.train

    @cached_property
    def outcome(self) -> Outcome:
        outcome = self.task.outcome_model()
        return outcome if self.corrected is None else outcome.with_confusion(self.corrected.table)

    @cached_property
    def _tasks(self) -> dict[tuple[str, bool, float, str], NodeTask]:
        return {}

    @cached_property
    def _around(self) -> dict[tuple[str, str], Surroundings]:
        return {}

    def surroundings(self, view: str, what: str) -> Surroundings | None:
        """What makes columns of what nodes have around them, in one view of the features."""
        if what and (view, what) not in self._around:
            self._around[view, what] = surroundings_of(self.seen(view), what)
        return self._around.get((view, what))

    @cached_property
    def trusts(self) -> dict[float, EdgeTrust]:
        """How far each edge is believed, by the share of genuine ones, without labels that any replica validates on."""
        view = next(iter(self.views))
        task = replace(self.seen(view), train=self._never_validate)
        found = edge_trust(task, SHARES, self._featureless, self.seeds[0], self.device)
        return {**found, NONE: EdgeTrust(NONE, task.edges, np.zeros(task.num_edges))}

    @cached_property
    def _featureless(self) -> bool:
        return self.featureless or is_identity(self.task.features)

    def seen(self, view: str, beliefs: bool = False, trust: float = 1.0, around: str = "") -> NodeTask:
        """The task with one view of its features, if that is wanted with what is around nodes and with beliefs as
        additional columns, and with edges that count as much as they are believed."""
        key = view, beliefs, trust, around
        if key not in self._tasks:
            task = replace(self.task, features=self.views[view].apply(self.task.features))
            made = self.surroundings(view, around)
            task = task if made is None else replace(task, features=made.apply(task))
            task = with_belief_columns(task, self.outcome) if beliefs else task
            self._tasks[key] = task if trust == 1 else self.trusts[trust].weigh(task)
        return self._tasks[key]

    def sized(self, one: Candidate) -> Candidate:
        """The candidate, in batches if the whole graph does not fit into memory. Raises an error if it cannot be."""
        plan = one.plan(self.common, (0,), self.device)
        task = self.seen(one.view, around=one.neighbours)
        return replace(one, options={**one.options, **self.effort.fitting(plan, task)})

    def fold(self, seed: int) -> int:
        """Which of the folds the replica with this seed validates on."""
        return self.seeds.index(seed) % len(self.folds)

    def held_out(self, seeds: Sequence[int]) -> np.ndarray | None:
        """(R, n): labelled nodes that other replicas train on, but not this one; None if there are none."""
        reserved = dict(zip(self.seeds[len(self.choosing) :], self.reserved, strict=True))
        none = np.zeros(0, dtype=np.int64)
        folds = [reserved.get(seed, self.folds[self.fold(seed)] if self.folds else none) for seed in seeds]
        found = self.nodes_of(folds)
        return found if found.any() else None

    def nodes_of(self, folds: Sequence[np.ndarray]) -> np.ndarray:
        """(F, n): which nodes each fold has."""
        return np.stack([np.isin(np.arange(self.task.num_nodes), fold) for fold in folds])

    @property
    def calibrating(self) -> np.ndarray:
        """The nodes of the reserved folds."""
        return np.concatenate(self.reserved)

    def reserved_parts(self, task: NodeTask) -> list[Part]:
        """The task without each of the reserved folds, and its weights."""
        return [(self._without(task, fold), self.weights) for fold in self.reserved]

    def _without(self, task: NodeTask, fold: np.ndarray) -> NodeTask:
        """The task with a fold to validate on, which trains on all other labels."""
        labelled = np.union1d(self.task.train, self.task.val)
        return replace(task, train=np.setdiff1d(labelled, np.union1d(fold, self.given)), val=fold)

    def _part(self, task: NodeTask, fold: int) -> Part:
        """The task whose validation nodes are one of the folds, and its weights."""
        own = self._without(task, self.folds[fold])
        return self.others[fold].corrected(own, self.weights) if self.others else (own, self.weights)

    @property
    def _used_folds(self) -> int:
        """By models that are quickly trained: as many as any network has, but at least three."""
        return min(len(self.folds), max(_MOST_FOLDS, min(self.effort.replicas, len(self.choosing))))

    def parts(self, task: NodeTask) -> list[Part]:
        """What a model that is quickly trained learns from, one part for each fold."""
        return [self._part(task, fold) for fold in range(self._used_folds)] or [(task, self.weights)]

    def _fit(self, plan: Plan, task: NodeTask, deadline: float | None) -> FitResult:
        """Replicas on the same labels, or each on training and validation nodes of its own."""
        if not self.folds:
            return usable(plan.fit(task, self.progress, self.weights, deadline))
        parts = [self._part(task, self.fold(seed)) for seed in plan.seeds]
        return usable(plan.fit_parts(parts, self.progress, deadline))

    def alone(self, model: Candidate) -> Trial:
        """One model that was asked for, on the view that suits it best, with all replicas."""
        views = list(self.views)
        if len(views) > 1:
            self.progress.stage("trying forms of the features", 0.3, len(views))
            tried = [self._short(self.sized(replace(model, view=view)), _STAGES["views"][2]) for view in views]
            views = [min(tried, key=lambda trial: trial.loss).candidate.view]
        model = replace(model, view=views[0])
        if self.denoise is True:
            self.progress.stage("doubting edges", 0.5, len(SHARES) + 1)
            doubting = {share: self.sized(replace(model, trust=share)) for share in (*SHARES, NONE)}
            losses = {share: self._short(one, _STAGES["sizes"][2]).loss for share, one in doubting.items()}
            model = replace(model, trust=min(losses, key=lambda share: losses[share]))
        self.progress.stage("training the model", 0.9, 1, keeps=True)
        trial = self._long(self.sized(model), self.seeds, None)
        self.notes.extend(self.effort.memory_notes())
        if not math.isfinite(trial.loss):
            raise TrainingError(_DIVERGED)
        return trial

    def panel(
        self, models: Sequence[Candidate], simple: Sequence[Candidate] = (), known: Sequence[Trial] = ()
    ) -> list[Trial]:
        """Every candidate that was tried, at least one of them trained to the end. known: what was tried before."""
        trials = {trial.candidate.key: trial for trial in known}
        trust = SHARES[0] if self.denoise is True else 1.0
        found: list[Trial] = []
        try:
            self.simple(simple, trials)
            if self.progress.interrupted:
                raise Interrupted
            if self.fixed:
                found += self._every(models, trials).values()
                return found
            best = self._ranked_views()[: self.effort.views]
            first = [replace(one, view=best[0], trust=trust) for one in models]
            if self.denoise is True:
                # Without edges all networks are the same.
                first[1:1] = [replace(one, trust=NONE) for one in first][:1]
            self._try("models", first, trials)
            if self.denoise:
                self._doubt(first, trials)
            leading, varied = _leading(trials)[: self.effort.leading], self.effort.varied
            self._try("views", [replace(one, view=view) for one in leading for view in best[1:]], trials)
            self._try("sizes", [new for one in _leading(trials)[:varied] for new in one.variants()], trials)
            self.notes.extend(self.effort.memory_notes())
            found += trials.values()
            self._finish(found)
        except Interrupted:
            found = found or list(trials.values())
            if not any(trial.complete for trial in found):
                raise
        if not any(trial.complete and math.isfinite(trial.loss) for trial in found):
            raise next(iter(self.effort.left_out.values()), TrainingError(_DIVERGED))
        return found

    def _every(self, models: Sequence[Candidate], trials: Trials) -> Trials:
        """Each of the models on the form of the features that comes first, trained to its end on every fold."""
        self._try("fixed", [replace(one, view=next(iter(self.views))) for one in models], trials)
        self.notes.extend(self.effort.memory_notes())
        return trials

    def simple(self, models: Sequence[Candidate], trials: Trials) -> Trials:
        """Try what anyone would try first, on the features as they came, if no view looks like that."""
        plain = "given" if "given" in self.views else next(iter(self.views))
        self._try("simple", [replace(one, view=plain) for one in models], trials)
        return trials

    def _try(self, stage: str, waiting: Iterable[Candidate], trials: Trials, least: int | None = None) -> None:
        """Each candidate that was not tried before, as long as there is something left to spend in this stage."""
        (words, until, share, usual), todo = _STAGES[stage], list[Candidate]()
        for one in waiting:
            with suppress(DeviceMemoryError):
                todo.append(self.sized(one) if one.is_network else one)
        todo = [one for one in todo if one.key not in trials]
        if todo:
            self.progress.stage(words, until, len(todo))
        for place, one in enumerate(todo):
            wanted = place < (usual if least is None else least) and self.effort.seconds is None
            # There is always one to answer, and unless time is short a network among them.
            first = all(trial.candidate.simple for trial in trials.values()) and (not one.simple or not trials)
            if not (first or wanted or self.effort.allows(share)):
                break
            trials[one.key] = self._unless_too_large(partial(self._short, one, share), Trial(one))

    def _doubt(self, networks: Sequence[Candidate], trials: Trials) -> None:
        """The best networks, and one that listens to edges most, with edges that are doubted; if that is better, the
        others as well."""
        if self._featureless and self.outcome.exclusive:
            propagating = [Candidate(PROPAGATION, "", view=networks[0].view, trust=share) for share in SHARES]
            self._try("propagation", propagating, trials)
        listening = [one for one in _leading(trials) if one.model != "mlp"]
        some = listening[:_DOUBTERS] + [one for one in listening[_DOUBTERS:] if one.name == _LISTENS]
        doubting = [replace(one, trust=share) for one in some for share in SHARES]
        self._try("doubting", doubting, trials, least=1 if self.effort.large else None)
        best = min(worth_doubting(list(trials.values())), key=lambda trial: trial.loss).candidate
        if not best.simple and NONE < best.trust < 1:
            self._try("doubting more", [replace(one, trust=best.trust) for one in networks], trials)

    def _ranked_views(self) -> list[str]:
        """The views, that with the lowest loss first.

        A perceptron on the features of a node and their mean over its neighbours, which needs the labelled nodes only.
        """
        if len(self.views) == 1:
            return list(self.views)
        task, losses = self.task, dict[str, float]()
        self.progress.stage("trying forms of the features", 0.08, len(self.views))
        nodes = np.union1d(task.train, task.val)
        around = neighbour_mean(task.edges, task.num_nodes, task.weights)[nodes]
        labelled = replace(task.among(nodes), beliefs=None)
        epochs = min(_PROBE_EPOCHS, int(self.common["epochs"]))
        plan = _PROBE.plan({**self.common, "epochs": epochs}, self.seeds[:1], self.device)
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

    def unvalidated(self, models: Sequence[Candidate]) -> list[Trial]:
        """Where there is nothing to validate on: each of the models for a fixed number of epochs."""
        trust, found = SHARES[0] if self.denoise is True else 1.0, list[Trial]()
        self.progress.stage("training models", 0.9, len(models))
        for one in models:
            wanted = replace(one, view=next(iter(self.views)), trust=trust)
            try:
                found.append(self._unless_too_large(partial(self._unjudged, wanted), Trial(wanted)))
            except Interrupted:
                if not any(trial.complete for trial in found):
                    raise
                break
        self.notes.extend(self.effort.memory_notes())
        found = [trial for trial in found if trial.complete]
        if not found:
            raise next(iter(self.effort.left_out.values()), TrainingError(_DIVERGED))
        return found

    def _unjudged(self, candidate: Candidate) -> Trial:
        chosen = self.sized(candidate)
        plan = chosen.plan(self.common, self.seeds, self.device)
        plan = plan.for_all_labels(min(FIXED_EPOCHS, int(self.common["epochs"])))
        # The validation loss is recorded, but nothing depends on it.
        task = self.seen(chosen.view, chosen.beliefs, chosen.trust, chosen.neighbours)
        result = usable(plan.fit(replace(task, val=task.train), self.progress, self.weights))
        return replace(self._known(chosen, result), loss=math.nan, score=math.nan)

    def _finish(self, trials: list[Trial]) -> None:
        """Train networks that are worth it to the end, in the order of their promise."""
        kept = self._promising(trials)
        most = min(self.effort.replicas, len(self.choosing))
        rounds = max(1, -(-most // self.at_once))
        self.progress.stage("training the best models", 0.9, max(len(kept) * rounds, 1))
        for turn in range(rounds):
            seeds = self.choosing[turn * self.at_once : min((turn + 1) * self.at_once, most)]
            for place in kept:
                trial = trials[place]
                if any(one.complete for one in trials) and not self.effort.allows():
                    continue
                done = trial.learned.seeds if isinstance(trial.learned, FitResult) else ()
                left = [seed for seed in seeds if seed not in done]
                if left:
                    trials[place] = self._unless_too_large(partial(self._long, trial.candidate, left, trial), trial)

    def _promising(self, trials: Sequence[Trial]) -> list[int]:
        """Networks with a weight in the mixture of all, then those whose loss is close to the lowest."""
        helped = worth_doubting(trials)
        finite = [place for place, trial in enumerate(trials) if math.isfinite(trial.loss) and trial in helped]
        if not finite:
            return [place for place, trial in enumerate(trials) if trial.candidate.is_network][:1]
        log_probs = []
        for trial in (trials[place] for place in finite):
            scaled = self.outcome.scaled(trial.answer, Scaling(trial.temperature))
            log_probs.append(self.outcome.label_log_prob(scaled, self.task.labels[trial.nodes]))
        # Some have been trained to the end before, with more folds than the first.
        weights = member_weights(np.stack([one[: len(self.task.val)] for one in log_probs]), most=99)
        waiting = [place for place in finite if trials[place].candidate.is_network]
        lowest = min((trials[place].loss for place in waiting), default=math.inf)
        near, weight = lowest + (_CLOSE_ENOUGH - 1) * abs(lowest), dict(zip(finite, weights.tolist(), strict=True))
        order = sorted(waiting, key=lambda place: (-weight[place], trials[place].loss))
        return [place for place in order if weight[place] > 0 or trials[place].loss <= near][: self.effort.kept]

    def _short(self, candidate: Candidate, share: float) -> Trial:
        """One replica for few epochs, until this share of what may be spent is spent."""
        if not candidate.is_network:
            task = self.seen(candidate.view, around=candidate.neighbours)
            if candidate.estimator is None and self.others:
                task = replace(task, train=self._never_validate)
            parts = self.parts(task)
            learned = self.learned(candidate, parts)
            self.effort.worked += candidate.work(task) * len(parts)
            apart = learned.held_out is not None
            nodes = np.concatenate([part.val for part, _ in parts]) if apart else self.task.val
            answer = learned.fitted_answers(task).answer[nodes]
            return self._judged(Trial(candidate, learned, nodes, answer, replicas=len(parts)))
        if self.fixed:
            return self._trained(candidate, self.choosing, self.common)
        limits = {"epochs": _FIRST_EPOCHS, "patience": _FIRST_PATIENCE}
        common = {**self.common, **{name: min(limit, int(self.common[name])) for name, limit in limits.items()}}
        common["epochs"] = self.effort.short_epochs(candidate.price, self.task, common["epochs"])
        seeds = self.choosing[: self._used_folds or 1] if candidate.simple else self.seeds[:1]
        trial = self._trained(candidate, seeds, common, share)
        assert isinstance(trial.learned, FitResult)
        # A replica that has stopped by then has nothing more to learn, unless time was over.
        stopped = trial.replicas > 0 and trial.learned.status[0] == "stopped" and self.effort.seconds is None
        return trial if candidate.simple or (stopped and self.at_once == 1) else replace(trial, learned=None)

    def learned(self, candidate: Candidate, parts: Sequence[Part]) -> Member:
        """A candidate that is no network, fitted to tasks as it sees them."""
        around = self.surroundings(candidate.view, candidate.neighbours)
        return candidate.train(parts, self.views[candidate.view], self.outcome, self.seeds[0], around)

    def _long(self, candidate: Candidate, seeds: Sequence[int], before: Trial | None) -> Trial:
        """All epochs for these seeds, together with the replicas that have been trained as long before."""
        epochs = int(self.common["epochs"])
        # A model that was asked for takes as long as it takes.
        epochs = self.effort.long_epochs(candidate.price, self.task, epochs) if before else epochs
        trial = self._trained(candidate, seeds, {**self.common, "epochs": epochs})
        if before is None or not isinstance(before.learned, FitResult):
            return trial
        if not trial.replicas:
            return before
        assert isinstance(trial.learned, FitResult)
        return self._judged(self._known(candidate, FitResult.join([before.learned, trial.learned])))

    def _trained(self, candidate: Candidate, seeds: Sequence[int], common: Parameters, share: float = 1.0) -> Trial:
        task = self.seen(candidate.view, candidate.beliefs, candidate.trust, candidate.neighbours)
        plan = candidate.plan(common, seeds, self.device)
        deadline = self.effort.deadline(share)
        result = self._fit(plan, task, deadline)
        self.effort.charge(candidate.price, int(result.epochs.sum()), task)
        trial = self._known(candidate, result)
        return self._judged(trial) if trial.replicas else trial

    def _known(self, candidate: Candidate, result: FitResult) -> Trial:
        """A trial that has not been judged."""
        epochs = int(result.epochs.max(initial=0))
        trial = Trial(candidate, result, replicas=result.trials, epochs=epochs, objective=result.objective)
        if not result.trials:
            return trial
        heard = [(result.answers, self.task.val)]
        if self.folds:
            heard = [(result.answers[[r]], self.folds[self.fold(seed)]) for r, seed in enumerate(result.seeds)]
        answer = np.concatenate([self.outcome.averaged(answers[:, nodes]) for answers, nodes in heard])
        return replace(trial, nodes=np.concatenate([nodes for _, nodes in heard]), answer=answer)

    def judged_alike(self, trial: Trial) -> Trial:
        """By the validation nodes of the task alone, as all others are."""
        shared = np.isin(trial.nodes, self.task.val)
        if not trial.complete or not shared.any() or shared.all():
            return trial
        own = self._judged(replace(trial, nodes=trial.nodes[shared], answer=trial.answer[shared]))
        return replace(trial, loss=own.loss, score=own.score)

    def _judged(self, trial: Trial) -> Trial:
        """How well the mean of the replicas does on the validation nodes."""
        labels = self.task.labels[trial.nodes]
        temperature = self.outcome.temperature(trial.answer, labels)
        scaled = self.outcome.scaled(trial.answer, Scaling(temperature))
        loss, score = self.outcome.loss_and_score(scaled, labels)
        return replace(trial, loss=loss, score=score, temperature=temperature)

    def _unless_too_large(self, train: Callable[[], Trial], otherwise: Trial) -> Trial:
        """What was trained, or what there is without. Others of a panel may be smaller."""
        try:
            return train()
        except (DeviceMemoryError, MemoryError) as error:
            self.notes.append(f"{otherwise.candidate.name} does not fit into memory: {error}")
        except InputError as error:
            if otherwise.candidate.is_network or otherwise.candidate.asked:
                raise
            self.notes.append(f"{otherwise.candidate.name} could not be trained and was left out: {error}")
        return otherwise


def _leading(trials: Trials) -> list[Candidate]:
    """The candidates so far that are not simple, the one with the lowest loss first."""
    ranked = sorted(worth_doubting(list(trials.values())), key=lambda trial: trial.loss)
    return [trial.candidate for trial in ranked if not trial.candidate.simple]
