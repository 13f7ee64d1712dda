"""Labels that come in: which node to label next, which edge or label to check, and quick updates with the answers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from g3nn.base.errors import Problems, TrainingError, refuse
from g3nn.base.parse import pair_array
from g3nn.base.threads import enough_for
from g3nn.estimator.answers import Answerer, Calibration, member_weights
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.members import Member, Network, Parameters, Tabular
from g3nn.estimator.panel import Trial, usable
from g3nn.estimator.problem import FitProblem, divided, fingerprint
from g3nn.estimator.showing import label_table
from g3nn.graph.calibrate import Scaling, Validated
from g3nn.graph.outcomes import Labels, has_label
from g3nn.graph.outcomes.labels import quoted
from g3nn.graph.tables.fitted_tables import numbers_by
from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs
from g3nn.queries import EdgeSuggestion, GraphAudit, LabelSuggestion, Situation, Suggestion, choose, doubtful_edges
from g3nn.queries.choosing import check_count
from g3nn.queries.covering import Likeness
from g3nn.queries.strategies import STRATEGIES, Strategy
from g3nn.queries.wrong_labels import FEWEST_LABELS, JudgedLabels
from g3nn.training.progress import Course
from g3nn.training.room import LARGE


def suggest(
    fitted: Fitted, k: int, strategy: str | Strategy, candidates: object, exclude: object, likeness: Likeness | None
) -> tuple[list[Suggestion], Likeness]:
    """See `GraphEstimator.suggest`. Also gives back how alike nodes are, for the next question."""
    problems = Problems()
    check_count(k, problems)
    if not callable(strategy):
        problems.name("strategy", strategy, STRATEGIES)
    n = fitted.task.num_nodes
    allowed = None if candidates is None else numbers_of(fitted, "candidates", candidates, problems)
    refused = None if exclude is None else numbers_of(fitted, "exclude", exclude, problems)
    problems.raise_if_any()
    if allowed is None:
        # Labels that were set aside for a test are known already; other nodes never have one, or not even a row.
        tables = fitted.tables
        left = [] if tables is None else [*tables.test, *tables.never, *range(n - tables.added, n)]
        allowed = np.setdiff1d(np.arange(n), left)
    nodes = np.setdiff1d(allowed, labelled_nodes(fitted))
    if refused is not None:
        nodes = np.setdiff1d(nodes, refused)
    situation = replace(situation_of(fitted, nodes, strategy == "disagreement"), known_likeness=likeness)
    found = choose(situation, int(k), strategy)
    ids = ids_of(fitted, np.array([one.number for one in found], dtype=np.int64))
    return [replace(one, node=id) for one, id in zip(found, ids, strict=True)], situation.likeness


def suggest_edges(fitted: Fitted, audit: GraphAudit, k: int) -> list[EdgeSuggestion]:
    """See `GraphEstimator.suggest_edges`."""
    problems = Problems()
    check_count(k, problems)
    problems.raise_if_any()
    task, beliefs = fitted.groups()
    false = 1.0 - audit.edge_proba(tuple(task.edges), "genuine")
    situation = situation_of(fitted, np.zeros(0, dtype=np.int64))
    places, scores, changes = doubtful_edges(int(k), false, beliefs, task.edges, situation.adjacency)
    found = []
    for place, score, change in zip(places.tolist(), scores.tolist(), changes.tolist(), strict=True):
        numbers = task.edges[:, place]
        ids = ids_of(fitted, numbers)
        reason = f"false with probability {false[place]:.0%}; without it, beliefs about its ends would move by "
        reason += f"{change / 2:.0%} on average"
        ends = (int(numbers[0]), int(numbers[1]))
        found.append(EdgeSuggestion(ids[0], ids[1], ends, float(false[place]), float(score), reason))
    return found


def suggest_labels(fitted: Fitted, k: int, judged: Callable[[], JudgedLabels]) -> list[LabelSuggestion]:
    """See `GraphEstimator.suggest_labels`."""
    problems = Problems()
    check_count(k, problems)
    problems.raise_if_any()
    if fitted.labels is None and (len(labelled_nodes(fitted)) < FEWEST_LABELS or fitted.task.extent > LARGE):
        return []
    table = label_table(fitted, judged(), contradicted=True)[: int(k)]
    parts = (table[name].tolist() for name in ("node", "given", "answer", "probability"))
    rows = zip(ids_of(fitted, table["node"]), *parts, strict=True)
    return [
        LabelSuggestion(id, node, given, answer, probability, _doubt(given, answer, probability))
        for id, node, given, answer, probability in rows
    ]


def _doubt(given: object, answer: object, probability: float) -> str:
    share = "below 1%" if probability < 0.01 else "above 99%" if probability > 0.99 else f"{probability:.0%}"
    return f"labelled {given}, but without this label it would be {answer}: wrong with probability {share}"


def labelled_nodes(fitted: Fitted) -> np.ndarray:
    """The nodes whose labels the fit knew, to train or to validate on."""
    return np.flatnonzero(has_label(fitted.task.labels))


def situation_of(fitted: Fitted, candidates: np.ndarray, each: bool = False) -> Situation:
    """What a strategy may look at. Labels of classes enter the beliefs as certain. each: what every replica believes,
    too."""
    task, outcome = fitted.task, fitted.outcome
    mean, deviation = outcome.moments(fitted.calibrated())
    parts: dict[str, Any] = {}
    if outcome.exclusive:
        beliefs = mean / mean.sum(1, keepdims=True)
        known = labelled_nodes(fitted)
        beliefs[known] = np.eye(beliefs.shape[1])[fitted.known_labels[known]]
        parts = {"beliefs": beliefs, "names": tuple(map(str, fitted.columns.tolist()))}
        if each:
            parts["members"], parts["member_weights"] = member_beliefs(fitted)
    elif outcome.flags:
        odds = np.clip(mean, 1e-12, 1 - 1e-12)
        parts = {"spread": -(odds * np.log(odds) + (1 - odds) * np.log1p(-odds)).sum(1)}
    else:
        usual = np.maximum(deviation.mean(0), 1e-12)
        parts = {"spread": (deviation / usual).mean(1)}
    features = None if fitted.structural else task.features
    return Situation(
        task.edges,
        features,
        labelled_nodes(fitted),
        candidates,
        task.num_nodes,
        task.weights,
        seed=fitted.seed,
        **parts,
    )


@torch.no_grad()
def member_beliefs(fitted: Fitted) -> tuple[np.ndarray, np.ndarray]:
    """(M, n, K) probabilities of classes by every replica of every member, and how much each counts."""
    answerer, found, weights = fitted.answerer, [], []
    task = replace(fitted.task, train=fitted.seen)
    for member in answerer.members:
        seen = member.seen(task, answerer.outcome)
        if isinstance(member, Network):
            model = member.model.to(answerer.device)
            inputs = Inputs.of(seen, answerer.device, outcome=answerer.outcome)
            answers = model.with_marks(model.posterior.log_prob(inputs, None), inputs)
            replicas = list(answers.double().cpu().numpy())
        else:
            replicas = [member.fitted_answers(seen, None, answerer.device).answer]
        found += [np.exp(answerer.outcome.scaled(one, Scaling(member.temperature))) for one in replicas]
        weights += [member.weight / len(replicas)] * len(replicas)
    total = sum(weights)
    return np.stack(found), np.array(weights) / total if total else np.full(len(weights), 1 / len(weights))


def numbers_of(fitted: Fitted, argument: str, nodes: object, problems: Problems) -> np.ndarray | None:
    """See `numbers_by`, with the ids of the tables of the fit if there were any."""
    tables, n = fitted.tables, fitted.task.num_nodes
    if tables is None:
        return numbers_by(None, n, argument, nodes, problems)
    return numbers_by(tables.node_ids, n, argument, nodes, problems, tables.whole)


def pairs_of(fitted: Fitted, pairs: object, problems: Problems) -> object:
    """Pairs (2, P) of node numbers, from pairs of ids; as given where the fit had no ids."""
    if fitted.tables is None:
        return pairs
    given = pair_array("pairs", pairs, problems)
    numbers = numbers_of(fitted, "pairs", given.ravel(), problems)
    return given if numbers is None else tuple(numbers.reshape(given.shape))


def ids_of(fitted: Fitted, numbers: np.ndarray) -> Sequence[object]:
    """The caller's ids of some nodes: those of the tables of the fit, or node numbers."""
    if fitted.tables is None:
        return list(numbers.tolist())
    return [fitted.tables.node_ids[number].as_py() for number in numbers.tolist()]


