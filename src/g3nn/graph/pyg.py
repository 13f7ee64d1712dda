"""What a `Data` of PyTorch Geometric says about its edges."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import is_undirected

from g3nn.base.errors import Problems, refuse
from g3nn.graph.outcomes.labels import quoted


def check_kinds(data: object) -> None:
    """Raise if it is a `HeteroData`."""
    if isinstance(data, HeteroData):
        given = f"a HeteroData of {quoted(data.node_types)} with the edges {quoted(data.edge_types)}"
        advice = "Relations are not modelled yet. Make one graph of all with to_homogeneous(), if their features are "
        advice += (
            "alike, or of one kind of nodes: Data(x=data[KIND].x, y=data[KIND].y, edge_index=data[EDGES].edge_index)."
        )
        refuse("data", given, "a Data, with one kind of nodes and edges", advice)


_SPLITS = ", e.g. by torch_geometric.transforms.RandomNodeSplit; or G3NNClassifier().fit(data) splits a share off"


def check_parts(data: Data) -> None:
    """Raise if it is a `HeteroData`, or if something is missing that a task has."""
    check_kinds(data)
    with Problems() as problems:
        for key in ("x", "edge_index", "y", "train_mask", "val_mask"):
            if data.get(key) is None:
                advice = f"Set data.{key} before converting{_SPLITS if key == 'val_mask' else ''}."
                problems.add(f"data.{key}", "nothing", "a tensor", advice)


def edge_weights(data: Data, directed: bool) -> tuple[Tensor | None, bool]:
    """edge_weight, or edge_attr if it is one column, else None; and whether edges have a direction."""
    count, weight, attribute = data.edge_index.shape[1], data.get("edge_weight"), data.get("edge_attr")
    if weight is None and attribute is not None and attribute.shape in ((count,), (count, 1)):
        weight = attribute.view(-1)
    if weight is None or weight.shape != (count,):
        return weight, directed
    return weight, not is_undirected(data.edge_index, weight, num_nodes=data.num_nodes)
