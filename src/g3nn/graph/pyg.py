"""What a `Data` of PyTorch Geometric says about its edges."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import is_undirected

from g3nn.graph.unused import ONE_WAY, unused


def edge_weights(data: Data, directed: bool) -> tuple[Tensor | None, bool]:
    """edge_weight, or edge_attr if it is one column, else None; and whether edges have a direction."""
    count, name = data.edge_index.shape[1], _weight_name(data)
    weight = data.edge_attr.view(-1) if name == "edge_attr" else data.get(name)
    if weight is None or weight.shape != (count,):
        return weight, directed
    return weight, not is_undirected(data.edge_index, weight, num_nodes=data.num_nodes)


def _weight_name(data: Data) -> str:
    """The attribute with the weights, if there are any."""
    count, attribute = data.edge_index.shape[1], data.get("edge_attr")
    usable = attribute is not None and attribute.shape in ((count,), (count, 1))
    return "edge_attr" if usable and data.get("edge_weight") is None else "edge_weight"


def notes_on(data: Data, directed: bool, weights: object) -> tuple[str, ...]:
    """What is not used. weights: what was said about those, if anything."""
    i, j = data.edge_index
    # Where each edge stands once, from the smaller to the larger number or the other way round, it has no direction.
    both = bool((i < j).any() and (i > j).any())
    notes = [ONE_WAY] if not directed and both and edge_weights(data, data.is_directed())[1] else []
    others = set(data.edge_attrs()) - {"edge_index", _weight_name(data)}
    if others and weights is None:
        notes.append(unused(others))
    return tuple(notes)
