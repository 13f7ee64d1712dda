"""Sampled neighbourhoods on a CPU."""

from __future__ import annotations

import numpy as np

from g3nn.kernels.compiled import kernel


@kernel(nogil=True)
def draw_neighbours(
    rowptr: np.ndarray,
    col: np.ndarray,
    frontier: np.ndarray,
    uniform: np.ndarray,
    starts: np.ndarray,
    entry: np.ndarray,
) -> None:
    """entry (starts[-1],): which neighbours of each node of the frontier are drawn, as places in `col`.

    Of g neighbours, k are drawn: those at floor((t + u) g / k) for t = 0 .. k - 1: each is drawn with
    probability k / g, none twice.
    """
    for f in range(frontier.size):
        begin = rowptr[frontier[f]]
        degree = rowptr[frontier[f] + 1] - begin
        taken = starts[f + 1] - starts[f]
        for t in range(taken):
            offset = t
            if taken < degree:
                offset = min(int(np.floor((t + uniform[f]) * degree / taken)), degree - 1)
            entry[starts[f] + t] = begin + offset


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
