"""Where labels are too few for a search: which models are mixed, what they weigh beforehand, how they are trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from g3nn.estimator.panel import Candidate, networks_alone
from g3nn.estimator.problem import FitProblem
from g3nn.estimator.search import FIXED_EPOCHS, Search
from g3nn.graph.transforms import LENGTH, UNIT
from g3nn.training.options import LAST

FOR_FEW_LABELS = ("dcsbm-grand", "blsm-gcn", "sage")
"""Models of the panel that are mixed where labels are too few for a search, joint ones with their networks beside them:
labels are too few to say whether a likelihood helps, too."""
_SIMPLE_SHARE = 0.2
"""The weight of all simple models together before labels have a say."""
LEAN = "sbm-appnp"
"""It makes the most of few labels if edges link nodes of one class, as they mostly do: its prior and its likelihood
learn from unlabelled nodes too, and it spreads labels far."""
_LABELS, _EDGES = 6.0, 20
"""Labels of a class, on average, below which models cannot be compared; edges that this model needs."""
_EPOCHS, _REPLICAS = {"quick": 60}, 3
"""How long they are trained with less effort than the default, and how many replicas of each there are."""


def prior_weights(tried: Sequence[Candidate]) -> np.ndarray:
    """(M,): what models weigh in a mixture before labels have a say: networks alike, and simple models alike."""
    simple = np.array([one.simple for one in tried])
    share = _SIMPLE_SHARE if not simple.all() and simple.any() else float(simple.all())
    return np.where(simple, share / max(simple.sum(), 1), (1 - share) / max((~simple).sum(), 1))


def for_few_labels(problem: FitProblem) -> tuple[Candidate, ...]:
    """The models to train instead of a search; none where there are labels enough for one, or where the caller wants
    something else.

    With a few labels of a class, a search would hold back many of them, for choices that are hardly better than chance.
    """
    parameters, models = problem.parameters, problem.candidates
    asked = problem.prior is not None or parameters["denoise"] is True or parameters["budget"] is not None
    labels = len(problem.labels.labelled) / max(len(problem.labels.names), 1)
    divided = len(problem.folds) > 0 or not len(problem.val)
    few = labels < _LABELS and len(models) > 1 and divided and not len(problem.given)
    if asked or not few or not problem.outcome.exclusive or problem.task.num_edges < _EDGES:
        return ()
    if parameters["effort"] == "quick":
        return tuple(one for one in models if one.name == LEAN or one.neighbours)
    names = (*FOR_FEW_LABELS, LEAN) if any(one.neighbours for one in models) else FOR_FEW_LABELS
    found = [one for one in models if one.name in names or one.neighbours]
    if not any("-" in one.name for one in found):
        found = list(models)
    both = (*found, *networks_alone(found, problem.outcome)) if problem.joint else found
    return tuple({one.key: one for one in both}.values())


def without_choice(search: Search, effort: str) -> Search:
    """The search in which all models are trained alike, on every fold, for a fixed number of epochs: when a training
    should end cannot be known, and a network that stopped at another time would not say how certain the final one may
    be. No label chooses one of them, so all may say how certain predictions are."""
    epochs, folds = _EPOCHS.get(effort, FIXED_EPOCHS), (*search.folds, *search.reserved)[:_REPLICAS]
    if LENGTH in search.views:
        search = replace(search, views={UNIT: replace(search.views[LENGTH], name=UNIT), **search.views})
    if not folds:
        return replace(search, seeds=search.seeds[:_REPLICAS], fixed=True)
    common = {**search.common, "epochs": min(epochs, int(search.common["epochs"])), "keep": LAST}
    seeds = search.seeds[: len(folds)]
    return replace(search, folds=folds, reserved=(), common=common, seeds=seeds, at_once=len(seeds), fixed=True)
