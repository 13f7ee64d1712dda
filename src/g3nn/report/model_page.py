"""The page of a fitted classifier: how good it is, what it is unsure of, which edges look wrong, and the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.calibrate import reliability_bins
from g3nn.errors import Problems
from g3nn.experiments.records import Bin, Evidence
from g3nn.report import assets, model_views
from g3nn.report.averages import average, curves
from g3nn.report.beliefs import ClassFindings
from g3nn.report.model_graph import MOST_NEIGHBOURS, embedded

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.estimator import G3NNClassifier, GraphEstimator

EXPLORER = ("model_lists", "model_drawing", "model_explorer", "model_walk")
"""The scripts of tables of nodes and edges, and of the explorer, once `beliefs` says what there is to say of a node."""
SCRIPTS = ("evidence", "model_graph", "model_parts", "model_classes", "model_table", "model_charts", *EXPLORER, "model")
STYLES = ("model.css", "model_explorer.css")

MOST_CONFUSED = 20
"""A confusion matrix has at most so many rows; the classes with the fewest errors share the last one."""


def write_model_report(
    classifier: GraphEstimator,
    out_path: str | Path,
    *,
    ids: Sequence[Any] | None = None,
    title: str = "",
    audit: AuditTables | None = None,
    test: Mapping[str, Any] | None = None,
) -> None:
    """Write the page of a fitted estimator: one file that needs no network.

    ids:   names of the nodes, in the order of the fit [0, 1, 2, ...].
    audit: what `classifier.audit` found: how likely every edge of the graph is, and pairs that lack one.
    test:  what `classifier.evaluate` found on nodes that had no part in the fit.
    """
    from g3nn.report.outcome_page import outcome_page

    path = Path(out_path)
    assets.check_target(path)
    made = model_page if classifier.task_.outcome == "classes" else outcome_page
    assets.write(path, made(classifier, ids=ids, title=title, audit=audit, test=test))


def model_page(
    classifier: G3NNClassifier,
    *,
    ids: Sequence[Any] | None = None,
    title: str = "",
    audit: AuditTables | None = None,
    test: Mapping[str, Any] | None = None,
) -> str:
    """The page as text."""
    found = _findings(classifier, ids, audit)
    chosen = next(entry for entry in classifier.panel_ if entry.chosen)
    # What was learned cannot be used to judge.
    scores = None if classifier.refit else classifier.evaluate(found.task.val, _val_labels(classifier))
    graph = embedded(found)
    return assets.render(
        "model.html.j2",
        styles=STYLES,
        scripts=[f"{name}.js" for name in SCRIPTS],
        data={
            "classes": found.classes,
            "class_rows": model_views.class_rows(found, judged=scores is not None),
            "panel": model_views.panel_rows(classifier.panel_),
            "graph": graph,
            "drawn": MOST_NEIGHBOURS,
            **_evidence(classifier, found, scores),
        },
        title=clean(title) or "A fitted classifier",
        introduction=model_views.introduction(found),
        cards=model_views.cards(scores, chosen, found, test),
        caution=model_views.caution(classifier),
        warnings=model_views.warnings(found),
        facts=model_views.facts(classifier, chosen, found),
        judged=scores is not None,
        **shown_graph(graph, audit),
        most_entropy=math.log(len(found.classes)),
        coverage=round(100 * (1 - model_views.ALPHA)),
    )


def shown_graph(graph: Mapping[str, Any], audit: AuditTables | None) -> dict[str, Any]:
    """What the template says of an embedded graph."""
    listed = {name: len(graph[name]) for name in ("uncertain", "suspicious", "missing")}
    return {"graph": graph, "listed": listed, "audited": audit is not None, "drawn": MOST_NEIGHBOURS}


def _findings(classifier: G3NNClassifier, ids: Sequence[Any] | None, audit: AuditTables | None) -> ClassFindings:
    names = checked_names(classifier, ids, audit)
    sets = classifier.predict_set(model_views.ALPHA)
    classes = list(map(clean, classifier.classes_))
    return ClassFindings(classifier.task_, names, audit, classes, classifier.predict_proba(), sets)


def checked_names(classifier: GraphEstimator, ids: Sequence[Any] | None, audit: AuditTables | None) -> list[str]:
    """The names of the nodes, if there are as many, and if the audit is one of these edges."""
    task = classifier.task_
    names = list(map(clean, range(task.num_nodes) if ids is None else ids))
    problems = Problems()
    if len(names) != task.num_nodes:
        problems.add("ids", f"{len(names)} ids", f"one for each of the {task.num_nodes} nodes")
    if audit is not None and not _same_edges(task.edges, audit.edges):
        problems.add(
            "audit", f"an audit of {len(audit.edges)} other edges", f"one of the {task.num_edges} edges fitted"
        )
    problems.raise_if_any()
    return names


def _same_edges(edges: np.ndarray, rows: np.ndarray) -> bool:
    audited = np.stack([rows["source"], rows["target"]])
    return edges.shape == audited.shape and bool((_sorted(edges) == _sorted(audited)).all())


def _sorted(edges: np.ndarray) -> np.ndarray:
    return edges[:, np.lexsort(edges)]


def clean(value: Any) -> str:
    """As text that can be written: half a surrogate pair cannot."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def _val_labels(classifier: G3NNClassifier) -> np.ndarray:
    labels: np.ndarray = classifier.classes_[classifier.task_.labels[classifier.task_.val]]
    return labels


