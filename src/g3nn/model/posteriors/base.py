"""The contract of a variational posterior q(Y | X, G)."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from torch import Tensor, nn

from g3nn.model.components import Component, Declared
from g3nn.model.inputs import Inputs
from g3nn.model.networks import Head, NodeScores, OwnVectors
from g3nn.model.replicas import Noise, Replicas, Sizes


class LabelPosterior(Component[Declared], ABC):
    """q(Y | X, G) = prod_i q(y_i | X, G): mean-field, so labels are independent given features and graph.

    Trained without a likelihood, on the supervised term, it is the discriminative baseline of the same name.
    """

    uses_graph: ClassVar[bool] = True
    """Whether q_i depends on the neighbours of i."""
    steps: ClassVar[int | None] = None
    """The number of steps over edges that q_i depends on; a property where options decide. None: it needs the whole
    graph at once, so it cannot be trained in batches. A network that has it takes them from `inputs.hops(steps)`."""
    capturable: ClassVar[bool] = True
    """Whether `log_prob` never waits for the device, so that a GPU can replay it as a CUDA graph."""
    reads_labels: ClassVar[bool] = False
    """Whether `log_prob` or `own_loss` looks at observed labels."""
    cost: ClassVar[float] = 2.0
    """About how long an epoch takes on a CPU, as a multiple of that of gcn."""

    def __init__(self, sizes: Sizes, replicas: Replicas, options: Declared | None = None) -> None:
        super().__init__(sizes, replicas, options)
        self.head = Head(sizes, replicas)
        self.nodes = NodeScores(sizes, replicas) if sizes.outcome.refine else None

    def answer(self, scores: Tensor) -> Tensor:
        """(R, n, width) from the scores (R, n, `sizes.scores`) of a network: log_softmax for classes."""
        return self.head(scores if self.nodes is None else self.nodes(scores))

    @abstractmethod
    def log_prob(self, inputs: Inputs, noise: Noise | None) -> Tensor:
        """(R, n, K): log q(y_i = k | X, G), normalised over k; with another outcome (R, n, width), its answer.

        noise: given in training, None at evaluation.
        """

    def own_vectors(self) -> list[OwnVectors]:
        """The parts that learn something for each node."""
        return [part for part in self.modules() if isinstance(part, OwnVectors)]

    def renumber(self, nodes: Tensor, n: int) -> None:
        """Serve a graph of n nodes, in which those of training are `nodes`; for the others nothing was learned."""
        for part in self.own_vectors():
            part.renumber(nodes, n)

    def without_own(self, where: Tensor) -> Self:
        """A copy without what was learned for each of the nodes `where` (n,), in a graph of n nodes."""
        if not self.own_vectors():
            return self
        bare = copy.deepcopy(self)
        for part in bare.own_vectors():
            part.clear(where)
        return bare

    def network_scores(self, inputs: Inputs) -> Tensor:
        """(R, n, `sizes.scores`): the scores of the network alone, without those that are added for each node."""
        bare = copy.deepcopy(self)
        bare.nodes, bare.head = None, nn.Identity()  # type: ignore[assignment]
        return bare.log_prob(inputs, None)

    def own_loss(self, log_q: Tensor, inputs: Inputs, noise: Noise) -> Tensor | None:
        """(R,): a loss in addition to the terms of the objective, given the answer; None for most posteriors."""
        return None
