"""Cora as LINQS published it, in the node order of Planetoid. Papers, words and citations are the same in both."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

import numpy as np
import scipy.sparse as sp

CLASSES = (
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)
"""The classes as Planetoid numbers them."""


def planetoid_order() -> list[str]:
    """The LINQS id of each Planetoid node."""
    lines = resources.files(__package__).joinpath("cora_order.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def rebuild(content: bytes, cites: bytes, order: Sequence[str]) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
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
    labels = np.array([CLASSES.index(name.decode()) for name in classes])[by_node]
    arcs = np.array([[position[paper.decode()] for paper in line.split()] for line in cites.splitlines()]).T
    return features, arcs, labels
