"""Who answers with which weight: members are added one by one as long as that lowers the loss on validation nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from g3nn.graph.calibrate import Scaling
from g3nn.graph.outcomes import Outcome

_HALVES = 20
"""Random halves of the validation nodes. The weights are means over them, so that no few nodes decide."""
_STEPS = 20
"""A weight in one half is a multiple of about one over this."""
_SMALLEST = 0.03
"""Who would have less weight does not answer."""
_REPEATS, _FEWEST = 3, 20
"""How often validation nodes are halved to see how optimistic they are, and how many that takes."""


def member_weights(log_probs: np.ndarray, most: int = 8) -> np.ndarray:
    """(M,): the weights of M members in a mixture that sum to 1, most of them 0.

    log_probs: (M, m), log p of the labels of m validation nodes. In each of some random halves of the nodes, members
    are added greedily and with replacement to a mixture (Caruana et al., 2004). The other half says what such a choice
    is worth: if the best single member would be as good there, it answers alone.
    """
    members, nodes = log_probs.shape
    first = int(log_probs.mean(1).argmax())
    alone = np.eye(members)[first]
    if members == 1 or nodes < 4:
        return alone
    rng, densities = np.random.default_rng(0), np.exp(log_probs - log_probs.max(0))
    total, gain = np.zeros(members), 0.0
    for _ in range(_HALVES):
        order = rng.permutation(nodes)
        half, rest = order[: nodes // 2], order[nodes // 2 :]
        found = _greedy(densities[:, half])
        best = int(_log(densities[:, half]).mean(1).argmax())
        total += found
        gain += float((_log(found @ densities[:, rest]) - _log(densities[best, rest])).mean())
    if gain <= 0:
        return alone
    total[np.argsort(-total, kind="stable")[most:]] = 0.0
    total[total < _SMALLEST * total.sum()] = 0.0
    return total / total.sum()


def mixture_optimism(answers: Sequence[np.ndarray], labels: np.ndarray, outcome: Outcome) -> float:
    """How many times higher the temperature of a mixture is, but at least 1, on nodes that did not choose its weights.

    answers: (m, width) of each member about m validation nodes. A mixture is made with one half of them and asked about
    the other.
    """
    if not outcome.pooled or len(labels) < _FEWEST:
        # The temperature of a count moves its mean too, which is no less right for being chosen.
        return 1.0

    def mixture(nodes: np.ndarray) -> np.ndarray:
        """(m, width): as these nodes would have it."""
        temperatures = [outcome.temperature(one[nodes], labels[nodes]) for one in answers]
        scaled = [outcome.scaled(one, Scaling(t)) for one, t in zip(answers, temperatures, strict=True)]
        weights = member_weights(np.stack([outcome.label_log_prob(one[nodes], labels[nodes]) for one in scaled]))
        heard = np.flatnonzero(weights)
        return outcome.weighted([scaled[place] for place in heard], weights[heard])

    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(labels)) for _ in range(_REPEATS)]
    halves = [half for order in orders for half in ((order[::2], order[1::2]), (order[1::2], order[::2]))]
    unseen = np.concatenate([mixture(half)[rest] for half, rest in halves])
    honest = outcome.temperature(unseen, labels[np.concatenate([rest for _, rest in halves])])
    return max(1.0, honest / outcome.temperature(mixture(np.arange(len(labels))), labels))


def _greedy(densities: np.ndarray) -> np.ndarray:
    """(M,): the weights with the lowest loss on the way, for densities (M, m) of the labels."""
    mixture, counts = np.zeros(densities.shape[1]), np.zeros(len(densities))
    lowest, weights = np.inf, counts
    for step in range(1, _STEPS + 1):
        losses = -_log((mixture + densities) / step).mean(1)
        chosen = int(losses.argmin())
        mixture, counts = mixture + densities[chosen], counts + np.eye(len(counts))[chosen]
        if losses[chosen] < lowest:
            lowest, weights = losses[chosen], counts / step
    return weights


def _log(values: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(values, np.finfo(np.float64).tiny))
