"""Given labels as a table, the most suspicious first."""

from __future__ import annotations

from typing import Any

import numpy as np

from g3nn.estimator.fitted import Fitted
from g3nn.estimator.wrong_labels import JudgedLabels
from g3nn.graph.outcomes import Classes, Tags
from g3nn.queries import LABEL_ROW


def label_table(fitted: Fitted, judged: JudgedLabels, contradicted: bool = False) -> np.ndarray:
    """See `AuditTables.labels`. contradicted: only labels that models contradict which have not seen them, with what
    these say instead."""
    order, answer = np.argsort(-judged.wrong, kind="stable"), judged.answer
    if contradicted:
        order = order[judged.contradicted[order]]
        answer = judged.unseen.argmax(1).astype(answer.dtype) if judged.table.size else answer
    table = np.empty(len(order), dtype=LABEL_ROW)
    table["rank"], table["node"] = np.arange(1, len(order) + 1), judged.nodes[order]
    for name, values in (("given", judged.seen), ("answer", answer)):
        table[name] = _named(fitted, values[order], judged.columns[order])
    table["probability"] = judged.wrong[order]
    return table


def _named(fitted: Fitted, values: np.ndarray, columns: np.ndarray) -> list[Any]:
    """Labels as the caller knows them: a class, or a value, with the name of its column where there are several."""
    names = fitted.columns.tolist()
    if isinstance(fitted.outcome, Classes):
        return [names[int(value)] for value in values]
    plain = [bool(value) if isinstance(fitted.outcome, Tags) else float(value) for value in values]
    if fitted.flat:
        return plain
    return [f"{names[column]} = {value:.6g}" for column, value in zip(columns.tolist(), plain, strict=True)]
