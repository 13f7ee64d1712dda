from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from g3nn.base.errors import InputError
from g3nn.graph.datasets import EDGE_NOISE, LABEL_NOISE, NOISE, load, load_noisy, synthetic
from g3nn.graph.datasets.noise import dice, flipped_labels, random_edges, removed_edges

SEEDS = range(300)


def test_every_setting_says_its_name_and_seeds_differ():
    task = synthetic(nodes=60, labels_per_class=5, val=10)
    for setting in NOISE:
        one, same, other = (NOISE[setting](task, seed=seed).task for seed in (0, 0, 1))
        assert one.setting == setting
        changed, kept = ("edges", "labels") if setting in EDGE_NOISE else ("labels", "edges")
        assert np.array_equal(getattr(one, changed), getattr(same, changed))
        assert np.array_equal(getattr(one, changed), getattr(other, changed)) == (setting == "uniform-0")
        assert np.array_equal(getattr(one, kept), getattr(task, kept)) == (kept == "edges" or setting in EDGE_NOISE)


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


@pytest.mark.parametrize("setting", LABEL_NOISE)
def test_exactly_this_share_of_training_and_validation_labels_is_wrong(setting):
    task = synthetic(nodes=200, classes=4, labels_per_class=10, val=37, seed=1)
    how, percent = setting.split("-")
    for seed in range(20):
        noisy = LABEL_NOISE[setting](task, seed=seed)
        assert np.array_equal(noisy.wrong, noisy.task.labels != task.labels)
        assert noisy.wrong.sum() == round(int(percent) / 100 * 77)
        assert not noisy.wrong[task.test].any()
        assert not noisy.injected.any()
        assert set(noisy.task.labels[task.train]) == set(range(4))
        steps = (noisy.task.labels - task.labels)[noisy.wrong] % 4
        assert set(steps) <= ({1} if how == "pair" else {1, 2, 3})


def test_every_label_and_every_other_class_is_as_likely(path_task):
    """One of two training labels and two validation labels; any flip of a training label would empty a class."""
    task = replace(path_task, num_classes=2, labels=np.arange(8) % 2, train=np.arange(2), val=np.arange(2, 4))
    wrong = sum(flipped_labels(task, 0.25, seed=seed).wrong.astype(int) for seed in SEEDS)
    assert wrong[[0, 1, 4, 5, 6, 7]].sum() == 0
    assert abs(wrong[2] - len(SEEDS) / 2) < 4 * np.sqrt(len(SEEDS) / 4)
    task = replace(task, num_classes=3, labels=np.arange(8) % 3, train=np.arange(6), val=np.arange(6, 8))
    given = [flipped_labels(task, 1 / 8, seed=seed) for seed in SEEDS]
    steps = np.concatenate([(noisy.task.labels - task.labels)[noisy.wrong] % 3 for noisy in given])
    counts = np.bincount(steps)
    assert abs(counts[1] - len(SEEDS) / 2) < 4 * np.sqrt(len(SEEDS) / 4)
    wrong = sum(noisy.wrong.astype(int) for noisy in given)
    assert np.abs(wrong - len(SEEDS) / 8).max() < 4 * np.sqrt(len(SEEDS) * 7 / 64)


def test_labels_that_cannot_be_flipped_are_refused(path_task):
    two = replace(path_task, num_classes=2, labels=np.arange(8) % 2, train=np.arange(2), val=np.arange(0))
    with pytest.raises(InputError, match=r"share: got 0\.5; expected one that leaves every class a training label"):
        flipped_labels(two, 0.5)
    with pytest.raises(InputError) as caught:
        flipped_labels(two, 1.5, how="pairs", seed=-1)
    assert [problem.argument for problem in caught.value.problems] == ["share", "seed", "how"]
    numbers = replace(path_task, outcome="real", labels=np.zeros((8, 1)), num_classes=1)
    with pytest.raises(InputError, match="labels of kind real"):
        flipped_labels(numbers, 0.5)


def test_wrong_labels_of_real_data():
    clean, noisy = load("cora"), load_noisy("cora", "uniform-30", seed=3)
    assert noisy.wrong.sum() == round(0.3 * 640)
    assert np.array_equal(noisy.task.labels[clean.test], clean.labels[clean.test])
    assert not np.array_equal(noisy.wrong, load_noisy("cora", "uniform-30", seed=4).wrong)
    directed = replace(clean, directed=True)
    assert flipped_labels(directed, 0.1).wrong.sum() == 64
