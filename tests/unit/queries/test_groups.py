"""Many classes are merged into groups that are linked alike; few are left as they are."""

from __future__ import annotations

import numpy as np
import pytest

from g3nn.queries.messages import MOST_GROUPS, beliefs_in_groups, drawn_classes, labels_in_groups, merged_groups

COMMUNITIES, EACH = 10, 4


@pytest.fixture
def many():
    """40 classes of 6 nodes in 10 communities: the classes of a community are linked to each other."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(COMMUNITIES * EACH), 6)
    community = labels // EACH
    nodes = np.arange(labels.size)
    ends = [np.array([rng.choice(nodes[community == one]) for one in community]) for _ in range(20)]
    edges = np.concatenate([np.stack([nodes, end]) for end in ends], axis=1)
    return labels, community, edges


def test_few_classes_are_groups_of_their_own():
    q = np.random.default_rng(0).dirichlet(np.ones(MOST_GROUPS), size=30)
    group = merged_groups(q, np.zeros((2, 0), dtype=np.int64))
    assert group.tolist() == list(range(MOST_GROUPS))
    assert np.array_equal(beliefs_in_groups(q, group), q)
    groups = np.arange(30) % MOST_GROUPS
    assert np.array_equal(drawn_classes(groups, q, group, np.random.default_rng(0)), groups)


def test_classes_of_a_community_are_merged(many):
    labels, community, edges = many
    q = np.eye(COMMUNITIES * EACH)[labels]
    group = merged_groups(q, edges)
    assert group.max() < MOST_GROUPS
    for one in range(group.max() + 1):
        assert len(set(community[np.isin(labels, np.flatnonzero(group == one))])) == 1
    codes = labels_in_groups(np.where(labels == 5, -1, labels), group)
    assert (codes[labels == 5] == -1).all()
    assert np.array_equal(codes[labels != 5], group[labels[labels != 5]])
    np.testing.assert_allclose(beliefs_in_groups(q, group).argmax(1), group[labels])


def test_a_class_without_edges_belongs_somewhere():
    q = np.eye(20)
    group = merged_groups(q, np.array([[0, 2, 4], [1, 3, 5]]))
    assert group.shape == (20,)
    assert group.max() < MOST_GROUPS


def test_drawn_classes_follow_the_beliefs_within_a_group():
    group = np.array([0, 1, 0, 1])
    q = np.tile([0.3, 0.4, 0.1, 0.2], (8000, 1))
    groups = np.arange(8000) % 2
    drawn = drawn_classes(groups, q, group, np.random.default_rng(0))
    assert np.array_equal(group[drawn], groups)
    assert (drawn[groups == 0] == 0).mean() == pytest.approx(0.75, abs=0.03)
    assert (drawn[groups == 1] == 1).mean() == pytest.approx(2 / 3, abs=0.03)
