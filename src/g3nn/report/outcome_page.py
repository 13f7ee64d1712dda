"""The page of an estimator of numbers or tags: how good it is, what it is unsure of, and which edges look wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from g3nn.experiments.records import Evidence
from g3nn.report import assets, model_views, number_views, tag_views
from g3nn.report.averages import curves, tidy
from g3nn.report.model_graph import LISTED_EDGES
from g3nn.report.model_page import checked_names, clean, histories
from g3nn.report.page_parts import Column, Table

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.estimator import GraphEstimator

SCRIPTS = ("evidence.js", "model_table.js", "outcome.js")


@dataclass(frozen=True, eq=False)
class Judged:
    """What a page says of one outcome, besides what it says of every one.

    answers: (n,) a short text for each node. charts: what the script draws, by name.
    """

    cards: list[Any]
    columns: Table
    uncertain: Table
    answers: list[str]
    score: str
    charts: dict[str, Any] = field(default_factory=dict)


def outcome_page(
    estimator: GraphEstimator,
    *,
    ids: Sequence[Any] | None = None,
    title: str = "",
    audit: AuditTables | None = None,
    test: Mapping[str, Any] | None = None,
) -> str:
    """The page as text."""
    names = checked_names(estimator, ids, audit)
    chosen = next(entry for entry in estimator.panel_ if entry.chosen)
    views = tag_views if estimator.task_.outcome == "bernoulli" else number_views
    judged: Judged = Judged(**views.judged(estimator, names, test))
    tables = {
        "columns-table": judged.columns,
        "panel-table": _panel(estimator, judged.score),
        "uncertain-table": judged.uncertain,
        **_edges(names, judged.answers, audit),
    }
    return assets.render(
        "outcome.html.j2",
        styles=["model.css"],
        scripts=SCRIPTS,
        data={
            "tables": {place: asdict(table) for place, table in tables.items()},
            "charts": judged.charts,
            "curves": curves([Evidence(0, 0, 0, 0, *one, (), (), ()) for one in histories(estimator)]),
        },
        title=clean(title) or "A fitted estimator",
        introduction=model_views.split_words(estimator.task_, views.taught(estimator)),
        cards=judged.cards,
        caution=model_views.caution(estimator),
        warnings=model_views.few_validation_nodes(len(estimator.task_.val)),
        facts=model_views.common_facts(estimator, chosen),
        judged=not estimator.refit,
        columns_title=views.COLUMNS,
        uncertain_note=views.UNCERTAIN,
        audited=audit is not None,
        edges=estimator.task_.num_edges,
    )


def _panel(estimator: GraphEstimator, score: str) -> Table:
    columns = (
        Column("model"),
        Column("objective"),
        Column("options"),
        Column("loss", 4),
        Column(score, 3),
        Column("epochs", 0),
        Column("replicas", 0),
        Column("chosen"),
    )
    rows = [[*row[:-1], "chosen" if row[-1] else ""] for row in model_views.panel_rows(estimator.panel_)]
    return Table("Models tried", columns, rows)


def _edges(names: Sequence[str], answers: Sequence[str], audit: AuditTables | None) -> dict[str, Table]:
    if audit is None:
        return {}
    columns = (
        Column("rank", 0),
        Column("node"),
        Column("answer"),
        Column("other node"),
        Column("answer"),
        Column("probability", 3),
    )

    def rows(found: np.ndarray) -> list[list[Any]]:
        listed = []
        for rank, (one, other, likely) in enumerate(found[["source", "target", "probability"]][:LISTED_EDGES].tolist()):
            listed.append([rank + 1, names[one], answers[one], names[other], answers[other], tidy(likely)])
        return listed

    return {
        "suspicious-table": Table("Suspicious edges", columns, rows(audit.edges)),
        "missing-table": Table("Likely missing edges", columns, rows(audit.missing)),
    }
