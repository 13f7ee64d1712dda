from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import expit

import g3nn
from g3nn.model.inputs import Inputs
from g3nn.model.replicas import Replicas, Sizes
from g3nn.queries.genuine import coordinates
from g3nn.queries.graph_audit import AuditOptions, GivenBeliefs, fit_scores
from g3nn.training.progress import Course

CPU = torch.device("cpu")


class TestCoordinates:
    def test_many_features_become_few(self):
        x = sp.random_array((50, 300), density=0.1, rng=np.random.default_rng(0), format="csr")
        assert coordinates(x, 16).shape == (50, 16)
        assert coordinates(x.toarray(), 16).shape == (50, 17)

    def test_few_stay(self):
        x = np.random.default_rng(0).standard_normal((50, 3))
        result = coordinates(x, 16)
        np.testing.assert_allclose(np.linalg.norm(result, axis=1), 1, rtol=1e-5)
        standard = (x - x.mean(0)) / x.std(0)
        np.testing.assert_allclose(result[:, :3] / result[:, 3:] * np.sqrt(3), standard, rtol=1e-4, atol=1e-5)

    def test_leading_directions_keep_angles(self):
        rng = np.random.default_rng(0)
        x = sp.csr_array(rng.random((40, 5)) @ rng.random((5, 200)))
        reduced, whole = coordinates(x, 6), coordinates(x, 200)
        np.testing.assert_allclose(reduced @ reduced.T, whole @ whole.T, atol=1e-3)


def test_given_beliefs_are_the_answer(make_task, beliefs):
    task = make_task()
    q = torch.from_numpy(beliefs(task))
    posterior = GivenBeliefs(Sizes.of(task), Replicas((0, 1)), q)
    answer = posterior.log_prob(Inputs.of(task), None)
    assert answer.shape == (2, *q.shape)
    assert torch.isfinite(answer).all()
    torch.testing.assert_close(answer.exp(), q.expand(2, -1, -1))


@pytest.mark.slow
def test_the_table_learns_how_often_classes_are_linked(beliefs):
    """Features say nothing, so the log-odds of a pair of classes are those of its edges among as many non-edges."""
    task = g3nn.synthetic(nodes=400, classes=2, degree=20, homophily=0.8, seed=1)
    task = replace(task, features=np.ones((400, 2), dtype=np.float32))
    options = AuditOptions(hops=0, degrees=False, replicas=1, epochs=400, edges_per_step=0, latent=1)
    scores = fit_scores(task, np.eye(2)[task.labels], options, 0, CPU, Course())
    same = task.labels[task.edges[0]] == task.labels[task.edges[1]]
    pairs_within = sum(np.bincount(task.labels) ** 2) / 400**2
    within = same.mean() / (same.mean() + pairs_within)
    between = (1 - same.mean()) / (2 - same.mean() - pairs_within)
    learned = expit(scores["left"][0] @ scores["right"][1] + scores["table"])
    assert learned[0, 0] == pytest.approx(within, abs=0.03)
    assert learned[0, 1] == pytest.approx(between, abs=0.03)
