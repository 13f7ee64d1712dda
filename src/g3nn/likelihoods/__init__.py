"""Random-graph models p(G | X, Y), by name."""

from g3nn.likelihoods.base import ClassLikelihood, GraphLikelihood, NodeState, Pairs, among_few, expected_over_labels
from g3nn.likelihoods.blsm import BilinearLatentSpace
from g3nn.likelihoods.dcsbm import DegreeCorrectedBlock
from g3nn.likelihoods.dlsm import DistanceLatentSpace
from g3nn.likelihoods.gsbm import StochasticBlock
from g3nn.likelihoods.lsm import AdditiveLatentSpace
from g3nn.likelihoods.mix import LabelsOrFeatures
from g3nn.likelihoods.near import NearValues
from g3nn.likelihoods.nlsm import NeighbourLatentSpace
from g3nn.likelihoods.sbm import PlantedPartition
from g3nn.likelihoods.tags import TagBlocks
from g3nn.registry import Registry

_OWN: dict[str, type[GraphLikelihood]] = {
    "lsm": AdditiveLatentSpace,
    "sbm": PlantedPartition,
    "gsbm": StochasticBlock,
    "blsm": BilinearLatentSpace,
    "dlsm": DistanceLatentSpace,
    "dcsbm": DegreeCorrectedBlock,
    "mix": LabelsOrFeatures,
    "nlsm": NeighbourLatentSpace,
    "tags": TagBlocks,
    "near": NearValues,
}
LIKELIHOODS = Registry("g3nn.likelihoods", GraphLikelihood, _OWN, dash=False)
"""A dash in the name of a model ends that of its likelihood."""

__all__ = [
    "LIKELIHOODS",
    "ClassLikelihood",
    "GraphLikelihood",
    "NodeState",
    "Pairs",
    "among_few",
    "expected_over_labels",
]
