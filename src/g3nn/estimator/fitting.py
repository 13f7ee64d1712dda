"""From a checked request to a fitted model: tasks, training, choice, calibration, answers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from g3nn.errors import G3NNWarning, Problems, TrainingError
from g3nn.estimator.answers import Answerer
from g3nn.estimator.candidates import Candidate
from g3nn.estimator.fitted import Fitted
from g3nn.estimator.inferring import can_infer
from g3nn.estimator.missing import column_means, impute
from g3nn.estimator.panel import Search
from g3nn.estimator.prediction import Known
from g3nn.estimator.reading import Features, below
from g3nn.estimator.request import Request, fingerprint
from g3nn.estimator.trained import Trained
from g3nn.model import GenerativeModel
from g3nn.parse import Matrix
from g3nn.replicas import Replicas, Sizes
from g3nn.task import NodeTask
from g3nn.training.plan import Plan
from g3nn.training.result import history_names

FEW_VALIDATION_NODES = 30


@dataclass(frozen=True, eq=False)
class Tasks:
    """whole: every node. training: those that the fit may see, which is the same unless it is inductive."""

    whole: NodeTask
    training: NodeTask
    means: np.ndarray | None
    """(d,): of the columns, over the nodes of the training task, where missing values are filled in."""
    seen: np.ndarray
    """The nodes of the training task, by their numbers in the whole one."""

    @property
    def fresh(self) -> np.ndarray:
        """(n,) nodes that the training does not know."""
        return ~np.isin(np.arange(self.whole.num_nodes), self.seen)


def build_tasks(request: Request, *, inductive: bool, missing: str) -> Tasks:
    """The graph as it is, and the part of it that is trained on: in inductive use, the labelled nodes alone."""
    n = request.features.num_nodes
    seen = request.labels.known if inductive else np.arange(n)
    inside = np.isin(request.edges, seen).all(axis=0)
    features, means = request.features, None
    if missing == "impute":
        features, means = _filled(request, seen, request.edges[:, inside])
    whole = _task(request, features.matrix, request.edges, np.arange(n))
    if len(seen) == n:
        return Tasks(whole, whole, means, seen)
    return Tasks(whole, _task(request, features.matrix[seen], request.edges[:, inside], seen), means, seen)


def _filled(request: Request, seen: np.ndarray, inside: np.ndarray) -> tuple[Features, np.ndarray]:
    """Nodes that are trained on are filled in from each other first, then the rest from all."""
    part = Features(request.features.matrix[seen], request.features.names)
    problems = Problems()
    means = column_means(part, problems)
    problems.raise_if_any()
    if len(seen) == request.features.num_nodes:
        return replace(part, matrix=impute(part, inside, means)), means
    number = _numbering(seen, request.features.num_nodes)
    known = impute(part, number[inside], means)
    rest = np.flatnonzero(number < 0)
    rows = below(known, request.features.matrix[rest])[np.argsort(np.concatenate([seen, rest]))]
    return replace(part, matrix=impute(replace(part, matrix=rows), request.edges, means)), means


def _numbering(seen: np.ndarray, n: int) -> np.ndarray:
    number = np.full(n, -1, dtype=np.int64)
    number[seen] = np.arange(len(seen))
    return number


def _task(request: Request, features: Matrix, edges: np.ndarray, seen: np.ndarray) -> NodeTask:
    """The task on the nodes `seen`, numbered anew."""
    number = _numbering(seen, request.features.num_nodes)
    return NodeTask.build(
        features,
        number[edges],
        request.labels.codes[seen],
        number[request.train],
        number[request.val],
        num_classes=len(request.labels.classes),
        directed=request.directed,
        outcome=request.labels.outcome,
    )


def run(request: Request, parameters: dict[str, Any]) -> Fitted:
    """Train, choose, calibrate, answer."""
    tasks = build_tasks(request, inductive=parameters["inductive"], missing=parameters["missing"])
    tried = _worth_trying(request.candidates, tasks.training)
    if len(tried) > 1:
        _warn_of_few(len(request.val))
    progress = None if parameters["verbose"] else False
    search = Search(tasks.training, request.common, parameters["device"], request.seeds, progress)
    trained, panel = search.run(tried)
    plan = trained.candidate.plan(request.common, trained.seeds, parameters["device"])
    model = _model(plan, trained, tasks.training)
    infers = can_infer(model, plan.objective)
    answerer, calibrations = Answerer.choose(model, tasks.training, plan.device, infers)
    epochs, seen = int(trained.epochs.max()), request.train
    if parameters["refit"]:
        epochs = int(np.median(trained.best_epoch))
        answerer = replace(answerer, model=_refitted(tasks.training, plan, epochs))
        seen = request.labels.known
    answerer = replace(answerer, model=_numbered(answerer.model, tasks.seen, tasks.whole.num_nodes))
    key = fingerprint(request.features, request.edges)
    answers = answerer(replace(tasks.whole, train=seen), tasks.fresh if answerer.refined else None)
    known = Known(tasks.whole, seen, answerer, answers, request.features.names, tasks.means, key)
    return Fitted(
        request.labels.classes,
        plan.spec,
        plan.objective_name,
        plan.hyperparameters(request.labels.outcome),
        plan.seeds,
        panel,
        epochs,
        trained.history,
        history_names(answerer.outcome),
        known,
        calibrations,
        request.labels.flat,
    )


def _refitted(task: NodeTask, plan: Plan, epochs: int) -> GenerativeModel:
    """Replicas trained on the labels of training and validation nodes alike."""
    result = plan.for_all_labels(epochs).fit(replace(task, train=np.union1d(task.train, task.val)), False)
    usable = [trial for trial, status in enumerate(result.status) if status != "diverged"]
    if not usable:
        raise TrainingError("every replica diverged when trained on all labels. A lower lr usually helps")
    return result.select(usable).model


def _model(plan: Plan, trained: Trained, task: NodeTask) -> GenerativeModel:
    """The trained replicas as one model."""
    model = plan.spec.build(Sizes.of(task, plan.options), Replicas(plan.seeds), plan.options)
    model.load_state_dict(trained.state)
    return model


def _numbered(model: GenerativeModel, seen: np.ndarray, n: int) -> GenerativeModel:
    """The scores that nodes have of their own, by their numbers in the whole graph of n nodes."""
    own = model.posterior.nodes
    if own is not None and len(seen) < n:
        whole = own.own.new_zeros(own.own.shape[0], n, own.own.shape[2])
        whole[:, torch.from_numpy(seen).to(whole.device)] = own.own.data
        own.own = torch.nn.Parameter(whole)
    return model


def _worth_trying(tried: tuple[Candidate, ...], task: NodeTask) -> tuple[Candidate, ...]:
    """Without a single edge all models of a panel are the same one."""
    return tried if task.num_edges else tried[:1]


def _warn_of_few(count: int) -> None:
    if count < FEW_VALIDATION_NODES:
        warnings.warn(
            f"{count} validation nodes serve for choosing a model and for calibrating it: both are rough. "
            f"Label more nodes, give at least {FEW_VALIDATION_NODES} with val, or name a model",
            G3NNWarning,
            stacklevel=4,
        )
