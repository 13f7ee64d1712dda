"""Graphs of PyTorch Geometric: what they say about their edges, and those with several kinds of nodes as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import is_undirected

from g3nn.base.errors import Problems
from g3nn.base.parse import to_numpy, type_names
from g3nn.graph.relations import Relations, read_relations

if TYPE_CHECKING:
    from g3nn.graph.task import NodeTask


def as_one(data: Data | HeteroData) -> Data:
    """A `HeteroData` as one graph with edge_type and node_type by name; any other `Data` as it is.

    Features of each kind are columns of their own. A type that only turns another one round, as `ToUndirected` adds it,
    is left out. Labels and masks are those of the kinds that have labels.
    """
    if not isinstance(data, HeteroData):
        return data
    with Problems() as problems:
        labels = {kind: to_numpy(data[kind].y) for kind in data.node_types if data[kind].get("y") is not None}
        if not labels:
            problems.add("data", "no kind of nodes with y", "labels of one kind of nodes", "Set data[KIND].y first.")
        for kind in data.node_types:
            if not {"x", "pos", "n_id", "num_nodes"} & {*data[kind].keys()}:
                problems.add(f"data[{kind!r}]", "neither x nor num_nodes", "either", f"Set data[{kind!r}].num_nodes.")
            elif kind in labels and labels[kind].shape[:1] != (data[kind].num_nodes,):
                given, count = labels[kind].shape, data[kind].num_nodes
                problems.add(f"data[{kind!r}].y", f"shape {given}", f"one label for each of the {count} nodes")
        if len(shapes := {known.shape[1:] for known in labels.values()}) > 1:
            problems.add("data.y", f"labels of {len(shapes)} shapes", "those of all kinds in as many columns")
        for kind in _once(data):
            if data[kind].get("edge_index") is None:
                problems.add(f"data[{kind!r}]", "no edge_index", "edges of each type")
    sizes = [int(data[kind].num_nodes) for kind in data.node_types]
    starts = dict(zip(data.node_types, np.cumsum([0, *sizes]).tolist(), strict=False))
    one = Data(num_nodes=sum(sizes), node_type=np.repeat(np.array(data.node_types, dtype=object), sizes))
    parts = [sp.csr_array(to_numpy(data[k].x)) if data[k].get("x") is not None else None for k in data.node_types]
    blocks = [sp.csr_array((n, 0)) if part is None else part for part, n in zip(parts, sizes, strict=True)]
    if any(part is not None for part in parts):
        one.x = sp.csr_array(sp.block_diag(blocks, format="csr"))
    types = _once(data)
    edges = [data[kind].edge_index.cpu() + torch.tensor([[starts[kind[0]]], [starts[kind[2]]]]) for kind in types]
    weights, counts = [_weight(data[kind]) for kind in types], [some.shape[1] for some in edges]
    one.edge_index = torch.cat([torch.zeros((2, 0), dtype=torch.int64), *edges], dim=1)
    one.edge_type = np.repeat(np.array(type_names(types), dtype=object), np.array(counts, dtype=np.int64))
    if any(weight is not None for weight in weights):
        alike = zip(weights, counts, strict=True)
        one.edge_weight = torch.cat([torch.ones(n) if weight is None else weight.cpu().view(-1) for weight, n in alike])
    dtype = np.result_type(*(known.dtype for known in labels.values()))
    missing, dtype = (np.nan, dtype) if dtype.kind == "f" else (None, np.dtype(object))
    one.y = np.full((sum(sizes), *shapes.pop()), missing, dtype=dtype)
    for kind, known in labels.items():
        own = slice(starts[kind], starts[kind] + len(known))
        one.y[own] = known
        for mask in ("train_mask", "val_mask", "test_mask"):
            if data[kind].get(mask) is not None:
                one[mask] = one.get(mask) if one.get(mask) is not None else np.zeros(sum(sizes), dtype=bool)
                one[mask][own] = to_numpy(data[kind][mask])
    return one


def _once(data: HeteroData) -> list[tuple[str, str, str]]:
    """The types of edges, without those that are another one turned round."""
    found = list[tuple[str, str, str]]()
    for kind in data.edge_types:
        turned = (kind[2], kind[1].removeprefix(_TURNED), kind[0])
        if not (kind[1].startswith(_TURNED) and turned in data.edge_types and turned != kind):
            found.append(kind)
    return found


_TURNED = "rev_"
"""What the names of types begin with that turn others round."""
_SPLITS = ", e.g. by torch_geometric.transforms.RandomNodeSplit; or G3NNClassifier().fit(data) splits a share off"


def check_parts(data: Data) -> None:
    """Raise if something is missing that a task has."""
    with Problems() as problems:
        for key in ("x", "edge_index", "y", "train_mask", "val_mask"):
            if data.get(key) is None:
                advice = f"Set data.{key} before converting{_SPLITS if key == 'val_mask' else ''}."
                problems.add(f"data.{key}", "nothing", "a tensor", advice)


def parts_of(data: Data | HeteroData, weights: object) -> dict[str, Any]:
    """What `NodeTask.build` takes. weights: by default edge_weight or, if it holds one number per edge, edge_attr."""
    data = as_one(data)
    check_parts(data)
    several = data.get("edge_type") is not None or data.get("node_type") is not None
    test, directed, relations, labels = data.get("test_mask"), not several and data.is_directed(), None, data.y
    if weights is None:
        weights, differ = edge_weights(data, directed)
        directed = differ and not several
    if isinstance(labels, np.ndarray) and labels.dtype == object:
        labels = np.where(labels == np.array(None), -1, labels).astype(np.int64)
    if several:
        how = {"types": data.get("edge_type"), "kinds": data.get("node_type"), "weights": weights}
        with Problems() as problems:
            relations = read_relations(data.edge_index, data.num_nodes, directed, problems, **how)
    split = {"train": data.train_mask, "val": data.val_mask, "test": () if test is None else test}
    graph = {"features": data.x, "edges": data.edge_index, "labels": labels, "directed": directed}
    return {**graph, **split, "weights": weights, "relations": relations}


def data_of(task: NodeTask) -> Data:
    arcs = task.edges if task.directed else np.concatenate([task.edges, task.edges[::-1]], axis=1)
    found = Data(edge_index=torch.from_numpy(arcs.copy()), **_of_nodes(task, np.arange(task.num_nodes)))
    if task.weights is not None:
        found.edge_weight = torch.from_numpy(np.resize(task.weights, arcs.shape[1]).astype(np.float32))
    return found


def kinds_of(task: NodeTask, relations: Relations) -> HeteroData:
    """A type that joins several kinds of nodes is one for each pair of kinds."""
    found, place = HeteroData(), np.empty(task.num_nodes, dtype=np.int64)
    for code, kind in enumerate(relations.kind_names):
        nodes = np.flatnonzero(relations.kinds == code)
        place[nodes] = np.arange(len(nodes))
        for name, value in _of_nodes(task, nodes).items():
            found[kind][name] = value
    for type, (name, directed) in enumerate(relations.directions):
        some = relations.of(type)
        ends = relations.kinds[some.pairs]
        for first, second in np.unique(ends, axis=1).T:
            chosen = (ends == [[first], [second]]).all(axis=0)
            pairs, weights = place[some.pairs[:, chosen]], None if some.weights is None else some.weights[chosen]
            if not directed and first == second:
                pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
                # The weights of both arcs add up to that of the edge.
                weights = None if weights is None else np.tile(weights / 2, 2)
            own = found[relations.kind_names[first], name, relations.kind_names[second]]
            own.edge_index = torch.from_numpy(pairs)
            if weights is not None:
                own.edge_weight = torch.from_numpy(weights.astype(np.float32))
    return found


def _of_nodes(task: NodeTask, nodes: np.ndarray) -> dict[str, Tensor]:
    """x, y and the masks of some nodes."""
    x = task.features[nodes].toarray() if sp.issparse(task.features) else task.features[nodes]
    parts = {"train": task.train, "val": task.val, "test": task.test}
    masks = {f"{key}_mask": torch.from_numpy(np.isin(nodes, part)) for key, part in parts.items()}
    return {"x": torch.from_numpy(x), "y": torch.from_numpy(task.labels[nodes]), **masks}


def edge_weights(data: Data, directed: bool) -> tuple[Tensor | None, bool]:
    """edge_weight, or edge_attr if it is one column, else None; and whether edges have a direction."""
    weight = _weight(data)
    if weight is None or weight.shape != data.edge_index.shape[1:]:
        return weight, directed
    return weight, not is_undirected(data.edge_index, weight, num_nodes=data.num_nodes)


def _weight(edges: Any) -> Tensor | None:
    """Of the edges in a `Data`, or of one type."""
    weight, attribute, count = edges.get("edge_weight"), edges.get("edge_attr"), edges.edge_index.shape[1]
    is_column = attribute is not None and attribute.shape in ((count,), (count, 1))
    return attribute.view(-1) if weight is None and is_column else weight
