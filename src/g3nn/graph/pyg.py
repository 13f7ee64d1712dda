"""What a `Data` of PyTorch Geometric says about its edges."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected


def edge_weights(data: Data, directed: bool) -> tuple[Tensor | None, bool]:
    """edge_weight, or edge_attr if it is one column, else None; and whether edges have a direction."""
    count, weight, attribute = data.edge_index.shape[1], data.get("edge_weight"), data.get("edge_attr")
    if weight is None and attribute is not None and attribute.shape in ((count,), (count, 1)):
        weight = attribute.view(-1)
    if weight is None or weight.shape != (count,):
        return weight, directed
    return weight, not is_undirected(data.edge_index, weight, num_nodes=data.num_nodes)
