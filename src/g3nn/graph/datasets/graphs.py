"""Graphs in `.npz` files, in folders that environment variables name.

In `G3NN_GRAPHS`: eleven graphs unlike Cora, Citeseer and Pubmed. A file holds `edge_index` (2, arcs), `y` (-1 where
unknown) and the features as published, as the parts of a CSR matrix (`x_data`, `x_indices`, `x_indptr`, `x_shape`).
Each seed has a split of its own.

In `G3NN_ATTACKED`: Cora, Citeseer and Polblogs as poisoned by Metattack (Zügner and Günnemann, 2019) in the study of
Jin et al. (2020). A file holds `train`, `val` and `test` nodes, labels `y`, features as above, `edges_clean` and, for
each share of edges that the attacker could flip, `edges_meta_0.05` to `edges_meta_0.25` (each pair once). The graphs
are the largest components, with a random tenth of the nodes for training and for validation each. Polblogs has no
features; its matrix is the identity.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from g3nn.base.errors import DataError, InputError, Problems
from g3nn.base.options import WHOLE, check_values
from g3nn.base.parse import UNKNOWN, encode
from g3nn.graph.datasets.noise import NoisyTask
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
LABELS_PER_CLASS, VALIDATION_NODES = 20, 500

ATTACKED: dict[str, tuple[int, ...]] = {
    "cora": (285, 406, 726, 379, 214, 131, 344),
    "citeseer": (115, 463, 388, 304, 532, 308),
    "polblogs": (586, 636),
}
"""How many nodes each class has, by dataset."""

METATTACK = {f"metattack-{percent}": percent for percent in (0, 5, 10, 15, 20, 25)}
"""The share of edges that the attacker could flip, in percent, by setting."""

_FEATURES = ("x_data", "x_indices", "x_indptr", "x_shape")
ARRAYS = ("edge_index", "y", *_FEATURES)
"""The arrays of a file in `G3NN_GRAPHS`."""


@dataclass(frozen=True)
class Folder:
    """A folder of files that cannot be downloaded. variable: names the folder. what: it holds, in words."""

    variable: str
    what: str

    @property
    def advice(self) -> str:
        return f"Set {self.variable} to the folder with {self.what}."

    def file(self, name: str) -> Path | None:
        """Where the file of a graph is; None if there is no such file."""
        folder = os.environ.get(self.variable)
        path = Path(folder).expanduser() / f"{name}.npz" if folder else None
        return path if path is not None and path.is_file() else None

    def need(self, name: str) -> Path:
        """The same, but raises where there is no such file."""
        path = self.file(name)
        if path is None:
            folder = os.environ.get(self.variable)
            lacking = f"there is no {name}.npz in {folder}" if folder else "it cannot be downloaded"
            raise DataError(f"{name}: {lacking}. {self.advice}")
        return path

    def arrays(self, path: Path, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
        """The arrays of a file by their keys."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                lacking = [key for key in keys if key not in archive]
                if lacking:
                    raise DataError(f"{path}: lacks {', '.join(lacking)}. {self.advice}")
                return {key: archive[key] for key in keys}
        except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile) as error:
            raise DataError(f"{path}: not an .npz file that can be read ({error}). {self.advice}") from error


GRAPHS_FOLDER = Folder("G3NN_GRAPHS", "the graphs in .npz files")
ATTACKED_FOLDER = Folder("G3NN_ATTACKED", "the poisoned graphs of the Pro-GNN study")


def folder_of(name: str, setting: str) -> Folder | None:
    """The folder that a dataset is read from in a setting, if it cannot be downloaded."""
    return ATTACKED_FOLDER if setting in METATTACK else GRAPHS_FOLDER if name in GRAPHS else None


def graph(name: str, seed: int = 0) -> NodeTask:
    """One of `GRAPHS` with the split of a seed. Raises a `DataError` if its file cannot be used."""
    with Problems() as problems:
        check_values({"seed": seed}, {"seed": WHOLE}, problems)
    path = GRAPHS_FOLDER.need(name)
    try:
        features, edges, labels = read_graph(path)
        return NodeTask.build(features, edges, labels, *few_labels(labels, LABELS_PER_CLASS, seed), name=name)
    except (InputError, ValueError, TypeError) as error:
        raise DataError(f"{path}: {error}. {GRAPHS_FOLDER.advice}") from error


def read_graph(path: Path) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Features, edges, and labels, whose classes are numbered from 0 on."""
    arrays = GRAPHS_FOLDER.arrays(path, ARRAYS)
    y = arrays["y"]
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise DataError(f"{path}: y is {y.dtype} of shape {y.shape}, not a whole number for each node.")
    labels, known = np.full(len(y), UNKNOWN), y >= 0
    labels[known] = np.unique(y[known], return_inverse=True)[1]
    return _feature_rows(arrays), arrays["edge_index"], labels


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


def attacked(name: str, setting: str) -> NoisyTask:
    """A dataset of `ATTACKED` in a setting of `METATTACK`. Raises a `DataError` if its file cannot be used."""
    path, percent = ATTACKED_FOLDER.need(name), METATTACK[setting]
    edges = f"edges_meta_{percent / 100:g}" if percent else "edges_clean"
    parts = ATTACKED_FOLDER.arrays(path, ("train", "val", "test", "y", *_FEATURES, "edges_clean", edges))
    sizes = np.unique(parts["y"], return_counts=True)[1].tolist()
    if tuple(sizes) != ATTACKED[name]:
        given = f"{parts['y'].size} nodes in classes of {sizes}"
        raise DataError(f"{path}: {given}, but {name} has {sum(ATTACKED[name])} in classes of {list(ATTACKED[name])}.")
    try:
        features = _feature_rows(parts)
        split: dict[str, Any] = {key: parts[key] for key in ("train", "val", "test")}
        built = NodeTask.build(features, parts[edges], parts["y"], **split, name=name, setting=setting)
        clean = NodeTask.build(features, parts["edges_clean"], parts["y"], **split)
    except (InputError, ValueError, TypeError) as error:
        raise DataError(f"{path}: {error}. {ATTACKED_FOLDER.advice}") from error
    before, after = (encode(task.edges[0], task.edges[1], task.num_nodes) for task in (clean, built))
    return NoisyTask.of(built, injected=~np.isin(after, before))


def _feature_rows(arrays: Mapping[str, np.ndarray]) -> sp.csr_array:
    """The matrix whose parts are the arrays `_FEATURES`."""
    return sp.csr_array(tuple(arrays[key] for key in _FEATURES[:3]), shape=tuple(arrays["x_shape"]))
