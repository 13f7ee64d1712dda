"""Random graphs on the CPU, in numba: every node draws its neighbours with a larger number from random bits of its own,
so the graph does not depend on the number of threads, and drawing it twice, first to count and then to write, needs no
memory but that of the result.

Pairs receive hits at a constant rate, one after the other: the distance to the next hit is exponential. Each hit is
kept with a probability of its pair, and a pair with a kept hit is linked; see `g3nn.graph.datasets.random_graph`.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from g3nn.kernels.compiled import kernel
from g3nn.kernels.cpu_kernels import GOLDEN, _key, _mixed

_BLOCK = 1024


@njit(inline="always")
def _uniform(state):
    """The next state of a stream (SplitMix64), and a number above 0 and up to 1 from 53 of its bits."""
    state = np.uint64(state + GOLDEN)
    return state, (np.float64(_mixed(state) >> np.uint64(11)) + 1.0) * 2.0**-53


@njit
def _hit(state, x, stop, i, members, labels, rate, intercept, positions, weight):
    """The next kept hit after x and before `stop`: the state of the stream, where it is, and its node; n if there is
    none. members: the node at each place, None for all nodes of other classes, each at the place of its number."""
    n = labels.shape[0]
    while rate > 0.0:
        state, u = _uniform(state)
        x -= np.log(u) / rate
        if x >= stop:
            break
        j = np.int64(x)
        if members is not None:
            j = members[j]
        elif labels[j] == labels[i]:
            continue
        if positions is not None:
            term = 0.0
            for q in range(positions.shape[1]):
                term += positions[i, q] * positions[j, q]
            state, u = _uniform(state)
            # log(1 + e^t), of the logit of this pair.
            logit = intercept + weight * term
            if u * rate >= max(logit, 0.0) + np.log1p(np.exp(-abs(logit))):
                continue
        return state, x, j
    return state, x, n


@njit
def _neighbours(i, labels, members, place, ends, rates, intercepts, positions, weight, seed, found):
    """The number of neighbours of node i with a larger number; they are written to `found` unless it is empty."""
    n = labels.shape[0]
    stop = np.float64(ends[labels[i]])
    one, x = _key(seed, 2 * i), np.float64(place[i] + 1)
    two, y = _key(seed, 2 * i + 1), np.float64(i + 1)
    one, x, same = _hit(one, x, stop, i, members, labels, rates[0], intercepts[0], positions, weight)
    two, y, other = _hit(two, y, np.float64(n), i, None, labels, rates[1], intercepts[1], positions, weight)
    count, last = 0, -1
    while same < n or other < n:
        j = min(same, other)
        if j != last:
            if found.shape[0] > 0:
                found[count] = j
            count, last = count + 1, j
        if j == same:
            one, x, same = _hit(one, x, stop, i, members, labels, rates[0], intercepts[0], positions, weight)
        else:
            two, y, other = _hit(two, y, np.float64(n), i, None, labels, rates[1], intercepts[1], positions, weight)
    return count


@kernel(parallel=True)
def draw_rows(labels, members, place, ends, rates, intercepts, positions, weight, seed, rowptr, edges):
    """The linked pairs (i, j), i < j, of all nodes. Without edges, rowptr[i + 1] becomes the number of those of node i;
    with edges (2, E), those of node i are written from rowptr[i] on.

    members (n,): the nodes class by class, in rising order; place (n,): where each is in it; ends (K,): where a class
    ends in it. rates, intercepts: inside and between classes. positions (n, q) or None.
    """
    n = labels.shape[0]
    blocks = (n + _BLOCK - 1) // _BLOCK
    none = np.empty(0, np.int64)
    # The first nodes have the most neighbours after them, so each job takes a block from either end.
    for job in prange((blocks + 1) // 2):
        for side in range(2):
            block = job if side == 0 else blocks - 1 - job
            if side == 1 and block == job:
                continue
            for i in range(block * _BLOCK, min((block + 1) * _BLOCK, n)):
                if edges is None:
                    rowptr[i + 1] = _neighbours(
                        i, labels, members, place, ends, rates, intercepts, positions, weight, seed, none
                    )
                else:
                    edges[0, rowptr[i] : rowptr[i + 1]] = i
                    found = edges[1, rowptr[i] : rowptr[i + 1]]
                    _neighbours(i, labels, members, place, ends, rates, intercepts, positions, weight, seed, found)
