"""The page of an estimator of numbers or tags: how good it is, what it is unsure of, and which edges look wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from g3nn.experiments.records import Evidence
from g3nn.report import assets, model_views, number_views, tag_views
from g3nn.report.averages import curves
from g3nn.report.model_graph import MOST_NEIGHBOURS, Findings, embedded
from g3nn.report.model_page import EXPLORER, STYLES, checked_names, clean, histories, shown_graph
from g3nn.report.page_parts import Column, Table

if TYPE_CHECKING:
    from g3nn.audit import AuditTables
    from g3nn.estimator import GraphEstimator

SCRIPTS = ("evidence", "model_graph", "model_parts", "{beliefs}", "model_table", *EXPLORER, "outcome")


@dataclass(frozen=True, eq=False)
class Judged:
    """What a page says of one outcome, besides what it says of every one. charts: what the script draws, by name."""

    cards: list[Any]
    columns: Table
    findings: Findings
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
    views = tag_views if estimator.task_.outcome == "tags" else number_views
    judged: Judged = Judged(**views.judged(estimator, names, audit, test))
    tables = {"classes-table": judged.columns, "panel-body": _panel(estimator, judged.score)}
    graph = embedded(judged.findings)
    return assets.render(
        "outcome.html.j2",
        styles=STYLES,
        scripts=[f"{name.format(beliefs=views.SCRIPT)}.js" for name in SCRIPTS],
        data={
            "classes": list(map(clean, estimator.fitted_.columns)),
            "tables": {place: asdict(table) for place, table in tables.items()},
            "charts": judged.charts,
            "graph": graph,
            "drawn": MOST_NEIGHBOURS,
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
        drawing_note=views.DRAWING,
        **shown_graph(graph, audit),
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
