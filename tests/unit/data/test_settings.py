from __future__ import annotations

import numpy as np

from g3nn.base.parse import UNKNOWN
from g3nn.graph.datasets import DATASETS, SETTINGS, load, synthetic


def test_names_are_those_of_the_paper_and_the_released_code():
    assert list(SETTINGS) == ["standard", "missing-edge", "reduced-label", "reduced-label-released"]


def test_every_setting_says_its_name_and_what_it_does():
    for setting in SETTINGS:
        assert SETTINGS[setting](synthetic()).setting == setting
        assert SETTINGS[setting].__doc__


def test_missing_edge_removes_exactly_the_edges_of_test_nodes(path_task):
    task = SETTINGS["missing-edge"](path_task)
    assert task.edges.tolist() == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert path_task.num_edges == 5


def test_reduced_label_keeps_the_first_half_of_each_class(path_task):
    task = SETTINGS["reduced-label"](path_task)
    assert task.train.tolist() == [0, 1]
    assert (task.val.tolist(), task.test.tolist()) == ([4], [5])


def test_reduced_label_rounds_up(path_task):
    odd = path_task.with_split([0, 1, 2], [4], [5])
    assert SETTINGS["reduced-label"](odd).train.tolist() == [0, 1]


def test_released_split_of_a_small_graph(path_task, monkeypatch):
    monkeypatch.setattr("g3nn.graph.datasets.settings.RELEASED_LABELS_PER_CLASS", 1)
    monkeypatch.setattr("g3nn.graph.datasets.settings.RELEASED_VALIDATION_NODES", 2)
    task = SETTINGS["reduced-label-released"](path_task)
    assert task.train.tolist() == [0, 1]
    assert task.val.tolist() == [2, 3]
    assert task.test.tolist() == [4, 5, 7], "node 6 has no label"


def test_missing_edge_on_real_data():
    for name in DATASETS:
        task, whole = load(name, "missing-edge"), load(name)
        assert not np.isin(task.edges, task.test).any()
        removed = np.isin(whole.edges, whole.test).any(axis=0)
        assert np.array_equal(task.edges, whole.edges[:, ~removed])


def test_reduced_label_on_real_data():
    for name in DATASETS:
        task, whole = load(name, "reduced-label"), load(name)
        assert np.bincount(task.labels[task.train]).tolist() == [10] * task.num_classes
        assert np.isin(task.train, whole.train).all()
        for label in range(task.num_classes):
            kept = task.train[task.labels[task.train] == label]
            dropped = np.setdiff1d(whole.train[whole.labels[whole.train] == label], kept)
            assert kept.max() < dropped.min()
        assert np.array_equal(task.val, whole.val)
        assert np.array_equal(task.test, whole.test)


def test_released_split_on_real_data():
    for name, test_size in [("cora", 2138), ("citeseer", 2752), ("pubmed", 19187)]:
        task = load(name, "reduced-label-released")
        # The same scan, one node at a time.
        seen = dict.fromkeys(range(task.num_classes), 0)
        train, rest = [], []
        for node, label in enumerate(task.labels.tolist()):
            if label == UNKNOWN:
                continue
            if seen[label] < 10:
                seen[label] += 1
                train.append(node)
            else:
                rest.append(node)
        assert task.train.tolist() == train
        assert task.val.tolist() == rest[:500]
        assert task.test.tolist() == rest[500:]
        assert len(task.test) == test_size
