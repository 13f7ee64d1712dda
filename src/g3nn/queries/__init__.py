"""Queries to the model of what was observed: which edges and labels look wrong, which pairs lack an edge, what to ask.

Strategies that choose what to ask are pure functions over arrays; `suggest` of an estimator calls them.
"""

from g3nn.queries.audit_tables import LABEL_ROW, AuditTables, probably_wrong
from g3nn.queries.choosing import EdgeSuggestion, LabelSuggestion, Suggestion, choose, doubtful_edges, first_nodes
from g3nn.queries.edge_types import EdgeType, edge_types
from g3nn.queries.graph_audit import GraphAudit, check_graph
from g3nn.queries.learning_curve import Gain, LearningCurve
from g3nn.queries.strategies import STRATEGIES, Scores, Situation
from g3nn.queries.survey import SampledGraph

__all__ = [
    "LABEL_ROW",
    "STRATEGIES",
    "AuditTables",
    "EdgeSuggestion",
    "EdgeType",
    "Gain",
    "GraphAudit",
    "LabelSuggestion",
    "LearningCurve",
    "SampledGraph",
    "Scores",
    "Situation",
    "Suggestion",
    "check_graph",
    "choose",
    "doubtful_edges",
    "edge_types",
    "first_nodes",
    "probably_wrong",
]
