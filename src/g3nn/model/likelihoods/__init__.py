"""Random-graph models p(G | X, Y), by name."""

from g3nn.base.registry import Registry
from g3nn.model.likelihoods import latent, nlsm, numbers, sbm
from g3nn.model.likelihoods.base import ClassLikelihood, GraphLikelihood, NodeState, Pairs

_OWN: dict[str, type[GraphLikelihood]] = {
    "lsm": latent.AdditiveLatentSpace,
    "sbm": sbm.PlantedPartition,
    "gsbm": sbm.StochasticBlock,
    "blsm": latent.BilinearLatentSpace,
    "dlsm": latent.DistanceLatentSpace,
    "dcsbm": sbm.DegreeCorrectedBlock,
    "mix": latent.LabelsOrFeatures,
    "nlsm": nlsm.NeighbourLatentSpace,
    "tags": numbers.TagBlocks,
    "near": numbers.NearValues,
}
LIKELIHOODS = Registry("g3nn.likelihoods", GraphLikelihood, _OWN, dash=False)
"""A dash in the name of a model ends that of its likelihood."""

__all__ = ["LIKELIHOODS", "ClassLikelihood", "GraphLikelihood", "NodeState", "Pairs"]
