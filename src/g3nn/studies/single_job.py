"""Models that are trained one by one: the estimator, and a GCN without the labels that cleanlab doubts."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from g3nn.base.errors import TrainingError
from g3nn.base.parse import UNKNOWN
from g3nn.estimator import G3NNClassifier
from g3nn.graph.calibrate import BINS, negative_log_likelihood
from g3nn.graph.datasets import EDGE_NOISE, LABEL_NOISE, SCARCE, load_noisy
from g3nn.graph.datasets.graphs import METATTACK
from g3nn.graph.task import NodeTask
from g3nn.kernels.sparse import cosine_similarity, is_identity
from g3nn.studies.evidence import finite, of_answers
from g3nn.studies.records import Point, Record
from g3nn.studies.suite import ESTIMATOR
from g3nn.training import FitResult, fit

FOLDS = 5

_Trained = tuple[np.ndarray, str, int, int, Callable[[], dict[str, float]]]
"""Answers (n, K), status, epochs, best epoch, and what computes the figures in the evidence of a trial."""

AUDIT_AUC, COSINE_AUC = "audit AUC", "cosine AUC"
"""How well injected edges are separated from the others: by `edge_proba`, and by the similarity of features alone."""
AUDIT_ECE = "audit ECE"
"""The expected calibration error of the probability that an edge is genuine."""
LABELS_AUC = "labels AUC"
"""How well the probability that a label is wrong separates wrong labels from the others; none without wrong ones."""
LABELS_EXPECTED = "labels expected"
"""The expected share of wrong labels, the mean of these probabilities."""
COVERAGE, ALPHA = "coverage", 0.1
"""The share of test nodes whose class is in its set of classes, which should be 90 %."""


def single_record(point: Point, stage: str, seed: int, split: str, device: str, task: NodeTask) -> Record:
    """Train the model of a point and record how it ended. Its validation loss is that of all validation nodes."""
    start = time.perf_counter()
    trained = (_estimator if point.model == ESTIMATOR else _cleaned)(point, seed, device, task)
    answers, status, epochs, best_epoch, figures = trained
    seconds, trial = time.perf_counter() - start, stage == "trial"
    right, validated = answers.argmax(1) == task.labels, len(task.val) > 0
    held_out = np.log(np.maximum(answers[task.val], np.finfo(np.float32).tiny))
    return Record(
        point=point,
        stage=stage,
        seed=seed,
        split=split,
        status=status,
        val_loss=finite(negative_log_likelihood(held_out, task.labels[task.val])) if validated else None,
        val_accuracy=float(right[task.val].mean()) if validated else None,
        test_accuracy=float(right[task.test].mean()) if trial else None,
        epochs=epochs,
        best_epoch=best_epoch,
        seconds=seconds,
        evidence=of_answers(answers, task, figures=figures()) if trial else None,
    )


def label_figures(doubts: np.ndarray, point: Point, seed: int, task: NodeTask) -> dict[str, float]:
    """From the probability (n,) that the label of a training or validation node is wrong."""
    if point.setting not in LABEL_NOISE:
        return {}
    labelled = np.concatenate([task.train, task.val])
    wrong = load_noisy(point.dataset, point.setting, seed).wrong[labelled]
    expected = {LABELS_EXPECTED: float(doubts[labelled].mean())}
    if not wrong.any():
        return expected
    return {LABELS_AUC: float(roc_auc_score(wrong, doubts[labelled])), **expected}


def _estimator(point: Point, seed: int, device: str, task: NodeTask) -> _Trained:
    """Fit the estimator with the options of a point. It is given the labels of training and validation nodes alone.

    A task without features, whose matrix is the identity, is fitted without them.
    """
    y = np.full(task.num_nodes, UNKNOWN)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    parameters: dict[str, Any] = {**point.options, "device": device, "random_state": seed}
    classifier = G3NNClassifier(**parameters)
    X = None if is_identity(task.features) else task.features
    val = task.val if len(task.val) else None
    classifier.fit(X, y, task.edges, val=val, weights=False if task.weights is None else task.weights)
    epochs = int(classifier.n_iter_)
    answers = classifier.predict_proba()
    return answers, "stopped", epochs, epochs, lambda: _audited(classifier, point, seed, task)


def _audited(classifier: G3NNClassifier, point: Point, seed: int, task: NodeTask) -> dict[str, float]:
    """How well injected edges or wrong labels are found, and how honest their probabilities are; of edges none where no
    edge was injected, of labels none where every label is taken as given. With few labels, how often sets of classes
    hold the right one."""
    if point.setting in SCARCE:
        return {COVERAGE: float(classifier.predict_set(ALPHA)[task.test, task.labels[task.test]].mean())}
    if point.setting in LABEL_NOISE and classifier.label_noise is not False:
        found = classifier.audit_labels()
        doubts = np.zeros(task.num_nodes)
        doubts[found["node"]] = found["probability"]
        return label_figures(doubts, point, seed, task)
    if point.setting not in (*EDGE_NOISE, *METATTACK):
        return {}
    injected = load_noisy(point.dataset, point.setting, seed).injected
    if not injected.any():
        return {}
    likely, genuine = (classifier.edge_proba(task.edges.T, density) for density in ("balanced", "genuine"))
    alike = cosine_similarity(task.features, task.edges)
    level = np.minimum((genuine * BINS).astype(int), BINS - 1)
    gaps = np.bincount(level, genuine - ~injected)
    return {
        AUDIT_AUC: float(roc_auc_score(injected, -likely)),
        COSINE_AUC: float(roc_auc_score(injected, -alike)),
        AUDIT_ECE: float(np.abs(gaps).sum() / len(genuine)),
    }


def _cleaned(point: Point, seed: int, device: str, task: NodeTask) -> _Trained:
    """Train a GCN on the training labels that cleanlab does not doubt, and stop by the validation labels that it does
    not doubt."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    labelled = np.union1d(task.train, task.val)
    answers = _cross_validated(point, seed, device, task, labelled)
    given = task.labels[labelled]
    with warnings.catch_warnings():
        # A class may have no label among those it doubts.
        warnings.simplefilter("ignore", UserWarning)
        doubtful = find_label_issues(given, answers, n_jobs=1)
    kept = [part[~np.isin(part, labelled[doubtful])] for part in (task.train, task.val)]
    result = _fitted(point, seed, device, task, *kept)
    doubts = np.zeros(task.num_nodes)
    doubts[labelled] = 1 - get_label_quality_scores(given, answers)
    epochs, best_epoch = int(result.epochs[0]), int(result.best_epoch[0])
    figures = partial(label_figures, doubts, point, seed, task)
    return result.probabilities[0], result.status[0], epochs, best_epoch, figures


