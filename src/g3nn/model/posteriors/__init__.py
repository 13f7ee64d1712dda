"""Variational posteriors q(Y | X, G), by name. Each is also a discriminative model."""

from g3nn.base.registry import Registry
from g3nn.model.posteriors.appnp import APPNP
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.posteriors.correct_smooth import CorrectAndSmooth
from g3nn.model.posteriors.gat import GAT
from g3nn.model.posteriors.gcn import GCN
from g3nn.model.posteriors.gcn_jaccard import GCNJaccard
from g3nn.model.posteriors.gcn_svd import GCNSVD
from g3nn.model.posteriors.gcnii import GCNII
from g3nn.model.posteriors.gmnn import GMNN
from g3nn.model.posteriors.gnnguard import GNNGuard
from g3nn.model.posteriors.grand import Grand
from g3nn.model.posteriors.hops import Hops
from g3nn.model.posteriors.label_propagation import LabelPropagation
from g3nn.model.posteriors.lgcn import LabelGCN
from g3nn.model.posteriors.linkx import Linkx
from g3nn.model.posteriors.mlp import MLPPosterior
from g3nn.model.posteriors.module import ModulePosterior
from g3nn.model.posteriors.rgcn import RGCN
from g3nn.model.posteriors.sage import Sage

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
