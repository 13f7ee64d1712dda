"""Who answers with which weight."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.estimator import answers
from g3nn.estimator.answers import member_weights, shrunk_weights
from g3nn.estimator.few_labels import prior_weights
from g3nn.estimator.panel import Candidate


def log_probs(*shares, nodes=400, seed=0):
    """Members that are fairly sure of the right label at a share of the nodes, and of a wrong one elsewhere."""
    rng = np.random.default_rng(seed)
    right = [rng.random(nodes) < share for share in shares]
    return np.log(np.where(right, 0.8, 0.2))


class TestWeights:
    def test_they_sum_to_one_and_the_better_member_has_more(self):
        weights = member_weights(log_probs(0.75, 0.7, 0.2))
        assert weights.sum() == pytest.approx(1)
        assert weights[0] > weights[1] > 0
        assert weights[2] == 0

    def test_members_that_err_at_other_nodes_are_better_together(self):
        errors = np.repeat([[0.9, 0.1], [0.1, 0.9]], 100, axis=1)
        weights = member_weights(np.log(errors))
        np.testing.assert_allclose(weights, [0.5, 0.5], atol=0.1)

    def test_a_copy_of_a_member_changes_nothing_about_the_mixture(self):
        one = log_probs(0.8, 0.6)
        weights = member_weights(one)
        doubled = member_weights(one[[0, 0, 1]])
        assert doubled[0] + doubled[1] == pytest.approx(weights[0], abs=0.02)

    def test_who_is_best_everywhere_answers_alone(self):
        weights = member_weights(np.log(np.array([[0.9] * 50, [0.6] * 50, [0.5] * 50])))
        np.testing.assert_array_equal(weights, [1, 0, 0])

    @pytest.mark.parametrize("shape", [(1, 50), (3, 1), (3, 3)])
    def test_with_one_member_or_hardly_a_node_there_is_nothing_to_weigh(self, shape):
        weights = member_weights(np.log(np.full(shape, 0.5)))
        assert sorted(weights)[-1] == 1
        assert weights.sum() == 1

    def test_at_most_so_many_answer(self):
        many = log_probs(*[0.7] * 12)
        assert (member_weights(many, most=4) > 0).sum() <= 4
        assert (member_weights(many, most=99) > 0).sum() > 4

    def test_noise_among_few_nodes_does_not_beat_a_clear_best(self):
        """The other half of the nodes sees through a mixture that only fits the first half."""
        rng = np.random.default_rng(1)
        good, noise = np.full((1, 16), np.log(0.9)), np.log(rng.uniform(0.05, 0.95, (20, 16)))
        assert member_weights(np.concatenate([noise, good]))[-1] > 0.8

    def test_impossible_labels_are_survived(self):
        sure = np.log(np.array([[1.0, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]]))
        sure[0, 0] = -np.inf
        assert np.isfinite(member_weights(sure)).all()


class TestFewLabels:
    PRIOR = np.array([0.5, 0.3, 0.2])

    def test_without_labels_weights_are_what_they_were_beforehand(self):
        np.testing.assert_allclose(shrunk_weights(np.zeros((3, 0)), self.PRIOR), self.PRIOR)
        np.testing.assert_allclose(shrunk_weights(np.full((3, 9), -1.0), self.PRIOR), self.PRIOR)

    def test_they_are_the_mode_of_the_posterior(self):
        found, share = log_probs(0.8, 0.6, nodes=12), np.array([0.4, 0.6])
        grid = np.linspace(0.001, 0.999, 999)
        mixed = np.exp(found[0]) * grid[:, None] + np.exp(found[1]) * (1 - grid[:, None])
        prior = answers._STRENGTH * (share[0] * np.log(grid) + share[1] * np.log(1 - grid))
        best = grid[(np.log(mixed).sum(1) + prior).argmax()]
        assert shrunk_weights(found, share)[0] == pytest.approx(best, abs=2e-3)
        assert best > share[0] + 0.02

    def test_copies_of_a_label_are_no_further_evidence(self):
        found = log_probs(0.8, 0.6, 0.5, nodes=12)
        thrice = np.repeat(found, 3, axis=1)
        np.testing.assert_allclose(shrunk_weights(thrice, self.PRIOR, 12), shrunk_weights(found, self.PRIOR))

    def test_many_labels_outvote_the_prior(self):
        assert shrunk_weights(log_probs(0.2, 0.9, 0.3, nodes=2000), self.PRIOR)[1] > 0.9

    def test_networks_are_worth_more_than_simple_models_beforehand(self):
        network, simple = Candidate("gcn"), Candidate("label-propagation")
        weights = prior_weights([network, simple, network, simple])
        assert weights.sum() == pytest.approx(1)
        assert weights[0] == weights[2] > weights[1] == weights[3] > 0
        np.testing.assert_allclose(prior_weights([network, network]), 0.5)
        np.testing.assert_allclose(prior_weights([simple]), 1)
