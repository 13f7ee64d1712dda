"""Missing features, filled in from the neighbours."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

from g3nn.errors import Problems
from g3nn.estimator.reading import Features
from g3nn.parse import Matrix

_COLUMNS_AT_ONCE = 256


def column_means(features: Features, problems: Problems) -> np.ndarray:
    """(d,): the mean of the known values of each column; one without any is a problem."""
    matrix = features.matrix
    stored = matrix.tocsc() if sp.issparse(matrix) else matrix
    holes = _hole_counts(matrix)
    known = matrix.shape[0] - holes
    if (known == 0).any():
        empty = features.title(known == 0)
        problems.add("X", f"no value at all in column {empty}", "a value for some node", "Leave the column out.")
    if sp.issparse(stored):
        stored.data = np.nan_to_num(stored.data)
        sums = stored.sum(axis=0, dtype=np.float64)
    else:
        sums = np.nansum(stored, axis=0, dtype=np.float64)
    return np.asarray(sums).ravel() / np.maximum(known, 1)


def _hole_counts(matrix: Matrix) -> np.ndarray:
    if not sp.issparse(matrix):
        return np.isnan(matrix).sum(axis=0)
    holes = matrix.indices[np.isnan(matrix.data)]
    return np.bincount(holes, minlength=matrix.shape[1])


def impute(features: Features, edges: np.ndarray, means: np.ndarray) -> Matrix:
    """(n, d) without a missing value, sparse if it came sparse.

    Feature propagation (Rossi et al., 2022), in the implementation of PyG: the known values spread along the edges
    until the missing ones have settled. It acts on differences to the column means, so a node that no known value
    reaches, one without edges for instance, gets the mean of the column.
    """
    matrix = features.matrix.copy()
    numbers = np.flatnonzero(features.missing_columns())
    for start in range(0, len(numbers), _COLUMNS_AT_ONCE):
        columns = numbers[start : start + _COLUMNS_AT_ONCE]
        part = matrix[:, columns]
        dense = part.toarray() if sp.issparse(part) else part
        filled = _propagate(dense - means[columns], edges) + means[columns]
        if sp.issparse(matrix):
            _fill_sparse(matrix, columns, filled)
        else:
            matrix[:, columns] = np.where(np.isnan(dense), filled, dense)
    return matrix


def _fill_sparse(matrix: Matrix, columns: np.ndarray, filled: np.ndarray) -> None:
    """Missing values of a sparse matrix are stored ones, so its pattern stays as it is."""
    place = np.full(matrix.shape[1], -1)
    place[columns] = np.arange(len(columns))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    holes = np.flatnonzero(np.isnan(matrix.data) & (place[matrix.indices] >= 0))
    matrix.data[holes] = filled[rows[holes], place[matrix.indices[holes]]]


def _propagate(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """x (n, c) with NaN where a value is missing; directions of edges are ignored."""
    if edges.shape[1] == 0:
        return np.nan_to_num(x)
    # Imported where it is used: PyG's transforms take long to load, and few callers have missing features.
    import torch
    from torch_geometric.data import Data
    from torch_geometric.transforms import FeaturePropagation

    values = torch.from_numpy(x.astype(np.float32))
    arcs = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1).copy())
    with warnings.catch_warnings():
        # What torch says of its sparse matrices concerns nobody here.
        warnings.filterwarnings("ignore", message="Sparse (CS[RC] tensor support|invariant checks)")
        filled = FeaturePropagation(values.isnan())(Data(x=values, edge_index=arcs)).x
    return np.asarray(filled.numpy())
