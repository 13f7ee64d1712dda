"""Variational posteriors q(Y | X, G), by name. Each is also a discriminative model."""

from g3nn.posteriors.appnp import APPNP
from g3nn.posteriors.base import LabelPosterior
from g3nn.posteriors.correct_smooth import CorrectAndSmooth
from g3nn.posteriors.gat import GAT
from g3nn.posteriors.gcn import GCN
from g3nn.posteriors.gcn_jaccard import GCNJaccard
from g3nn.posteriors.gcn_svd import GCNSVD
from g3nn.posteriors.gcnii import GCNII
from g3nn.posteriors.gmnn import GMNN
from g3nn.posteriors.gnnguard import GNNGuard
from g3nn.posteriors.grand import Grand
from g3nn.posteriors.hops import Hops
from g3nn.posteriors.label_propagation import LabelPropagation
from g3nn.posteriors.lgcn import LabelGCN
from g3nn.posteriors.linkx import Linkx
from g3nn.posteriors.mlp import MLPPosterior
from g3nn.posteriors.module import ModulePosterior
from g3nn.posteriors.rgcn import RGCN
from g3nn.posteriors.sage import Sage
from g3nn.registry import Registry

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
