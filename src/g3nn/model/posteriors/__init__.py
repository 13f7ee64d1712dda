"""Variational posteriors q(Y | X, G), by name. Each is also a discriminative model."""

from g3nn.base.registry import Registry
from g3nn.model.posteriors import gcn, propagation, robust, sage
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.posteriors.module import ModulePosterior

_OWN: dict[str, type[LabelPosterior]] = {
    "gcn": gcn.GCN,
    "gat": sage.GAT,
    "appnp": propagation.APPNP,
    "sage": sage.Sage,
    "gcnii": gcn.GCNII,
    "grand": propagation.Grand,
    "lgcn": gcn.LabelGCN,
    "gmnn": gcn.GMNN,
    "mlp": gcn.MLPPosterior,
    "label-propagation": propagation.LabelPropagation,
    "correct-smooth": propagation.CorrectAndSmooth,
    "hops": sage.Hops,
    "linkx": sage.Linkx,
    "gcn-jaccard": robust.GCNJaccard,
    "gcn-svd": robust.GCNSVD,
    "gnnguard": robust.GNNGuard,
    "rgcn": robust.RGCN,
}
POSTERIORS = Registry("g3nn.posteriors", LabelPosterior, _OWN)

__all__ = ["POSTERIORS", "LabelPosterior", "ModulePosterior"]
