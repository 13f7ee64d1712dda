"""What is done about wrong labels without a model of them, as a row of a table: drop those that cleanlab doubts."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores

from g3nn.base.errors import TrainingError
from g3nn.graph.task import NodeTask
from g3nn.studies.evidence import scored
from g3nn.studies.label_figures import label_figures
from g3nn.studies.records import Point, Record
from g3nn.training import FitResult, fit

FOLDS = 5


def cleaned_record(point: Point, stage: str, seed: int, split: str, device: str, task: NodeTask) -> Record:
    """Train a GCN on the training labels that cleanlab does not doubt, and stop by the validation labels that it does
    not doubt. The validation loss of the record is that of all, as with other models."""
    start = time.perf_counter()
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
    return scored(
        result.probabilities[0],
        task,
        point,
        stage,
        label_figures(doubts, point, seed, task) if stage == "trial" else None,
        seed=seed,
        split=split,
        status=result.status[0],
        epochs=int(result.epochs[0]),
        best_epoch=int(result.best_epoch[0]),
        seconds=time.perf_counter() - start,
    )


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
