"""R-GCN (Schlichtkrull et al., 2018): weights for every type of edges, which share a basis; with attention to types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from g3nn.base.options import flag, integer
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.kernels.sparse import SparseMatrix, neighbour_mean, row_mean
from g3nn.model.inputs import Inputs
from g3nn.model.networks import PerceptronOptions
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw


@dataclass(frozen=True)
class RelationalOptions(PerceptronOptions):
    bases: int = integer(4, "number of matrices that the weights of all types are combinations of", low=1, high=64)
    type_attention: bool = flag(False, "whether each node listens to some of its types more than to others")


class Relational(LabelPosterior[RelationalOptions]):
    """h_i = relu(W x_i + sum_r a_ir W_r mean_j x_j + b), j the neighbours of i by edges of type r, in or out, and
    W_r = sum_b c_rb V_b; q_i is the softmax of a second such layer.

    a_ir = 1, or with attention the softmax of u . tanh(W_r mean_j x_j) over the types that i has, times their number.
    """

    Options = RelationalOptions
    outcomes = (Outcome,)
    cost = 8.0

    def __init__(self, sizes: Sizes, replicas: Replicas, options: RelationalOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        arcs = sum(1 + directed for _, directed in sizes.types) or 1
        self.first = _Layer(sizes.features, self.options.hidden, arcs, replicas.within("first"), self.options)
        self.second = _Layer(self.options.hidden, sizes.scores, arcs, replicas.within("second"), self.options)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        rate = self.options.dropout
        own, *bases = (inputs.x.matmul(weight, noise, rate) for weight in self.first.weights)
        hidden = rectify(own + self.first.heard(inputs, bases), self.first.bias, optional_draw(noise, rate))
        own, *bases = (linear(hidden, weight) for weight in self.second.weights)
        return self.answer(own + self.second.heard(inputs, bases) + self.second.bias.unsqueeze(1))


class _Messages(NamedTuple):
    """Along arcs by their types: the P pairs of a node that is heard and a type, and the Q pairs of a node that hears
    and a type.

    node, type: (P,), who says something by which type of arcs. hearing: (Q,) nodes. mean: (Q, P), the mean over the
    arcs of one node and type. total: (n, Q), the sum over the types of each node.
    """

    node: Tensor
    type: Tensor
    hearing: Tensor
    mean: SparseMatrix
    total: SparseMatrix

    @classmethod
    def of(cls, inputs: Inputs) -> _Messages:
        """Without types, from neighbours."""
        task, n = inputs.graph, inputs.n
        if task.relations is None:
            matrices = [neighbour_mean(task.edges, n, task.weights)]
        else:
            matrices = [row_mean(arcs.matrix) for arcs in task.relations.arcs]
        hearing = [np.flatnonzero(np.diff(matrix.indptr)) for matrix in matrices]
        heard = [np.unique(matrix.indices) for matrix in matrices]
        blocks = [matrix[rows][:, ends] for matrix, rows, ends in zip(matrices, hearing, heard, strict=True)]
        types, rows = np.repeat(np.arange(len(heard)), [len(ends) for ends in heard]), np.concatenate(hearing)
        total = sp.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n, len(rows)))
        node, type, ends = (torch.from_numpy(x).to(inputs.device) for x in (np.concatenate(heard), types, rows))
        mean = sp.csr_array(sp.block_diag(blocks))
        return cls(node.long(), type, ends, inputs.sparse(mean), inputs.sparse(total))


class _Layer(nn.Module):
    def __init__(self, fan_in: int, fan_out: int, arcs: int, replicas: Replicas, options: RelationalOptions) -> None:
        super().__init__()
        count = min(options.bases, arcs)
        self.own = replicas.glorot("own", fan_in, fan_out)
        self.bases = replicas.glorot("bases", fan_in, fan_out, count, fan_in, fan_out)
        self.shares = replicas.glorot("shares", arcs, count)
        self.bias = replicas.zeros(fan_out)
        self.towards = replicas.glorot("towards", fan_out, 1) if options.type_attention else None

    @property
    def weights(self) -> tuple[Tensor, ...]:
        return self.own, *self.bases.unbind(1)

    def heard(self, inputs: Inputs, bases: list[Tensor]) -> Tensor:
        """(R, n, h): the sum over types of what the neighbours say, from their rows times each matrix of the basis."""
        by_type = inputs.once(_Messages, lambda: _Messages.of(inputs))
        said = sum(
            (rows[:, by_type.node] * self.shares[:, by_type.type, b : b + 1] for b, rows in enumerate(bases)),
            start=bases[0].new_zeros(()),
        )
        heard = by_type.mean.matmul(said)
        if self.towards is not None:
            scores = linear(heard.tanh(), self.towards)
            weights = (scores - scores.amax(dim=1, keepdim=True)).exp()
            sums, counts = (by_type.total.matmul(x) for x in (weights, torch.ones_like(weights)))
            heard = heard * weights * (counts / sums.clamp_min(1e-12))[:, by_type.hearing]
        return by_type.total.matmul(heard)
