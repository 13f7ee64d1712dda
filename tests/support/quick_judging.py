"""Labels and edges are judged by small models that train for a few epochs, and panels are small: for tests of what
becomes of a judgement or of a choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from g3nn.estimator import panel
from g3nn.estimator.effort import EFFORTS
from g3nn.model.tabular.models import boosted_trees
from g3nn.queries import GraphAudit, edge_trust, wrong_labels

_fit = GraphAudit.fit


def _few_trees(outcome: Any) -> Any:
    return boosted_trees(outcome).set_params(max_iter=20, max_bins=32)


TREES = (panel, "boosted_trees", _few_trees)
JUDGES = (panel, "_JUDGES", ("gcn", "mlp"))
LABELS = [(wrong_labels, "EPOCHS", 10), JUDGES]


def _short_fit(*given: Any, **options: Any) -> GraphAudit:
    return _fit(*given, **{"epochs": 15, **options})


EDGES = [(edge_trust, "_EPOCHS", 20), (GraphAudit, "fit", _short_fit)]
"""What is set: an object, the name of an attribute and its value."""

FEW_MODELS = {
    name: replace(EFFORTS[name], views=1, models=3, leading=2, varied=0, kept=2) for name in ("quick", "default")
}
"""Efforts by name, for `EFFORTS`."""