_EPOCHS, _MORE = 15, 4.0
"""Networks that know all labels but a few learn little after ten epochs; if all labels were new, they would train five
times as long."""
_MOST_MEMBERS, _MOST_REPLICAS, _MOST_PRICE = 2, 2, 12.0
"""The members that go on: those with the largest weights, some replicas of each, as long as an epoch costs no more than
this multiple of one of gcn."""
_MOST_WORK = 1e7
"""What a model that is no network may cost, which is some seconds."""
_MOST_HEARD = 300
"""Answers before their labels were known, by which answers are calibrated: at most this number of the latest."""
_FEWEST_HEARD = 5


def update(fitted: Fitted, parameters: Parameters, nodes: object, labels: object, progress: Course) -> Fitted:
    """See `GraphEstimator.update`."""
    problems = Problems()
    before = _checked(fitted, "update", problems)
    chosen, values = new_labels(fitted, nodes, labels, problems)
    known = before.labels.values.copy()
    known[chosen] = values
    labels_now = replace(before.labels, values=known)
    return _updated(fitted, _with_parameters(before, parameters), labels_now, progress)


def go_on(fitted: Fitted, problem: FitProblem, progress: Course) -> Fitted:
    """The same for another problem, which must be about the graph of the fit."""
    problems = Problems()
    before = _checked(fitted, "warm_start", problems)
    problems.raise_if_any()
    same = fingerprint(problem.features) == fitted.key and np.array_equal(problem.edges, before.edges)
    if not same:
        advice = "Leave warm_start out to fit to another graph."
        problems.add("warm_start", "other features or edges", "those of the last fit", advice)
    if not np.array_equal(problem.labels.names, fitted.columns):
        advice = "A model of other classes has to be fitted anew: leave warm_start out."
        problems.add(
            "y", f"the {problem.outcome.columns_title} {quoted(problem.labels.names.tolist())}", "the old ones", advice
        )
    problems.raise_if_any()
    return _updated(fitted, _with_parameters(before, problem.parameters), problem.labels, progress)


