"""The learning curve of a fitted classifier, by one network of its mixture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from g3nn.base.errors import refuse
from g3nn.estimator.few_labels import LEAN
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.panel import Candidate
from g3nn.estimator.problem import FitProblem
from g3nn.estimator.search import FIXED_EPOCHS
from g3nn.graph.task import NodeTask
from g3nn.queries.learning_curve import LearningCurve, trained_on_some
from g3nn.training.plan import Plan
from g3nn.training.progress import Course


def learning_curve(fitted: Fitted, device: str, progress: Course) -> LearningCurve:
    """See `G3NNClassifier.learning_curve`."""
    problem = fitted.problem
    if problem is None:
        advice = "Fit again, and ask before the model is saved."
        refuse("learning_curve", "a model that was loaded", "one that was fitted in this process", advice)
    labelled = problem.labels.labelled
    nodes = np.setdiff1d(labelled, problem.given)
    task = replace(fitted.task, train=nodes, val=np.setdiff1d(labelled, nodes))
    plan, seen = _network(fitted, problem, task, device)
    found = trained_on_some(plan, seen, problem.weights, fitted.seed % 2**31, progress)
    left = np.setdiff1d(_to_label(fitted), labelled)
    certainty = fitted.outcome.moments(fitted.calibrated())[0].max(1)
    error = 1 - float(certainty[left].mean() if left.size else certainty.mean())
    judged = len(fitted.answerer.calibrations["linked"].scores)
    return LearningCurve.fit(found, len(nodes), error, judged, task.num_classes, len(nodes) + len(left))


def _network(fitted: Fitted, problem: FitProblem, task: NodeTask, device: str) -> tuple[Plan, NodeTask]:
    """How the network with the most weight is trained for a fixed number of epochs, and the task as it sees it; where
    none answers, one that makes the most of few labels."""
    networks = [one for one in fitted.answerer.networks if not one.learns_when_asked]
    if networks:
        candidate, epochs = fitted.trials[networks[0].place].candidate, min(networks[0].epochs, FIXED_EPOCHS)
        seen = networks[0].seen(task, fitted.outcome)
    else:
        lean = Candidate(LEAN)
        candidate = next((one for one in problem.candidates if one.name == lean.name), lean)
        epochs, seen = FIXED_EPOCHS, replace(task, features=fitted.views[0].apply(task.features))
    return candidate.plan(problem.common, problem.seeds[:1], device).for_all_labels(epochs), seen


def _to_label(fitted: Fitted) -> np.ndarray:
    """The nodes that may have a label: not of kinds that never have one, nor those that only columns name."""
    n, tables = fitted.task.num_nodes, fitted.tables
    return np.arange(n) if tables is None else np.setdiff1d(np.arange(n - tables.added), tables.never)
