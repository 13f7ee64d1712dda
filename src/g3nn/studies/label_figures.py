"""How well wrong labels are found, as figures of a trial."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

from g3nn.graph.datasets import LABEL_NOISE, load_noisy
from g3nn.graph.task import NodeTask
from g3nn.studies.records import Point

LABELS_AUC = "labels AUC"
"""How well wrong labels are told from the others by the probability that a label is wrong; none without wrong ones."""
LABELS_EXPECTED = "labels expected"
"""The expected share of wrong labels, the mean of these probabilities."""


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
