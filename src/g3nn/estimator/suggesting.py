"""Questions to a fitted model, in the caller's ids: which node to label next, which edge or label to check, and what
pulled an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import torch

from g3nn.base.errors import Problems
from g3nn.base.parse import node_numbers
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.members import Member, Network
from g3nn.estimator.showing import label_table
from g3nn.estimator.wrong_labels import FEWEST_LABELS, JudgedLabels
from g3nn.graph.outcomes import Classes, Outcome, Tags, has_label
from g3nn.graph.outcomes.calibrate import Scaling
from g3nn.graph.outcomes.labels import flat_values, quoted
from g3nn.model.inputs import Features, Inputs
from g3nn.queries import (
    EdgeSuggestion,
    GraphAudit,
    LabelSuggestion,
    Situation,
    Suggestion,
    choose,
    doubtful_edges,
)
from g3nn.queries.choosing import check_count
from g3nn.queries.covering import Likeness
from g3nn.queries.strategies import STRATEGIES
from g3nn.training.room import LARGE

if TYPE_CHECKING:
    from g3nn.estimator.fitted import Fitted


def suggest(
    fitted: Fitted, k: Any, strategy: Any, candidates: Any, exclude: Any, likeness: Likeness | None
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
        # Labels that were set aside for a test are known to somebody.
        allowed = np.setdiff1d(np.arange(n), [] if fitted.tables is None else fitted.tables.test)
    nodes = np.setdiff1d(allowed, labelled_nodes(fitted))
    if refused is not None:
        nodes = np.setdiff1d(nodes, refused)
    situation = replace(situation_of(fitted, nodes, strategy == "disagreement"), known_likeness=likeness)
    found = choose(situation, int(k), strategy)
    ids = ids_of(fitted, np.array([one.number for one in found], dtype=np.int64))
    return [replace(one, node=id) for one, id in zip(found, ids, strict=True)], situation.likeness


def suggest_edges(fitted: Fitted, audit: GraphAudit, k: Any) -> list[EdgeSuggestion]:
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


def suggest_labels(fitted: Fitted, k: Any, judged: Callable[[], JudgedLabels]) -> list[LabelSuggestion]:
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


def _doubt(given: Any, answer: Any, probability: float) -> str:
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
    if isinstance(outcome, Classes):
        beliefs = mean / mean.sum(1, keepdims=True)
        known = labelled_nodes(fitted)
        beliefs[known] = np.eye(beliefs.shape[1])[fitted.known_labels[known]]
        parts = {"beliefs": beliefs, "names": tuple(map(str, fitted.columns.tolist()))}
        if each:
            parts["members"], parts["member_weights"] = member_beliefs(fitted)
    elif isinstance(outcome, Tags):
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
        if isinstance(member.learned, Network):
            model = member.learned.model.to(answerer.device)
            answers = model.posterior.log_prob(Inputs.of(seen, answerer.device, outcome=answerer.outcome), None)
            replicas = list(answers.double().cpu().numpy())
        else:
            replicas = [member.learned.answers(seen, None, answerer.device).answer]
        found += [np.exp(answerer.outcome.scaled(one, Scaling(member.temperature))) for one in replicas]
        weights += [member.weight / len(replicas)] * len(replicas)
    total = sum(weights)
    return np.stack(found), np.array(weights) / total if total else np.full(len(weights), 1 / len(weights))


def numbers_of(fitted: Fitted, argument: str, nodes: Any, problems: Problems) -> np.ndarray | None:
    """Node numbers, from the ids of the tables of the fit, or else from node numbers or a mask."""
    n = fitted.task.num_nodes
    values = flat_values(nodes)
    if fitted.tables is None or values.dtype == bool:
        return node_numbers(argument, values if values.dtype != object else list(values), n, problems)
    place = {id: number for number, id in enumerate(fitted.tables.node_ids.to_pylist())}
    found = [place.get(value, -1) for value in values.tolist()]
    strange = [value for value, number in zip(values.tolist(), found, strict=True) if number < 0]
    if strange:
        problems.add(argument, f"ids {quoted(strange)}", "ids of the nodes that were fitted")
        return None
    return np.array(found, dtype=np.int64)


def ids_of(fitted: Fitted, numbers: np.ndarray) -> Sequence[Any]:
    """The caller's ids of some nodes: those of the tables of the fit, or node numbers."""
    if fitted.tables is None:
        listed: list[Any] = numbers.tolist()
        return listed
    return [fitted.tables.node_ids[number].as_py() for number in numbers.tolist()]


