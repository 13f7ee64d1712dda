"""From a request to a fitted model: candidates are tried, the best weighted and calibrated, and trained again on all
labels if that is wanted."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from g3nn.base.errors import G3NNWarning, Problems, TrainingError
from g3nn.estimator.answers import Answerer, Calibration, Calibrations
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.members import Member, Network, beliefs_about, sharpness
from g3nn.estimator.panel import EFFORTS, Candidate, Spending, Trial, using_beliefs, with_believers
from g3nn.estimator.problem import Request, fingerprint, repeated
from g3nn.estimator.search import Search
from g3nn.estimator.wrong_labels import TRAININGS, JudgedLabels, can_judge, judged_labels, judges, known_labels
from g3nn.graph.calibrate import FEW_VALIDATION_NODES
from g3nn.graph.given import FeatureTable
from g3nn.graph.task import NodeTask
from g3nn.graph.views import Form, views_of
from g3nn.model.inferring import can_infer
from g3nn.model.tabular import CrossFitted
from g3nn.training import FitResult
from g3nn.training.checks import checked_device
from g3nn.training.options import LAST
from g3nn.training.progress import Course

_MODEL = "sbm-appnp"
"""It makes most of few labels: its prior and its likelihood learn from the unlabelled nodes too."""
_LABELS, _EDGES = 6.0, 20
"""Labels of a class, on average, from which on there is something to choose models by; edges that a model needs."""
_EPOCHS, _REPLICAS = 60, 2
"""Early stopping is off: with so few validation nodes its timing is noise, and a network that stopped at another time
would not say how certain the one that answers may be."""


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
_ALL_FALSE = (
    "denoise: validation prefers to believe no edge at all, as if they joined nodes by chance: features alone answer. "
    "denoise=False believes every edge"
)


def fit_model(
    asked: Request, parameters: Mapping[str, Any], progress: Course, notes: list[str], known: Sequence[Trial] = ()
) -> Fitted:
    """Try candidates, weight the best, calibrate, train on all labels if asked to, and answer for all nodes.

    notes: gets what the caller should know. known: what was tried before, in an earlier fit to the same request."""
    impute = asked.structural or parameters["missing"] == "impute"
    whole, task, seen, form, means = tasks_of(asked, parameters["inductive"], impute)
    simple = None if known else lean(asked, parameters)
    request = simple or asked
    task, prior = _with_beliefs(request, task, seen)
    search = _search(request, parameters, task, seen, form, progress, notes)
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
        trials = _trials(request, search, known)
        search, answerer, judgement = _chosen(request, parameters["device"], trials, search)
        # Members that answer in the end have trained on all labels if replicas validated on folds of wrong ones.
        val = request.val if search.others else seen[np.unique(search.task.val)]
        trained_on = request.labels.labelled if search.folds else request.train
        weights = {member.place: member.weight for member in answerer.members}
        refit = parameters["refit"] or simple is not None or corrected is not None
        refitted = bool(refit and (len(request.val) or corrected is not None))
        if refitted:
            # Validation labels help to correct labels, so nothing is chosen afterwards.
            answerer, task, prior = _trained_on_all(request, answerer, trials, search, seen, corrected)
            trained_on = request.labels.labelled
    if simple is not None:
        # No node should be taken for unseen that was trained on.
        val, refitted = val[:0], False
    if search.denoise is True and not any(member.believes for member in answerer.members if member.weight):
        notes.append(_ALL_FALSE)
    if prior is not None:
        assert task.beliefs is not None
        whole = replace(whole, beliefs=beliefs_about(prior, task.beliefs, whole.features, seen))
    train = np.setdiff1d(np.union1d(whole.train, whole.val), val)
    whole, new = replace(whole, train=train, val=val), ~np.isin(np.arange(whole.num_nodes), seen)
    labels = None if judged is None else judged.within(seen)
    taught = known_labels(whole, labels if refitted and corrected is not None else None)
    if new.any():
        answerer = answerer.within(seen, whole.num_nodes)
    return Fitted(
        columns=asked.labels.names,
        flat=asked.labels.flat,
        panel=tuple(
            replace(trial.entry, chosen=place in weights, weight=weights.get(place, 0.0))
            for place, trial in enumerate(trials)
        ),
        val_loss=judgement[0],
        val_score=judgement[1],
        task=whole,
        seen=trained_on,
        answerer=answerer.asked_by_all(),
        answers=answerer(replace(whole, labels=taught, train=trained_on), new),
        features=asked.features.names,
        form=form,
        means=means,
        key=fingerprint(asked.features),
        structural=asked.structural,
        seed=asked.seeds[0],
        unit=1.0 if asked.edge_weights is None else float(asked.edge_weights.mean()),
        prior=prior,
        labels=labels,
        refitted=refitted,
        corrected=refitted and corrected is not None,
        request=asked,
        trials=tuple(trials),
        held_back=answerer.held_back,
    )


def _chosen(
    request: Request, where: str, trials: Sequence[Trial], search: Search
) -> tuple[Search, Answerer, tuple[float, float]]:
    """Those that answer, with the search whose validation nodes chose them; and the loss and score of their calibrated
    answers on these nodes."""
    members = [_member(trial, place, search) for place, trial in enumerate(trials) if trial.complete]
    device = checked_device(where, Problems())
    if not len(request.val):
        nothing = Calibration(scores=np.zeros((0, *search.task.labels.shape[1:])))
        answerer = Answerer((members[0],), search.outcome, device, Calibrations(nothing, nothing))
        return search, answerer, (math.nan, math.nan)
    search = _judging(search, members)
    task, outcome = search.task, search.outcome
    answerer = Answerer.choose(members, task, outcome, device)
    answer = answerer.calibrated(answerer(task))[task.val]
    return search, answerer, outcome.loss_and_score(answer, task.labels[task.val])


def _trained_on_all(
    request: Request,
    answerer: Answerer,
    trials: Sequence[Trial],
    search: Search,
    seen: np.ndarray,
    corrected: JudgedLabels | None,
) -> tuple[Answerer, NodeTask, CrossFitted | None]:
    """The members trained again on all labels; corrected: as what they probably are, where some are wrong. Also the
    task with what the prior learned from all labels, and the prior."""
    search.progress.stage("training on all labels", 1.0, len(answerer.members))
    val, weights = search.task.val, search.weights
    task = replace(search.task, train=np.union1d(search.task.train, val))
    if corrected is not None:
        task, weights = corrected.corrected(task, weights)
    task, prior = _with_beliefs(request, task, seen)
    search = replace(search, task=replace(task, val=val), folds=(), others=(), weights=weights)
    again = tuple(_refitted(member, trials[member.place], search) for member in answerer.members)
    return replace(answerer, members=again, outcome=search.outcome), task, prior


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
    """Whether labels can be shared out anew among training and validation: they are classes, there is validation, and
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


