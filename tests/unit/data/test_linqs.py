from __future__ import annotations

import numpy as np

from g3nn.graph.datasets.planetoid import LINQS_CLASSES, from_linqs, planetoid_order


def test_rebuilding_puts_papers_in_the_given_order():
    content = b"7\t0\t1\t1\tTheory\n30\t1\t0\t0\tCase_Based\n5\t0\t0\t1\tTheory\n"
    cites = b"7\t30\r\n5\t7\r\n"
    features, arcs, labels = from_linqs(content, cites, order=["5", "7", "30"])
    assert features.toarray().tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 0]]
    assert features.dtype == np.float32
    assert [LINQS_CLASSES[label] for label in labels] == ["Theory", "Theory", "Case_Based"]
    assert arcs.tolist() == [[1, 0], [2, 1]]


def test_shipped_order_names_every_paper_once():
    order = planetoid_order()
    assert len(order) == len(set(order)) == 2708
    assert all(paper.isdigit() for paper in order)
