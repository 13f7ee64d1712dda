"""GCN-Jaccard (Wu et al., 2019): a graph convolutional network without the edges between nodes that are not alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from g3nn.base.options import number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import sparse
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Convolutions, PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes


@dataclass(frozen=True)
class GCNJaccardOptions(PerceptronOptions):
    threshold: float = number(0.01, "similarity of features below which an edge is left out", low=0, high=1)


class GCNJaccard(LabelPosterior[GCNJaccardOptions]):
    """q = softmax(A relu(A X W_1 + b_1) W_2 + b_2), A as in a GCN on the edges whose ends have similar features.

    Similar: by Jaccard's measure |x_i and x_j| / |x_i or x_j| where features are binary, else by the cosine. If no edge
    joins nodes with anything in common, as without features, all edges stay.
    """

    Options = GCNJaccardOptions
    outcomes = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GCNJaccardOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.network = Convolutions(sizes, replicas, self.options)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        adjacency = inputs.once(("jaccard", self.options.threshold), lambda: self._adjacency(inputs))
        return self.answer(self.network(inputs, adjacency.matmul, noise))

    def _adjacency(self, inputs: Inputs) -> sparse.SparseMatrix:
        task = inputs.task
        measure = sparse.jaccard_similarity if sparse.is_binary(task.features) else sparse.cosine_similarity
        similarity = measure(task.features, task.edges)
        alike = similarity >= self.options.threshold if np.any(similarity) else np.ones(task.num_edges, dtype=bool)
        kept = task.with_edges(alike)
        return inputs.sparse(sparse.normalised_adjacency(kept.edges, inputs.n, kept.weights))
