"""Tasks for PyTorch Geometric."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from g3nn.graph.task import NodeTask


def as_data(task: NodeTask) -> Data:
    """See `NodeTask.to_pyg`."""
    x = task.features.toarray() if sp.issparse(task.features) else task.features
    arcs = task.edges if task.directed else np.concatenate([task.edges, task.edges[::-1]], axis=1)
    nodes, parts = np.arange(task.num_nodes), {"train": task.train, "val": task.val, "test": task.test}
    masks = {f"{key}_mask": torch.from_numpy(np.isin(nodes, part)) for key, part in parts.items()}
    if task.weights is not None:
        masks["edge_weight"] = torch.from_numpy(np.resize(task.weights, arcs.shape[1]).astype(np.float32))
    y = torch.from_numpy(task.labels)
    return Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(arcs.copy()), y=y, **masks)
