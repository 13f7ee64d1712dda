"""Labels and edges are judged by small models that train for a few epochs: for tests of what becomes of a judgement."""

from __future__ import annotations

from typing import Any

from g3nn.estimator import panel
from g3nn.queries import GraphAudit, edge_trust, wrong_labels

_fit = GraphAudit.fit

LABELS = [(wrong_labels, "EPOCHS", 10), (panel, "_JUDGES", ("gcn", "mlp"))]


def _short_fit(*given: Any, **options: Any) -> GraphAudit:
    return _fit(*given, **{"epochs": 15, **options})


EDGES = [(edge_trust, "_EPOCHS", 20), (GraphAudit, "fit", _short_fit)]
"""What is set: an object, the name of an attribute and its value."""
