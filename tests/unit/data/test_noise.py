from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from g3nn.data import NOISE, load, synthetic
from g3nn.data.noise import dice, random_edges, removed_edges
from g3nn.errors import InputError

SEEDS = range(300)


def test_every_setting_says_its_name_and_seeds_differ():
    task = synthetic(nodes=60, labels_per_class=5, val=10)
    for setting in NOISE:
        one, other = (NOISE[setting](task, seed=seed).task for seed in (0, 1))
        assert one.setting == setting
        assert not np.array_equal(one.edges, other.edges)


def test_every_free_pair_is_as_likely(path_task):
    """Of the 23 pairs of 8 nodes that are not on the path, 5 become edges each time."""
    counts = np.zeros((8, 8))
    for seed in SEEDS:
        noisy = random_edges(path_task, 1.0, seed)
        counts[tuple(noisy.task.edges[:, noisy.injected])] += 1
    free = counts[np.triu_indices(8, 1)]
    free = free[free > 0]
    assert free.size == 23
    expected = len(SEEDS) * 5 / 23
    assert np.abs(free - expected).max() < 4 * np.sqrt(expected)


def test_every_edge_is_as_likely_to_go(path_task):
    kept = sum(np.bincount(removed_edges(path_task, 0.4, seed).task.edges[0], minlength=5) for seed in SEEDS)
    assert np.abs(kept - 0.6 * len(SEEDS)).max() < 4 * np.sqrt(0.24 * len(SEEDS))


def test_a_graph_can_be_filled_up(path_task):
    assert random_edges(path_task, 23 / 5).task.num_edges == 28


def test_what_cannot_be_done_is_refused(path_task):
    directed = replace(path_task, directed=True)
    for wrong in (
        lambda: random_edges(path_task, -0.1),
        lambda: random_edges(path_task, 5.0),
        lambda: removed_edges(path_task, 1.1),
        lambda: removed_edges(path_task, 0.1, seed=-1),
        lambda: dice(path_task, 1.0),
        lambda: random_edges(directed, 0.1),
    ):
        with pytest.raises(InputError):
            wrong()
    with pytest.raises(InputError) as caught:
        random_edges(directed, -0.1, seed=-1)
    assert [problem.argument for problem in caught.value.problems] == ["rate", "seed", "task"]


def test_dice_needs_classes(path_task):
    numbers = replace(path_task, outcome="real", labels=np.zeros((8, 1)), num_classes=1)
    with pytest.raises(InputError, match="labels of kind real"):
        dice(numbers, 0.5)


def test_real_data_keeps_the_public_split():
    clean, noisy = load("cora"), load("cora", "random-50", seed=3)
    assert noisy.num_edges == clean.num_edges + round(0.5 * clean.num_edges)
    for part in ("train", "val", "test"):
        assert np.array_equal(getattr(noisy, part), getattr(clean, part))
    assert not np.array_equal(noisy.edges, load("cora", "random-50", seed=4).edges)
