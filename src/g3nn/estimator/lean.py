"""A quick fit to a handful of labels: one model that suits them, which in the end learns from every label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from g3nn.estimator.request import Request
from g3nn.training.stack import LAST

_MODEL = "sbm-appnp"
"""It makes most of few labels: its prior and its likelihood learn from the unlabelled nodes too."""
_LABELS, _EDGES = 6.0, 20
"""Labels of a class, on average, from which on there is something to choose models by; edges that a model needs."""
_EPOCHS, _REPLICAS = 60, 2
"""Nobody stops early: a few validation nodes do not know when, and a network that stopped at another time would not say
how certain the one that answers may be."""


def lean(request: Request, parameters: Mapping[str, Any]) -> Request | None:
    """What to do instead of a search with effort "quick"; None where there are labels enough for one, or where the
    caller wants something else.

    With two labels of a class to compare models would hold back half of all labels, for a choice that is hardly better
    than chance. So two replicas that validate on labels of their own say how certain answers may be, and then both
    learn from all of them.
    """
    chosen = [one for one in request.candidates if one.name == _MODEL]
    labels = len(request.labels.labelled) / max(len(request.labels.names), 1)
    asked = parameters["effort"] != "quick" or parameters["denoise"] is True or parameters["budget"] is not None
    few = labels < _LABELS and len(request.candidates) > 1 and len(request.folds) > 0
    if asked or not few or not chosen or request.prior is not None or request.edges.shape[1] < _EDGES:
        return None
    common = {**request.common, "epochs": min(_EPOCHS, int(request.common["epochs"])), "keep": LAST}
    return replace(request, candidates=tuple(chosen[:1]), seeds=request.seeds[:_REPLICAS], common=common)
