from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.audit import cross_fit as module
from g3nn.audit.coordinates import View, coordinates
from g3nn.audit.cross_fit import cross_fit, split_edges
from g3nn.audit.options import AuditOptions


def codes(edges) -> set[tuple[int, int]]:
    return set(zip(*np.asarray(edges).tolist(), strict=True))


def test_parts_are_equal_and_random():
    fold = split_edges(103, 5, 0)
    assert sorted(np.bincount(fold)) == [20, 20, 21, 21, 21]
    assert not np.array_equal(fold, np.sort(fold))
    assert not np.array_equal(fold, split_edges(103, 5, 1))


@pytest.mark.parametrize("directed", [False, True])
def test_no_edge_vouches_for_itself(make_task, beliefs, monkeypatch, directed):
    """What a model learns from, and what it knows of a node, never includes the edges that it judges or is taught."""
    task = make_task(directed=directed, edges=25)
    fold = split_edges(25, 5, 0)
    parts = [codes(task.edges[:, fold == f]) for f in range(5)]
    known: list[set[tuple[int, int]]] = []
    taught: list[list[set[tuple[int, int]]]] = []
    view_of, train = View.of, module.train

    def view(positions, edges, *rest):
        known.append(codes(edges))
        return view_of(positions, edges, *rest)

    def watched(model, lessons, test, *rest):
        taught.append([codes(lesson.edges) for lesson in (test, *lessons)])
        return train(model, lessons, test, *rest)

    monkeypatch.setattr(module.View, "of", view)
    monkeypatch.setattr(module, "train", watched)
    cross_fit(task, beliefs(task), fold, AuditOptions(steps=2, latent=2), 0, torch.device("cpu"))
    everything = codes(task.edges)
    for f in range(5):
        *seen, judged = known[5 * f : 5 * f + 5]
        assert judged == everything - parts[f]
        assert len(seen) == len(taught[f]) == 4
        for look, lesson in zip(seen, taught[f], strict=True):
            assert lesson in parts
            assert not lesson & parts[f]
            assert look == everything - parts[f] - lesson


class TestCoordinates:
    def test_many_features_become_few(self):
        x = sp.random_array((50, 300), density=0.1, rng=np.random.default_rng(0), format="csr")
        assert coordinates(x, 16).shape == (50, 16)
        assert coordinates(x.toarray(), 16).shape == (50, 17)

    def test_few_stay(self):
        x = np.random.default_rng(0).standard_normal((50, 3))
        found = coordinates(x, 16)
        np.testing.assert_allclose(found[:, :3] * np.sqrt(3), (x - x.mean(0)) / x.std(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found[:, 3], 1)

    def test_leading_directions_keep_angles(self):
        rng = np.random.default_rng(0)
        x = sp.csr_array(rng.random((40, 5)) @ rng.random((5, 200)))
        reduced, whole = coordinates(x, 6), coordinates(x, 200)
        np.testing.assert_allclose(reduced @ reduced.T, whole @ whole.T, atol=1e-3)


class TestView:
    EDGES = np.array([[0, 0, 1], [1, 2, 2]])
    POSITIONS = np.eye(4, dtype=np.float32)

    def test_averages_over_neighbours(self):
        traits = View.of(self.POSITIONS, self.EDGES[:, :2], 2, False, 1.0).traits.reshape(4, 3, 4)
        np.testing.assert_array_equal(traits[:, 0], self.POSITIONS)
        np.testing.assert_allclose(traits[0, 1], np.array([0, 1, 1, 0]) / np.sqrt(2), atol=1e-6)
        np.testing.assert_allclose(traits[1, 1], [1, 0, 0, 0], atol=1e-6)
        np.testing.assert_allclose(traits[1, 2], np.array([0, 1, 1, 0]) / np.sqrt(2), atol=1e-6)

    def test_a_node_without_neighbours(self):
        traits = View.of(self.POSITIONS, self.EDGES, 1, False, 1.0).traits
        np.testing.assert_array_equal(traits[3], [0, 0, 0, 1, 0, 0, 0, 0])

    def test_degrees_stand_for_all_edges(self):
        view = View.of(self.POSITIONS, self.EDGES, 0, False, 0.5)
        logarithm = np.log1p([4, 4, 4, 0])
        np.testing.assert_allclose(view.sending[:, 0], logarithm - logarithm.mean(), rtol=1e-6)
        assert view.sending[:, 1].tolist() == [0, 0, 0, 1]
        np.testing.assert_array_equal(view.sending, view.receiving)

    def test_directions(self):
        view = View.of(self.POSITIONS, self.EDGES, 0, True, 1.0)
        assert view.sending[:, 1].tolist() == [0, 0, 1, 1]
        assert view.receiving[:, 1].tolist() == [1, 0, 0, 1]