def _with_beliefs(request: Request, task: NodeTask, seen: np.ndarray) -> tuple[NodeTask, CrossFitted | None]:
    """The task with what the estimator that is the prior says about its nodes, if there is one."""
    if request.prior is None:
        return task, None
    weights = None if request.weights is None else request.weights[seen][task.train]
    parts = (task.features, task.labels, task.train, task.outcome_model())
    prior, beliefs = CrossFitted.fit(request.prior, *parts, seed=request.seeds[0], weights=weights)
    return replace(task, beliefs=beliefs), prior


def _search(
    request: Request,
    parameters: Mapping[str, Any],
    task: NodeTask,
    seen: np.ndarray,
    form: Form,
    progress: Course,
    notes: list[str],
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
        denoise=_denoise(parameters["denoise"], task, notes),
        featureless=request.structural,
        notes=notes,
        folds=tuple(fold if weights is None else repeated(fold, weights) for fold in folds),
    )


def _denoise(asked: bool | str, task: NodeTask, notes: list[str]) -> bool | str:
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
        notes.append(words)
    return False


def _trials(request: Request, search: Search, known: Sequence[Trial]) -> Sequence[Trial]:
    """Everything that was tried, at least one of it to the end."""
    models, notes = request.candidates, search.notes
    automatic = len(models) > 1
    if not search.task.num_edges:
        # Without a single edge all networks of a panel are the same one.
        models = tuple(sorted(models, key=lambda one: (one.name != "mlp", "-" in one.name, one.beliefs))[:1])
        models = models if request.prior is None else with_believers(models)
    if not len(request.val):
        trial = search.unvalidated(models if request.prior is None else using_beliefs(models))
        model = f"{trial.candidate.name}, which suits few labels," if automatic else trial.candidate.name
        notes.append(
            f"no labelled node is left to validate on: {model} was trained for {trial.epochs} epochs. Its "
            "probabilities are rough, and no class or value can be excluded with certainty. Label more nodes, or give "
            "val"
        )
        return [trial]
    if not automatic:
        return [search.alone(models[0])]
    models = tuple(one for one in models if one.suits(search.task)) or models[:1]
    replicas = min(search.effort.replicas, len(search.seeds))
    count = sum(map(len, search.folds[:replicas])) or len(request.val)
    if count < FEW_VALIDATION_NODES:
        notes.append(
            f"{count} validation nodes serve both to choose a model and to calibrate it: both will be rough. "
            f"Label more nodes, give at least {FEW_VALIDATION_NODES} with val, or name a model"
        )
    order = [*models, *request.tables] if request.prior is None else [*request.tables, *models]
    trials = search.panel(order, known)
    if len(trials) == 1 and search.spending.seconds is not None:
        notes.append(f"the budget was too short to try several models: only {trials[0].candidate.name} was")
    return trials


