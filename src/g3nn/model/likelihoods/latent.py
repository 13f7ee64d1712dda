"""Latent space models: features and labels place the nodes, and positions say how likely an edge is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from g3nn.base.options import choice, integer, number
from g3nn.kernels import expected_logistic, gather, linear, pair_dot, pair_sum, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods.base import BlockOptions, ClassLikelihood, NodeState, Pairs, planted_odds
from g3nn.model.replicas import Noise, Replicas, Scalar, Sizes


@dataclass(frozen=True)
class LatentSpaceOptions:
    latent: int = integer(8, "dimension of the latent space, the number of rows of U", low=1)
    encoder: str = choice(
        "linear", ("linear", "relu"), "linear: Ux, as in the paper; relu: max(0, Ux + b), as in the authors' code"
    )
    latent_dropout: float = number(0.0, "dropout on the features before U", low=0, high=0.95)


class AdditiveLatentSpace(ClassLikelihood):
    """p(e_ij = 1) = sigmoid([(U x_i)', y_i', (U x_j)', y_j'] w).

    On an undirected graph a pair has no first end, so both halves of w are equal. The logit is a sum over the two ends:
    it can express "this class has many edges" but not "both have the same class" (`blsm` can). It needs no intercept:
    labels are one-hot, so their weights contain one.
    """

    Options = LatentSpaceOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentSpaceOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or LatentSpaceOptions()
        u, K = self.options.latent, sizes.classes
        ends = 2 if sizes.directed else 1
        self.U = replicas.glorot("U", sizes.features, u)
        if self.options.encoder == "relu":
            self.bias = replicas.zeros(u)
        self.w_x = replicas.glorot("w_x", 2 * (u + K), 1, u, ends)
        self.w_y = replicas.glorot("w_y", 2 * (u + K), 1, K, ends)

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, ends): what the features of a node add to the logit, as source and as target."""
        latent = inputs.x.matmul(self.U, noise, self.options.latent_dropout)
        if self.options.encoder == "relu":
            latent = rectify(latent, self.bias, None)
        return linear(latent, self.w_x)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        assert state is not None
        features = pair_sum(state[:, :, 0], state[:, :, -1], *pairs.index)
        return features[:, :, None, None] + self._label_part().unsqueeze(1)

    def _label_part(self) -> Tensor:
        """(R, K, K): what the labels of the two ends add to the logit."""
        return self.w_y[:, :, :1] + self.w_y[:, :, -1:].transpose(1, 2)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        assert state is not None
        features = pair_sum(state[:, :, 0], state[:, :, -1], *pairs.index)
        return expected_logistic(*pairs.ends(q), features, self._label_part(), pairs.present)

    def plug_in_score(self, state: NodeState, soft: Tensor, pairs: Pairs) -> Tensor:
        """The logit is a sum over the ends, so soft labels enter each end separately and need no K x K table."""
        assert state is not None
        scores = state + linear(soft, self.w_y)
        return pairs.log_prob(pair_sum(scores[:, :, 0], scores[:, :, -1], *pairs.index))


@dataclass(frozen=True)
class LatentOptions:
    latent: int = integer(8, "dimension of the latent space, the number of rows of U", low=1)
    latent_dropout: float = number(0.0, "dropout on the features before U", low=0, high=0.95)


class LatentSpace(ClassLikelihood):
    """Features place the nodes at U x_i, and pairs have log-odds b if nothing else is known."""

    Options: ClassVar[type] = LatentOptions
    uses_features: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or LatentOptions()
        self.U = replicas.glorot("U", sizes.features, self.options.latent)
        self.b = replicas.zeros(1)

    def node_state(self, inputs: Inputs, noise: Noise | None) -> NodeState:
        """(R, n, u): U x_i."""
        return inputs.x.matmul(self.U, noise, self.options.latent_dropout)


