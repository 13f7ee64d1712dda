"""The way of rows through decision trees, in numba."""

from __future__ import annotations

import numpy as np
from numba import prange

from g3nn.kernels.compiled import kernel

_BLOCK = 256
"""Rows that go through a tree while it is in the cache."""


@kernel(parallel=True)
def add_leaves(x, feature, threshold, left, right, missing_left, value, starts, out):
    """Add the value of the leaf that each row of x (n, d) reaches in tree t to column t % w of out (n, w).

    A leaf has no feature: -1. The rows run in parallel, each through the trees in their order.
    """
    n, width = out.shape
    for block in prange((n + _BLOCK - 1) // _BLOCK):
        for t in range(len(starts)):
            for i in range(block * _BLOCK, min(n, (block + 1) * _BLOCK)):
                node = starts[t]
                while feature[node] >= 0:
                    entry = x[i, feature[node]]
                    goes_left = missing_left[node] if np.isnan(entry) else entry <= threshold[node]
                    node = left[node] if goes_left else right[node]
                out[i, t % width] += value[node]
