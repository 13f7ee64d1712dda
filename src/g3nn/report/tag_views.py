"""What the page of a classifier of tags shows: each tag, how often probabilities hold, and uncertain nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.calibrate import reliability_bins
from g3nn.report.averages import tidy
from g3nn.report.model_graph import LISTED_NODES
from g3nn.report.model_page import clean
from g3nn.report.model_views import percent
from g3nn.report.page_parts import Column, Table
from g3nn.report.views import Card

if TYPE_CHECKING:
    from g3nn.estimator import G3NNClassifier

COLUMNS = "Tags"
UNCERTAIN = (
    "The nodes with the highest entropy, in nats and summed over tags, first. An answer is what is likelier than not."
)

_MOST_NAMED = 5


def taught(estimator: G3NNClassifier) -> str:
    return f"{len(estimator.classes_)} tag{'' if len(estimator.classes_) == 1 else 's'}"


def judged(estimator: G3NNClassifier, names: Sequence[str], test: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parts of the page that are about tags, as `outcome_page.Judged` takes them."""
    task, p = estimator.task_, estimator.predict_proba()
    # What was learned cannot be used to judge.
    scores = None if estimator.refit else estimator.evaluate(task.val, task.labels[task.val])
    answers = [_named(estimator.classes_[row > 0.5].tolist()) for row in p]
    return {
        "cards": _cards(scores, test),
        "columns": _tags(estimator, p, scores is not None),
        "uncertain": _uncertain(estimator, names, p, answers),
        "answers": answers,
        "score": "share right",
        "charts": {} if scores is None else {"reliability": _reliability(task.labels[task.val], p[task.val])},
    }


def _named(tags: list[Any]) -> str:
    more = f" and {len(tags) - _MOST_NAMED} more" if len(tags) > _MOST_NAMED else ""
    return ", ".join(map(clean, tags[:_MOST_NAMED])) + more or "none"


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
    from g3nn.estimator.measures import tag_table

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


def _uncertain(estimator: G3NNClassifier, names: Sequence[str], p: np.ndarray, answers: Sequence[str]) -> Table:
    task, entropy = estimator.task_, estimator.predict_entropy()
    degree = np.bincount(task.edges.ravel(), minlength=task.num_nodes)
    rows = []
    for node in np.argsort(-entropy, kind="stable")[:LISTED_NODES].tolist():
        doubtful = int(np.abs(p[node] - 0.5).argmin())
        tag = clean(estimator.classes_[doubtful])
        values = tidy(float(entropy[node])), tag, tidy(float(p[node, doubtful])), int(degree[node])
        rows.append([names[node], answers[node], *values])
    columns = (
        Column("node"),
        Column("answer"),
        Column("entropy", 3),
        Column("most doubtful tag"),
        Column("its probability", 3),
        Column("degree", 0),
    )
    return Table("Uncertain nodes", columns, rows)


def _reliability(values: np.ndarray, p: np.ndarray) -> list[list[float | None]]:
    """[low, high, tags, share right, mean confidence] of each bin of confidence, over all known tags."""
    known = ~np.isnan(values)
    both = np.stack([1 - p[known], p[known]], axis=1)
    return [[tidy(one) for one in astuple(part)] for part in reliability_bins(both, values[known].astype(np.int64))]
