"""What a strategy may look at: the graph, what is labelled, and what a model believes so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.special import entr

from g3nn.base.parse import Matrix
from g3nn.kernels.sparse import neighbourhoods
from g3nn.queries.covering import Likeness


@dataclass(frozen=True, eq=False)
class Situation:
    """A partly labelled graph before the next question.

    edges:    (2, E), each pair once. weights: (E,), or None if all edges count alike.
    features: (n, d), or None.
    labelled: sorted numbers of the nodes with a label. candidates: those that may be asked about.
    beliefs:  (n, K) probabilities of the classes, one-hot at labelled nodes; None where a label is no class, or where
              nothing is believed yet. members: (M, n, K), what each replica believes, with weights (M,) that sum to 1.
    spread:   (n,), how uncertain the answer for each node is, where there are no `beliefs` to tell by.
    names:    of the K classes, for reasons in words.
    known_likeness: how alike nodes are, if that was worked out before for this graph.
    """

    edges: np.ndarray
    features: Matrix | None
    labelled: np.ndarray
    candidates: np.ndarray
    num_nodes: int
    weights: np.ndarray | None = None
    beliefs: np.ndarray | None = None
    members: np.ndarray | None = None
    member_weights: np.ndarray | None = None
    spread: np.ndarray | None = None
    names: tuple[str, ...] = ()
    seed: int = 0
    known_likeness: Likeness | None = None

    @cached_property
    def likeness(self) -> Likeness:
        if self.known_likeness is not None:
            return self.known_likeness
        return Likeness.of(self.features, self.edges, self.num_nodes, self.weights)

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """(n, n), without self-loops."""
        looped = neighbourhoods(self.edges, self.num_nodes, self.weights)
        looped.setdiag(0.0)
        looped.eliminate_zeros()
        return looped

    @cached_property
    def uncertainty(self) -> np.ndarray | None:
        """(n,): entropy of the beliefs, or the spread; None where nothing is believed."""
        if self.beliefs is None:
            return self.spread
        return np.asarray(entr(self.beliefs).sum(1))

    def rng(self) -> np.random.Generator:
        """The same draws for the same labels, other ones when a label was added."""
        return np.random.default_rng([self.seed % 2**63, len(self.labelled)])
