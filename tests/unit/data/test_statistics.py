from __future__ import annotations

import numpy as np
import pytest

from g3nn.graph.datasets import statistics, synthetic
from g3nn.graph.datasets.statistics import mean_two_hop


def test_counts_of_a_path(path_task):
    found = statistics(path_task)
    # Within two hops on the path of six: 2, 3, 4, 4, 3, 2 nodes; none for the two isolated nodes.
    assert list(found.values()) == [8, 5, 2, 8, pytest.approx(18 / 8), 4, 1, 1]
    assert list(found) == ["nodes", "edges", "classes", "features", "mean_two_hop", "train", "val", "test"]


def test_two_hop_against_breadth_first_search():
    task = synthetic(nodes=300, degree=3, labels_per_class=5, val=10)
    neighbours: list[set[int]] = [set() for _ in range(task.num_nodes)]
    for i, j in task.edges.T.tolist():
        neighbours[i].add(j)
        neighbours[j].add(i)
    sizes = [len(set().union(first, *(neighbours[k] for k in first)) - {i}) for i, first in enumerate(neighbours)]
    assert mean_two_hop(task.edges, task.num_nodes) == pytest.approx(np.mean(sizes))


def test_two_hop_of_more_nodes_than_one_block():
    n = 10_000
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n])
    assert mean_two_hop(ring, n) == pytest.approx(4)


def test_two_hop_without_edges():
    assert mean_two_hop(np.zeros((2, 0), dtype=np.int64), 5) == 0
