"""From a request to a fitted model: candidates are tried, the best weighted and calibrated, and trained again on all
labels if that is wanted."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from g3nn.base.errors import G3NNWarning, Problems, TrainingError
from g3nn.estimator.answers import Answerer, Calibration, Calibrations
from g3nn.estimator.given import repeated
from g3nn.estimator.members import LearnedPrior, Member, Network, Propagation, Tabular, sharpness
from g3nn.estimator.panel import AnyCandidate, Candidate, PanelEntry, TableCandidate, Trial, who_listen, with_believers
from g3nn.estimator.problem import Request
from g3nn.estimator.search import EFFORTS, Search, Spending
from g3nn.estimator.views import Form, views_of
from g3nn.estimator.wrong_labels import TRAININGS, JudgedLabels, can_judge, judged_labels, judges, known_labels
from g3nn.graph.outcomes.calibrate import FEW_VALIDATION_NODES
from g3nn.graph.task import NodeTask
from g3nn.model.inferring import can_infer
from g3nn.training import FitResult
from g3nn.training.checks import checked_device
from g3nn.training.progress import Course
from g3nn.training.stack import LAST

_MODEL = "sbm-appnp"
"""It makes most of few labels: its prior and its likelihood learn from the unlabelled nodes too."""
_LABELS, _EDGES = 6.0, 20
"""Labels of a class, on average, from which on there is something to choose models by; edges that a model needs."""
_EPOCHS, _REPLICAS = 60, 2
"""Nobody stops early: a few validation nodes do not know when, and a network that stopped at another time would not say
how certain the one that answers may be."""


def lean(request: Request, parameters: Mapping[str, Any]) -> Request | None:
    """What to do instead of a search with effort "quick"; None where there are labels enough for one, or where the
    caller wants something else.

    With two labels of a class to compare models would hold back half of all labels, for a choice that is hardly better
    than chance. So two replicas that validate on labels of their own say how certain answers may be, and then both
    learn from all of them.
    """
    chosen = [one for one in request.candidates if one.name == _MODEL]
    labels = len(request.labels.labelled) / max(len(request.labels.names), 1)
    asked = parameters["effort"] != "quick" or parameters["denoise"] is True or parameters["budget"] is not None
    few = labels < _LABELS and len(request.candidates) > 1 and len(request.folds) > 0
    if asked or not few or not chosen or request.prior is not None or request.edges.shape[1] < _EDGES:
        return None
    common = {**request.common, "epochs": min(_EPOCHS, int(request.common["epochs"])), "keep": LAST}
    return replace(request, candidates=tuple(chosen[:1]), seeds=request.seeds[:_REPLICAS], common=common)


_LEAST_EDGES, _MOST_LINKED = 20, 0.5
"""Of fewer edges nothing can be learned about which are genuine, nor where so many pairs of nodes have one."""


@dataclass(frozen=True, eq=False)
class Learned:
    """Those who answer; how all candidates did; loss and score of the answers on the validation nodes; the nodes of the
    whole graph whose labels were trained on, and those that decided who answers; and what an estimator learned that was
    asked for as prior. labels: how the given labels were judged, if they were; refitted: whether members were trained
    on the validation nodes in the end; corrected: on what labels probably are."""

    answerer: Answerer
    panel: tuple[PanelEntry, ...]
    judged: tuple[float, float]
    trained_on: np.ndarray
    val: np.ndarray
    prior: LearnedPrior | None
    trials: tuple[Trial, ...]
    labels: JudgedLabels | None = None
    refitted: bool = False
    corrected: bool = False

    def known(self, task: NodeTask) -> np.ndarray:
        """The labels of the whole graph as members were trained on them."""
        return known_labels(task, self.labels if self.corrected else None)


def fitted_models(
    request: Request,
    parameters: Mapping[str, Any],
    task: NodeTask,
    seen: np.ndarray,
    form: Form,
    progress: Course,
    known: Sequence[Trial] = (),
) -> Learned:
    """task: the part of the graph that is trained on; seen: the numbers of its nodes in the whole graph. known: what
    was tried before."""
    simple = None if known else lean(request, parameters)
    request = simple or request
    task, prior = _with_beliefs(request, task, seen)
    search = _search(request, parameters, task, seen, form, progress)
    if simple is not None:
        search = replace(search, views=dict(list(search.views.items())[:1]))
    with warnings.catch_warnings():
        if search.denoise is True:
            # There are edges, but some candidates believe none of them.
            warnings.filterwarnings("ignore", message="the graph has no edges", category=G3NNWarning)
        judged, others = (None, ()) if simple is not None else _judged_labels(parameters, search)
        corrected = judged if judged is not None and (judged.many or parameters["label_noise"] != "auto") else None
        if corrected is not None:
            search = search.where_labels_are_wrong(corrected, others if _can_share_out(request, search) else ())
        refit = parameters["refit"] or simple is not None or corrected is not None
        learned = _learned(request, parameters["device"], search, seen, prior, known, refit, corrected)
        learned = replace(learned, labels=None if judged is None else judged.within(seen))
    if simple is not None:
        # Nobody should take nodes for unseen that were trained on.
        learned = replace(learned, val=learned.val[:0], refitted=False)
    if search.denoise is True and not any(member.believes for member in learned.answerer.members if member.weight):
        _note_all_false()
    return learned


def _learned(
    request: Request,
    where: str,
    search: Search,
    seen: np.ndarray,
    prior: LearnedPrior | None,
    known: Sequence[Trial],
    refit: bool,
    corrected: JudgedLabels | None,
) -> Learned:
    """where: the device. refit: whether members are trained again on all labels; corrected: as what they probably are,
    where some are wrong. Validation labels help to correct them, so nothing is chosen afterwards.
    """
    task, progress = search.task, search.progress
    trials = _trials(request, search, known)
    members = [_member(trial, place, search) for place, trial in enumerate(trials) if trial.complete]
    device = checked_device(where, Problems())
    if len(request.val):
        search = _judging(search, members)
        answerer = Answerer.choose(members, search.task, search.outcome, device)
    else:
        nothing = Calibration(scores=np.zeros((0, *task.labels.shape[1:])))
        answerer = Answerer((members[0],), search.outcome, device, Calibrations(nothing, nothing))
    judged = _judged(answerer, search) if len(request.val) else (math.nan, math.nan)
    weights = {member.place: member.weight for member in answerer.members}
    entries = [
        replace(trial.entry, chosen=place in weights, weight=weights.get(place, 0.0))
        for place, trial in enumerate(trials)
    ]
    # Who answers in the end has trained on all labels if replicas validated on folds of wrong ones.
    val = request.val if search.others else seen[np.unique(search.task.val)]
    labelled = request.labels.labelled if search.folds else request.train
    learned = Learned(answerer, tuple(entries), judged, labelled, val, prior, tuple(trials))
    if not refit or not (len(request.val) or corrected is not None):
        return learned
    progress.stage("training on all labels", 1.0, len(answerer.members))
    task, counted = replace(task, train=np.union1d(task.train, task.val)), search.weights
    if corrected is not None:
        task, counted = corrected.corrected(task, counted)
    task, prior = _with_beliefs(request, task, seen)
    everything = replace(search, task=replace(task, val=search.task.val), folds=(), others=(), weights=counted)
    again = tuple(_refitted(member, trials[member.place], everything) for member in answerer.members)
    answerer = replace(answerer, members=again, outcome=everything.outcome)
    learned = replace(learned, answerer=answerer, trained_on=request.labels.labelled, prior=prior)
    return replace(learned, refitted=True, corrected=corrected is not None)


def _judged_labels(
    parameters: Mapping[str, Any], search: Search
) -> tuple[JudgedLabels | None, tuple[JudgedLabels, ...]]:
    """As `judged_labels`. Where nothing is said, only a panel without a limit of time looks for wrong labels."""
    asked, task = parameters["label_noise"], search.task
    automatic = parameters["model"] == "auto" and parameters["budget"] is None and can_judge(task)
    if not asked or (asked == "auto" and not automatic):
        return None, ()
    models = judges(task, parameters["effort"] == "quick")
    search.progress.stage("judging labels", 0.05, TRAININGS[asked is True] * len(models))
    view = next(iter(search.views.values()))
    how = (search.seeds[0], search.device, search.progress, search.weights, int(search.common["epochs"]))
    return judged_labels(task, view, models, *how, twice=asked is True)


def _can_share_out(request: Request, search: Search) -> bool:
    """Whether labels can be shared out anew among training and validation: they are classes, somebody validates, and
    nothing but the training has looked at them."""
    reads = any(dict(one.options).get("label_inputs") for one in request.candidates)
    return bool(len(request.val)) and search.task.labels.ndim == 1 and request.prior is None and not reads


def _judging(search: Search, members: Sequence[Member]) -> Search:
    """Where replicas validate on folds of their own, the task gets the nodes about which every member has a replica
    that did not train on them; the others were trained on."""
    if not search.folds:
        return search
    networks = [member.learned for member in members if isinstance(member.learned, Network)]
    masks = [one.held_out.any(0) for one in networks if one.held_out is not None]
    val = np.concatenate(search.folds)
    val = val[np.all(masks, axis=0)[val]] if masks else val
    labelled = np.union1d(search.task.train, search.task.val)
    return replace(search, task=replace(search.task, train=np.setdiff1d(labelled, val), val=val))


def _with_beliefs(request: Request, task: NodeTask, seen: np.ndarray) -> tuple[NodeTask, LearnedPrior | None]:
    """The task with what the estimator that is the prior says about its nodes, if there is one."""
    if request.prior is None:
        return task, None
    weights = None if request.weights is None else request.weights[seen]
    prior = LearnedPrior.fit(request.prior, task, weights, request.seeds[0])
    return replace(task, beliefs=prior.beliefs), prior


def _search(
    request: Request, parameters: Mapping[str, Any], task: NodeTask, seen: np.ndarray, form: Form, progress: Course
) -> Search:
    weights = None if request.weights is None else request.weights[seen]
    if weights is not None:
        task = replace(task, val=repeated(task.val, weights))
    device, effort = checked_device(parameters["device"], Problems()), EFFORTS[parameters["effort"]]
    views = views_of(task.features, form.counts, form.numbers)
    folds = [np.searchsorted(seen, fold) for fold in request.folds]
    return Search(
        task,
        {view.name: view for view in views},
        request.common,
        parameters["device"],
        request.seeds,
        effort,
        Spending.of(effort, parameters["budget"], task, device.type == "cpu"),
        progress,
        weights,
        at_once=len(request.seeds) if device.type == "cuda" or folds else 1,
        denoise=_denoise(parameters["denoise"], task),
        featureless=request.structural,
        folds=tuple(fold if weights is None else repeated(fold, weights) for fold in folds),
    )


def _denoise(asked: bool | str, task: NodeTask) -> bool | str:
    """Whether edges may be doubted. That takes some edges, and pairs without one to compare them with."""
    asked = asked if isinstance(asked, str) else bool(asked)
    pairs = task.num_nodes * (task.num_nodes - 1) // (1 if task.directed else 2)
    if asked is False or _LEAST_EDGES <= task.num_edges <= _MOST_LINKED * pairs:
        return asked
    if asked is True:
        few = task.num_edges < _LEAST_EDGES
        why = (
            f"fewer than {_LEAST_EDGES} edges" if few else f"an edge between more than {_MOST_LINKED:.0%} of all pairs"
        )
        words = f"denoise: the graph that is trained on has {why}, so nothing tells which are genuine: all are believed"
        warnings.warn(words, G3NNWarning, stacklevel=6)
    return False


def _trials(request: Request, search: Search, known: Sequence[Trial]) -> Sequence[Trial]:
    """Everything that was tried, at least one of it to the end."""
    models: tuple[Candidate, ...] = request.candidates
    automatic = len(models) > 1
    if not search.task.num_edges:
        # Without a single edge all networks of a panel are the same one.
        models = tuple(sorted(models, key=lambda one: (one.name != "mlp", "-" in one.name, one.beliefs))[:1])
        models = models if request.prior is None else with_believers(models)
    if not len(request.val):
        trial = search.unvalidated(models if request.prior is None else who_listen(models))
        _note_unvalidated(trial.entry, automatic)
        return [trial]
    if not automatic:
        return [search.alone(models[0])]
    models = tuple(one for one in models if one.suits(search.task)) or models[:1]
    replicas = min(search.effort.replicas, len(search.seeds))
    _warn_of_few(sum(map(len, search.folds[:replicas])) or len(request.val))
    order: list[AnyCandidate] = [*models, *request.tables] if request.prior is None else [*request.tables, *models]
    trials = search.panel(order, known)
    if len(trials) == 1 and search.spending.seconds is not None:
        name = trials[0].candidate.name
        warnings.warn(f"the budget was too short to try several models: only {name} was", G3NNWarning, stacklevel=6)
    return trials


def _member(trial: Trial, place: int, search: Search) -> Member:
    view = search.views[trial.candidate.view]
    one, learned = trial.candidate, trial.learned
    if isinstance(one, TableCandidate):
        assert isinstance(learned, Tabular)
        return Member(view, learned, place)
    trust = search.trusts[one.trust] if one.trust < 1 else None
    if isinstance(learned, Propagation):
        return Member(view, learned, place, trust=trust)
    assert isinstance(one, Candidate)
    assert isinstance(learned, FitResult)
    return Member(view, _network(one, learned, search), place, beliefs=one.beliefs, trust=trust)


def _network(candidate: Candidate, result: FitResult, search: Search) -> Network:
    """What was learned, in the form in which it answers."""
    plan = candidate.plan(search.common, result.seeds, search.device)
    infers = result.model.posterior.nodes is not None and can_infer(result.model, plan.objective)
    options = plan.hyperparameters(search.task.outcome)
    epochs = int(result.epochs.max())
    how = (options, result.seeds, epochs, result.history, result.model)
    held_out, sharp = None, 1.0
    if search.folds:
        held_out = np.zeros((result.trials, search.task.num_nodes), dtype=bool)
        for replica, seed in enumerate(result.seeds):
            held_out[replica, search.folds[search.fold(seed)]] = True
        task = search.task
        rest = np.setdiff1d(np.arange(task.num_nodes), np.concatenate([task.train, task.val]))
        sharp = sharpness(result.answers[:, rest], search.outcome) if len(rest) else 1.0
    return Network(plan.spec, plan.objective_name, *how, infers=infers, held_out=held_out, sharpness=sharp)


def _judged(answerer: Answerer, search: Search) -> tuple[float, float]:
    """Loss and score of the calibrated answers on the validation nodes."""
    val = search.task.val
    return search.outcome.loss_and_score(answerer.calibrated(answerer(search.task))[val], search.task.labels[val])


def _refitted(member: Member, trial: Trial, search: Search) -> Member:
    """The same member, trained on the labels of all nodes that the task of the search trains on."""
    if not isinstance(trial.candidate, Candidate):
        again = trial.candidate.train(search.seen(member.view.name), search.outcome, search.seeds[0], search.weights)
        return replace(member, learned=again)
    assert isinstance(trial.learned, FitResult)
    assert isinstance(member.learned, Network)
    epochs = int(np.median(trial.learned.best_epoch))
    share = 1.0 if member.trust is None else member.trust.share
    plan = trial.candidate.plan(search.common, trial.learned.seeds, search.device).for_all_labels(epochs)
    result = plan.fit(search.seen(member.view.name, member.beliefs, share), search.progress, search.weights)
    sound = [place for place, status in enumerate(result.status) if status != "diverged"]
    if not sound:
        raise TrainingError("every replica diverged when trained on all labels. A lower lr usually helps")
    result = result.select(sound)
    learned = replace(member.learned, seeds=result.seeds, epochs=epochs, model=result.model, held_out=None)
    return replace(member, learned=learned, trust=search.trusts[share] if share < 1 else None)


def _note_unvalidated(entry: PanelEntry, automatic: bool) -> None:
    model = f"{entry.model}, which suits few labels," if automatic else entry.model
    warnings.warn(
        f"no labelled node is left to validate on: {model} was trained for {entry.epochs} epochs. Its probabilities "
        "are rough, and no class or value can be excluded with certainty. Label more nodes, or give val",
        G3NNWarning,
        stacklevel=7,
    )


def _note_all_false() -> None:
    warnings.warn(
        "denoise: validation prefers to believe no edge at all, as if they joined nodes by chance: features alone "
        "answer. denoise=False believes every edge",
        G3NNWarning,
        stacklevel=5,
    )


def _warn_of_few(count: int) -> None:
    if count < FEW_VALIDATION_NODES:
        warnings.warn(
            f"{count} validation nodes serve both to choose a model and to calibrate it: both will be rough. "
            f"Label more nodes, give at least {FEW_VALIDATION_NODES} with val, or name a model",
            G3NNWarning,
            stacklevel=7,
        )
