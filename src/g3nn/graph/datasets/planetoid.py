"""Cora, Citeseer and Pubmed with the public split of Yang, Cohen and Salakhutdinov (2016).

Cora is also read as LINQS published it: papers, words and citations are the same, in another order of the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

import numpy as np
import scipy.sparse as sp

from g3nn.base.parse import UNKNOWN, merged_edges
from g3nn.graph.datasets.sources import LINQS_CORA, raw_files
from g3nn.graph.datasets.unpickle import array, neighbour_lists
from g3nn.graph.task import NodeTask

DATASETS = ("cora", "citeseer", "pubmed")

LABELS_PER_CLASS = 20
VALIDATION_NODES = 500
TEST_NODES = 1000

LINQS_CLASSES = (
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)
"""The classes as Planetoid numbers them."""


def planetoid(name: str) -> NodeTask:
    """The dataset with row-normalised features and the public split.

    With K classes, the first 20 K nodes are for training, the next 500 for validation; a list names 1,000 for test.
    """
    files = raw_files(name)
    if LINQS_CORA[0] in files:
        content, cites = (files[file] for file in LINQS_CORA)
        features, arcs, labels = from_linqs(content, cites, planetoid_order())
        test = np.arange(labels.size - TEST_NODES, labels.size)
    else:
        features, arcs, labels, test = _assemble(name, files)
    # The raw files repeat arcs and hold a few self-loops.
    edges, _ = merged_edges(arcs, None, labels.size, directed=False)
    classes = int(labels.max()) + 1
    first_val = LABELS_PER_CLASS * classes
    return NodeTask.build(
        row_normalised(features),
        edges.pairs,
        labels,
        train=np.arange(first_val),
        val=np.arange(first_val, first_val + VALIDATION_NODES),
        test=test,
        num_classes=classes,
        name=name,
    )


def row_normalised(features: sp.csr_array) -> sp.csr_array:
    """x_ij / sum_j x_ij; a row of zeros stays zero."""
    sums = features.sum(axis=1, dtype=np.float64)
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums != 0)
    return sp.csr_array(sp.diags_array(scale) @ features, dtype=np.float32)


def _assemble(name: str, files: dict[str, bytes]) -> tuple[sp.csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """Features, arcs, labels and test nodes from the raw files.

    `allx` and `ally` describe the first nodes, `tx` and `ty` the test nodes in the order of `test.index`. The numbers
    of Citeseer's test nodes have gaps: 15 nodes with edges, but without words or a class. They get zero features and
    an unknown label, and are in no part of the split.
    """

    def read(part: str) -> np.ndarray | sp.csr_array:
        return array(files[f"ind.{name}.{part}"], f"ind.{name}.{part}")

    first, listed = sp.csr_array(read("allx")), sp.csr_array(read("tx"))
    test = np.array(files[f"ind.{name}.test.index"].split(), dtype=np.int64)
    described, n = first.shape[0], max(first.shape[0], int(test.max()) + 1)
    row_of = np.full(n, described + test.size)  # the row appended below, for nodes without a description
    row_of[:described] = np.arange(described)
    row_of[test] = described + np.arange(test.size)

    nothing = sp.csr_array((1, first.shape[1]), dtype=np.float32)
    features = sp.csr_array(sp.vstack([first, listed, nothing], format="csr"))[row_of]
    one_hot = np.concatenate([read("ally"), read("ty")])
    labels = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), UNKNOWN)
    labels = np.append(labels, UNKNOWN)[row_of]

    graph = neighbour_lists(files[f"ind.{name}.graph"], f"ind.{name}.graph")
    sources = np.repeat(list(graph), [len(targets) for targets in graph.values()])
    arcs = np.stack([sources, np.concatenate([np.array(targets, dtype=np.int64) for targets in graph.values()])])
    return features, arcs, labels, test


def planetoid_order() -> list[str]:
    """The LINQS id of each Planetoid node."""
    lines = resources.files(__package__).joinpath("cora_order.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def from_linqs(content: bytes, cites: bytes, order: Sequence[str]) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Word counts (n, d), arcs (2, m) and labels (n,) with the papers in the given order.

    content: one paper per line, `id word_1 ... word_d class`, separated by tabs, each word 0 or 1.
    cites:   one citation per line, `cited citing`.
    """
    position = {paper: node for node, paper in enumerate(order)}
    rows = [line.split(b"\t", 1) for line in content.splitlines()]
    nodes = np.array([position[paper.decode()] for paper, _ in rows])
    words, classes = zip(*(rest.rsplit(b"\t", 1) for _, rest in rows), strict=True)
    # Each word is one digit and each separator one tab, so every second byte is a word.
    present = np.stack([np.frombuffer(line[::2], dtype=np.uint8) == ord("1") for line in words])
    by_node = np.argsort(nodes)
    features = sp.csr_array(present[by_node].astype(np.float32))
    labels = np.array([LINQS_CLASSES.index(name.decode()) for name in classes])[by_node]
    arcs = np.array([[position[paper.decode()] for paper in line.split()] for line in cites.splitlines()]).T
    return features, arcs, labels
