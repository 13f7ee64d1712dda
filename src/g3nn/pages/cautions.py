"""What to look at before the figures of a page are believed: columns that mean something else than they seem to, and
what simple models reach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter

from g3nn.pages.described import clean
from g3nn.pages.model import FittedModel
from g3nn.pages.model_views import Columns, table

_TRAPS = {
    "leak": ("decides the label alone", "leave it out if it is only known once the label is"),
    "id": ("whole numbers that differ like ids", "leave it out"),
    "code": ("a few whole numbers, like codes", "read it as categories, or leave it out"),
}
_SIMPLE = {
    "base-rate": "the same answer for every node",
    "label-propagation": "given labels, passed along the edges",
    "linear": "columns of the node, each with its own weight",
    "linear-neighbours": "columns of the node and its neighbours, each with its own weight",
    "trees": "columns of the node, in any combination",
    "trees-neighbours": "columns of the node and its neighbours, in any combination",
}


def traps(fitted: FittedModel) -> dict[str, object] | None:
    """Columns of the node table that are seldom meant as they are read, and what each is worth alone. leaks: those that
    decide the label."""
    if fitted.tables is None or not fitted.tables.traps:
        return None
    pooled = fitted.outcome.pooled
    worth: Columns = {"right alone": 3, "most frequent label": 3} if pooled else {"variance explained alone": 3}
    rows = [[clean(one.column), *_TRAPS[one.kind], *one[2 : 2 + len(worth)]] for one in fitted.tables.traps]
    shown = table("Columns to look at", {"column": None, "what it is": None, "advice": None, **worth}, rows)
    return {**shown, "leaks": [clean(one.column) for one in fitted.tables.traps if one.kind == "leak"]}


def simple_models(panel: Sequence[object], fitted: FittedModel, score: str) -> dict[str, object] | None:
    """The best of each kind of simple model and the answers, the highest score first; None if none was tried."""
    tried = [one for one in map(vars, panel) if one["simple"] and math.isfinite(one["val_score"] + one["val_loss"])]
    if not tried:
        return None
    best = {one["model"]: one for one in sorted(tried, key=itemgetter("val_score"))}
    rows = [[name, _SIMPLE.get(name, ""), one["val_score"], one["val_loss"]] for name, one in best.items()]
    answers = ["the answers of this page", fitted.model, fitted.val_score, fitted.val_loss, "chosen"]
    ranked = sorted([*rows, answers], key=itemgetter(2), reverse=True)
    return table("Simple models", {"model": None, "what it is": None, score: 3, "loss": 3}, ranked)
