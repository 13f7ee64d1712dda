"""Variational posteriors q(Y | X, G), by name. Each is also a discriminative model."""

from g3nn.base.registry import Registry
from g3nn.model.components import components
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.posteriors.module import ModulePosterior

_NAMES = (
    *("gcn", "gat", "appnp", "sage", "gcnii", "grand", "lgcn", "gmnn", "mlp", "label-propagation", "correct-smooth"),
    *("hops", "linkx", "gcn-jaccard", "gcn-svd", "gnnguard", "rgcn", "relational"),
)
POSTERIORS = Registry("g3nn.posteriors", LabelPosterior, components(__name__, LabelPosterior, _NAMES))

__all__ = ["POSTERIORS", "LabelPosterior", "ModulePosterior"]
