"""Sampled neighbourhoods on a CPU."""

from __future__ import annotations

import numpy as np

from g3nn.kernels.compiled import kernel


@kernel(nogil=True)
def draw_neighbours(
    rowptr: np.ndarray,
    frontier: np.ndarray,
    uniform: np.ndarray,
    step: np.ndarray,
    starts: np.ndarray,
    entry: np.ndarray,
) -> None:
    """entry (starts[-1],): which neighbours of each node of the frontier are drawn, as places in the rows of the graph.

    Of g neighbours, k are drawn: those at floor((t + u) g / k) for t = 0 .. k - 1: each is drawn with
    probability k / g, none twice. step: g / k or a little less, 1 where all are taken.
    """
    for f in range(frontier.size):
        begin = rowptr[frontier[f]]
        for t in range(starts[f + 1] - starts[f]):
            entry[starts[f] + t] = begin + int(np.floor((t + uniform[f]) * step[f]))


@kernel(nogil=True)
def number_nodes(found: np.ndarray, place: np.ndarray, known: int, fresh: np.ndarray, local: np.ndarray) -> int:
    """local: the positions of the nodes `found`. Those without one get the next, in order of appearance, and are
    written to `fresh`; returns how many. place (n,): the position of each node so far, -1 where there is none."""
    count = 0
    for p in range(found.size):
        node = found[p]
        if place[node] < 0:
            place[node] = known + count
            fresh[count] = node
            count += 1
        local[p] = place[node]
    return count