class BilinearLatentSpace(LatentSpace):
    """p(e_ij = 1) = sigmoid(z_i' M z_j + b) with z = [U x, y] and M symmetric on undirected graphs.

    With M cut into blocks, the logit for labels (k, l) is
    (Ux_i)' M_uu (Ux_j) + (Ux_i)' M_uy[l] + M_yu[k] (Ux_j) + M_yy[k, l] + b.
    """

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        size = self.options.latent + sizes.classes
        self.M = replicas.glorot("M", size, size)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        features, target, source, constant = self._parts(state, pairs)
        return features[:, :, None, None] + target.unsqueeze(2) + source.unsqueeze(3) + constant.unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        features, target, source, constant = self._parts(state, pairs)
        return expected_logistic(*pairs.ends(q), features, constant, pairs.present, target, source)

    def _parts(self, state: NodeState, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The four parts of the logit: (R, P), (R, P, K) that depends on l, (R, P, K) that depends on k, (R, K, K)."""
        assert state is not None
        u, M = self.options.latent, self.symmetric(self.M)
        features = pair_dot(linear(state, M[:, :u, :u]), state, *pairs.index)
        target = gather(linear(state, M[:, :u, u:]), pairs.i)
        source = gather(linear(state, M[:, u:, :u].transpose(1, 2)), pairs.j)
        return features, target, source, M[:, u:, u:] + self.b.unsqueeze(2)


class DistanceLatentSpace(LatentSpace):
    """p(e_ij = 1) = sigmoid(b - |z_i - z_j|^2): the position z = U x + V y of a node follows from features and label.

    With D = U x_i - U x_j the logit for labels (k, l) is b - |D|^2 - 2 D' v_k + 2 D' v_l - |v_k - v_l|^2.
    A distance has no direction, so on a directed graph both arcs between two nodes are equally likely.
    """

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LatentOptions | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.V = replicas.glorot("V", self.options.latent, sizes.classes)

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        base, pull, table = self._parts(state, pairs)
        return base[:, :, None, None] + pull.unsqueeze(2) - pull.unsqueeze(3) + table.unsqueeze(1)

    def expected_log_prob(self, state: NodeState, q: Tensor, pairs: Pairs) -> Tensor:
        base, pull, table = self._parts(state, pairs)
        return expected_logistic(*pairs.ends(q), base, table, pairs.present, pull, -pull)

    def _parts(self, state: NodeState, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
        """b - |D|^2 as (R, P), 2 D' v as (R, P, K), and - |v_k - v_l|^2 as (R, K, K)."""
        assert state is not None
        length = state.square().sum(2)
        distance = pair_sum(length, length, *pairs.index) - 2 * pair_dot(state, state, *pairs.index)
        towards = 2 * linear(state, self.V)
        left, right = pairs.ends(towards)
        apart = (self.V.unsqueeze(3) - self.V.unsqueeze(2)).square().sum(1)
        return self.b - distance, left - right, -apart


@dataclass(frozen=True)
class MixtureOptions(LatentOptions, BlockOptions):
    by_labels: Scalar = number(
        0.5, "initial share of pairs that labels explain", low=0, high=1, open_ends=True, per_replica=True
    )


class LabelsOrFeatures(LatentSpace):
    """p(e_ij = 1) = m sigmoid(B_kl) + (1 - m) sigmoid((U x_i)' S (U x_j) + b) for y_i = k, y_j = l.

    Labels decide about a pair with probability m, features otherwise; m, B, U, S and b are learned. B and S are
    symmetric on undirected graphs. An edge between two classes is no evidence against them if features explain it.
    """

    Options = MixtureOptions

    def __init__(self, sizes: Sizes, replicas: Replicas, options: MixtureOptions | None = None) -> None:
        options = options or MixtureOptions()
        super().__init__(sizes, replicas, options)
        self.B = planted_odds(sizes, replicas, options)
        self.S = replicas.glorot("S", options.latent, options.latent)
        self.m = nn.Parameter(torch.logit(replicas.scalar(options.by_labels)).unsqueeze(1))
        """(R, 1): log-odds of the share that labels explain."""

    def logits(self, state: NodeState, pairs: Pairs) -> Tensor:
        """The log-odds of the mixture, from the probabilities of an edge and of no edge."""
        return self._log_mixture(state, pairs, 1.0) - self._log_mixture(state, pairs, -1.0)

    def log_prob(self, state: NodeState, pairs: Pairs) -> Tensor:
        return self._log_mixture(state, pairs, 1.0 if pairs.present else -1.0)

    def _log_mixture(self, state: NodeState, pairs: Pairs, sign: float) -> Tensor:
        """(R, P, K, K): log-probability of an edge (sign 1) or of no edge (sign -1)."""
        assert state is not None
        B, S = self.symmetric(self.B), self.symmetric(self.S)
        features = pair_dot(linear(state, S), state, *pairs.index) + self.b
        by_labels = (logsigmoid(self.m).unsqueeze(2) + logsigmoid(sign * B)).unsqueeze(1)
        by_features = (logsigmoid(-self.m) + logsigmoid(sign * features))[:, :, None, None]
        return torch.logaddexp(by_labels, by_features)
