"""What a careful person tries on a new graph: six networks of PyTorch Geometric, and boosted trees without the graph.

The peers of `any_graph.py`. The networks train on the features as they came and on row-normalised ones; the one with
the lowest validation loss answers. The trees see only the features.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import f_classif
from sklearn.metrics import log_loss
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch_geometric.data import Data
from torch_geometric.nn import APPNP, GATConv, GCN2Conv, GCNConv, SAGEConv
from torch_geometric.transforms import ToSparseTensor

from g3nn.graph.datasets.planetoid import row_normalised
from g3nn.graph.task import NodeTask

Record = dict[str, Any]

HIDDEN, HEADS, DROPOUT = 64, 8, 0.5
LR, WEIGHT_DECAY, EPOCHS, PATIENCE = 0.01, 5e-4, 1000, 100
STEPS, TELEPORT = 10, 0.1
DEPTH, FIRST_SHARE, THETA = 8, 0.1, 0.5
MOST_COLUMNS = 2000
"""Trees train on dense columns; of more than these, the ones that tell the training classes apart best."""


def dropped(x: Tensor, network: nn.Module) -> Tensor:
    return F.dropout(x, DROPOUT, network.training)


class MLP(nn.Module):
    """Two layers without the graph; with `steps`, their answers are then spread along the edges (APPNP)."""

    def __init__(self, d: int, K: int, steps: int = 0) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(d, HIDDEN), nn.Linear(HIDDEN, K)
        self.spread = APPNP(steps, TELEPORT, cached=True) if steps else None

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = dropped(self.first(dropped(x, self)).relu(), self)
        x = self.second(x)
        return x if self.spread is None else self.spread(x, edge_index)


class TwoLayers(nn.Module):
    """GCN, SAGE or GAT."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second
        self.activation = F.elu if isinstance(first, GATConv) else F.relu

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.activation(self.first(dropped(x, self), edge_index))
        return self.second(dropped(x, self), edge_index)


class GCNII(nn.Module):
    """Deep, each layer with a share of the first representation."""

    def __init__(self, d: int, K: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(d, HIDDEN), nn.Linear(HIDDEN, K)
        layers = (GCN2Conv(HIDDEN, FIRST_SHARE, THETA, depth, cached=True) for depth in range(1, DEPTH + 1))
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = start = self.first(dropped(x, self)).relu()
        for layer in self.layers:
            x = layer(dropped(x, self), start, edge_index).relu()
        return self.last(dropped(x, self))


def network(name: str, d: int, K: int) -> nn.Module:
    if name == "gcn":
        return TwoLayers(GCNConv(d, HIDDEN, cached=True), GCNConv(HIDDEN, K, cached=True))
    if name == "gat":
        first = GATConv(d, HIDDEN // HEADS, HEADS, dropout=DROPOUT)
        return TwoLayers(first, GATConv(HIDDEN, K, dropout=DROPOUT))
    if name == "sage":
        return TwoLayers(SAGEConv(d, HIDDEN), SAGEConv(HIDDEN, K))
    return GCNII(d, K) if name == "gcnii" else MLP(d, K, STEPS if name == "appnp" else 0)


TO_MATRIX = ToSparseTensor(remove_edge_index=False, layout=torch.sparse_csr)
NETWORKS = ("mlp", "gcn", "gat", "sage", "appnp", "gcnii")


def trained(name: str, data: Data, K: int, seed: int) -> Record:
    """Test accuracy and validation loss of one network at the epoch with the lowest validation loss."""
    torch.manual_seed(seed)
    # Attention needs edges one by one; the others are much faster with a matrix.
    edges = data.edge_index if name == "gat" else data.adj_t
    model = network(name, data.num_features, K).to(data.x.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=LR, weight_decay=WEIGHT_DECAY)
    train, val, test = (mask.nonzero().squeeze(1) for mask in (data.train_mask, data.val_mask, data.test_mask))
    best, best_epoch, answers = float("inf"), 0, torch.zeros(0)
    for epoch in range(EPOCHS):
        model.train()
        optimiser.zero_grad()
        F.cross_entropy(model(data.x, edges)[train], data.y[train]).backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            scores = model(data.x, edges)
            loss = F.cross_entropy(scores[val], data.y[val]).item()
        if loss < best:
            best, best_epoch, answers = loss, epoch, scores[test].argmax(1)
        if epoch - best_epoch >= PATIENCE:
            break
    accuracy = (answers == data.y[test]).double().mean().item()
    return {"model": name, "val_loss": best, "accuracy": accuracy, "epochs": best_epoch + 1}


def portfolio(task: NodeTask, seed: int, device: str) -> Record:
    """Every network on both forms of the features; the lowest validation loss answers."""
    start, tried = time.perf_counter(), []
    for form, features in (("raw", task.features), ("rows", row_normalised(sp.csr_array(task.features)))):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)  # Of torch, once in a process.
            data = TO_MATRIX(replace(task, features=features).to_pyg().to(device))
        tried += [{**trained(name, data, task.num_classes, seed), "form": form} for name in NETWORKS]
    chosen = min(tried, key=lambda one: one["val_loss"])
    return {
        "accuracy": chosen["accuracy"],
        "val_loss": chosen["val_loss"],
        "model": f"{chosen['model']} {chosen['form']}",
        "tried": tried,
        "seconds": time.perf_counter() - start,
    }


def boosted_trees(task: NodeTask, seed: int) -> Record:
    """scikit-learn's defaults, on the features of the training nodes."""
    start = time.perf_counter()
    labels, features = task.labels, sp.csr_array(task.features)
    if task.num_features > MOST_COLUMNS:
        # A column that is constant on the training nodes has no score.
        with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings(action="ignore"):
            score = np.nan_to_num(f_classif(features[task.train], labels[task.train])[0], posinf=np.inf)
        features = features[:, np.sort(np.argsort(-score, kind="stable")[:MOST_COLUMNS])]
    x = features.toarray()
    trees = HistGradientBoostingClassifier(random_state=seed).fit(x[task.train], labels[task.train])
    answers, probabilities = trees.predict(x[task.test]), trees.predict_proba(x[task.val])
    return {
        "accuracy": float((answers == labels[task.test]).mean()),
        "val_loss": float(log_loss(labels[task.val], probabilities, labels=trees.classes_)),
        "columns": x.shape[1],
        "seconds": time.perf_counter() - start,
    }
