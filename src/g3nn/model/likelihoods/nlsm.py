"""A latent space model in which the rest of the graph helps to predict an edge."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from g3nn.base.options import flag, integer, number
from g3nn.kernels import expected_logistic, pair_dot
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import ClassLikelihood, NodeState, Pairs
from g3nn.model.replicas import Noise, Replicas, Sizes

_WEIGHT = 3.0
"""Where the weight of a latent direction starts."""

_LEAST_LENGTH = 1e-3
"""Positions shorter than this are not stretched to length one: a node without features and other edges is at 0, where
the gradient would be endless."""

_EVERY = slice(None)
"""Node."""

_SOURCE, _TARGET = 0, -1
"""Which end of a pair; the same on an undirected graph."""

_REPELLING = 4
"""Every fourth latent direction starts with a negative weight: along it, unlike nodes are linked."""


@dataclass(frozen=True)
class NeighbourOptions:
    latent: int = integer(8, "number of dimensions of the latent space", low=1)
    latent_dropout: float = number(0.0, "share of the features left out of each step", low=0, high=0.95)
    hops: int = integer(0, "how many steps away neighbours' features help to place a node", low=0, high=2)
    degrees: bool = flag(False, "let nodes with many other edges have more edges")


_COLUMNS_PER_EDGE = 8
"""The number of features per edge of a node up to which a product with them is faster than a walk over its edges."""


class NeighbourLatentSpace(ClassLikelihood[NeighbourOptions]):
    """p(e_ij = 1 | X, Y, G without ij) = sigmoid(sum_h w_h s_ih t_jh + a'd_i + c'd_j + B_kl) for y_i = k, y_j = l.

    s_i = z_i / |z_i| is the direction of a node in the latent space. Its position is

        z_i = U_0' x_i + mean over m in N(i) without j of v_m,    v_m = U_1' x_m + U_2' mean over o in N(m) of x_o

    with U_1 if `hops` is 1 or 2, and U_2 if it is 2. With `degrees`, d_i holds log (1 + n_i) / (1 + mean n), where n_i
    is the number of edges of i without ij, and whether n_i is 0. Weights of edges enter means and numbers. On an
    undirected graph t = s, c = a and B is symmetric. On a directed one t and c have parameters of their own; a source
    is placed by the targets of its arcs and the sources of these, a target by the sources of its arcs and the targets
    of these.

    The edge ij is left out exactly, so it never speaks for itself. If the edges of i have weight N in total, the mean
    without j is (N mean - w_ij v_j) / (N - w_ij), and no other v_m depends on ij. With a third hop some would:
    i - m - i - j. Whether a pair is an edge of the graph, and so has to be left out, is what `pairs.present` says, and
    w_ij is `pairs.weight`.

    With `hops=0` and without `degrees` this is p(G | X, Y), a product over independent edges. Otherwise the product is
    over the conditionals of each edge given all others, the pseudolikelihood of Besag (1975): good for learning and for
    judging edges, but the objective is then no bound on the evidence.
    """

    Options = NeighbourOptions
    uses_features = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: NeighbourOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        latent, parts = self.options.latent, 1 + self.options.hops
        self.U = replicas.glorot("U", parts * sizes.features, latent, sizes.features, parts * latent)
        """(R, d, (1 + hops) latent): U_0, U_1, U_2 side by side."""
        self.V = nn.Parameter(self.U.detach().clone()) if sizes.directed else None
        """The same for targets; starts as U."""
        w = torch.full((replicas.size, latent), _WEIGHT)
        w[:, ::_REPELLING] *= -1
        self.w = nn.Parameter(w)
        self.B = nn.Parameter((2 * torch.eye(sizes.classes) - 1).repeat(replicas.size, 1, 1))
        self.a = replicas.zeros(2, 2 if sizes.directed else 1) if self.options.degrees else None
        """(R, 2, ends): the weights of d, for sources and for targets."""

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, columns): for sources, and on a directed graph for targets, U_0' x, the mean of v over N, v, and
        `_counts`; see `_columns`."""
        return self.state_of(inputs, noise, _EVERY)

    def state_of(self, inputs: Inputs, noise: Noise | None, nodes: Tensor | slice) -> NodeState:
        columns: list[Tensor] = []
        for end, matrix in enumerate([self.U] if self.V is None else [self.U, self.V]):
            columns += self._placed(inputs, end, self._dropped(matrix, noise), nodes)
            columns.append(self._counts(inputs, end)[nodes].expand(matrix.shape[0], -1, -1))
        return torch.cat(columns, dim=2)

    def _placed(self, inputs: Inputs, end: int, matrix: Tensor, nodes: Tensor | slice) -> list[Tensor]:
        """U_0' x, the mean of v over N, and v. All are linear in the features, so with few of them their means are
        taken once, instead of means of many columns in every step."""
        x, latent = inputs.x.matrix, self.options.latent
        if not isinstance(x, Tensor) or x.numel() > _COLUMNS_PER_EDGE * 2 * inputs.task.num_edges:
            own, *others = inputs.x.matmul(matrix).split(latent, dim=2)
            return [part[:, nodes] for part in (own, *self._walked(inputs, end, others))]
        own, *others = torch.matmul(x[nodes], matrix).split(latent, dim=2)
        if not others:
            return [own]
        v, (_, first, *second) = others[0], matrix.split(latent, dim=2)
        there, back, both = (means[:, nodes] for means in inputs.mean_features[end])
        mean = torch.matmul(there, first)
        for weight in second:
            v, mean = v + torch.matmul(back, weight), mean + torch.matmul(both, weight)
        return [own, mean, v]

    @staticmethod
    def _walked(inputs: Inputs, end: int, others: list[Tensor]) -> list[Tensor]:
        """The mean of v over N, and v, by walks over the edges."""
        if not others:
            return []
        v = others[0]
        if len(others) > 1:
            v = v + inputs.arc_means[1 - end].matmul(others[1].contiguous())
        return [inputs.arc_means[end].matmul(v.contiguous()), v]

    def _counts(self, inputs: Inputs, end: int) -> Tensor:
        """(n, 3): the number of edges of a node, the mean of this number over all nodes, what one edge adds to it."""
        degree = inputs.degrees[:, end : end + 1]
        mean = degree.mean().expand_as(degree)
        ends = 1 if self.sizes.directed else 2
        return torch.cat([degree, mean, torch.full_like(degree, ends / inputs.n)], dim=1)

    def _dropped(self, matrix: Tensor, noise: Noise | None) -> Tensor:
        """Whole features are left out: as good a guard against overfitting as dropout at each node, and far cheaper."""
        if noise is None or self.options.latent_dropout == 0:
            return matrix
        blocks = matrix.unflatten(2, (1 + self.options.hops, -1))
        return (blocks * noise.dropout(torch.ones_like(blocks[..., :1]), self.options.latent_dropout)).flatten(2)

    def table(self) -> Tensor:
        """(R, K, K): B."""
        return self.symmetric(self.B)

    def ends(self, state: NodeState) -> tuple[Tensor, Tensor]:
        """left and right, (R, n, latent + 2) each: left_i . right_j is the log-odds of a non-edge ij, less B_kl."""
        assert state is not None
        return self._products(self._position(state, _SOURCE), self._position(state, _TARGET))

    def base(self, state: NodeState, pairs: Pairs) -> Tensor:
        """(R, P): the log-odds of each pair, less B_kl."""
        if not pairs.present or (self.options.hops == 0 and self.a is None):
            left, right = self.ends(state)
            return pair_dot(left, right, *pairs.index)
        assert state is not None
        i, j = pairs.ends(state)
        weight = 1.0 if pairs.weight is None else pairs.weight.unsqueeze(-1)
        left, right = self._products(self._position(i, _SOURCE, j, weight), self._position(j, _TARGET, i, weight))
        return (left * right).sum(2)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self.base(state, pairs)[:, :, None, None] + self.table().unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        return expected_logistic(*pairs.ends(q), self.base(state, pairs), self.table(), pairs.present)

    def _columns(self, rows: Tensor, end: int) -> tuple[Tensor, ...]:
        """Rows of the state as U_0' x, the mean of v, v, and `_counts`. With `hops=0` there is no v."""
        latent = self.options.latent
        of_neighbours = latent if self.options.hops else 0
        of_end = rows.chunk(2 if self.sizes.directed else 1, dim=2)[end]
        return of_end.split([latent, of_neighbours, of_neighbours, 3], dim=2)

    def _position(
        self, rows: Tensor, end: int, across: Tensor | None = None, weight: Tensor | float = 1.0
    ) -> tuple[Tensor, Tensor]:
        """(R, P, latent) and (R, P, 1): s and a'd of nodes with these rows of the state.

        across: the rows of the nodes at the other end of an edge that is left out. weight: (P, 1), of these edges.
        """
        own, mean, _, counts = self._columns(rows, end)
        degree, centre, of_edge = counts.split(1, dim=2)
        if across is not None:
            v = self._columns(across, end)[2]
            others = degree - weight
            others = torch.where(others > _lost(degree.dtype) * degree, others, 0.0)
            mean = torch.where(others > 0, (degree * mean - weight * v) / torch.where(others > 0, others, 1.0), 0.0)
            degree, centre = others, centre - weight * of_edge
        s = normalize(own + mean if self.options.hops else own, dim=2, eps=_LEAST_LENGTH)
        if self.a is None:
            return s, torch.zeros_like(degree)
        d = torch.cat([degree.log1p() - centre.log1p(), (degree == 0).to(degree.dtype)], dim=2)
        return s, d @ self.a[:, :, end].unsqueeze(2)

    def _products(self, source: tuple[Tensor, Tensor], target: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Vectors whose inner product is sum_h w_h s_h t_h + a'd_i + c'd_j."""
        (s, sent), (t, received) = source, target
        one = torch.ones_like(sent)
        return torch.cat([self.w.unsqueeze(1) * s, sent, one], dim=2), torch.cat([t, one, received], dim=2)


def _lost(dtype: torch.dtype) -> float:
    """If the other edges of a node have less than this share of its weight, their mean is lost in rounding."""
    return float(torch.finfo(dtype).eps ** 0.5)
