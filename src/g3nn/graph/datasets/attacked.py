"""Cora, Citeseer and Polblogs as poisoned by Metattack (Zügner and Günnemann, 2019) in the study of Jin et al. (2020).

Each graph is one `.npz` file, in the folder named by `G3NN_ATTACKED`: `train`, `val` and `test` nodes, labels `y`,
features as the parts of a CSR matrix (`x_data`, `x_indices`, `x_indptr`, `x_shape`), `edges_clean` and, for each share
of edges that the attacker could flip, `edges_meta_0.05` to `edges_meta_0.25` (each pair once).

The graphs are the largest components, with a random tenth of the nodes for training and for validation each. Polblogs
has no features; its matrix is the identity.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from g3nn.base.errors import DataError, InputError
from g3nn.graph.datasets.arrays import FEATURES, Folder, feature_rows, read_arrays
from g3nn.graph.datasets.noise import NoisyTask
from g3nn.graph.datasets.random_graph import encode
from g3nn.graph.task import NodeTask

ATTACKED: dict[str, tuple[int, ...]] = {
    "cora": (285, 406, 726, 379, 214, 131, 344),
    "citeseer": (115, 463, 388, 304, 532, 308),
    "polblogs": (586, 636),
}
"""How many nodes each class has, by dataset."""

METATTACK = {f"metattack-{percent}": percent for percent in (0, 5, 10, 15, 20, 25)}
"""The share of edges that the attacker could flip, in percent, by setting."""

ATTACKED_FOLDER = Folder("G3NN_ATTACKED", "the poisoned graphs of the Pro-GNN study")


def attacked_file(name: str) -> Path | None:
    """Where the file of a dataset is; None if there is no such file."""
    return ATTACKED_FOLDER.file(name)


def attacked(name: str, setting: str) -> NoisyTask:
    """A dataset of `ATTACKED` in a setting of `METATTACK`. Raises a `DataError` if its file cannot be used."""
    path, advice = ATTACKED_FOLDER.need(name), ATTACKED_FOLDER.advice
    percent = METATTACK[setting]
    edges = f"edges_meta_{percent / 100:g}" if percent else "edges_clean"
    parts = read_arrays(path, ("train", "val", "test", "y", *FEATURES, "edges_clean", edges), advice)
    sizes = np.unique(parts["y"], return_counts=True)[1].tolist()
    if tuple(sizes) != ATTACKED[name]:
        given = f"{parts['y'].size} nodes in classes of {sizes}"
        raise DataError(f"{path}: {given}, but {name} has {sum(ATTACKED[name])} in classes of {list(ATTACKED[name])}.")
    try:
        features = feature_rows(parts)
        split: dict[str, Any] = {key: parts[key] for key in ("train", "val", "test")}
        built = NodeTask.build(features, parts[edges], parts["y"], **split, name=name, setting=setting)
        clean = NodeTask.build(features, parts["edges_clean"], parts["y"], **split)
    except (InputError, ValueError, TypeError) as error:
        raise DataError(f"{path}: {error}. {advice}") from error
    n = built.num_nodes
    before, after = (encode(task.edges[0], task.edges[1], n) for task in (clean, built))
    return NoisyTask.of(built, injected=~np.isin(after, before))
