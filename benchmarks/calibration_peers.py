"""Temperatures of nodes as published, rebuilt with PyTorch Geometric, and smoothing over neighbours.

CaGCN (Wang et al., 2021): two graph convolutions of the scores. GATS (Hsu et al., 2022): attention over neighbours, by
ordered scores, by how much more certain neighbours are, and by whether a node or a neighbour was trained on. WATS (Li
et al., 2025): a perceptron on heat-kernel wavelets of log-degrees. All are trained as GATS does it: Adam with rate
0.01, the loss of the validation nodes, and an end when that of the training nodes has not fallen for 100 steps.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCNConv
from torch_geometric.utils import add_self_loops, get_laplacian, softmax, to_undirected

from g3nn.graph.calibrate import Scaling, fit_temperature, log_seen
from g3nn.kernels.sparse import neighbour_mean

STEPS, PATIENCE, RATE, DECAY = 2000, 100, 0.01, 5e-3
HEADS, HIDDEN = 8, 16
SCALES, TERMS = (0.5, 1.0, 2.0, 4.0), 12
"""Of the heat kernel, and of its power series."""


class CaGCN(nn.Module):
    def __init__(self, scores: Tensor, edges: Tensor, train: Tensor) -> None:
        super().__init__()
        self.edges = edges
        self.first, self.second = GCNConv(scores.shape[1], HIDDEN), GCNConv(HIDDEN, 1)

    def forward(self, scores: Tensor) -> Tensor:
        hidden = functional.dropout(functional.relu(self.first(scores, self.edges)), 0.5, self.training)
        return 1 / functional.softplus(self.second(hidden, self.edges))


class GATS(nn.Module):
    def __init__(self, scores: Tensor, edges: Tensor, train: Tensor) -> None:
        super().__init__()
        self.edges = add_self_loops(edges, num_nodes=len(scores))[0]
        self.sorted = nn.Linear(scores.shape[1], HEADS, bias=False)
        nn.init.xavier_uniform_(self.sorted.weight)
        self.certainty = nn.Parameter(torch.zeros([]))
        self.level = nn.Parameter(torch.ones(1))
        self.trained, self.beside = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        self.is_trained = torch.zeros(len(scores), dtype=torch.bool)
        self.is_trained[train] = True
        self.is_beside = torch.zeros(len(scores), dtype=torch.bool)
        self.is_beside[edges[1][self.is_trained[edges[0]]]] = True
        self.is_beside &= ~self.is_trained

    def forward(self, scores: Tensor) -> Tensor:
        source, target = self.edges
        n, low = len(scores), scores.min(1, keepdim=True)[0]
        unit = (scores - low) / (scores.max(1, keepdim=True)[0] - low)
        role = torch.ones(n)
        role = torch.where(self.is_trained, self.trained, torch.where(self.is_beside, self.beside, role))
        each = self.sorted(unit.sort(1)[0]) * role[:, None]
        attended = scores / role[:, None]
        weight = softmax(functional.leaky_relu((attended[source] * attended[target]).sum(1), 0.2), target, num_nodes=n)
        confidence = scores.softmax(1).amax(1)
        count = torch.zeros(n).index_add(0, target, torch.ones(len(target)))
        near = torch.zeros(n, HEADS).index_add(0, target, each[source] * weight[:, None])
        more = torch.zeros(n).index_add(0, target, confidence[target] - confidence[source]) / count
        return (functional.softplus(near + self.certainty * more[:, None]).mean(1) + self.level)[:, None]


class WATS(nn.Module):
    def __init__(self, scores: Tensor, edges: Tensor, train: Tensor) -> None:
        super().__init__()
        n = len(scores)
        places, values = get_laplacian(edges, normalization="sym", num_nodes=n)
        laplacian = torch.sparse_coo_tensor(places, values, (n, n)).coalesce()
        degree = torch.zeros(n).index_add(0, edges[1], torch.ones(edges.shape[1]))
        signal = degree.log1p()[:, None]
        columns = [signal]
        for scale in SCALES:
            term = total = signal
            for power in range(1, TERMS):
                term = -scale / power * torch.sparse.mm(laplacian, term)
                total = total + term
            columns.append(total)
        found = torch.cat(columns, 1)
        self.columns = (found - found.mean(0)) / found.std(0).clamp_min(1e-6)
        self.layers = nn.Sequential(nn.Linear(len(columns), HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))
        nn.init.constant_(self.layers[2].bias, 0.5413)  # softplus of it is 1

    def forward(self, scores: Tensor) -> Tensor:
        return functional.softplus(self.layers(self.columns)) + 1e-2


PEERS: dict[str, Callable[..., nn.Module]] = {"CaGCN": CaGCN, "GATS": GATS, "WATS": WATS}


def scaled_by(
    name: str, log_prob: np.ndarray, edges: np.ndarray, labels: np.ndarray, train: np.ndarray, val: np.ndarray
) -> np.ndarray:
    """(n, K) log-probabilities, calibrated on the validation nodes."""
    torch.manual_seed(0)
    scores, truth = torch.from_numpy(log_prob - log_prob.mean(1, keepdims=True)).float(), torch.from_numpy(labels)
    learn, watch = torch.from_numpy(val), torch.from_numpy(train)
    model = PEERS[name](scores, to_undirected(torch.from_numpy(edges), num_nodes=len(scores)), watch)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE, weight_decay=DECAY)
    lowest, best, waited = np.inf, copy.deepcopy(model.state_dict()), 0
    for _ in range(STEPS):
        model.train()
        optimiser.zero_grad()
        functional.cross_entropy((scores / model(scores))[learn], truth[learn]).backward()
        optimiser.step()
        with torch.no_grad():
            model.eval()
            loss = float(functional.cross_entropy((scores / model(scores))[watch], truth[watch]))
        waited += 1
        if loss <= lowest:
            lowest, best, waited = loss, copy.deepcopy(model.state_dict()), 0
        if waited >= PATIENCE:
            break
    model.load_state_dict(best)
    with torch.no_grad():
        model.eval()
        return (scores.double() / model(scores).double()).log_softmax(1).numpy()


SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Of a probability, that is the mean among neighbours."""


def smoothed_by_neighbours(log_prob: np.ndarray, edges: np.ndarray, labels: np.ndarray, val: np.ndarray) -> np.ndarray:
    """(n, K): p becomes (1 - share) p + share m, where m is the mean of p among neighbours. The share has the lowest
    loss on validation nodes with edges, each at its best temperature; 0 unless the gain exceeds its standard error."""
    linked, p = val[np.isin(val, edges)], np.exp(log_prob)
    mean = neighbour_mean(edges, len(p))
    around = np.where((np.diff(mean.indptr) == 0)[:, None], p, mean @ p)
    made, losses = {}, {}
    for share in SHARES:
        made[share] = np.log(np.maximum((1 - share) * p + share * around, 1e-300))
        temperature = fit_temperature(made[share][linked], labels[linked])
        losses[share] = -log_seen(Scaling(temperature)(made[share][linked]), labels[linked], None)
    best = min(SHARES, key=lambda share: float(losses[share].mean()))
    gain = losses[0.0] - losses[best]
    return made[best] if gain.sum() > np.sqrt(((gain - gain.mean()) ** 2).sum()) else made[0.0]
