"""Variational posteriors q(Y | X, G), by name. Each is also a discriminative model."""

from g3nn.base.registry import Registry
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.posteriors.gcn import GCN, GCNII, GMNN, LabelGCN, MLPPosterior
from g3nn.model.posteriors.module import ModulePosterior
from g3nn.model.posteriors.propagation import APPNP, CorrectAndSmooth, Grand, LabelPropagation
from g3nn.model.posteriors.robust import GCNSVD, RGCN, GCNJaccard, GNNGuard
from g3nn.model.posteriors.sage import GAT, Hops, Linkx, Sage

_OWN: dict[str, type[LabelPosterior]] = {
    "gcn": GCN,
    "gat": GAT,
    "appnp": APPNP,
    "sage": Sage,
    "gcnii": GCNII,
    "grand": Grand,
    "lgcn": LabelGCN,
    "gmnn": GMNN,
    "mlp": MLPPosterior,
    "label-propagation": LabelPropagation,
    "correct-smooth": CorrectAndSmooth,
    "hops": Hops,
    "linkx": Linkx,
    "gcn-jaccard": GCNJaccard,
    "gcn-svd": GCNSVD,
    "gnnguard": GNNGuard,
    "rgcn": RGCN,
}
POSTERIORS = Registry("g3nn.posteriors", LabelPosterior, _OWN)

__all__ = ["POSTERIORS", "LabelPosterior", "ModulePosterior"]