def _cross_validated(point: Point, seed: int, device: str, task: NodeTask, labelled: np.ndarray) -> np.ndarray:
    """(m, K): answers for nodes whose labels were not seen. One fold is answered, the next one stops the training, and
    the others train; classes are spread over the folds evenly."""
    order = np.random.default_rng(seed).permutation(len(labelled))
    order = order[np.argsort(task.labels[labelled][order], kind="stable")]
    fold = np.empty(len(labelled), dtype=np.int64)
    fold[order] = np.arange(len(labelled)) % FOLDS
    answers = np.zeros((len(labelled), task.num_classes))
    for one in range(FOLDS):
        away, stops = fold == one, fold == (one + 1) % FOLDS
        result = _fitted(point, seed, device, task, labelled[~away & ~stops], labelled[stops])
        answers[away] = result.probabilities[0][labelled[away]]
    return answers


def _fitted(point: Point, seed: int, device: str, task: NodeTask, train: np.ndarray, val: np.ndarray) -> FitResult:
    """A GCN. A class may be left without a training label: it is then never the answer."""
    part, options = replace(task, train=train, val=val), dict[str, Any](point.options)
    result = fit(part, "gcn", point.objective, seed=seed, device=device, progress=False, **options)
    if result.status[0] == "diverged":
        raise TrainingError(f"a network with {len(train)} training and {len(val)} validation labels diverged")
    return result