def _with_parameters(problem: FitProblem, now: Parameters) -> FitProblem:
    """Models that go on keep their parameters; where they train, and how many labels validate, may be others now."""
    return replace(problem, parameters={**problem.parameters, **{name: now[name] for name in ("device", "validation")}})


def new_labels(fitted: Fitted, nodes: object, labels: object, problems: Problems) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the nodes, each once, and their labels. Raises with everything that is wrong."""
    chosen = numbers_of(fitted, "nodes", nodes, problems)
    own = Problems()
    values = fitted.outcome.encode(labels, fitted.columns, own)
    for problem in own.found:
        problems.add("labels", problem.given, problem.allowed, problem.advice)
    if chosen is not None and values is not None and len(chosen) != len(values):
        problems.add("labels", f"{len(values)} labels", f"one for each of the {len(chosen)} nodes")
    elif chosen is not None and not len(chosen):
        problems.add("nodes", "none", "at least one node")
    problems.raise_if_any()
    assert chosen is not None
    assert values is not None
    once, first, place = np.unique(chosen, return_index=True, return_inverse=True)
    same = np.asarray(values[first][place] == values).reshape(len(values), -1).all(1)
    if not same.all():
        twice = np.unique(chosen[~same]).tolist()
        refuse("nodes", f"node {quoted(twice)} with different labels", "one label for each node")
    return once, values[first]


def _checked(fitted: Fitted, argument: str, problems: Problems) -> FitProblem:
    """The problem that an update goes on from; a problem where there is no such thing."""
    advice = "Fit again, with the new labels."
    if fitted.problem is None:
        refuse(argument, "a model that was loaded", "one that was fitted in this process", advice)
    if fitted.answers.new is not None and fitted.answers.new.any():
        problems.add(argument, "an inductive model, trained on labelled nodes alone", "inductive=False", advice)
    return fitted.problem


def _updated(fitted: Fitted, before: FitProblem, labels: Labels, progress: Course) -> Fitted:
    problem = _with_labels(before, labels)
    labelled = labels.labelled
    new = np.setdiff1d(labelled, np.flatnonzero(has_label(fitted.task.labels)))
    task = replace(fitted.task, labels=labels.values, train=labelled, val=labelled[:0])
    judged, taught, weights = fitted.labels, task, problem.weights
    if judged is not None:
        # New labels are judged by what was answered before they were known.
        judged = judged.with_labels(labels.values, fitted.calibrated(), fitted.outcome)
    corrected = judged is not None and fitted.corrected
    if judged is not None and corrected:
        taught, weights = judged.corrected(task, weights)
    chosen = _going_on(fitted)
    progress.stage("going on with new labels", 0.9, len(chosen))
    again = [_gone_on(fitted, member, taught, new, problem, weights, progress) for member in chosen]
    members, calibration = _weighed(again, task.labels, fitted)
    # Isolated nodes keep their calibration: little is learned about them from one update to the next.
    calibrations = {**fitted.answerer.calibrations, "linked": calibration}
    answerer = Answerer(members, fitted.outcome, fitted.answerer.device, calibrations)
    trials = list(fitted.trials)
    for member, trial in again:
        trials[member.place] = trial
    return replace(
        fitted,
        panel=answerer.marked(fitted.panel),
        task=task,
        seen=labelled,
        answerer=answerer,
        answers=answerer(taught),
        labels=judged,
        refitted=False,
        corrected=corrected,
        problem=problem,
        trials=tuple(trials),
        updated=True,
        held_back=None,
    )


def _with_labels(problem: FitProblem, labels: Labels) -> FitProblem:
    """For a later fit with all labels. Nodes to validate on stay; where replicas had their own, new ones are drawn: a
    share of all labels for each."""
    folds, problems = problem.folds, Problems()
    if folds:
        rng = np.random.RandomState(problem.seeds[0] % 2**32)
        folds = divided(problem.outcome, labels, problem.given, problem.parameters["validation"], rng, problems)
        problems.raise_if_any()
    val = folds[0] if folds else np.intersect1d(problem.val, labels.labelled)
    weights = problem.weights
    if weights is not None:
        weights = weights.copy()
        known = problem.labels.labelled
        weights[np.setdiff1d(labels.labelled, known)] = weights[known].mean()
    return replace(problem, labels=labels, folds=folds, val=val, weights=weights)


def _going_on(fitted: Fitted) -> list[Member]:
    """The networks with the largest weights, with as many replicas as are quickly trained, and what is quickly trained
    beside them."""
    found, networks, left = list[Member](), 0, _MOST_PRICE
    for member in fitted.answerer.members:
        candidate = fitted.trials[member.place].candidate
        if candidate.simple or not isinstance(member, Network):
            if candidate.is_network or candidate.work(fitted.task) <= _MOST_WORK:
                found.append(member)
            continue
        many = min(len(member.seeds), _MOST_REPLICAS)
        if networks and (networks == _MOST_MEMBERS or candidate.price * many > left):
            continue
        left, networks = left - candidate.price * many, networks + 1
        found.append(_first(member, many))
    return found or [fitted.answerer.members[0]]


def _first(network: Network, many: int) -> Network:
    """With its first replicas alone."""
    if many == len(network.seeds):
        return network
    model = copy.deepcopy(network.model)
    model.select(torch.arange(many, device=next(model.parameters()).device))
    return replace(network, model=model, seeds=network.seeds[:many], history=network.history[:, :, :many])


def _gone_on(
    fitted: Fitted,
    member: Member,
    task: NodeTask,
    new: np.ndarray,
    problem: FitProblem,
    weights: np.ndarray | None,
    progress: Course,
) -> tuple[Member, Trial]:
    """The member after more training, and the trial with what it answered before labels were known. new: nodes whose
    labels it has not seen, so that what it answers about them now is honest."""
    trial, outcome = fitted.trials[member.place], fitted.outcome
    with enough_for(task.extent), torch.no_grad():
        before = replace(fitted.task, labels=fitted.known_labels, train=fitted.seen)
        plain = replace(member, temperature=1.0)
        heard = plain.answers(before, None, fitted.answerer.device, outcome).answer[new]
    nodes, answer = np.concatenate([trial.nodes, new]), heard
    if len(trial.nodes):
        answer = np.concatenate([trial.answer, heard])
    trial = replace(trial, nodes=nodes[-_MOST_HEARD:], answer=answer[-_MOST_HEARD:])
    seen = replace(member.seen(task, outcome), val=task.train)
    if isinstance(member, Tabular):
        how = (member.view, outcome, fitted.seed, member.neighbourhood)
        again = trial.candidate.train([(seen, weights)], *how).in_place_of(member)
        return again, replace(trial, learned=again)
    if trial.candidate.simple or not isinstance(member, Network):
        return member, trial  # Whenever it is asked, it learns from all labels.
    epochs = round(_EPOCHS * (1 + _MORE * len(new) / len(task.train)))
    plan = trial.candidate.plan(problem.common, member.seeds, problem.parameters["device"])
    result = usable(plan.going_on(member.model, epochs).fit(seen, progress, weights))
    if not result.trials or "diverged" in result.status:
        raise TrainingError("the model diverged when it went on with the new labels: fit again")
    epochs += member.epochs
    again = replace(member, model=result.model, epochs=epochs, history=result.history, held_out=None)
    return again, replace(trial, learned=result)


def _weighed(
    again: Sequence[tuple[Member, Trial]], labels: np.ndarray, fitted: Fitted
) -> tuple[tuple[Member, ...], Calibration]:
    """Weights of the members and their calibration, by what they said before labels were known."""
    outcome, members, trials = fitted.outcome, [member for member, _ in again], [trial for _, trial in again]
    nodes = trials[0].nodes
    for trial in trials[1:]:
        nodes = np.intersect1d(nodes, trial.nodes)
    nodes = nodes[has_label(labels[nodes])]
    total = sum(member.weight for member in members)
    if len(nodes) < _FEWEST_HEARD:
        share = [member.weight / total if total else 1 / len(members) for member in members]
        kept = tuple(
            replace(one, weight=weight, isolated_weight=weight) for one, weight in zip(members, share, strict=True)
        )
        return kept, fitted.answerer.calibrations["linked"]
    heard = [trial.answer[_last(trial.nodes, nodes)] for trial in trials]
    temperatures = [1.0]
    if len(members) > 1:
        temperatures = [outcome.temperature(answer, labels[nodes]) for answer in heard]
        heard = [outcome.scaled(answer, Scaling(t)) for answer, t in zip(heard, temperatures, strict=True)]
    weights = member_weights(np.stack([outcome.label_log_prob(answer, labels[nodes]) for answer in heard]))
    members = [
        replace(one, temperature=t, weight=float(w), isolated_weight=float(w))
        for one, t, w in zip(members, temperatures, weights, strict=True)
    ]
    mixed = outcome.weighted([answer for answer, w in zip(heard, weights, strict=True) if w], weights[weights > 0])
    kept = tuple(sorted((one for one in members if one.weight), key=lambda one: -one.weight))
    # A temperature alone: offsets of classes would be learned from nodes that were asked for, not drawn.
    scaling = Scaling(outcome.temperature(mixed, labels[nodes]))
    # Labels that came in later chose among the members alone.
    tried = len(fitted.trials) if np.isin(nodes, fitted.task.val).any() else len(members)
    scaling = outcome.with_doubt(scaling, Validated(mixed, labels[nodes]), tried)
    return kept, Calibration.by(outcome, scaling, mixed, labels[nodes])


def _last(heard: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Where each of the nodes stands in a list in which it may stand several times: the last place."""
    place = {node: position for position, node in enumerate(heard.tolist())}
    return np.array([place[node] for node in nodes.tolist()], dtype=np.int64)
