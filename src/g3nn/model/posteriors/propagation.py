"""Propagation apart from learning: of predictions, of observed labels, or of features with whole nodes dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from g3nn.base.options import choice, flag, integer, number
from g3nn.graph.outcomes import Outcome
from g3nn.kernels import linear, rectify
from g3nn.model.inputs import Inputs
from g3nn.model.networks import BatchNorm, LabelInput, Perceptron, PerceptronOptions, ReplicaCount
from g3nn.model.posteriors.base import LabelPosterior
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_draw, optional_dropout


@dataclass(frozen=True)
class APPNPOptions(PerceptronOptions):
    steps: int = integer(10, "number of propagation steps", low=1)
    teleport: float = number(0.1, "weight of a node's own prediction in each step", low=0, high=1)
    edge_dropout: float = number(0.5, "dropout on the propagation matrix, redrawn in each step", low=0, high=0.95)


class APPNP(LabelPosterior):
    """Z_0 = MLP(X); Z_t = (1 - a) A Z_{t-1} + a Z_0; q = softmax(Z_T), with teleport probability a."""

    Options = APPNPOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: APPNPOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or APPNPOptions()
        self.network = Perceptron(sizes, replicas, self.options)

    @property
    def steps(self) -> int:  # type: ignore[override]
        return self.options.steps

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        start: Tensor = self.network(inputs, noise)
        a, rate = self.options.teleport, self.options.edge_dropout
        z = start
        for hop in inputs.hops(self.steps):
            draw = optional_draw(noise, rate)
            start = hop.own(start)
            z = (1 - a) * hop.adjacency.matmul(z, draw) + a * start
        return self.answer(z)


@dataclass(frozen=True)
class LabelPropagationOptions:
    steps: int = integer(50, "number of propagation steps", low=1)
    spread: float = number(0.9, "weight of the neighbours; the rest is the observed labels", low=0, high=1)


class LabelPropagation(LabelPosterior):
    """Y_t = a D^-1/2 A D^-1/2 Y_{t-1} + (1 - a) Y_0 from the observed labels Y_0; features are ignored.

    Rows are normalised to probabilities; nodes that no label reaches get uniform probabilities.
    """

    Options = LabelPropagationOptions
    capturable: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: LabelPropagationOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        # Imported here, since PyG's layers would double the time of `import g3nn`.
        from torch_geometric.nn.models import LabelPropagation as PyGLabelPropagation

        options = options or LabelPropagationOptions()
        self.each = ReplicaCount(replicas)
        self.propagation = PyGLabelPropagation(options.steps, options.spread)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        mass = self.propagation(inputs.observed, inputs.arcs, edge_weight=propagation_weight(inputs)) + 1e-9
        answer: Tensor = self.each((mass / mass.sum(1, keepdim=True)).log())
        return answer


def propagation_weight(inputs: Inputs) -> Tensor | None:
    """The entries of D^-1/2 A D^-1/2 at the arcs. None without weights: PyG then computes them, but only then."""
    if inputs.arc_weight is None:
        return None
    from torch_geometric.nn.conv.gcn_conv import gcn_norm

    weight: Tensor = gcn_norm(inputs.arcs, inputs.arc_weight, inputs.n, add_self_loops=False)[1]
    return weight


_LEAST = 1e-6
"""Smoothed answers need not be positive; each class gets at least this much."""
_LARGEST_SCALE = 1000.0
"""Beyond this factor, an error is so small that it is left unscaled."""


@dataclass(frozen=True)
class CorrectAndSmoothOptions(PerceptronOptions):
    steps: int = integer(50, "number of propagation steps in each stage", low=1)
    correcting: float = number(0.8, "weight of the neighbours' errors; the rest is the node's own", low=0, high=1)
    smoothing: float = number(0.8, "weight of the neighbours' answers; the rest is the node's own", low=0, high=1)


class CorrectAndSmooth(LabelPosterior):
    """A perceptron is trained without the graph. Its errors on labelled nodes are propagated and subtracted (correct),
    then its answers are propagated together with the observed labels (smooth). PyG propagates all replicas at once."""

    Options = CorrectAndSmoothOptions
    capturable: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, replicas: Replicas, options: CorrectAndSmoothOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        # Imported here, since PyG's layers would double the time of `import g3nn`.
        from torch_geometric.nn.models import LabelPropagation

        options = options or CorrectAndSmoothOptions()
        self.network = Perceptron(sizes, replicas, options)
        self.correcting = LabelPropagation(options.steps, options.correcting)
        self.smoothing = LabelPropagation(options.steps, options.smoothing)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        answer: Tensor = self.network(inputs, noise).log_softmax(2)
        return answer if noise is not None else self._smoothed(self._corrected(answer.exp(), inputs), inputs).log()

    def _corrected(self, answers: Tensor, inputs: Inputs) -> Tensor:
        """(R, n, K): answers corrected by propagated errors, scaled to the mean error of the labelled nodes."""
        errors = torch.where(inputs.labelled, inputs.observed - answers, 0.0)
        spread = self._propagated(self.correcting, errors, inputs, lambda x: x.clamp(-1.0, 1.0))
        usual = errors.abs().sum((1, 2), keepdim=True) / inputs.train.numel()
        scale = usual / spread.abs().sum(2, keepdim=True)
        return answers + torch.where(scale.isfinite() & (scale <= _LARGEST_SCALE), scale, 1.0) * spread

    def _smoothed(self, answers: Tensor, inputs: Inputs) -> Tensor:
        """(R, n, K): probabilities, after propagation together with the observed labels."""
        start = torch.where(inputs.labelled, inputs.observed, answers)
        mass = self._propagated(self.smoothing, start, inputs, lambda x: x.clamp(0.0, 1.0)).clamp_min(_LEAST)
        return mass / mass.sum(2, keepdim=True)

    @staticmethod
    def _propagated(propagation: Any, x: Tensor, inputs: Inputs, keep: Callable[[Tensor], Tensor]) -> Tensor:
        """(R, n, K) from x (R, n, K); keep: clips values to their range after each step."""
        R, n, K = x.shape
        start, weight = x.transpose(0, 1).reshape(n, R * K), propagation_weight(inputs)
        columns: Tensor = propagation(start, inputs.arcs, edge_weight=weight, post_step=keep)
        return columns.view(n, R, K).transpose(0, 1)


@dataclass(frozen=True)
class GrandOptions:
    hidden: int = integer(32, "number of hidden units", low=1)
    order: int = integer(8, "number of propagation steps", low=0)
    node_dropout: float = number(0.5, "share of nodes whose features are all dropped", low=0, high=0.95)
    isolated_share: float = number(0.0, "share of nodes that are treated as isolated in each step", low=0, high=0.95)
    feature_dropout: float = number(0.5, "dropout on the features", low=0, high=0.95)
    dropout: float = number(0.5, "dropout on the hidden units", low=0, high=0.95)
    travelling: str = choice(
        "hidden",
        ("hidden", "features"),
        "propagate X W_1, which is fast, or X, with dropout after propagation",
    )
    normalise: bool = flag(False, "batch normalisation of what is propagated and of the hidden units")
    label_inputs: bool = flag(False, "propagate observed labels too, some of them hidden in each step")
    label_dropout: float = number(0.5, "share of observed labels that are hidden in each step", low=0, high=0.95)


class Grand(LabelPosterior):
    """q = softmax(W_2 relu(P W_1 + b_1) + b_2) with P = 1 / (T + 1) sum_t A^t M X: M drops whole nodes' features.

    Each noisy pass drops a different half of the nodes, so that q cannot rely on single neighbours. Train it with
    `samples` > 1 and a `consistency_weight`, which pulls the answers of several passes together.

    With `isolated_share`, some nodes of each pass see only their own features. Consistency with the other passes
    teaches the network to answer for isolated nodes.

    Propagation is linear, so it can run on M X W_1, which is much narrower than X. The original propagates X and drops
    single features of P; that noise is not averaged over neighbours, which regularises more but costs more time.
    """

    Options = GrandOptions
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (Outcome,)

    def __init__(self, sizes: Sizes, replicas: Replicas, options: GrandOptions | None = None) -> None:
        super().__init__(sizes, replicas)
        self.options = options or GrandOptions()
        if self.options.label_inputs:
            self.labels = LabelInput(sizes, replicas, self.options.hidden, self.options.label_dropout)
        self.weight1 = replicas.glorot("weight1", sizes.features, self.options.hidden)
        self.bias1 = replicas.zeros(self.options.hidden)
        if self.options.normalise:
            arriving = sizes.features if self.options.travelling == "features" else self.options.hidden
            self.norm1 = BatchNorm(replicas, arriving)
            self.norm2 = BatchNorm(replicas, self.options.hidden)
        self.weight2 = replicas.glorot("weight2", self.options.hidden, sizes.scores)
        self.bias2 = replicas.zeros(sizes.scores)

    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        shown = None
        first = self._first(inputs, noise)
        if self.options.label_inputs:
            labels, shown = self.labels(inputs, noise)
            first = first + inputs.mixed_orders(labels, self.options.order)
        answer = self.answer(linear(self._hidden(first, noise), self.weight2) + self.bias2.unsqueeze(1))
        return LabelInput.hide(answer, shown)

    def _first(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        """(R, n, hidden): P W_1."""
        rate = self.options.feature_dropout
        R = self.weight1.shape[0]
        kept = self._kept_nodes(R, inputs, noise)
        if self.options.travelling == "features":
            if noise is None:
                arrived = inputs.mixed_features(self.options.order)
            else:
                arrived = self._arrived(inputs.x.dense().unsqueeze(0), kept, inputs, noise)
            arrived = arrived.expand(R, -1, -1)
            if self.options.normalise:
                arrived = self.norm1(arrived, noise)
            return linear(optional_dropout(noise, arrived, rate), self.weight1)
        arrived = self._arrived(inputs.x.matmul(self.weight1, noise, rate), kept, inputs, noise)
        return self.norm1(arrived, noise) if self.options.normalise else arrived

    def _arrived(self, sent: Tensor, kept: Tensor | None, inputs: Inputs, noise: Noise | None) -> Tensor:
        """(R, n, h): `sent` after propagation, or unchanged at nodes that are treated as isolated.

        sent: (R, n, h), or (1, n, h) if all replicas send the same; the result is then (1, n, h) without noise.
        """
        mixed = inputs.mixed_orders(sent if kept is None else sent * kept, self.options.order)
        if noise is None or self.options.isolated_share == 0:
            return mixed
        everyone = inputs.observed.new_ones(self.weight1.shape[0], inputs.n)
        linked = noise.dropout(everyone, self.options.isolated_share) > 0
        return torch.where(linked.unsqueeze(2), mixed, sent)

    def _hidden(self, first: Tensor, noise: Noise | None) -> Tensor:
        """(R, n, hidden): after rectifier and dropout."""
        if not self.options.normalise:
            return rectify(first, self.bias1, optional_draw(noise, self.options.dropout))
        hidden: Tensor = self.norm2(rectify(first, self.bias1, None), noise)
        return optional_dropout(noise, hidden, self.options.dropout)

    def _kept_nodes(self, R: int, inputs: Inputs, noise: Noise | None) -> Tensor | None:
        """(R, n, 1): 0 for dropped nodes, above 1 for the others; None if no node is dropped."""
        if noise is None or self.options.node_dropout == 0:
            return None
        whole = inputs.observed.new_ones(R, inputs.n)
        return noise.dropout(whole, self.options.node_dropout).unsqueeze(2)
