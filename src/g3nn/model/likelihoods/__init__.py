"""Random-graph models p(G | X, Y), by name."""

from g3nn.base.registry import Registry
from g3nn.model.components import components
from g3nn.model.likelihoods.base import ClassLikelihood, GraphLikelihood, NodeState, Pairs

_NAMES = ("lsm", "sbm", "gsbm", "blsm", "dlsm", "dcsbm", "mix", "nlsm", "tags", "near")
LIKELIHOODS = Registry("g3nn.likelihoods", GraphLikelihood, components(__name__, GraphLikelihood, _NAMES), dash=False)
"""A dash in the name of a model ends that of its likelihood."""

__all__ = ["LIKELIHOODS", "ClassLikelihood", "GraphLikelihood", "NodeState", "Pairs"]
