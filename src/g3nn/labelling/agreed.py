"""What several people's answers say together: the label of each node, who disagrees, and a table to take away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from g3nn.labelling.project import LABEL, SKIP, Answer


@dataclass(frozen=True)
class Opinion:
    """About one node. label: what most people say, the latest of equals; None if all who answered do not know.
    answers: the last one of each person, the oldest first."""

    node: str
    label: str | None
    answers: tuple[Answer, ...]

    @property
    def disagree(self) -> bool:
        """Whether people give different labels."""
        return len({one.label for one in self.answers if one.kind == LABEL}) > 1


def opinions(current: Iterable[Answer]) -> dict[str, Opinion]:
    """By node. Nodes that were only skipped are not among them."""
    by_node: dict[str, list[Answer]] = {}
    for answer in current:
        if answer.kind != SKIP:
            by_node.setdefault(answer.node, []).append(answer)
    return {node: Opinion(node, _label(answers), tuple(answers)) for node, answers in by_node.items()}


def _label(answers: list[Answer]) -> str | None:
    votes = Counter(one.label for one in answers if one.label is not None)
    # The last of equals: later answers have seen more.
    last = {one.label: place for place, one in enumerate(answers)}
    return max(votes, key=lambda label: (votes[label], last[label]), default=None)


def answers_table(current: Iterable[Answer], id: str = "id", label: str = "label") -> pa.Table:
    """A row for each node that was answered: its label, empty if people do not know, and how it came about.

    votes: how many people gave a label. people: who answered. disagreement: whether labels differ. guess, probability:
    what the model said before the first of them. how: who asked.
    """
    rows = list(opinions(current).values())
    first = [one.answers[0] for one in rows]
    told = {
        "votes": pa.array([sum(answer.kind == LABEL for answer in one.answers) for one in rows], pa.int64()),
        "people": _texts(", ".join(answer.person for answer in one.answers) for one in rows),
        "disagreement": pa.array([one.disagree for one in rows], pa.bool_()),
        "note": _texts(" / ".join(answer.note for answer in one.answers if answer.note) for one in rows),
        "guess": _texts(one.guess for one in first),
        "probability": pa.array([one.sure for one in first], pa.float64()),
        "how": _texts(one.how for one in first),
        "at": _texts(one.answers[-1].at for one in rows),
    }
    own = {id: _texts(one.node for one in rows), label: _texts(one.label for one in rows)}
    return pa.table(own | {f"answer_{name}" if name in own else name: cells for name, cells in told.items()})


def _texts(items: Iterable[str | None]) -> pa.Array:
    return pa.array(list(items), pa.large_string())