def _member(trial: Trial, place: int, search: Search) -> Member:
    one, learned = trial.candidate, trial.learned
    assert learned is not None
    trust = search.trusts[one.trust] if one.trust < 1 else None
    predictor = _network(one, learned, search) if isinstance(learned, FitResult) else learned
    return Member(search.views[one.view], predictor, place, beliefs=one.beliefs, trust=trust)


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


def _refitted(member: Member, trial: Trial, search: Search) -> Member:
    """The same member, trained on the labels of all nodes that the task of the search trains on."""
    if not trial.candidate.is_network:
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


def tasks_of(
    request: Request, inductive: bool, impute: bool
) -> tuple[NodeTask, NodeTask, np.ndarray, Form, np.ndarray | None]:
    """The task on the whole graph; the part that is trained on, in inductive use the labelled nodes alone; the numbers
    of its nodes in the whole graph; the form of the features; and the means of their columns where missing values are
    filled in."""
    n = request.features.num_nodes
    seen = request.labels.labelled if inductive else np.arange(n)
    number = np.full(n, -1, dtype=np.int64)
    number[seen] = np.arange(len(seen))
    among = np.isin(request.edges, seen).all(axis=0)
    inside = number[request.edges[:, among]]
    problems = Problems()
    form = Form.fit(request.features.at(seen))
    request = replace(request, features=form.apply(request.features, problems))
    problems.raise_if_any()
    features, means = _filled(request, seen, inside) if impute else (request.features, None)
    whole = NodeTask.build(
        features.matrix,
        request.edges,
        request.labels.values,
        request.train,
        request.val if len(request.val) else None,
        num_classes=len(request.labels.names),
        directed=request.directed,
        outcome=request.outcome.name,
        weights=False if request.edge_weights is None else request.edge_weights,
    )
    if len(seen) == n:
        return whole, whole, seen, form, means
    own = {"features": whole.features[seen], "edges": inside, "labels": whole.labels[seen]}
    own["weights"] = None if whole.weights is None else whole.weights[among]
    return whole, replace(whole, **own, train=number[whole.train], val=number[whole.val]), seen, form, means


def _filled(request: Request, seen: np.ndarray, inside: np.ndarray) -> tuple[FeatureTable, np.ndarray]:
    """Nodes that are trained on are filled in from each other first, then the rest from all."""
    part, problems = request.features.at(seen), Problems()
    means = part.column_means(problems)
    problems.raise_if_any()
    part = part.filled(inside, means)
    if len(seen) == request.features.num_nodes:
        return part, means
    rest = np.setdiff1d(np.arange(request.features.num_nodes), seen)
    rows = part.above(replace(part, matrix=request.features.matrix[rest]))
    order = np.argsort(np.concatenate([seen, rest]))
    return replace(rows, matrix=rows.matrix[order]).filled(request.edges, means), means
