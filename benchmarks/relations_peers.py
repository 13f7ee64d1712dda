"""What others make of graphs with types of edges: trees and a perceptron on columns of paths, and networks of PyG.

Each answers a `NodeTask` with relations for all its nodes: (n, K) probabilities of classes or tags, or (n, 1) numbers.
Networks have two layers of 64 with dropout .5, see all labels of training at once, and keep the epoch with the lowest
validation loss. Nodes of a kind without features get a learned vector each.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from torch import Tensor, nn

from g3nn.graph.relations import Relations
from g3nn.graph.task import NodeTask
from g3nn.model.tabular.paths import Paths

HIDDEN, DROPOUT, DECAY, EPOCHS, PATIENCE, HEADS, BASES = 64, 0.5, 5e-4, 300, 50, 4, 30
RATES = {"paths-mlp": 0.005, "rgcn": 0.01, "hgt": 0.005, "han": 0.005}
MOST_COLUMNS = 256
"""Of trees."""
MOST_PATHS, MOST_PAIRS = 8, 1_000_000
"""Of HAN: paths there and back, and pairs of nodes that one of them joins; of more, so many are drawn."""
PYG = ("rgcn", "hgt", "han")
PEERS = ("trees", "paths-mlp", *PYG)


def installed() -> bool:
    try:
        import torch_geometric  # noqa: F401
    except ImportError:
        return False
    return True


def answer(method: str, task: NodeTask, stops: bool, seed: int, device: str) -> np.ndarray:
    """stops: whether validation nodes are no training nodes for any method, so that trees stop by them as well."""
    torch.manual_seed(seed)
    if method == "trees":
        return trees(task, stops, seed)
    if method == "paths-mlp":
        return trained(Perceptron(Paths.fit(task, seed).apply(task), task.num_classes), task, RATES[method], device)
    made: dict[str, Callable[[NodeTask], nn.Module]] = {"rgcn": RGCN, "hgt": HGT, "han": HAN}
    return trained(made[method](task), task, RATES[method], device)


def relations_of(task: NodeTask) -> Relations:
    assert task.relations is not None
    return task.relations


def trees(task: NodeTask, stops: bool, seed: int) -> np.ndarray:
    """One model for classes or a number, and one for each tag."""
    columns = sp.csr_array(Paths.fit(task, seed).apply(task))
    if columns.shape[1] > MOST_COLUMNS:
        rows = np.flatnonzero(np.diff(columns.indptr))
        svd = TruncatedSVD(min(MOST_COLUMNS, len(rows) - 1), random_state=seed).fit(columns[rows])
        # Few counts of arcs would drown among the others.
        counts = sp.csr_array(Paths.of_degrees(task).apply(task)).toarray()
        dense = np.concatenate([svd.transform(columns), counts], axis=1)
    else:
        dense = columns.toarray()
    train, val = task.train if stops else np.union1d(task.train, task.val), task.val

    def fitted(model: type, y: np.ndarray) -> HistGradientBoostingClassifier | HistGradientBoostingRegressor:
        if not stops:
            return model(random_state=seed, early_stopping=False).fit(dense[train], y[train])
        watched = {"X_val": dense[val], "y_val": y[val]}
        return model(random_state=seed, early_stopping=True).fit(dense[train], y[train], **watched)

    if task.outcome == "classes":
        found = np.zeros((task.num_nodes, task.num_classes))
        model = fitted(HistGradientBoostingClassifier, task.labels)
        found[:, model.classes_] = model.predict_proba(dense)
        return found
    if task.outcome == "real":
        return np.asarray(fitted(HistGradientBoostingRegressor, task.labels[:, 0]).predict(dense))[:, None]
    parts = []
    for y in task.labels.T:
        alike = len(np.unique(y[train])) == 1
        one = None if alike else fitted(HistGradientBoostingClassifier, y)
        parts.append(np.full(len(y), y[train][0]) if one is None else one.predict_proba(dense)[:, 1])
    return np.stack(parts, axis=1)


def trained(model: nn.Module, task: NodeTask, rate: float, device: str) -> np.ndarray:
    """Answers of the epoch with the lowest validation loss."""
    mean, scale, labels = 0.0, 1.0, task.labels
    if task.outcome == "real":
        mean, scale = float(labels[task.train].mean()), float(labels[task.train].std()) or 1.0
        labels = (labels - mean) / scale
    y = torch.tensor(labels, dtype=torch.int64 if task.outcome == "classes" else torch.float32, device=device)
    losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "classes": nn.functional.cross_entropy,
        "tags": nn.functional.binary_cross_entropy_with_logits,
        "real": nn.functional.mse_loss,
    }
    loss, train, val = losses[task.outcome], torch.tensor(task.train), torch.tensor(task.val)
    model = model.to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=DECAY)
    best, waited, state = np.inf, 0, copy.deepcopy(model.state_dict())
    for _ in range(EPOCHS):
        model.train()
        optimiser.zero_grad()
        loss(model()[train], y[train]).backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            now = float(loss(model()[val], y[val]))
        waited += 1
        if now < best:
            best, waited, state = now, 0, copy.deepcopy(model.state_dict())
        if waited >= PATIENCE:
            break
    model.load_state_dict(state)
    with torch.no_grad():
        found = model()
    if task.outcome == "real":
        return np.asarray(found.cpu().numpy() * scale + mean)
    return (found.softmax(1) if task.outcome == "classes" else found.sigmoid()).cpu().numpy()


class Perceptron(nn.Module):
    columns: Tensor

    def __init__(self, columns: sp.csr_array, out: int) -> None:
        super().__init__()
        found = columns.tocoo()
        pairs = torch.tensor(np.stack([found.row, found.col]), dtype=torch.int64)
        sparse = torch.sparse_coo_tensor(pairs, torch.tensor(found.data), found.shape, check_invariants=False)
        self.register_buffer("columns", sparse.coalesce(), persistent=False)
        self.first = nn.Linear(columns.shape[1], HIDDEN)
        self.rest = nn.Sequential(nn.ReLU(), nn.Dropout(DROPOUT), nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(DROPOUT), nn.Linear(HIDDEN, out))

    def forward(self) -> Tensor:
        found: Tensor = self.head(self.rest(torch.sparse.mm(self.columns, self.first.weight.T) + self.first.bias))
        return found


class Start(nn.Module):
    """(m, 64) of the nodes of each kind: a linear layer on features, or a learned vector for each node."""

    def __init__(self, task: NodeTask) -> None:
        super().__init__()
        kinds = relations_of(task).kinds
        self.places = [np.flatnonzero(kinds == kind) for kind in range(kinds.max() + 1)]
        self.layers = nn.ModuleList()
        for kind, nodes in enumerate(self.places):
            x = task.features[nodes]
            x = torch.tensor(np.asarray(x.toarray() if sp.issparse(x) else x), dtype=torch.float32)
            empty = not x.any()
            self.layers.append(nn.Embedding(len(nodes), HIDDEN) if empty else nn.Linear(x.shape[1], HIDDEN))
            self.register_buffer(f"x{kind}", torch.arange(len(nodes)) if empty else x, persistent=False)

    def forward(self) -> list[Tensor]:
        return [torch.relu(layer(getattr(self, f"x{kind}"))) for kind, layer in enumerate(self.layers)]


class Network(nn.Module):
    def __init__(self, task: NodeTask) -> None:
        super().__init__()
        self.start, self.head = Start(task), nn.Linear(HIDDEN, task.num_classes)
        self.n, self.drop = task.num_nodes, nn.Dropout(DROPOUT)
        self.register_buffer("order", torch.tensor(np.concatenate(self.start.places)), persistent=False)

    def joined(self, parts: list[Tensor]) -> Tensor:
        """(n, 64), in the order of the nodes."""
        return torch.empty(self.n, HIDDEN, device=parts[0].device).index_copy(0, self.order, torch.cat(parts))


class RGCN(Network):
    def __init__(self, task: NodeTask) -> None:
        super().__init__(task)
        from torch_geometric.nn import RGCNConv

        arcs = [np.stack(arc.matrix.nonzero()[::-1]) for arc in relations_of(task).arcs]
        types = np.repeat(np.arange(len(arcs)), [pairs.shape[1] for pairs in arcs])
        self.register_buffer("pairs", torch.tensor(np.concatenate(arcs, axis=1), dtype=torch.int64), persistent=False)
        self.register_buffer("types", torch.tensor(types), persistent=False)
        bases = min(BASES, len(arcs))
        self.layers = nn.ModuleList(RGCNConv(HIDDEN, HIDDEN, len(arcs), num_bases=bases) for _ in range(2))

    def forward(self) -> Tensor:
        h = self.joined(self.start())
        for layer in self.layers:
            h = torch.relu(layer(self.drop(h), self.pairs, self.types))
        found: Tensor = self.head(self.drop(h))
        return found


class HGT(Network):
    """A type that joins several kinds is one type for each pair of kinds."""

    def __init__(self, task: NodeTask) -> None:
        super().__init__(task)
        from torch_geometric.nn import HGTConv

        relations, places, self.edges = relations_of(task), self.start.places, list[tuple[str, str, str]]()
        for code, arc in enumerate(relations.arcs):
            for a, there in enumerate(places):
                for b, here in enumerate(places):
                    pairs = arc.matrix[here][:, there].nonzero()[::-1]
                    if len(pairs[0]):
                        self.edges.append((f"k{a}", f"a{code}", f"k{b}"))
                        found = torch.tensor(np.stack(pairs), dtype=torch.int64)
                        self.register_buffer("_".join(self.edges[-1]), found, persistent=False)
        self.kinds = [f"k{kind}" for kind in range(len(places))]
        how = (HIDDEN, HIDDEN, (self.kinds, self.edges), HEADS)
        self.layers = nn.ModuleList(HGTConv(*how) for _ in range(2))

    def forward(self) -> Tensor:
        h = dict(zip(self.kinds, self.start(), strict=True))
        edges = {edge: getattr(self, "_".join(edge)) for edge in self.edges}
        for layer in self.layers:
            new = layer({kind: self.drop(part) for kind, part in h.items()}, edges)
            h = {kind: part if new.get(kind) is None else new[kind] for kind, part in h.items()}
        found: Tensor = self.head(self.drop(self.joined([h[kind] for kind in self.kinds])))
        return found


class HAN(Network):
    """On paths of one type or two from nodes of kinds with labels, and back the same way; those from most of them."""

    def __init__(self, task: NodeTask) -> None:
        super().__init__(task)
        from torch_geometric.nn import HANConv

        relations, labelled = relations_of(task), np.union1d(task.train, task.val)
        rows = np.flatnonzero(np.isin(relations.kinds, np.unique(relations.kinds[labelled])))
        self.register_buffer("rows", torch.tensor(rows), persistent=False)
        steps = [sp.csr_array((arc.matrix != 0).astype(np.float32)) for arc in relations.arcs]
        ways = [step[rows] for step in steps]
        ways += [way @ step for way in ways for step in steps if _work(way, step) <= 10 * MOST_PAIRS]
        ways = sorted(filter(lambda way: way.nnz, ways), key=lambda way: -int((np.diff(way.indptr) > 0).sum()))
        self.names, rng = (
            [("t", f"p{place}", "t") for place in range(min(MOST_PATHS, len(ways)))],
            np.random.default_rng(0),
        )
        for (_, name, _), way in zip(self.names, ways, strict=False):
            pairs = _there_and_back(way, rng)
            self.register_buffer(name, torch.tensor(pairs, dtype=torch.int64), persistent=False)
        how = (HIDDEN, HIDDEN, (["t"], self.names), HEADS)
        self.layers = nn.ModuleList(HANConv(*how, dropout=DROPOUT) for _ in range(2))

    def forward(self) -> Tensor:
        h = {"t": self.joined(self.start())[self.rows]}
        edges = {name: getattr(self, name[1]) for name in self.names}
        for layer in self.layers:
            h = layer({"t": self.drop(h["t"])}, edges)
        found = self.head(self.drop(h["t"]))
        return torch.zeros(self.n, found.shape[1], device=found.device).index_copy(0, self.rows, found)


def _work(left: sp.csr_array, right: sp.csr_array) -> int:
    return int(np.diff(right.indptr)[left.indices].sum())


def _there_and_back(way: sp.csr_array, rng: np.random.Generator) -> np.ndarray:
    """(2, E): pairs of rows that share an end, and each row with itself. Where these are too many, entries of `way` are
    left out at random first, and then pairs."""
    while _work(way, sp.csr_array(way.T)) > 20 * MOST_PAIRS:
        way.data *= rng.random(way.nnz) < 0.7
        way.eliminate_zeros()
    pairs = np.stack((way @ way.T).nonzero())
    pairs = pairs[:, pairs[0] != pairs[1]]
    if pairs.shape[1] > MOST_PAIRS:
        pairs = pairs[:, rng.choice(pairs.shape[1], MOST_PAIRS, replace=False)]
    return np.concatenate([pairs, np.tile(np.arange(way.shape[0]), (2, 1))], axis=1)
