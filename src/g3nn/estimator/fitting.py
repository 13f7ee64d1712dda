"""From a problem to a fitted model, in stages: labels are judged, candidates tried, the best weighted and calibrated,
and trained again on all labels if that is wanted."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from g3nn.base.errors import G3NNWarning, Problems, TrainingError
from g3nn.base.parse import SHOWN
from g3nn.estimator.answers import Answerer, Calibration
from g3nn.estimator.effort import EFFORTS
from g3nn.estimator.few_labels import LEAN, for_few_labels, prior_weights, without_choice
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.members import PATHS, Member, Network, beliefs_about
from g3nn.estimator.panel import (
    Candidate,
    Trial,
    judges,
    networks_alone,
    using_beliefs,
    with_believers,
)
from g3nn.estimator.problem import FitProblem, fingerprint
from g3nn.estimator.reserved import (
    FEWEST_FOLDS,
    asked_about,
    network_of,
    reserved_folds,
    with_all_labels,
    with_reserved,
)
from g3nn.estimator.search import Search
from g3nn.graph.calibrate import FEW_VALIDATION_NODES, Scaling, Validated
from g3nn.graph.task import NodeTask
from g3nn.graph.transforms import transforms_of
from g3nn.graph.weights import repeated
from g3nn.model.tabular import CrossFitted
from g3nn.queries.wrong_labels import TRAININGS, JudgedLabels, can_judge, judged_labels, known_labels
from g3nn.training import FitResult
from g3nn.training.checks import checked_device
from g3nn.training.progress import Course, Interrupted

_WITHOUT_VALIDATION = {LEAN: 0, "gcn": 1}
"""Which of a panel trains where nothing can be validated."""
_LEAST_EDGES, _MOST_LINKED = 20, 0.5
"""With fewer edges nothing can be learned about which are genuine, nor if a larger share of all pairs has one."""
_MOST_DOUBT = 0.5
"""If it is more probable that nothing was learned, the caller should know."""
_ALL_FALSE = (
    "denoise: validation prefers a model without edges, as if they joined nodes by chance: predictions use features "
    "alone. denoise=False uses every edge"
)


def fit_model(problem: FitProblem, progress: Course, notes: list[str], known: Sequence[Trial] = ()) -> Fitted:
    """Try candidates, weight the best, calibrate, train on all labels if asked to, and answer for all nodes.

    notes: gets what the caller should know. known: what was tried before, in an earlier fit to the same problem."""
    search = _with_beliefs(problem, _search(problem, progress, notes, bool(known)))
    few, quick = () if known else for_few_labels(problem), problem.parameters["effort"] == "quick"
    with _quiet_without_edges(search):
        judged, search = (None, search) if few and quick else _with_judged_labels(problem, search)
        few = few if search.corrected is None else ()
        search = without_choice(search, problem.parameters["effort"]) if few else search
        tried = few or problem.candidates
        tried = tried if problem.joint else networks_alone(tried, problem.outcome)
        trials = _trials(problem, tried, search, known)
        if progress.interrupted:
            notes.append("the fit was interrupted: the best of the models that were trained until then answers")
        search, answerer, judgement = _chosen(problem, trials, search)
        trials = [search.judged_alike(trial) for trial in trials]
        # Members that answer in the end have trained on all labels if replicas validated on folds of wrong ones.
        val = problem.val if search.others else problem.seen[np.unique(search.task.val)]
        trained_on = np.setdiff1d(problem.labels.labelled, problem.given) if search.folds else problem.train
        again = problem.parameters["refit"] or bool(few)
        refitted = search.corrected is not None or bool(again and len(problem.val))
        if refitted and few and progress.interrupted:
            refitted = False
        if refitted:
            # Validation labels help to correct labels, so nothing is chosen afterwards.
            try:
                search, answerer = _trained_on_all(problem, answerer, trials, search)
                trained_on = problem.labels.labelled
            except Interrupted:
                if not few:
                    raise
                notes.append("the fit was interrupted: models have learned from two thirds of the labels each")
                refitted = False
    if few and len(problem.val) and refitted:
        # No node should be taken for unseen that was trained on.
        val, refitted = val[:0], False
    if search.denoise is True and not any(member.believes for member in answerer.members if member.weight):
        notes.append(_ALL_FALSE)
    return _fitted(problem, search, answerer, trials, judgement, judged, val, trained_on, refitted)


def _fitted(
    problem: FitProblem,
    search: Search,
    answerer: Answerer,
    trials: Sequence[Trial],
    judgement: tuple[float, float],
    judged: JudgedLabels | None,
    val: np.ndarray,
    trained_on: np.ndarray,
    refitted: bool,
) -> Fitted:
    """The members on the whole graph, and their answers for its nodes. val: the nodes that none of them trained on."""
    (whole, means), seen = problem.whole, problem.seen
    train = np.setdiff1d(np.union1d(whole.train, whole.val), val)
    whole, new = replace(whole, train=train, val=val), ~np.isin(np.arange(whole.num_nodes), seen)
    if search.prior is not None:
        assert search.task.beliefs is not None
        whole = replace(whole, beliefs=beliefs_about(search.prior, search.task.beliefs, whole.features, seen))
    labels = None if judged is None else replace(judged, nodes=seen[judged.nodes])
    corrected = refitted and search.corrected is not None
    taught = replace(whole, labels=known_labels(whole, labels if corrected else None), train=trained_on)
    if new.any():
        answerer = answerer.within(seen, whole.num_nodes)
    answers = answerer.as_asked_by_all(answerer(taught, new))
    return Fitted(
        columns=problem.labels.names,
        flat=problem.labels.flat,
        panel=answerer.marked([trial.entry for trial in trials]),
        val_loss=judgement[0],
        val_score=judgement[1],
        task=whole,
        seen=trained_on,
        answerer=answerer.asked_by_all(),
        answers=answers,
        features=problem.features.names,
        form=problem.form,
        means=means,
        key=fingerprint(problem.features),
        structural=problem.structural,
        filled=problem.features.blanks,
        seed=problem.seeds[0],
        unit=1.0 if problem.edge_weights is None else float(problem.edge_weights.mean()),
        repeats=problem.repeats,
        prior=search.prior,
        labels=labels,
        refitted=refitted,
        corrected=corrected,
        problem=problem,
        trials=tuple(trials),
        held_back=answerer.held_back,
    )


@contextmanager
def _quiet_without_edges(search: Search) -> Iterator[None]:
    """With denoise=True there are edges, but some candidates believe none of them."""
    with warnings.catch_warnings():
        if search.denoise is True:
            warnings.filterwarnings("ignore", message="the graph has no edges", category=G3NNWarning)
        yield


def _chosen(
    problem: FitProblem, trials: Sequence[Trial], search: Search
) -> tuple[Search, Answerer, tuple[float, float]]:
    """The members, with the search whose validation nodes chose them; and the loss and score of their calibrated
    answers on these nodes."""
    members = [_member(trial, place, search) for place, trial in enumerate(trials) if trial.complete]
    device = checked_device(search.device, Problems())
    if not len(problem.val):
        scaling, outcome = Scaling(), search.outcome
        if len(problem.labels.labelled) <= len(problem.labels.names):
            # One label of each class: what is known without any to validate on, as likely nothing as something.
            none = np.zeros(0, dtype=np.int64)
            scaling = outcome.with_doubt(scaling, Validated(np.zeros((0, outcome.columns)), none), 1)
        nothing = Calibration(scaling, np.zeros((0, *search.task.labels.shape[1:])))
        shares = prior_weights([trials[one.place].candidate for one in members]).tolist()
        members = [replace(one, weight=w, isolated_weight=w) for one, w in zip(members, shares, strict=True)]
        answerer = Answerer(tuple(members), search.outcome, device, {"linked": nothing, "isolated": nothing})
        return search, answerer, (math.nan, math.nan)
    search = _judging(search, members)
    task, outcome = search.task, search.outcome
    prior = prior_weights([trials[one.place].candidate for one in members]) if search.fixed else None
    answerer = Answerer.choose([asked_about(task.val, one) for one in members], task, outcome, device, prior)
    honest = with_reserved(answerer, trials, search)
    tried, known = len(trials), None
    if search.fixed:
        # A class with one label is in no fold.
        tried, known = 1, task.labels[np.concatenate([np.setdiff1d(task.train, task.val), task.val])]
    if honest is None:
        judges, folds, answerer = task.val, search.folds, answerer.calibrated_by(task.val, task, tried, known)
    else:
        judges, folds = search.calibrating, search.reserved
        answerer = honest.calibrated_by(judges, task)
        if len(search.given) and _contradicts(answerer, search.given, judges, task):
            search.notes.append(
                "val: the given nodes are predicted worse than training labels that were held back, so they alone "
                "calibrate"
            )
            judges, folds = search.given, (search.given,)
            answerer = honest.calibrated_by(judges, task, tried)
    if not (search.progress.interrupted or problem.parameters["refit"]):
        answerer = with_all_labels(answerer, trials, search)
    if not search.effort.large:
        known = np.setdiff1d(np.union1d(task.train, task.val), search.given)
        known_to_all = replace(task, train=known, val=task.val[:0])
        answerer = answerer.evened(known_to_all, [fold[0] for fold in folds if fold[0] in judges])
    base = answerer.calibrations["linked"].scaling.base
    count = len(np.unique(judges))
    if len(trials) > 1 and count >= FEW_VALIDATION_NODES and base is not None and base.sum() > _MOST_DOUBT:
        search.notes.append(
            f"{count} validation nodes hardly tell this model from chance: probabilities are mostly "
            "the frequencies of the classes. Label more nodes"
        )
    answer = answerer.calibrated(answerer(task))[task.val]
    return search, answerer, outcome.loss_and_score(answer, task.labels[task.val])


def _contradicts(answerer: Answerer, given: np.ndarray, judges: np.ndarray, task: NodeTask) -> bool:
    """Whether labels of the given nodes are less probable than those that calibrated, by more than two standard errors:
    then these are of another kind."""
    answer = answerer.calibrated(answerer(task))
    losses = [
        -answerer.outcome.label_log_prob(answer[nodes], task.labels[nodes]) for nodes in (given, np.unique(judges))
    ]
    error = math.sqrt(sum(float(one.var()) / len(one) for one in losses))
    return bool(losses[0].mean() - losses[1].mean() > 2 * error)


def _trained_on_all(
    problem: FitProblem, answerer: Answerer, trials: Sequence[Trial], search: Search
) -> tuple[Search, Answerer]:
    """The members trained again on all labels, where some are wrong as what they probably are; and the search, with
    what the prior learned from all labels."""
    search.progress.stage("training on all labels", 1.0, len(answerer.members))
    weights, task = search.weights, replace(search.task, train=np.union1d(search.task.train, search.task.val))
    if search.corrected is not None:
        task, weights = search.corrected.corrected(task, weights)
    search = _with_beliefs(problem, replace(search, task=task, folds=(), others=(), reserved=(), weights=weights))
    again = tuple(_refitted(member, trials[member.place], search) for member in answerer.members)
    return search, replace(answerer, members=again, outcome=search.outcome)


def _with_judged_labels(problem: FitProblem, search: Search) -> tuple[JudgedLabels | None, Search]:
    """How labels were judged, and the search that allows for wrong ones. By default only a panel without a limit of
    time looks for wrong labels, and only if there are many are they corrected."""
    parameters, task = problem.parameters, search.task
    asked = parameters["label_noise"]
    automatic = parameters["model"] == "auto" and parameters["budget"] is None and can_judge(task)
    if not asked or (asked == "auto" and not automatic):
        return None, search
    plans = judges(task, parameters["effort"] == "quick", search.seeds[0], search.device, problem.joint)
    search.progress.stage("judging labels", 0.05, TRAININGS[asked is True] * len(plans))
    seen = search.seen(next(iter(search.views)), around="" if task.relations is None else PATHS)
    nodes, weights = np.arange(task.num_nodes), search.weights
    if task.relations is not None:
        # What reads paths needs no other nodes.
        nodes = np.union1d(task.train, task.val)
        seen, weights = seen.among(nodes), None if weights is None else weights[nodes]
    how = (search.seeds[0], search.progress, weights, int(search.common["epochs"]))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the graph has no edges", category=G3NNWarning)
            judged, others = judged_labels(seen, plans, *how, twice=asked is True)
    except Interrupted:
        if not (problem.simple and len(problem.val)):
            raise
        return None, search  # Simple models are quickly tried, and the best of them will answer.
    judged = replace(judged, nodes=nodes[judged.nodes])
    others = tuple(replace(one, nodes=nodes[one.nodes]) for one in others)
    if asked == "auto" and not judged.many:
        return judged, search
    # Labels can be shared out anew if they are classes, there is validation, and only the training looks at them.
    reads = any(dict(one.options).get("label_inputs") for one in problem.candidates)
    anew = bool(len(problem.val)) and task.labels.ndim == 1 and problem.prior is None and not reads
    return judged, search.where_labels_are_wrong(judged, others if anew else ())


def _judging(search: Search, members: Sequence[Member]) -> Search:
    """Where replicas validate on folds of their own, the task gets the nodes about which every member has a replica
    that did not train on them; the others were trained on."""
    if not search.folds:
        return search
    masks = [one.held_out.any(0) for one in members if one.held_out is not None]
    val = np.concatenate(search.folds)
    val = val[np.all(masks, axis=0)[val]] if masks else val
    labelled = np.union1d(search.task.train, search.task.val)
    return replace(search, task=replace(search.task, train=np.setdiff1d(labelled, val), val=val))


def _with_beliefs(problem: FitProblem, search: Search) -> Search:
    """The search whose task has what the estimator that is the prior says about its nodes, if there is one."""
    if problem.prior is None:
        return search
    task = search.task
    weights = None if problem.weights is None else problem.weights[problem.seen][task.train]
    parts = (task.features, task.labels, task.train, task.outcome_model())
    prior, beliefs = CrossFitted.fit(problem.prior, *parts, seed=problem.seeds[0], weights=weights)
    return replace(search, task=replace(task, beliefs=beliefs), prior=prior)


def _search(problem: FitProblem, progress: Course, notes: list[str], goes_on: bool = False) -> Search:
    """goes_on: whether replicas that have been trained before are compared too, perhaps on all folds."""
    parameters, task, seen = problem.parameters, problem.task, problem.seen
    if problem.unused:
        names = ", ".join(map(repr, problem.unused[:SHOWN])) + (", ..." if len(problem.unused) > SHOWN else "")
        notes.append(
            f"edge_types: {names} join nodes by chance: their ends are hardly more alike than if they were shuffled. "
            "Not used; denoise=False uses every edge"
        )
    weights = None if problem.weights is None else problem.weights[seen]
    counting = None if problem.judging_weights is None else problem.judging_weights[seen]
    labelled = np.searchsorted(seen, problem.labels.labelled)
    task = replace(task, val=repeated(task.val, counting, labelled))
    folds = [repeated(np.searchsorted(seen, fold), counting, labelled) for fold in problem.folds]
    device, effort = checked_device(parameters["device"], Problems()), EFFORTS[parameters["effort"]]
    if folds:
        # A single fold would choose whatever it happens to suit.
        effort = replace(effort, replicas=max(effort.replicas, FEWEST_FOLDS))
    limited = effort.limited(parameters["budget"], task, device.type == "cpu")
    # Where time is short, the labels that choose have to calibrate as well.
    kept = () if limited.large or goes_on or parameters["budget"] is not None else reserved_folds(problem)
    reserved = [repeated(np.searchsorted(seen, fold), counting, labelled) for fold in kept]
    folds = folds[: max(len(folds) - len(reserved), 0)]
    return Search(
        task,
        {view.name: view for view in transforms_of(task.features, problem.form.counts, problem.form.numbers)},
        problem.common,
        parameters["device"],
        problem.seeds,
        limited,
        progress,
        weights,
        at_once=len(problem.seeds) if device.type == "cuda" or folds else 1,
        denoise=_denoise(parameters["denoise"], task, notes),
        featureless=problem.structural or problem.positions,
        notes=notes,
        folds=tuple(folds),
        reserved=tuple(reserved),
        given=np.searchsorted(seen, problem.given),
        unused=problem.unused,
    )


def _denoise(asked: bool | str, task: NodeTask, notes: list[str]) -> bool | str:
    """Whether edges may be doubted. That takes some edges, and pairs without one to compare them with."""
    asked = asked if isinstance(asked, str) else bool(asked)
    if asked == "auto" and task.relations is not None:
        return False  # What a false edge of each type is like would have to be known.
    if asked is True and task.relations is not None:
        notes.append("denoise: models that tell types of edges or directions apart take every edge as genuine")
    pairs = task.num_nodes * (task.num_nodes - 1) // (1 if task.directed else 2)
    if asked is False or _LEAST_EDGES <= task.num_edges <= _MOST_LINKED * pairs:
        return asked
    if asked is True:
        few = task.num_edges < _LEAST_EDGES
        why = (
            f"fewer than {_LEAST_EDGES} edges" if few else f"an edge between more than {_MOST_LINKED:.0%} of all pairs"
        )
        words = f"denoise: the graph that is trained on has {why}, so nothing tells which are genuine: all are used"
        notes.append(words)
    return False


def _trials(
    problem: FitProblem, models: Sequence[Candidate], search: Search, known: Sequence[Trial]
) -> Sequence[Trial]:
    """Everything that was tried, at least one of it to the end."""
    notes, automatic = search.notes, search.fixed or len(models) > 1
    if not search.task.num_edges:
        # Without a single edge all networks of a panel are the same one.
        models = sorted(models, key=lambda one: (one.name != "mlp", "-" in one.name, one.beliefs))[:1]
        models = models if problem.prior is None else with_believers(models)
    if not len(problem.val):
        if not search.fixed:
            some = models if problem.prior is None else using_beliefs(models)
            models = [min(some, key=lambda one: _WITHOUT_VALIDATION.get(one.name, len(_WITHOUT_VALIDATION)))]
        trials = search.unvalidated(models)
        found = list(dict.fromkeys(trial.candidate.name for trial in trials))
        names = f"a mixture of {', '.join(found)}" if len(trials) > 1 else found[0]
        suits = ", which suits few labels," if automatic else ""
        notes.append(
            f"no labelled node is left to validate on: {names}{suits} was trained for {trials[0].epochs} epochs. Its "
            "probabilities are rough, and no class or value can be excluded with certainty. Label more nodes, or give "
            "val"
        )
        return trials
    simple = [one for one in problem.simple if one.suits(search.task)]
    if not automatic:
        tried = search.simple(simple, {}).values()
        return [search.alone(models[0]), *tried]
    models = [one for one in models if one.suits(search.task)] or models[:1]
    replicas = min(search.effort.replicas, len(search.choosing))
    count = len(np.unique(np.concatenate(search.folds[:replicas] or (problem.val,))))
    if count < FEW_VALIDATION_NODES and not (search.fixed and len(models) == 1):
        roles = "to choose a model" if search.reserved else "both to choose a model and to calibrate it"
        words = f"{count} validation nodes serve {roles}: that will be rough. "
        words += f"Label more nodes, give at least {FEW_VALIDATION_NODES} with val, or name a model"
        if search.fixed:
            words = f"few labels: {count} of them, left out in turn, weigh models and calibrate them, so probabilities "
            words += "and figures are estimates. Label more nodes"
        notes.append(words)
    trials = search.panel(models, simple, known)
    networks = [trial.candidate.name for trial in trials if not trial.candidate.simple]
    if len(networks) == 1 < len(models) and search.effort.seconds is not None:
        notes.append(f"the budget was too short to try several networks: only {networks[0]} was")
    return trials


def _member(trial: Trial, place: int, search: Search) -> Member:
    one, learned = trial.candidate, trial.learned
    assert learned is not None
    trust = search.trusts[one.trust] if one.trust < 1 else None
    member = network_of(one, learned, search) if isinstance(learned, FitResult) else learned
    return replace(member, place=place, beliefs=one.beliefs, trust=trust, unused=search.unused)


def _refitted(member: Member, trial: Trial, search: Search) -> Member:
    """The same member, trained on the labels of all nodes that the task of the search trains on."""
    if not isinstance(member, Network):
        part = (search.seen(member.view.name, around=trial.candidate.neighbours), search.weights)
        return search.learned(trial.candidate, [part]).in_place_of(member)
    assert isinstance(trial.learned, FitResult)
    epochs = int(np.median(trial.learned.best_epoch))
    share = 1.0 if member.trust is None else member.trust.share
    # As many as are in the mixture now, since how certain they are is theirs.
    plan = trial.candidate.plan(search.common, member.seeds, search.device).for_all_labels(epochs)
    task = search.seen(member.view.name, member.beliefs, share, trial.candidate.neighbours)
    result = plan.fit(task, search.progress, search.weights)
    sound = [place for place, status in enumerate(result.status) if status != "diverged"]
    if not sound:
        raise TrainingError("every replica diverged when trained on all labels. A lower lr usually helps")
    result = result.select(sound)
    trust = search.trusts[share] if share < 1 else None
    return replace(member, seeds=result.seeds, epochs=epochs, model=result.model, held_out=None, trust=trust)
