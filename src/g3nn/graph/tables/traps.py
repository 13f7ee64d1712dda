"""Columns of a node table that are seldom meant as they are read: those that decide the label alone, ids and codes that
are read as quantities, and kinds of nodes that never have a label."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from g3nn.base.parse import NONE, Matrix
from g3nn.graph.outcomes import OUTCOMES, Labels, Outcome
from g3nn.graph.tables.encoders import MOST_CATEGORIES, Category, Number, Text
from g3nn.graph.tables.kinds import FILE
from g3nn.graph.tables.remarks import Remarks, listed
from g3nn.graph.tables.schema import FeatureSchema

if TYPE_CHECKING:
    from g3nn.graph.tables.graph import NodeTable

_ID, _CODE = r"(?i)(^|[^a-z])(id|number|nr|key|index)$", r"(?i)(^|[^a-z])(id|type|code|kind|category|status|zip)$"
"""What ids and codes are called."""
_ALMOST = 0.95
"""Share of the rows in which ids differ."""
_ROWS, _MOST_ROWS, _MOST_COLUMNS, _FOLDS = 5, 5000, 500, 5
"""Rows of a value that say something about it; nodes and columns that are looked at; and in how many folds."""
_FEWEST = 40
"""Labels by which a column is judged."""
_DECIDES, _LEFT, _EXPLAINS = 0.98, 0.1, 0.95
"""A column decides the label if it is right as often, and leaves at most this share of the errors of the simplest
answer; or if it explains so much of the variance."""
_MISSING = -1e30
_EXPECTED = 10.0
"""Labels that a kind of nodes would have if it had its share of them."""
Kind = Literal["leak", "id", "code"]


class Worth(NamedTuple):
    """What a column is worth alone. score: on labels that were not seen, the share that is right or the variance that
    is explained; simplest: of the most frequent label, 0 for numbers; None where not measured. found: both in words."""

    score: float | None = None
    simplest: float | None = None
    found: str = ""
    decides: bool = False


class Trap(NamedTuple):
    """A column that decides the label, or an id or a code that is read as a quantity. The rest is as in `Worth`."""

    column: str
    kind: Kind
    score: float | None
    simplest: float | None


def remark_on_traps(
    nodes: NodeTable, schema: FeatureSchema, labels: Labels | None, remarks: Remarks
) -> tuple[tuple[Trap, ...], np.ndarray]:
    """The traps, and the nodes of kinds that never have a label, unless a column says which kinds there are. labels:
    without those of test nodes."""
    traps, never = list[Trap](), np.zeros(nodes.num_nodes, dtype=bool)
    for column, how in list(schema.columns.items())[:_MOST_COLUMNS]:
        if isinstance(how, Text):
            continue
        place, values, worth = f"{nodes.name}, column {column!r}", schema.values(nodes.features, column), Worth()
        kind, what = _no_quantity(column, values) if isinstance(how, Number) and how.kind == "numeric" else (None, "")
        if labels is not None:
            worth = _worth(values, labels, OUTCOMES[nodes.columns.outcome], bool(kind))
        if worth.decides:
            kind = _note_leak(nodes.name, column, worth, remarks)
        elif kind:
            advice = f"ignore=[{column!r}] leaves it out, categorical=[{column!r}] reads categories."
            found = ", ".join(filter(None, (what, worth.found)))
            remarks.note(place, found, "numbers that are quantities", "read as a quantity", advice)
        if kind:
            traps.append(Trap(column, kind, worth.score, worth.simplest))
        if isinstance(how, Category) and nodes.labels is not None and nodes.kinds is None:
            never |= _never_labelled(place, how, values, nodes.labels, remarks)
    return tuple(traps), np.flatnonzero(never)


def remark_on_edges(
    name: str, columns: Mapping[str, Matrix], labels: Labels, outcome: str, remarks: Remarks
) -> tuple[Trap, ...]:
    """The columns of edges that decide the label, each as what its values are at the edges of nodes, (n, A)."""
    traps = list[Trap]()
    for column, values in columns.items():
        worth = _worth(values, labels, OUTCOMES[outcome], False)
        if worth.decides:
            kind = _note_leak(name, column, worth, remarks)
            traps.append(Trap(f"{column} (of edges)", kind, worth.score, worth.simplest))
    return tuple(traps)


def _note_leak(table: str, column: str, worth: Worth, remarks: Remarks) -> Kind:
    place = table if column == FILE else f"{table}, column {column!r}"
    ignored = f'edge_type="{NONE}"' if column == FILE else f"ignore=[{column!r}]"
    advice = f"If it is not known before the label is, {ignored} leaves it out."
    remarks.note(place, f"it decides the label, {worth.found}", "columns that say less", "used like others", advice)
    return "leak"


def _never_labelled(place: str, how: Category, values: np.ndarray, labels: Labels, remarks: Remarks) -> np.ndarray:
    """(n,): the nodes of categories without a label, where chance would have given them some."""
    known = (values >= 0) & (values < len(how.categories))
    nodes = np.bincount(values[known], minlength=len(how.categories))
    given = np.zeros(len(values))
    given[labels.labelled] = 1
    labelled = np.bincount(values[known], given[known], minlength=len(how.categories))
    lacking = np.flatnonzero((labelled == 0) & (nodes * given.mean() >= _EXPECTED))
    if lacking.size:
        found = f"no label for {nodes[lacking].sum():,} nodes with {listed([how.categories[one] for one in lacking])}"
        done = "their answers are marked as never-labelled"
        remarks.note(place, found, "labels of every kind of node", done)
    return np.isin(values, lacking)


def _worth(values: Matrix, labels: Labels, outcome: type[Outcome], asked: bool) -> Worth:
    """How well a tree with this column (n,) or (n, A) alone answers for labels that it has not seen, and whether it
    decides the label; of several tags, the one that it answers best. Nothing if it does not, unless it is asked."""
    from sklearn.model_selection import KFold, cross_val_score
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    tree = (DecisionTreeClassifier if outcome.pooled else DecisionTreeRegressor)(min_samples_leaf=_ROWS, random_state=0)
    found, chosen = [(0.0, 1.0)], labels.labelled[:: 1 + len(labels.labelled) // _MOST_ROWS]
    for column in labels.values.reshape(len(labels.values), -1).T:
        nodes = chosen[~np.isnan(column[chosen])]
        if len(nodes) < _FEWEST:
            continue
        x, y = values[nodes].toarray() if sp.issparse(values) else values[nodes], column[nodes]
        x = np.nan_to_num(x, nan=_MISSING).reshape(len(nodes), -1)
        simplest = float(np.unique(y, return_counts=True)[1].max() / len(y)) if outcome.pooled else 0.0
        # Few columns could decide anything, and that is quickly seen.
        if asked or tree.fit(x, y).score(x, y) >= max(_EXPLAINS, 1 - _LEFT * (1 - simplest)):
            score = cross_val_score(tree, x, y, cv=KFold(_FOLDS, shuffle=True, random_state=0)).mean().item()
            found.append((score, simplest))
    score, simplest = max(found, key=lambda one: one[0] - one[1])
    if len(found) == 1:
        return Worth()
    if not outcome.pooled:
        score = max(score, 0.0)
        return Worth(score, 0.0, f"alone it explains {score:.1%} of the variance of the labels", score >= _EXPLAINS)
    words = f"alone it is right about {score:.1%} of the labels, and the most frequent one is {simplest:.1%}"
    return Worth(score, simplest, words, score >= max(_DECIDES, 1 - _LEFT * (1 - simplest)))


def _no_quantity(column: str, values: np.ndarray) -> tuple[Kind | None, str]:
    """Which trap whole numbers are, and why: most of them differ, or a few have gaps; else nothing."""
    values = values[~np.isnan(values)]
    if not (values % 1 == 0).all():
        return None, ""
    distinct, rows = np.unique(values, return_counts=True)
    reach = distinct[-1] - distinct[0] + 1
    if len(distinct) >= max(_FEWEST, _ALMOST * len(values)):
        like_ids = re.search(_ID, column) or reach <= len(values) / _ALMOST
        return ("id", "whole numbers that differ like ids") if like_ids else (None, "")
    few = 2 < len(distinct) <= min(MOST_CATEGORIES, len(values) / _ROWS)
    gaps = reach > 3 * len(distinct) and rows.min() >= _ROWS
    like_codes = few and (gaps or re.search(_CODE, column))
    return ("code", f"{len(distinct)} whole numbers, like codes") if like_codes else (None, "")