MOST_NEIGHBOURS = 24
"""Of a node with more, those whose edges weigh most are looked at."""
_MOST_CELLS = 200_000_000
"""Features are made dense to take gradients; larger matrices are not."""


class Neighbour(NamedTuple):
    """node: its number. change: how much lower the answer would be without the edge. exact: always, since the model
    answers again without it."""

    node: int
    change: float
    exact: bool = True


class Explanation(NamedTuple):
    """What pulled the answer up or down, the strongest first.

    The answer is the log-probability of the likeliest class, the probability of the likeliest tag, or the expected
    number. neighbours: by leaving out one edge at a time. features: (name, gradient times value) of the node itself, a
    first-order estimate.
    """

    neighbours: list[Neighbour]
    features: list[tuple[str, float]]


def explain(fitted: Fitted, nodes: np.ndarray) -> list[Explanation]:
    """For some nodes of the fitted graph; each takes as many passes through the network as it has neighbours."""
    pulls = _features(fitted, nodes)
    return [Explanation(_neighbours(fitted, int(node)), pull) for node, pull in zip(nodes, pulls, strict=True)]


def _neighbours(fitted: Fitted, node: int) -> list[Neighbour]:
    task, outcome = replace(fitted.task, train=fitted.seen), fitted.outcome
    own = np.flatnonzero((task.edges == node).any(axis=0))
    if task.weights is not None:
        own = own[np.argsort(-task.weights[own], kind="stable")]
    answer = fitted.answerer(task, fitted.answers.new).answer[node]
    column, found = _column(outcome, answer), []
    for edge in own[:MOST_NEIGHBOURS]:
        kept = np.arange(task.num_edges) != edge
        without = fitted.answerer(task.with_edges(kept), fitted.answers.new).answer[node]
        change = _value(outcome, answer, column) - _value(outcome, without, column)
        found.append(Neighbour(int(task.edges[:, edge].sum() - node), change))
    return sorted(found, key=lambda one: -abs(one.change))


def _column(outcome: Outcome, answer: np.ndarray) -> int:
    """The likeliest class or tag; of several numbers the first."""
    mean = outcome.moments(answer[None])[0][0]
    return int(mean.argmax()) if outcome.pooled else 0


def _value(outcome: Outcome, answer: np.ndarray, column: int) -> float:
    return float(answer[column] if isinstance(outcome, Classes) else outcome.moments(answer[None])[0][0, column])


def _features(fitted: Fitted, nodes: np.ndarray) -> list[list[tuple[str, float]]]:
    """Gradient of the answer of the networks times value, for the features of each node that are not zero."""
    outcome, shape = fitted.outcome, fitted.task.features.shape
    pulls = np.zeros((len(nodes), shape[1]))
    if shape[0] * shape[1] <= _MOST_CELLS:
        for member in fitted.answerer.members:
            if isinstance(member.learned, Network) and member.weight:
                pulls += member.weight * _pulls(fitted, member, member.learned, nodes, outcome)
    names, found = fitted.features or tuple(map(str, range(shape[1]))), []
    for pull in pulls:
        order = np.argsort(-np.abs(pull), kind="stable")
        found.append([(names[place], float(pull[place])) for place in order if pull[place]])
    return found


def _pulls(fitted: Fitted, member: Member, network: Network, nodes: np.ndarray, outcome: Outcome) -> np.ndarray:
    """(|nodes|, d): gradient times value of what one network looks at, without what a prior makes of it."""
    task = member.seen(replace(fitted.task, train=fitted.seen), outcome)
    seen = task.features
    device = fitted.answerer.device
    inputs, model = Inputs.of(task, device, outcome=outcome), network.model.to(device)
    x = torch.from_numpy(seen.toarray() if sp.issparse(seen) else seen).to(inputs.device, inputs.dtype).requires_grad_()
    mean = outcome.mean(outcome.mixture(model.posterior.log_prob(replace(inputs, x=Features(x)), None)))[0]
    values = mean.log() if isinstance(outcome, Classes) else mean * torch.tensor(outcome.scale or (1.0,)).to(mean)
    pulls = np.zeros((len(nodes), fitted.task.num_features))
    if not values.requires_grad:
        # Some models do not look at features.
        return pulls
    for place, node in enumerate(nodes):
        column = _column(outcome, fitted.answers.answer[node])
        (slope,) = torch.autograd.grad(values[node, column], x, retain_graph=True)
        pulls[place] = (slope[node] * x.detach()[node]).cpu().numpy()[: pulls.shape[1]]
    return pulls
