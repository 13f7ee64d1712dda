"""The page of a fitted model: how good it is, what it is unsure about, which edges look wrong, and the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from g3nn.base.errors import Problems
from g3nn.base.version import __version__
from g3nn.graph.calibrate import FEW_VALIDATION_NODES, wilson_interval
from g3nn.graph.rare import in_words
from g3nn.pages import assets
from g3nn.pages.averages import History, curves
from g3nn.pages.cautions import simple_models, traps
from g3nn.pages.described import Described, clean, described
from g3nn.pages.model import FittedEstimator, FittedModel, Member
from g3nn.pages.model_graph import MOST_NEIGHBOURS, NO_PAIRS, Graph, by_size, edge_probabilities, embedded
from g3nn.pages.model_views import ALPHA, Columns, table, thresholds, view_of

if TYPE_CHECKING:
    from g3nn.graph.relations import Relations
    from g3nn.queries import AuditTables

SCRIPTS = ("model_drawing.js", "model_explorer.js", "model_map.js", "model.js")
"""The scripts that follow the one of a view."""

MOST_LABELS = 200
"""The most labels, probably wrong ones, that a page lists."""


def write_model_report(
    estimator: FittedEstimator,
    out_path: str | Path,
    *,
    nodes: object = None,
    title: str = "",
    audit: AuditTables | None = None,
    test: Mapping[str, object] | None = None,
    command: str = "",
    evidence: Mapping[str, float | None] | None = None,
) -> None:
    """Write the page of a fitted estimator to one file that needs no network.

    nodes:   a data frame with the original columns, a row for each node in the order of the fit.
    audit:   the result of `estimator.audit`: how likely every edge is, and pairs that lack one.
    test:    the result of `estimator.evaluate` on nodes that had no part in the fit.
    command: what was typed to make the page.
    evidence: what each type of edges says about labels, in nats; see `estimator.edge_types`.
    """
    path = Path(out_path)
    assets.check_target(path)
    fitted, problems = estimator.fitted_, Problems()
    about = described(fitted.task.num_nodes, fitted.tables, nodes, problems)
    likely = None if audit is None else edge_probabilities(fitted.task, audit)
    if audit is not None and likely is None:
        given = f"an audit of {len(audit.edges)} other edges"
        problems.add("audit", given, f"an audit of the {fitted.task.num_edges} edges that were fitted")
    problems.raise_if_any()
    graph = Graph(estimator, about, view_of(fitted), likely, NO_PAIRS if audit is None else audit.missing)
    assets.write(path, _page(graph, clean(title) or "A fitted model", test, command, evidence))


def _page(
    shown: Graph,
    title: str,
    test: Mapping[str, object] | None,
    command: str,
    evidence: Mapping[str, float | None] | None,
) -> str:
    from g3nn.graph.outcomes import COVERAGE  # Here, since pages of stored results are made without torch.

    estimator, about, view, task = shown.estimator, shown.described, shown.view, shown.task
    fitted = estimator.fitted_
    graph = embedded(shown)
    # Nodes that the model was trained on cannot judge it.
    judged = len(task.val) and not fitted.refitted
    scores = fitted.evaluate(task.val, view.labels, 1 - COVERAGE) if judged else None
    evaluations = {"Test": test, "Validation": scores}
    return assets.render(
        f"{view.files}.html.j2",
        styles=["model.css"],
        scripts=["evidence.js", "palette.js", "model_graph.js", "model_parts.js", f"{view.files}.js", *SCRIPTS],
        data={
            "names": view.names,
            "table": view.table(scores),
            "panel": _panel(estimator.panel_, view.outcome.score_title),
            "schema": _schema(fitted),
            "types": None if shown.relations is None else _edge_types(shown, shown.relations, evidence),
            "traps": traps(fitted),
            "simple": simple_models(estimator.panel_, fitted, view.outcome.score_title),
            "thresholds": thresholds(fitted, view) if judged else None,
            "labels": _labels(estimator, about),
            "score": {"key": view.outcome.score_key, "title": view.outcome.score_title},
            "graph": graph,
            "drawn": MOST_NEIGHBOURS,
            "curves": curves(histories(estimator)),
            **({} if scores is None else view.charts(about.ids)),
        },
        title=title,
        estimator=estimator,
        task=task,
        view=view,
        graph=graph,
        relations=shown.relations,
        fitted=fitted,
        kept=not fitted.refitted and bool(np.isin(task.val, fitted.seen).any()),
        alone=_isolated_answer(fitted.answerer.members),
        evaluations={where: measured for where, measured in evaluations.items() if measured is not None},
        enough=FEW_VALIDATION_NODES,
        level=f"{100 * (1 - ALPHA):.0f} %",
        interval=wilson_interval,
        in_words=in_words,
        exp=math.exp,
        origin=_origin(fitted, estimator.random_state, command),
    )


def _labels(estimator: FittedEstimator, about: Described) -> dict[str, object] | None:
    """The given labels that are probably wrong, if they were judged; the most suspicious first."""
    if estimator.fitted_.labels is None:
        return None
    from g3nn.queries import probably_wrong  # Here, since pages of stored results are made without torch.

    rows = probably_wrong(estimator.audit_labels(ids=False))[:MOST_LABELS]
    shown = [
        [rank, about.ids[node], probability, _word(given, 4), _word(answer, 4)]
        for rank, node, given, answer, probability in rows.tolist()
    ]
    columns: Columns = {"rank": 0, "node": None, "probability": 2, "given": None, "probably": None}
    return table("Labels that are probably wrong", columns, shown)


def _word(value: object, digits: int) -> str:
    return clean(f"{value:.{digits}g}" if isinstance(value, float) else value)


def _schema(fitted: FittedModel) -> dict[str, object] | None:
    """How each column of the node table was read, if there was one."""
    if fitted.tables is None:
        return None
    rows = [[clean(one.column), one.kind, one.missing, clean(one.became)] for one in fitted.tables.read]
    return table("How each column was read", {"column": None, "read as": None, "empty cells": 0, "became": None}, rows)


def _edge_types(shown: Graph, relations: Relations, evidence: Mapping[str, float | None] | None) -> dict[str, object]:
    """The types of edges, those of most edges first."""
    rows, audited = list[list[object]](), shown.likely is not None
    doubted = relations.counts(shown.task.edges[:, shown.suspect], shown.task.directed).tolist()
    for type in by_size(relations).tolist():
        name, pairs, directed = relations.names[type], relations.of(type).pairs, bool(relations.directed[type])
        more = [doubted[type]] * audited + ([] if evidence is None else [evidence.get(name)])
        kinds = _ends(relations, pairs, directed)
        rows.append([clean(name), pairs.shape[1], *kinds, "yes" if directed else "no", *more])
    columns: Columns = {"type": None, "edges": 0}
    columns |= {"between": None} if len(relations.kind_names) > 1 else {}
    columns |= {"directed": None, **({"suspicious": 0} if audited else {})}
    return table("Types of edges", {**columns, **({} if evidence is None else {"evidence": 4})}, rows)


def _ends(relations: Relations, pairs: np.ndarray, directed: bool) -> list[str]:
    """The kinds at both ends of some pairs (2, P), in words; nothing where there is only one."""
    if len(relations.kind_names) == 1:
        return []
    sides = relations.kinds[pairs] if directed else [relations.kinds[pairs]]
    named = [[clean(relations.kind_names[kind]) for kind in np.unique(side)] for side in sides]
    return [" to ".join(map(in_a_row, named if directed or len(named[0]) > 1 else [2 * named[0]]))]


def _origin(fitted: FittedModel, seed: object, command: str) -> dict[str, str]:
    """Where the page comes from; empty where that is not known."""
    labels = [] if fitted.tables is None else list(fitted.tables.node_columns.labels)
    shown = f"{', '.join(labels[:5])} and {len(labels) - 5} more" if len(labels) > 5 else ", ".join(labels)
    return {"g3nn": __version__, "seed": clean(seed), "label": clean(shown), "command": clean(command)}


def _isolated_answer(members: Sequence[Member]) -> str:
    """Which models predict isolated nodes: label priors, networks, and models of scikit-learn by their names."""
    from g3nn.model.generative import BOTH, POSTERIOR, PRIOR, SIMILAR  # Here, for the same reason.

    roles: list[str] = [getattr(one, "isolated_answer", one.name) for one in members if one.isolated_weight]
    networks = sum(role in (POSTERIOR, BOTH, SIMILAR) for role in roles)
    parts = ["the label prior p(y | x)"] if {PRIOR, BOTH} & set(roles) else []
    parts += ["a network without edges" if networks == 1 else f"{networks} networks without edges"] if networks else []
    parts += ["what is said about nodes with similar features"] if SIMILAR in roles else []
    parts += [role for role in roles if role not in (PRIOR, POSTERIOR, BOTH, SIMILAR)]
    return in_a_row(parts) + (" together" if len(parts) > 1 else "")


def in_a_row(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def histories(estimator: FittedEstimator) -> list[History]:
    """The learning curves of each replica, up to its last epoch. A replica that was never trained has none."""
    histories: list[History] = []
    for values in np.moveaxis(estimator.history_, 2, 0):
        last = int(np.isfinite(values).any(1).sum())
        terms = dict(zip(estimator.history_names_, values[:last].T.tolist(), strict=True))
        histories.append((range(1, last + 1), terms))
    return histories


def _panel(panel: Sequence[object], score: str) -> dict[str, object]:
    """The models that were tried, the lowest validation loss first."""
    rows = []
    for rank, entry in enumerate(sorted(map(vars, panel), key=itemgetter("val_loss")), 1):
        options = ", ".join(f"{name} {_word(value, 3)}" for name, value in entry["options"].items())
        known = math.isfinite(entry["val_loss"])
        measured = [entry[name] if known else None for name in ("val_loss", "val_score")]
        how = (entry["epochs"], entry["replicas"], entry["weight"] if entry["chosen"] else None)
        rows.append([rank, entry["model"], entry["view"], entry["objective"], options, *measured, *how])
    columns: Columns = {"#": 0, "model": None, "features": None, "objective": None, "options": None, "loss": 4}
    return table("Models tried", {**columns, score: 3, "epochs": 0, "replicas": 0, "weight": 2}, rows)
