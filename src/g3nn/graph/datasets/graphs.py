"""Eleven graphs unlike Cora, Citeseer and Pubmed: each is one `.npz` file in the folder that `G3NN_GRAPHS` names.

A file holds `edge_index` (2, arcs), `y` (-1 where unknown) and the features as published, as the parts of a CSR matrix
(`x_data`, `x_indices`, `x_indptr`, `x_shape`). Each seed has a split of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import DataError, InputError, Problems
from g3nn.base.parse import UNKNOWN
from g3nn.graph.datasets.arguments import check_arguments, whole
from g3nn.graph.datasets.arrays import FEATURES, Folder, feature_rows, read_arrays
from g3nn.graph.task import NodeTask

GRAPHS = (
    "amazon_photo",
    "dblp",
    "acm",
    "uai2010",
    "flickr_attr",
    "actor",
    "chameleon_filtered",
    "texas",
    "minesweeper",
    "twitch_engb",
    "fb_amherst41",
)
ARRAYS = ("edge_index", "y", *FEATURES)
GRAPHS_FOLDER = Folder("G3NN_GRAPHS", "the graphs in .npz files")
LABELS_PER_CLASS, VALIDATION_NODES = 20, 500


def graph(name: str, seed: int = 0) -> NodeTask:
    """One of `GRAPHS` with the split of a seed. Raises a `DataError` if its file cannot be used."""
    problems = Problems()
    check_arguments({"seed": seed}, {"seed": whole(0)}, problems)
    problems.raise_if_any()
    path = GRAPHS_FOLDER.need(name)
    try:
        features, edges, labels = read_graph(path)
        return NodeTask.build(features, edges, labels, *few_labels(labels, LABELS_PER_CLASS, seed), name=name)
    except (InputError, ValueError, TypeError) as error:
        raise DataError(f"{path}: {error}. {GRAPHS_FOLDER.advice}") from error


def read_graph(path: Path) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Features, edges, and labels, whose classes are numbered from 0 on."""
    arrays = read_arrays(path, ARRAYS, GRAPHS_FOLDER.advice)
    y = arrays["y"]
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise DataError(f"{path}: y is {y.dtype} of shape {y.shape}, not a whole number for each node.")
    labels, known = np.full(len(y), UNKNOWN), y >= 0
    labels[known] = np.unique(y[known], return_inverse=True)[1]
    return feature_rows(arrays), arrays["edge_index"], labels


def few_labels(y: np.ndarray, labels_per_class: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training, validation and test nodes among those with a label; every class has a training node.

    At most half of a class trains, and at most half of the rest, up to 500, validates.
    """
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(y >= 0)
    classes = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y[known])]
    train = np.concatenate([nodes[: max(1, min(labels_per_class, len(nodes) // 2))] for nodes in classes])
    rest = rng.permutation(np.setdiff1d(known, train))
    val = rest[: min(VALIDATION_NODES, len(rest) // 2)]
    return np.sort(train), np.sort(val), np.setdiff1d(known, np.concatenate([train, val]))
