"""The lists below the question, as a page shows them: answers, and edges to judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from g3nn.labelling.agreed import Opinion
from g3nn.labelling.learner import Doubts
from g3nn.labelling.project import Answer
from g3nn.labelling.records import Records

DISPUTED, DOUBTED = "disputed", "doubted"
"""Which answers are listed: those about which people disagree, and those that other labels contradict."""

_LISTED = 12

Json = dict[str, Any]


def listed(rows: Sequence[Opinion], doubted: Mapping[str, str], records: Records, start: int) -> Json:
    """Some of the answered nodes. doubted: what other labels say instead. A node whose label is that of the table has
    no answers."""
    found = []
    for one in rows[start : start + _LISTED]:
        row = records.row(one.node)
        found.append(
            {
                "node": one.node,
                "title": one.node if row is None else records.title(row),
                "label": one.label,
                "disagree": one.disagree,
                "instead": doubted.get(one.node),
                "answers": [told(answer) for answer in one.answers],
            }
        )
    return {"total": len(rows), "start": start, "size": _LISTED, "rows": found}


def told(answer: Answer) -> Json:
    names = ("person", "kind", "label", "note", "guess", "sure", "at", "how")
    return {name: getattr(answer, name) for name in names}


def unjudged(found: Doubts, verdicts: Iterable[tuple[str, str]], records: Records) -> Json:
    """Edges and pairs that are not among those that somebody has judged."""
    judged = {frozenset(pair) for pair in verdicts}

    def rows(pairs: list[tuple[int, int, float]]) -> list[Json]:
        ends = [(records.id(one), records.id(other), likely, one, other) for one, other, likely in pairs]
        return [
            {"source": [a, records.title(i)], "target": [b, records.title(j)], "probability": likely}
            for a, b, likely, i, j in ends
            if frozenset((a, b)) not in judged
        ]

    return {"suspicious": rows(found.suspicious), "missing": rows(found.missing)}
