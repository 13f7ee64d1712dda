"""Who answers with which weight."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.estimator.answers import member_weights


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
