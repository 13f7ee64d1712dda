"""Random-graph models p(G | X, Y), by name."""

from g3nn.base.registry import Registry
from g3nn.model.likelihoods.base import (
    ClassLikelihood,
    GraphLikelihood,
    NodeState,
    Pairs,
    among_few,
    expected_over_labels,
)
from g3nn.model.likelihoods.blsm import BilinearLatentSpace
from g3nn.model.likelihoods.dcsbm import DegreeCorrectedBlock
from g3nn.model.likelihoods.dlsm import DistanceLatentSpace
from g3nn.model.likelihoods.gsbm import StochasticBlock
from g3nn.model.likelihoods.lsm import AdditiveLatentSpace
from g3nn.model.likelihoods.mix import LabelsOrFeatures
from g3nn.model.likelihoods.near import NearValues
from g3nn.model.likelihoods.nlsm import NeighbourLatentSpace
from g3nn.model.likelihoods.sbm import PlantedPartition
from g3nn.model.likelihoods.tags import TagBlocks

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
