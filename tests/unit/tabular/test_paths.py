"""What a node has around it as columns: counts, means and shares along paths of types."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.base.errors import Problems
from g3nn.graph.relations import read_relations
from g3nn.graph.task import NodeTask
from g3nn.model.tabular import Paths

FILMS, PERSONS = 8, 3


@pytest.fixture
def films():
    """Films 0 to 7 by persons 8 to 10; the last film has none. Films have two features, persons none."""
    by = np.array([[0, 1, 2, 3, 4, 5, 6, 6], [8, 8, 8, 9, 9, 10, 9, 10]])
    kinds = ["film"] * FILMS + ["person"] * PERSONS
    relations = read_relations(tuple(by), FILMS + PERSONS, False, Problems(), types=["by"] * 8, kinds=kinds)
    features = np.zeros((FILMS + PERSONS, 2))
    features[:FILMS] = np.arange(2 * FILMS).reshape(-1, 2)
    labels = [0, 0, 1, 1, 0, 1, 0, 1, -1, -1, -1]
    return NodeTask.build(features, by, labels, range(6), [6, 7], relations=relations)


def block(paths, task, width, place):
    return sp.csr_array(paths.apply(task)).toarray()[:, place : place + width]


def test_columns_are_features_counts_shares_and_means(films):
    fitted = Paths.fit(films)
    assert [one.path for one in fitted.paths] == [("by",), ("by", "by (back)"), ("by", "by (back)", "by")]
    own = block(fitted, films, 2, 0) * fitted.own
    np.testing.assert_allclose(own[:FILMS], films.features[:FILMS])
    counts = block(fitted, films, 2, 2) * fitted.degrees
    np.testing.assert_allclose(counts[:, 0], np.log1p([1, 1, 1, 1, 1, 1, 2, 0, 0, 0, 0]), rtol=1e-6)
    person = fitted.paths[0]
    assert person.ends.tolist() == [8, 9, 10]
    assert not person.means
    shares = block(fitted, films, 3, 4) * person.scales[0]
    assert shares[6].tolist() == pytest.approx([0, 0.5, 0.5])
    assert shares[7].tolist() == [0, 0, 0]


def test_means_are_over_walks(films):
    fitted = Paths.fit(films)
    back = fitted.paths[1]
    assert back.means
    place = 4 + 3 + len(back.ends)
    means = block(fitted, films, 2, place) * back.scales[1]
    x = films.features
    np.testing.assert_allclose(means[0], x[[0, 1, 2]].mean(0), rtol=1e-5)
    np.testing.assert_allclose(means[6], (x[[3, 4, 6]].mean(0) + x[[5, 6]].mean(0)) / 2, rtol=1e-5)


def test_nodes_of_other_kinds_have_no_columns(films):
    assert not Paths.fit(films).apply(films)[FILMS:].any()


def test_all_columns_of_a_kind_have_one_size(films):
    fitted = Paths.fit(films)
    columns = sp.csr_array(fitted.apply(films)).toarray()[:FILMS]
    for place, width in ((0, 2), (2, 2), (4, 3)):
        assert np.square(columns[:, place : place + width]).sum(1).mean() == pytest.approx(1, rel=1e-5)


def test_a_path_that_hardly_any_labelled_node_has_is_none(films):
    rare = read_relations(
        (np.array([0, 1, 2, 3, 4, 5, 6, 6, 7]), np.array([8, 8, 8, 9, 9, 10, 9, 10, 10])),
        FILMS + PERSONS,
        False,
        Problems(),
        types=["by"] * 8 + ["lent to"],
        kinds=["film"] * FILMS + ["person"] * PERSONS,
    )
    task = replace(films, relations=rare, train=np.arange(6), val=films.val[:0])
    assert {name for one in Paths.fit(task).paths for name in one.path} == {"by", "by (back)"}
    assert "lent to" in Paths.fit(task).arcs


def test_new_nodes_are_described_by_nodes_of_the_fit(films):
    fitted = Paths.fit(films)
    n = films.num_nodes
    more = read_relations(
        (np.array([n, n]), np.array([8, 10])),
        n + 1,
        False,
        Problems(),
        types=["by", "by"],
        kinds=["film"] * FILMS + ["person"] * PERSONS + ["film"],
        like=films.relations,
    )
    features = np.concatenate([films.features, [[1.0, 2.0]]])
    task = replace(
        films, features=features, relations=films.relations.enlarged(more), labels=np.append(films.labels, -1)
    )
    columns = sp.csr_array(fitted.apply(task)).toarray()
    np.testing.assert_allclose(columns[n, 4:7] * fitted.paths[0].scales[0], [0.5, 0, 0.5], rtol=1e-6)
    # Another film of the same persons changes the means of the others, but not whom they are by.
    np.testing.assert_allclose(columns[:n, :7], sp.csr_array(fitted.apply(films)).toarray()[:, :7])


def test_counts_alone(films):
    assert Paths.of_degrees(films).apply(films).shape == (FILMS + PERSONS, 2)


def test_many_ends_become_few_columns():
    rng = np.random.default_rng(0)
    n, ends = 300, 400
    # 4 different ones for each node.
    pairs = np.stack([np.repeat(np.arange(n), 4), n + np.concatenate([rng.permutation(ends)[:4] for _ in range(n)])])
    relations = read_relations(tuple(pairs), n + ends, False, Problems(), kinds=["a"] * n + ["b"] * ends)
    features = sp.csr_array(np.eye(n + ends, 5))
    labels = np.append(rng.integers(0, 2, n), np.full(ends, -1))
    task = NodeTask.build(features, pairs, labels, range(0, n, 2), range(1, n, 2), relations=relations)
    fitted = Paths.fit(task)
    first = fitted.paths[0]
    assert len(first.ends) > 256
    assert first.basis.shape == (len(first.ends), 32)
    assert fitted.apply(task).shape[1] < 300
