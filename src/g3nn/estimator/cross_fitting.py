"""The best models trained again without each fold of the labels, so that every label says what they are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from g3nn.base.errors import Problems
from g3nn.estimator.answers import Answerer
from g3nn.estimator.members import Member, Network, Tabular, alike
from g3nn.estimator.panel import Candidate, Trial
from g3nn.estimator.problem import FitProblem
from g3nn.estimator.search import Search
from g3nn.graph.outcomes import without_labels_of
from g3nn.model.inferring import can_infer
from g3nn.training import FitResult
from g3nn.training.plan import Plan
from g3nn.training.progress import Interrupted

FEWEST_FOLDS = 2
_FOLD, _ENOUGH_TO_CROSS = 0.2, 0.5
"""The share of labels in a fold, where these are not divided yet; and how many times the given validation nodes they
must be to judge instead of them."""


def folds_to_cross(problem: FitProblem) -> tuple[np.ndarray, ...]:
    """All folds. Where the caller gave nodes to validate on, folds of the others unless these are far fewer."""
    if problem.folds or not (problem.divisible and len(problem.train) >= _ENOUGH_TO_CROSS * len(problem.given)):
        return problem.folds
    labels = replace(problem.labels, values=without_labels_of(problem.labels.values, problem.given))
    rng = np.random.RandomState(problem.seeds[0] % 2**32)
    folds = problem.outcome.folds(labels, _FOLD, rng, Problems())
    return folds if len(folds) >= FEWEST_FOLDS else ()


def cross_fitted(
    answerer: Answerer, members: Sequence[Member], trials: Sequence[Trial], search: Search
) -> list[Member]:
    """The members that validation chose and all simple ones, each with a replica for every fold that has not seen it.

    Those of a network are trained for as many epochs as were best on average (the median), with other seeds, so that no
    fold ends a training. None where there are no such folds, or the fit was interrupted. Weights of edges depend on all
    labels: without a fold there would be too few to learn them from."""
    if not search.crossed or search.progress.interrupted:
        return []
    chosen = {member.place for member in answerer.members}
    listed = [one for one in members if one.place in chosen or trials[one.place].candidate.simple]
    search.progress.stage("cross-fitting the best models", 0.95, len(listed) * len(search.crossed))
    found = []
    for member in listed:
        try:
            again = _crossed(member, trials[member.place], search)
        except Interrupted:
            search.notes.append("the fit was interrupted: the nodes that chose the predictions calibrate them too")
            return []
        if again is not None:
            found.append(again)
    return found


def _crossed(member: Member, trial: Trial, search: Search) -> Member | None:
    """None if a replica diverged."""
    candidate, learned = trial.candidate, trial.learned
    task = member.seen(search.task, search.outcome)
    parts = search.crossed_parts(task)
    if isinstance(member, Tabular):
        if search.folds:
            return member
        again = candidate.train(parts, member.view, search.outcome, search.seeds[0])
        assert isinstance(again, Tabular)
        return replace(again.in_place_of(member), held_out=again.held_out, whole=member.fitted)
    if not isinstance(learned, FitResult):
        return replace(member, held_out=search.without(search.crossed))
    seeds = tuple(search.seeds[-1] + 1 + place for place in range(len(parts)))
    plan = candidate.plan(search.common, seeds, search.device)
    plan = plan.for_all_labels(max(int(np.median(learned.best_epoch)), 1))
    each = zip(seeds, parts, strict=True)
    fits = [
        replace(plan, seeds=(seed,)).fit(replace(part, val=part.val[:0]), search.progress, weights)
        for seed, (part, weights) in each
    ]
    if any("diverged" in one.status for one in fits):
        return None
    network = network_of(candidate, plan, FitResult.join(fits), search, search.without(search.crossed))
    return replace(network.in_place_of(member), held_out=network.held_out)


def with_all_labels(answerer: Answerer, trials: Sequence[Trial], search: Search) -> Answerer:
    """Models of scikit-learn answer for nodes without a label by what they learn from all labels."""
    labelled = np.setdiff1d(np.union1d(search.task.train, search.task.val), search.given)

    def whole(member: Member) -> Member:
        if not isinstance(member, Tabular) or member.whole is not None:
            return member
        task = replace(search.seen(member.view.name), train=labelled, val=labelled)
        learned = trials[member.place].candidate.train(
            [(task, search.weights)], member.view, search.outcome, search.seeds[0]
        )
        assert isinstance(learned, Tabular)
        return replace(member, whole=replace(learned.fitted, spread=member.fitted.spread))

    return replace(answerer, members=tuple(map(whole, answerer.members)))


def network_of(
    candidate: Candidate, plan: Plan, result: FitResult, search: Search, held_out: np.ndarray | None
) -> Network:
    """What was learned, in the form in which it answers."""
    rest = np.setdiff1d(np.arange(search.task.num_nodes), np.union1d(search.task.train, search.task.val))
    levels, sharp = ((), 1.0) if held_out is None else alike(result.answers[:, rest], search.outcome)
    return Network(
        view=search.views[candidate.view],
        spec=plan.spec,
        objective=plan.objective_name,
        hyperparameters=plan.hyperparameters(search.task.outcome),
        seeds=result.seeds,
        epochs=int(result.epochs.max()),
        history=result.history,
        model=result.model,
        infers=result.model.posterior.nodes is not None and can_infer(result.model, plan.objective),
        held_out=held_out,
        levels=levels,
        sharpness=sharp,
    )
