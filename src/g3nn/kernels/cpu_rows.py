"""CPU kernels in numba that sort edges and entries into rows, in time linear in their number and without copies.

The rows are split into `parts` ranges. A thread walks over everything and places what belongs into its range, so no two
threads share a row, and entries of a row stay in the order in which they came.
"""

from __future__ import annotations

from numba import prange

from g3nn.kernels.compiled import kernel

_CHUNK = 1 << 16


@kernel(parallel=True)
def is_sorted(edges, upper):
    """Whether edges (2, E) rise, by i and then by j, each once; if `upper`, with i < j."""
    E = edges.shape[1]
    wrong = 0
    for job in prange((E + _CHUNK - 1) // _CHUNK):
        for e in range(job * _CHUNK, min((job + 1) * _CHUNK, E)):
            i, j = edges[0, e], edges[1, e]
            good = i < j or not upper
            if e > 0:
                before = edges[0, e - 1]
                good = good and (before < i or (before == i and edges[1, e - 1] < j))
            wrong += not good
    return wrong == 0


@kernel(parallel=True)
def count(ends, parts, counts):
    """Adds to counts (n,) how often each row is among the ends (E,)."""
    n = counts.shape[0]
    for part in prange(parts):
        low = n * part // parts
        high = n * (part + 1) // parts
        for e in range(ends.shape[0]):
            if low <= ends[e] < high:
                counts[ends[e]] += 1


@kernel(parallel=True)
def place_neighbours(edges, weights, below, above, parts, col, values):
    """Writes both ends of every edge (2, E) into the row of the other, and its weight (E,) beside it if there are any.

    below, above (n,): where the next neighbour with a smaller and with a larger number goes; they move on.
    """
    n = below.shape[0]
    for part in prange(parts):
        low = n * part // parts
        high = n * (part + 1) // parts
        for e in range(edges.shape[1]):
            i, j = edges[0, e], edges[1, e]
            if low <= i < high:
                col[above[i]] = j
                if weights is not None:
                    values[above[i]] = weights[e]
                above[i] += 1
            if low <= j < high:
                col[below[j]] = i
                if weights is not None:
                    values[below[j]] = weights[e]
                below[j] += 1


@kernel(parallel=True)
def turn(rowptr, col, parts, following, t_col, perm):
    """Writes the row of every entry into the row of its column, and its place beside it.

    following (m,): where the next entry of each column goes; it moves on.
    """
    m = following.shape[0]
    for part in prange(parts):
        low = m * part // parts
        high = m * (part + 1) // parts
        for i in range(rowptr.shape[0] - 1):
            for k in range(rowptr[i], rowptr[i + 1]):
                j = col[k]
                if low <= j < high:
                    t_col[following[j]] = i
                    perm[following[j]] = k
                    following[j] += 1
