"""Audit: which edges and labels look wrong, which pairs lack an edge, and new graphs from what was learned."""

from g3nn.audit.graph_audit import DENSITIES, LABEL_ROW, AuditTables, GraphAudit, check_graph, probably_wrong
from g3nn.audit.groups import MergedGroups
from g3nn.audit.learning import AuditOptions
from g3nn.audit.sampling import SampledGraph

__all__ = [
    "DENSITIES",
    "LABEL_ROW",
    "AuditOptions",
    "AuditTables",
    "GraphAudit",
    "MergedGroups",
    "SampledGraph",
    "check_graph",
    "probably_wrong",
]
