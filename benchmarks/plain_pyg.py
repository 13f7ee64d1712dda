"""The paper's models as a careful PyTorch Geometric user would write them: the baseline of `speed.py`.

PyG layers with cached normalisation, dense features, one training at a time, evaluation after every epoch. The loss is
that of the authors' code, term for term as in `Objective.released()`, with each undirected edge counted once.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv

from g3nn.graph.task import NodeTask


class MLP(nn.Module):
    def __init__(self, d: int, K: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(d, hidden), nn.Linear(hidden, K)

    def forward(self, x: Tensor) -> Tensor:
        x = F.dropout(x, 0.5, self.training)
        x = F.dropout(self.first(x).relu(), 0.5, self.training)
        return self.second(x).log_softmax(1)


class GCN(nn.Module):
    def __init__(self, d: int, K: int, hidden: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(d, hidden, cached=True), GCNConv(hidden, K, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, 0.5, self.training)
        x = F.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(x, edge_index).log_softmax(1)


class GAT(nn.Module):
    def __init__(self, d: int, K: int, hidden: int) -> None:
        super().__init__()
        self.first = GATConv(d, hidden // 8, heads=8, dropout=0.6)
        self.second = GATConv(hidden, K, dropout=0.6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = F.dropout(x, 0.6, self.training)
        x = F.dropout(F.elu(self.first(x, edge_index)), 0.6, self.training)
        return self.second(x, edge_index).log_softmax(1)


class LSM(nn.Module):
    """Latent space likelihood with soft labels plugged into the logit."""

    def __init__(self, d: int, K: int) -> None:
        super().__init__()
        self.encode, self.weigh = nn.Linear(d, 8), nn.Linear(8 + K, 1, bias=False)

    def forward(self, x: Tensor, soft: Tensor, edges: Tensor, non_edges: Tensor) -> Tensor:
        latent = self.encode(F.dropout(x, 0.5, self.training)).relu()
        score = self.weigh(torch.cat([latent, soft], 1)).squeeze(1)
        present, absent = (score[pairs[0]] + score[pairs[1]] for pairs in (edges, non_edges))
        return -F.logsigmoid(present).mean() - F.logsigmoid(-absent).mean()


class SBM(nn.Module):
    """Planted partition with p0 = 0.9, p1 = 0.1, constants dropped."""

    def forward(self, x: Tensor, soft: Tensor, edges: Tensor, non_edges: Tensor) -> Tensor:
        present, absent = ((soft[pairs[0]] * soft[pairs[1]]).mean() for pairs in (edges, non_edges))
        odds = torch.tensor(9.0).log().item()
        return -present * odds + absent * odds


class Plain:
    """One training of `likelihood-posterior`, or of a posterior by itself."""

    def __init__(self, task: NodeTask, model: str, device: str, hidden: int = 16, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.data: Data = task.to_pyg().to(device)
        self.edges = torch.from_numpy(task.edges).to(device)
        likelihood, _, posterior = model.rpartition("-")
        d, K = task.num_features, task.num_classes
        networks = {"mlp": MLP, "gcn": GCN, "gat": GAT}
        parts = {"posterior": networks[posterior](d, K, hidden)}
        if likelihood:
            parts["prior"] = MLP(d, K, hidden)
            parts["likelihood"] = LSM(d, K) if likelihood == "lsm" else SBM()
        self.parts = nn.ModuleDict(parts).to(device)
        self.optimiser = torch.optim.Adam(self.parts.parameters(), lr=0.01, weight_decay=5e-4)
        self.best_loss, self.best_test = float("inf"), float("nan")
        one_hot = F.one_hot(self.data.y.clamp_min(0), K).float()
        self.observed = one_hot * self.data.train_mask.unsqueeze(1)

    def answer(self) -> Tensor:
        if isinstance(self.parts["posterior"], MLP):
            return self.parts["posterior"](self.data.x)
        return self.parts["posterior"](self.data.x, self.data.edge_index)

    def loss(self) -> Tensor:
        data = self.data
        log_q = self.answer()
        supervised = F.nll_loss(log_q[data.train_mask], data.y[data.train_mask])
        if "prior" not in self.parts:
            return supervised
        log_p = self.parts["prior"](data.x)
        soft = torch.where(data.train_mask.unsqueeze(1), self.observed, log_p.exp())
        non_edges = torch.randint(data.num_nodes, self.edges.shape, device=self.edges.device)
        graph = self.parts["likelihood"](data.x, soft, self.edges, non_edges)
        prior = F.nll_loss(log_p[data.train_mask], data.y[data.train_mask])
        q_u, log_q_u, log_p_u = (t[~data.train_mask] for t in (log_q.exp(), log_q, log_p))
        return graph - (q_u * log_p_u).mean() - (q_u * log_q_u).mean() + prior + supervised

    def epoch(self) -> None:
        self.parts.train()
        self.optimiser.zero_grad()
        self.loss().backward()
        self.optimiser.step()
        self.parts.eval()
        with torch.no_grad():
            log_q, data = self.answer(), self.data
            val_loss = F.nll_loss(log_q[data.val_mask], data.y[data.val_mask]).item()
            test = (log_q[data.test_mask].argmax(1) == data.y[data.test_mask]).float().mean().item()
        if val_loss < self.best_loss:
            self.best_loss, self.best_test = val_loss, test
