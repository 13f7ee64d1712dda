"""The page of a fitted model: how good it is, what it is unsure about, which edges look wrong, and the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.calibrate import FEW_VALIDATION_NODES, wilson_interval
from g3nn.errors import Problems
from g3nn.page import assets
from g3nn.page.averages import History, curves
from g3nn.page.model_graph import MOST_NEIGHBOURS, Graph, edge_probabilities, embedded
from g3nn.page.model_views import ALPHA, Columns, clean, table, view_of

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.task import NodeTask

SCRIPTS = ("model_drawing.js", "model_explorer.js", "model.js")
"""The scripts that follow the one of a view."""


def write_model_report(
    estimator: Any,
    out_path: str | Path,
    *,
    ids: Sequence[Any] | None = None,
    title: str = "",
    audit: AuditTables | None = None,
    test: Mapping[str, Any] | None = None,
) -> None:
    """Write the page of a fitted estimator to one file that needs no network.

    ids:   names of the nodes, in the order of the fit [0, 1, 2, ...].
    audit: the result of `estimator.audit`: how likely every edge is, and pairs that lack one.
    test:  the result of `estimator.evaluate` on nodes that had no part in the fit.
    """
    path = Path(out_path)
    assets.check_target(path)
    task = estimator.task_
    names, likely = _checked(task, ids, audit)
    view = view_of(estimator)
    chosen = next(entry for entry in estimator.panel_ if entry.chosen)
    # Nodes that the model was trained on cannot judge it.
    judged = len(task.val) and not estimator.refit
    scores = estimator.evaluate(task.val, view.labels) if judged else None
    evaluations = {"Test": test, "Validation": scores}
    graph = embedded(Graph(task, names, view.doubt, view.beliefs, likely, None if audit is None else audit.missing))
    page = assets.render(
        f"{view.files}.html.j2",
        styles=["model.css"],
        scripts=["evidence.js", "model_graph.js", "model_parts.js", f"{view.files}.js", *SCRIPTS],
        data={
            "names": view.names,
            "table": view.table(scores),
            "panel": _panel(estimator.panel_, view.outcome.score_title),
            "score": {"key": view.outcome.score_key, "title": view.outcome.score_title},
            "graph": graph,
            "drawn": MOST_NEIGHBOURS,
            "curves": curves(_histories(estimator)),
            **({} if scores is None else view.charts(names)),
        },
        title=clean(title) or "A fitted model",
        estimator=estimator,
        task=task,
        view=view,
        graph=graph,
        chosen=chosen,
        evaluations={where: measured for where, measured in evaluations.items() if measured is not None},
        isolated=int(task.isolated.sum()),
        enough=FEW_VALIDATION_NODES,
        level=f"{100 * (1 - ALPHA):.0f} %",
        interval=wilson_interval,
        exp=math.exp,
    )
    assets.write(path, page)


def _checked(
    task: NodeTask, ids: Sequence[Any] | None, audit: AuditTables | None
) -> tuple[list[str], np.ndarray | None]:
    """The names of the nodes and the probabilities of the edges, if ids and audit belong to this graph."""
    names = [clean(name) for name in (range(task.num_nodes) if ids is None else ids)]
    likely = None if audit is None else edge_probabilities(task, audit)
    problems = Problems()
    if len(names) != task.num_nodes:
        problems.add("ids", f"{len(names)} ids", f"one for each of the {task.num_nodes} nodes")
    if audit is not None and likely is None:
        given = f"an audit of {len(audit.edges)} other edges"
        problems.add("audit", given, f"an audit of the {task.num_edges} edges that were fitted")
    problems.raise_if_any()
    return names, likely


def _histories(estimator: Any) -> list[History]:
    """The learning curves of each replica, up to its last epoch. A replica that was never trained has none."""
    histories: list[History] = []
    for values in np.moveaxis(estimator.history_, 2, 0):
        last = int(np.isfinite(values).any(1).sum())
        terms = dict(zip(estimator.history_names_, values[:last].T.tolist(), strict=True))
        histories.append((range(1, last + 1), terms))
    return histories


def _panel(panel: Sequence[Any], score: str) -> dict[str, Any]:
    """The models that were tried, the lowest validation loss first."""
    rows = []
    for rank, entry in enumerate(sorted(panel, key=lambda entry: entry.val_loss), 1):
        options = ", ".join(f"{name} {_short(value)}" for name, value in entry.options.items())
        measured = (entry.val_loss, entry.val_score) if math.isfinite(entry.val_loss) else (None, None)
        chosen = "chosen" if entry.chosen else ""
        rows.append([rank, entry.model, entry.objective, options, *measured, entry.epochs, entry.replicas, chosen])
    columns: Columns = {"#": 0, "model": None, "objective": None, "options": None, "loss": 4, score: 3}
    return table("Models tried", {**columns, "epochs": 0, "replicas": 0, "chosen": None}, rows)


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
