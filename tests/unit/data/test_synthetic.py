from __future__ import annotations

import re

import numpy as np
import pytest

from g3nn.base.errors import InputError
from g3nn.graph.datasets import synthetic
from g3nn.graph.datasets.synthetic import MODELS
from g3nn.graph.task import NodeTask


def share_inside(task: NodeTask) -> float:
    i, j = task.edges
    return float((task.labels[i] == task.labels[j]).mean())


def nearest_centre_accuracy(task: NodeTask) -> float:
    """Of a classifier that knows the mean of each class's features."""
    centres = np.stack([task.features[task.labels == k].mean(axis=0) for k in range(task.num_classes)])
    distance = ((task.features[:, None] - centres) ** 2).sum(axis=2)
    return float((distance.argmin(axis=1) == task.labels).mean())


def test_degree_and_homophily_are_as_asked():
    for model in MODELS:
        for homophily in [0.9, 0.25, 0.05]:
            task = synthetic(model, nodes=20_000, classes=4, degree=10, homophily=homophily)
            assert 2 * task.num_edges / task.num_nodes == pytest.approx(10, rel=0.03)
            assert share_inside(task) == pytest.approx(homophily, abs=0.02)
            assert task.name == f"synthetic-{model}"


def test_extreme_homophily_is_exact():
    for homophily in [0.0, 1.0]:
        for model in MODELS:
            assert share_inside(synthetic(model, homophily=homophily)) == homophily


def test_latent_space_links_nodes_with_like_features():
    def likeness(weight: float) -> float:
        task = synthetic("latent-space", nodes=5000, features=2, latent_dim=2, signal=0, latent_weight=weight)
        i, j = task.edges
        unit = task.features / np.linalg.norm(task.features, axis=1, keepdims=True)
        return float((unit[i] * unit[j]).sum(axis=1).mean())

    assert likeness(3.0) > 0.2
    assert abs(likeness(0.0)) < 0.05
    assert likeness(-3.0) < -0.2


def test_signal_sets_how_much_the_features_say():
    none, some, strong = (nearest_centre_accuracy(synthetic(nodes=4000, signal=signal)) for signal in (0, 1, 6))
    assert none < 0.35
    assert none + 0.1 < some < 0.9
    assert strong > 0.99


def test_edge_noise_replaces_its_share_of_edges_and_nothing_else():
    clean, noisy = synthetic(nodes=5000, homophily=1.0), synthetic(nodes=5000, homophily=1.0, edge_noise=0.4)
    assert noisy.num_edges == clean.num_edges
    assert share_inside(noisy) == pytest.approx(0.6 + 0.4 / 4, abs=0.02)
    for part in ("features", "labels", "train", "val", "test"):
        assert np.array_equal(getattr(clean, part), getattr(noisy, part))


def test_split_has_the_sizes_asked_for():
    task = synthetic(nodes=500, classes=3, labels_per_class=7, val=50, test=100)
    assert np.bincount(task.labels[task.train]).tolist() == [7, 7, 7]
    assert (len(task.val), len(task.test)) == (50, 100)
    assert len(np.unique(np.concatenate([task.train, task.val, task.test]))) == 171
    assert np.ptp(np.bincount(task.labels)) <= 1


def test_without_a_test_size_every_node_left_is_for_test():
    task = synthetic(nodes=500, labels_per_class=5, val=30)
    assert len(task.test) == 500 - 20 - 30


def test_seed_decides():
    for model in MODELS:
        first, again, other = (synthetic(model, seed=seed) for seed in (3, 3, 4))
        assert np.array_equal(first.edges, again.edges)
        assert np.array_equal(first.features, again.features)
        assert not np.array_equal(first.labels, other.labels)


def test_numbers_of_numpy_are_numbers(assert_same_task):
    given = {"nodes": np.int64(300), "degree": np.float64(6), "test": np.int32(20), "val": np.int8(30)}
    assert_same_task(synthetic(**given), synthetic(nodes=300, degree=6.0, test=20, val=30))


def test_no_edges_at_all():
    assert synthetic(degree=0).num_edges == 0


def test_a_large_graph_is_drawn_without_looking_at_all_pairs():
    task = synthetic("latent-space", nodes=200_000, degree=4, features=4)
    assert task.num_edges == pytest.approx(400_000, rel=0.02)


def test_all_wrong_arguments_are_named_together():
    with pytest.raises(InputError) as caught:
        synthetic("planted-particion", nodes=2.5, degree=-1, homophily=1.2, edge_noise=float("nan"), seed=True, test=-1)
    problems = {problem.argument: problem for problem in caught.value.problems}
    assert set(problems) == {"model", "nodes", "degree", "homophily", "edge_noise", "seed", "test"}
    assert problems["model"].advice == "Did you mean 'planted-partition'?"


def test_arguments_that_do_not_go_together():
    for arguments, argument, said in [
        ({"nodes": 11, "classes": 6}, "nodes, classes", "at least two nodes in each class"),
        ({"nodes": 100, "labels_per_class": 26}, "labels_per_class", "at most 25"),
        ({"nodes": 100, "val": 50}, "labels_per_class, val, test", "130 nodes together"),
        ({"nodes": 400, "degree": 300}, "degree", "every pair inside classes"),
        ({"nodes": 400, "degree": 350, "homophily": 0.1}, "degree", "every pair between classes"),
    ]:
        with pytest.raises(InputError) as caught:
            synthetic(**arguments)
        assert [problem.argument for problem in caught.value.problems] == [argument]
        assert said in str(caught.value)


def test_every_argument_is_explained():
    words = set(re.findall(r"\w+", synthetic.__doc__))
    assert set(synthetic.__kwdefaults__) <= words
