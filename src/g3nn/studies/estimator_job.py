"""The estimator as a row of a table: one fit of `G3NNClassifier`, and how well its audit finds what is wrong."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from g3nn.base.parse import UNKNOWN
from g3nn.estimator import G3NNClassifier
from g3nn.graph.calibrate import BINS
from g3nn.graph.datasets import EDGE_NOISE, LABEL_NOISE, load_noisy
from g3nn.graph.datasets.graphs import METATTACK
from g3nn.graph.task import NodeTask
from g3nn.kernels.sparse import cosine_similarity, is_identity
from g3nn.studies.evidence import scored
from g3nn.studies.label_figures import label_figures
from g3nn.studies.records import Point, Record

AUDIT_AUC, COSINE_AUC = "audit AUC", "cosine AUC"
"""How well injected edges are told from the others: by `edge_proba`, and by the similarity of features alone."""
AUDIT_ECE = "audit ECE"
"""The expected calibration error of the probability that an edge is genuine."""


def estimator_record(point: Point, stage: str, seed: int, split: str, device: str, task: NodeTask) -> Record:
    """Fit the estimator with the options of a point. It is given the labels of training and validation nodes alone.

    A task without features, whose matrix is the identity, is fitted without them.
    """
    start = time.perf_counter()
    y = np.full(task.num_nodes, UNKNOWN)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    parameters: dict[str, Any] = {**point.options, "device": device, "random_state": seed}
    classifier = G3NNClassifier(**parameters)
    X = None if is_identity(task.features) else task.features
    classifier.fit(X, y, task.edges, val=task.val, weights=False if task.weights is None else task.weights)
    answers = classifier.predict_proba()
    seconds = time.perf_counter() - start
    return scored(
        answers,
        task,
        point,
        stage,
        _figures(classifier, point, seed, task) if stage == "trial" else None,
        seed=seed,
        split=split,
        status="stopped",
        epochs=int(classifier.n_iter_),
        best_epoch=int(classifier.n_iter_),
        seconds=seconds,
    )


def _figures(classifier: G3NNClassifier, point: Point, seed: int, task: NodeTask) -> dict[str, float]:
    """How well injected edges or wrong labels are found, and how honest their probabilities are; of edges none where no
    edge was injected."""
    if point.setting in LABEL_NOISE:
        return _label_figures(classifier, point, seed, task)
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


def _label_figures(classifier: G3NNClassifier, point: Point, seed: int, task: NodeTask) -> dict[str, float]:
    """How well wrong labels are found; none where every label is taken as given."""
    if classifier.label_noise is False:
        return {}
    found = classifier.audit_labels()
    doubts = np.zeros(task.num_nodes)
    doubts[found["node"]] = found["probability"]
    return label_figures(doubts, point, seed, task)
