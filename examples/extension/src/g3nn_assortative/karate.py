"""Zachary's karate club, which comes with PyG."""

from __future__ import annotations

import numpy as np
from torch_geometric.datasets import KarateClub

from g3nn import NodeTask


def karate() -> NodeTask:
    """34 members, 78 friendships and four communities (Zachary, 1977); one member of each is labelled.

    There are no features: node i has only feature i. Of the other members every second one is for validation.
    """
    graph = KarateClub()[0]
    train = graph.train_mask.numpy()
    others = np.flatnonzero(~train)
    return NodeTask.build(graph.x, graph.edge_index, graph.y, train, others[::2], others[1::2], name="karate")