def _evidence(classifier: G3NNClassifier, found: ClassFindings, scores: Mapping[str, Any] | None) -> dict[str, Any]:
    """Learning curves over the replicas and, where the validation nodes can judge, what they say."""
    if scores is None:
        return {"curves": curves([Evidence(0, 0, 0, 0, *one, (), (), ()) for one in histories(classifier)])}
    task, answers = found.task, found.probabilities[found.task.val]
    labels = task.labels[task.val]
    bins = tuple(Bin(**asdict(part)) for part in reliability_bins(answers, labels))
    right = found.answers[task.val] == labels
    degrees = _by_degree(right, answers.max(1), found.degree[task.val])
    measures = len(labels), scores["nll"], scores["ece"], scores["brier"]
    replicas = [Evidence(*measures, *one, bins, degrees, ()) for one in histories(classifier)]
    return {**average(replicas), "confusion": _confusion(labels, found.answers[task.val], len(found.classes))}


def histories(classifier: GraphEstimator) -> list[tuple[tuple[int, ...], dict[str, tuple[float, ...]]]]:
    """The epochs of each replica and its curves. One that was never trained has none."""
    histories = []
    for history in np.moveaxis(classifier.history_, 2, 0):
        last = int(np.isfinite(history).any(1).sum())
        values = {name: tuple(history[:last, k].tolist()) for k, name in enumerate(classifier.history_names_)}
        histories.append((tuple(range(1, last + 1)), values))
    return histories


def _by_degree(right: np.ndarray, confidence: np.ndarray, degree: np.ndarray) -> tuple[Bin, ...]:
    """Bins of degree that double: 0, 1, 2, 3 to 4, 5 to 8, and so on. Only those that hold a node."""
    level = np.where(degree > 0, np.ceil(np.log2(np.maximum(degree, 1))) + 1, 0).astype(np.int64)
    bins = []
    for one in np.unique(level).tolist():
        inside = level == one
        low, high = (one, one) if one < 2 else (2 ** (one - 2) + 1, 2 ** (one - 1))
        means = float(right[inside].mean()), float(confidence[inside].mean())
        bins.append(Bin(low, min(high, int(degree.max())), int(inside.sum()), *means))
    return tuple(bins)


def _confusion(labels: np.ndarray, answers: np.ndarray, K: int) -> dict[str, Any]:
    """counts[k][l]: validation nodes of class k that were answered l. classes: which ones; -1 is all others."""
    wrong = labels != answers
    errors = np.bincount(labels[wrong], minlength=K) + np.bincount(answers[wrong], minlength=K)
    shown = np.arange(K)
    if K > MOST_CONFUSED:
        shown = np.sort(np.argsort(-errors, kind="stable")[: MOST_CONFUSED - 1])
    place = np.full(K, len(shown))
    place[shown] = np.arange(len(shown))
    size = len(shown) + (len(shown) < K)
    counts = np.bincount(place[labels] * size + place[answers], minlength=size * size).reshape(size, size)
    classes = [*shown.tolist(), *([-1] if size > len(shown) else [])]
    return {"classes": classes, "counts": counts.tolist()}
