"""Who answers with which weight: members are added one by one as long as that lowers the loss on validation nodes."""

from __future__ import annotations

import numpy as np

_HALVES = 20
"""Random halves of the validation nodes. The weights are means over them, so that no few nodes decide."""
_STEPS = 20
"""A weight in one half is a multiple of about one over this."""
_SMALLEST = 0.03
"""Who would have less weight does not answer."""


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
