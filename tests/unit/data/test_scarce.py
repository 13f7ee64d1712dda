"""Settings with few labels and nothing to validate on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import g3nn.graph.datasets
from g3nn.base.errors import InputError
from g3nn.graph.datasets import SCARCE, load, scarce, settings_of, synthetic
from g3nn.graph.datasets.scarce import few_known
from g3nn.graph.task import NodeTask

COUNTS = {setting: int(setting.split("-")[1]) for setting in SCARCE}


@pytest.fixture(scope="module")
def task() -> NodeTask:
    return synthetic(nodes=150, labels_per_class=10, val=30)


@pytest.mark.parametrize("setting", SCARCE)
def test_so_many_of_each_class_train_and_all_others_test(task, setting):
    drawn = SCARCE[setting](task, seed=2).task
    assert (drawn.setting, drawn.val.size) == (setting, 0)
    assert np.bincount(drawn.labels[drawn.train]).tolist() == [COUNTS[setting]] * task.num_classes
    assert np.array_equal(np.sort(np.concatenate([drawn.train, drawn.test])), np.arange(150))
    left = drawn.edges if setting.endswith("missing-edge") else np.zeros((2, 0))
    assert np.isin(left, drawn.train).all()
    kept = np.isin(task.edges, drawn.train).all(axis=0).sum()
    assert drawn.num_edges == (kept if setting.endswith("missing-edge") else task.num_edges)


def test_each_seed_has_a_split_of_its_own_and_the_same_every_time(task):
    drawn = [few_known(task, 3, seed=seed).task.train for seed in (0, 0, 1, 2)]
    assert np.array_equal(drawn[0], drawn[1])
    assert len({tuple(one) for one in drawn}) == 3
    for other in (few_known(task, 3, linked=False, seed=1), few_known(replace(task, train=task.test), 3, seed=1)):
        assert np.array_equal(other.task.train, drawn[2])


def test_every_node_of_a_class_is_as_likely(task):
    size, seeds = (task.labels == 0).sum(), 400
    counts = np.bincount(np.concatenate([few_known(task, 5, seed=seed).task.train for seed in range(seeds)]))
    expected = 5 / size * seeds
    assert np.abs(counts[task.labels == 0] - expected).max() < 4.5 * np.sqrt(expected)


def test_a_small_class_trains_whole_and_unknown_labels_test_nothing(task):
    labels = task.labels.copy()
    labels[labels == 0] = -1
    labels[[4, 9]] = 0
    drawn = few_known(replace(task, labels=labels), 5).task
    assert drawn.train[drawn.labels[drawn.train] == 0].tolist() == [4, 9]
    assert (drawn.labels[drawn.test] > 0).all()


def test_no_more_test_than_are_enough(task, monkeypatch):
    monkeypatch.setattr(scarce, "MOST_TESTED", 40)
    drawn = few_known(task, 3, linked=False).task
    assert drawn.test.size == 40
    assert not np.isin(drawn.edges, drawn.test).any()
    assert drawn.num_edges > np.isin(task.edges, drawn.train).all(axis=0).sum()


def test_datasets_have_these_settings(task, monkeypatch):
    monkeypatch.setitem(g3nn.graph.datasets.ALL_DATASETS.own, "cora", lambda: task)
    assert all(set(SCARCE) < set(settings_of(name)) for name in ("cora", "texas"))
    assert not set(SCARCE) & set(settings_of("blogcatalog"))
    assert np.array_equal(load("cora", "labels-5", seed=3).train, few_known(task, 5, seed=3).task.train)


def test_what_cannot_be_drawn_is_refused(task):
    with pytest.raises(InputError) as caught:
        few_known(replace(task, outcome="tags"), 0, seed=-1)
    assert [problem.argument for problem in caught.value.problems] == ["labels", "seed", "task"]
