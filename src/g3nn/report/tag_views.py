"""What the page of a classifier of tags shows: each tag, how often probabilities hold, and uncertain nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.calibrate import reliability_bins
from g3nn.report.averages import tidy
from g3nn.report.beliefs import TagFindings
from g3nn.report.model_page import clean
from g3nn.report.model_views import percent
from g3nn.report.page_parts import Column, Table
from g3nn.report.views import Card

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.estimator import G3NNClassifier

COLUMNS = "Tags"
UNCERTAIN = (
    "Entropy is in nats, summed over tags. An answer is what is likelier than not. The most doubtful tag is the one "
    "whose probability is next to one half. Where a given tag differs from the answer, that is marked."
)
DRAWING = "Fill: the likeliest of the answered tags. Ring: how sure the tags are on the whole."
SCRIPT = "model_tags"


def taught(estimator: G3NNClassifier) -> str:
    return f"{len(estimator.classes_)} tag{'' if len(estimator.classes_) == 1 else 's'}"


def judged(
    estimator: G3NNClassifier, names: list[str], audit: AuditTables | None, test: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The parts of the page that are about tags, as `outcome_page.Judged` takes them."""
    task, p = estimator.task_, estimator.predict_proba()
    # What was learned cannot be used to judge.
    scores = None if estimator.refit else estimator.evaluate(task.val, task.labels[task.val])
    tags = list(map(clean, estimator.classes_))
    return {
        "cards": _cards(scores, test),
        "columns": _tags(estimator, p, scores is not None),
        "findings": TagFindings(task, names, audit, tags, p, estimator.predict_entropy()),
        "score": "share right",
        "charts": {} if scores is None else {"reliability": _reliability(task.labels[task.val], p[task.val])},
    }


def _cards(scores: Mapping[str, Any] | None, test: Mapping[str, Any] | None) -> list[Card]:
    cards = []
    for where, found in (("Test", test), ("Validation", scores)):
        if found is None:
            continue
        right = "of the known tags are right: given where they belong, and not elsewhere."
        cards.append(Card(f"{where} accuracy", percent(found["accuracy"]), right, (f"On {found['nodes']:,} nodes.",)))
        mean = (f"Mean over tags (macro): {found['f1_macro']:.3f}.",)
        cards.append(Card(f"{where} F1 (micro)", f"{found['f1_micro']:.3f}", "Precision and recall in one.", mean))
        cards.append(Card(f"{where} loss", f"{found['nll']:.4f}", "Mean of −log p over the known tags.", ()))
    return cards


def _tags(estimator: G3NNClassifier, p: np.ndarray, is_judged: bool) -> Table:
    """A row for each tag, judged on the validation nodes."""
    from g3nn.outcomes import tag_table

    task = estimator.task_
    measured = tag_table(task.labels[task.val], p[task.val])
    rows = []
    for t, (name, row) in enumerate(zip(estimator.classes_.tolist(), measured, strict=True)):
        figures = [tidy(row[key]) for key in ("precision", "recall", "f1")] if is_judged else [None] * 3
        share = float(np.nanmean(task.labels[task.train, t]))
        rows.append([clean(name), tidy(share), int((p[:, t] > 0.5).sum()), row["nodes"], *figures])
    columns = (
        Column("tag"),
        Column("share in training", 3),
        Column("nodes answered", 0),
        Column("validation labels", 0),
        Column("precision", 3),
        Column("recall", 3),
        Column("F1", 3),
    )
    return Table("Tags", columns, rows)


def _reliability(values: np.ndarray, p: np.ndarray) -> list[list[float | None]]:
    """[low, high, tags, share right, mean confidence] of each bin of confidence, over all known tags."""
    known = ~np.isnan(values)
    both = np.stack([1 - p[known], p[known]], axis=1)
    return [[tidy(one) for one in astuple(part)] for part in reliability_bins(both, values[known].astype(np.int64))]
