"""Isolated nodes hear from nodes with similar features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.estimator import G3NNClassifier, load_model
from g3nn.model import similar
from g3nn.model.generative import POSTERIOR, SIMILAR
from g3nn.model.similar import most_similar, with_features


@pytest.fixture
def features():
    return np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cells", [1 << 23, 50])
def test_they_have_the_largest_cosines(features, form, cells, monkeypatch):
    monkeypatch.setattr(similar, "_CELLS", cells)
    nodes, among = np.array([0, 7, 39]), np.setdiff1d(np.arange(40), [0, 7, 39])
    found = most_similar(form(features), nodes, among, 5)
    scaled = features / np.linalg.norm(features, axis=1, keepdims=True)
    cosines = scaled[nodes] @ scaled[among].T
    expected = among[np.argsort(-cosines, axis=1)[:, :5]]
    np.testing.assert_array_equal(np.sort(found), np.sort(expected))


def test_of_very_many_evenly_spaced_ones_are_looked_at(features, monkeypatch):
    monkeypatch.setattr(similar, "_MOST", 10)
    found = most_similar(features, np.array([0]), np.arange(1, 40), 10)
    np.testing.assert_array_equal(np.sort(found)[0], np.linspace(1, 39, 10).astype(int))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_node_without_features_is_like_no_other(features, form):
    features[0], features[1] = 0, 1e-6
    np.testing.assert_array_equal(with_features(form(features), np.array([0, 1, 2, 5])), [2, 5])


class TestAnswer:
    @pytest.fixture(scope="class")
    @classmethod
    def graph(cls):
        rng = np.random.default_rng(1)
        truth = rng.integers(0, 2, 80)
        X = np.eye(2)[truth] * 2 + rng.normal(size=(80, 2))
        pairs = rng.integers(10, 80, (2, 600))
        pairs = np.unique(pairs[:, (truth[pairs[0]] == truth[pairs[1]]) & (pairs[0] < pairs[1])], axis=1)
        return X.astype(np.float32), truth, pairs

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, graph):
        X, truth, edges = graph
        y = np.where(np.arange(80) % 2, truth, -1)
        return G3NNClassifier("gcn", epochs=20, ensemble=2, device="cpu", random_state=0).fit(X, y, edges)

    def test_it_is_half_the_own_and_half_that_of_ten_similar_nodes(self, fitted):
        answerer, task = fitted.fitted_.answerer, fitted.task_
        (member,) = [replace(one, held_out=None, temperature=1.0) for one in answerer.networks]
        assert task.isolated[:10].all()
        device, outcome = answerer.device, answerer.outcome
        asked = [replace(member, isolated_answer=how) for how in (POSTERIOR, SIMILAR)]
        with torch.no_grad():
            own, mixed = (np.exp(one.answers(task, None, device, outcome).answer) for one in asked)
        alone = np.flatnonzero(task.isolated)
        features = member.seen(task, answerer.outcome).features
        near = most_similar(features, alone, np.flatnonzero(~task.isolated), 10)
        np.testing.assert_allclose(mixed[alone], (own[alone] + own[near].mean(1)) / 2, atol=1e-6)
        np.testing.assert_array_equal(mixed[~task.isolated], own[~task.isolated])

    def test_it_is_read_as_it_was_saved(self, fitted, tmp_path):
        members = tuple(
            replace(one, isolated_answer=SIMILAR) if one.name == "gcn" else one
            for one in fitted.fitted_.answerer.members
        )
        fitted.fitted_ = replace(fitted.fitted_, answerer=replace(fitted.fitted_.answerer, members=members))
        fitted.save(tmp_path / "model")
        loaded = load_model(tmp_path / "model").fitted_.answerer.networks
        assert [one.isolated_answer for one in loaded] == [SIMILAR]
