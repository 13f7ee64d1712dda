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
from g3nn.model.likelihoods.latent import (
    AdditiveLatentSpace,
    BilinearLatentSpace,
    DistanceLatentSpace,
    LabelsOrFeatures,
)
from g3nn.model.likelihoods.nlsm import NeighbourLatentSpace
from g3nn.model.likelihoods.numbers import NearValues, TagBlocks
from g3nn.model.likelihoods.sbm import DegreeCorrectedBlock, PlantedPartition, StochasticBlock

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
