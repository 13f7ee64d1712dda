"""Edge audit: which observed edges look wrong, which pairs lack one, and new graphs from what was learned."""

from g3nn.audit.graph_audit import DENSITIES, LABEL_ROW, AuditTables, GraphAudit
from g3nn.audit.groups import MergedGroups
from g3nn.audit.learning import AuditOptions
from g3nn.audit.sampling import SampledGraph

__all__ = ["DENSITIES", "LABEL_ROW", "AuditOptions", "AuditTables", "GraphAudit", "MergedGroups", "SampledGraph"]
