"""Folds of the labels that choose nothing, and what replicas without them say about the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from g3nn.base.errors import InputError, Problems
from g3nn.estimator.answers import Answerer
from g3nn.estimator.members import Member, Network, Tabular
from g3nn.estimator.panel import Candidate, Trial
from g3nn.estimator.problem import FitProblem
from g3nn.estimator.search import Search
from g3nn.graph.outcomes import without_labels_of
from g3nn.model.inferring import can_infer
from g3nn.training import FitResult
from g3nn.training.progress import Interrupted

FEWEST_FOLDS = 2
_MOST_RESERVED, _FEWEST_TO_RESERVE, _FOLD = 2, 4, 0.2
"""Folds that calibrate what the others chose, of how many at least, and their share of labels that are not divided yet.
With fewer folds, which are those of three labels of a class, one of them says too little."""
_ENOUGH_HONEST = 0.5
"""How many times the given validation nodes reserved ones must be to calibrate instead of them."""


def reserved_folds(problem: FitProblem) -> tuple[np.ndarray, ...]:
    """The last folds. Where the caller gave nodes to validate on, folds of the others unless these hold too few."""
    most, folds = max(min(_MOST_RESERVED, len(problem.seeds) - FEWEST_FOLDS), 0), problem.folds
    if folds:
        most = most if len(folds) >= _FEWEST_TO_RESERVE else 0
        return folds[len(folds) - min(len(folds) // 2, most) :]
    if not (problem.divisible and problem.outcome.exclusive and most and len(problem.val)):
        return ()
    labels = replace(problem.labels, values=without_labels_of(problem.labels.values, problem.val))
    rng = np.random.RandomState(problem.seeds[0] % 2**32)
    drawn = problem.outcome.folds(labels, _FOLD, rng, Problems())
    last = drawn[-most:] if len(drawn) >= _FEWEST_TO_RESERVE else ()
    return last if sum(map(len, last)) > _ENOUGH_HONEST * len(problem.val) else ()


def with_reserved(answerer: Answerer, trials: Sequence[Trial], search: Search) -> Answerer | None:
    """The members with a replica more for each reserved fold, trained as long as the others were on average; None where
    nothing is reserved, one of these replicas cannot be trained, or the fit was interrupted.

    Weights of edges depend on the reserved labels too: without these there would be too few to learn them from."""
    if not search.reserved or search.progress.interrupted:
        return None
    search.progress.stage("training on other labels, to calibrate", 0.95, len(answerer.members) * len(search.reserved))
    found = []
    for member in answerer.members:
        trial = trials[member.place]
        try:
            again = _extended(member, trial.candidate, trial.learned, search)
        except Interrupted:
            search.notes.append("the fit was interrupted: the nodes that chose the predictions calibrate them too")
            return None
        if again is None:
            search.notes.append(
                f"{member.name} diverged on other labels: the nodes that chose the predictions calibrate them"
            )
            return None
        again = replace(again.in_place_of(member), held_out=again.held_out)
        found.append(asked_about(np.union1d(search.task.val, search.calibrating), again))
    return replace(answerer, members=tuple(found))


def _extended(
    member: Member, candidate: Candidate, learned: FitResult | Member | None, search: Search
) -> Member | None:
    if not isinstance(learned, FitResult):
        task = search.seen(candidate.view, around=candidate.neighbours)
        return search.learned(candidate, search.parts(task) + search.reserved_parts(task))
    task = member.seen(search.task, search.outcome)
    plan = candidate.plan(search.common, search.seeds[len(search.choosing) :], search.device)
    plan = plan.for_all_labels(max(int(np.median(learned.best_epoch)), 1))
    parts = [(replace(part, val=part.val[:0]), weights) for part, weights in search.reserved_parts(task)]
    more = plan.fit_parts(parts, search.progress)
    if "diverged" in more.status:
        return None
    assert isinstance(member, Network)
    network = network_of(candidate, FitResult.join([learned, more]), search)
    return replace(network, isolated_answer=member.isolated_answer, epochs=member.epochs, history=member.history)


def asked_about(nodes: np.ndarray, member: Member) -> Member:
    """Only about these nodes replicas are asked that did not train on them; about others all of them are, as they will
    be once the model was saved."""
    if member.held_out is None:
        return member
    return replace(member, held_out=member.held_out & np.isin(np.arange(member.held_out.shape[1]), nodes))


def with_all_labels(answerer: Answerer, trials: Sequence[Trial], search: Search) -> Answerer:
    """Models of scikit-learn answer for nodes that no replica held back by what they learn from all labels. Where time
    is short they stay as they are, and so does one that has learned from all labels already."""
    if search.effort.seconds is not None:
        return answerer
    labelled = np.setdiff1d(np.union1d(search.task.train, search.task.val), search.given)

    def taught(member: Member) -> Member:
        if not isinstance(member, Tabular) or (member.held_out is None and len(search.given)):
            return member
        candidate = trials[member.place].candidate
        task = search.seen(candidate.view, around=candidate.neighbours)
        try:
            learned = search.learned(candidate, [(replace(task, train=labelled, val=labelled), search.weights)])
        except (InputError, MemoryError):
            return member  # It has learned from parts of them.
        assert isinstance(learned, Tabular)
        held_out = search.nodes_of([search.task.val]) if member.held_out is None else member.held_out
        return replace(member, whole=replace(learned.fitted, spread=member.fitted.spread), held_out=held_out)

    return replace(answerer, members=tuple(map(taught, answerer.members)))


def network_of(candidate: Candidate, result: FitResult, search: Search) -> Network:
    """What was learned, in the form in which it answers."""
    plan = candidate.plan(search.common, result.seeds, search.device)
    return Network(
        view=search.views[candidate.view],
        neighbourhood=search.surroundings(candidate.view, candidate.neighbours),
        spec=plan.spec,
        objective=plan.objective_name,
        hyperparameters=plan.hyperparameters(search.task.outcome),
        seeds=result.seeds,
        epochs=int(result.epochs.max()),
        history=result.history,
        model=result.model,
        infers=result.model.posterior.nodes is not None and can_infer(result.model, plan.objective),
        held_out=search.held_out(result.seeds),
    )
