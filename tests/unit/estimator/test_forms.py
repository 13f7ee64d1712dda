"""The form of features: what is learned from those of the fit, and what it does to these and to later ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from g3nn.base.errors import InputError, Problems
from g3nn.estimator import load_model
from g3nn.graph.features import FeatureTable, read_features
from g3nn.graph.outcomes import Labels
from g3nn.graph.transforms import Form, column_kinds

NAN = np.nan
KINDS = [np.array, sp.csr_array]


def words(rows=40, columns=60, seed=0):
    """Word counts, nine of ten zero."""
    rng = np.random.default_rng(seed)
    return rng.poisson(3.0, (rows, columns)) * (rng.random((rows, columns)) < 0.1)


def treated(form, x):
    problems = Problems()
    matrix = form.apply(FeatureTable(x), problems).matrix
    assert problems.found == []
    assert matrix.dtype == np.float32
    return matrix.toarray() if sp.issparse(matrix) else matrix


def fitted(x, kinds=None):
    return Form.fit(FeatureTable(x, kinds=None if kinds is None else np.array(kinds)))


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
def test_kinds_are_guessed_from_the_values(kind):
    rng = np.random.default_rng(1)
    others = np.column_stack([np.arange(40) > 4, rng.standard_normal(40), np.full(40, 1.0)])
    mixed = np.hstack([words(), others])
    assert column_kinds(FeatureTable(kind(mixed))).tolist() == ["count"] * 60 + ["as-is", "number", "number"]
    assert (column_kinds(FeatureTable(kind(words(columns=49) * 2.5))) == "number").all(), "too few columns"
    assert (column_kinds(FeatureTable(kind((words() + 1) % 3 * 2.0))) == "number").all(), "too few zeros"
    indicators = rng.integers(0, 2, (40, 50))
    assert (column_kinds(FeatureTable(kind(indicators))) == "count").all(), "however few zeros there are"
    assert (column_kinds(FeatureTable(kind(indicators[:, 1:]))) == "as-is").all(), "too few columns"
    holes = mixed.copy()
    holes[0] = NAN
    assert column_kinds(FeatureTable(kind(holes))).tolist()[60:] == ["as-is", "number", "number"]
    given = np.array(["as-is"] * 62 + ["guess"])
    assert column_kinds(FeatureTable(kind(mixed), kinds=given)).tolist() == ["as-is"] * 62 + ["number"]


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
def test_indicators_are_counts_whatever_somebody_divided_them_by(kind):
    often = np.arange(40)[:, None] > np.array([2, 4])
    indicators = np.hstack([words() > 0, often]).astype(float)
    indicators[:, :60] += np.eye(40, 60)  # no column of words is empty
    indicators = np.minimum(indicators, 1)
    rows = indicators / np.maximum(indicators.sum(1, keepdims=True), 1)
    columns = indicators / np.maximum(indicators.std(0), 0.1)
    for scaled in (indicators, rows, columns):
        assert (column_kinds(FeatureTable(kind(scaled))) == "count").all()
    beside = rows.copy()
    beside[:, 61] = np.random.default_rng(0).random(40) * often[:, 1]
    assert column_kinds(FeatureTable(kind(beside))).tolist() == ["count"] * 61 + ["number"], "of another scale"
    counted = np.hstack([words(), often * 2.5])
    assert column_kinds(FeatureTable(kind(counted))).tolist() == ["count"] * 60 + ["number"] * 2, "beside true counts"


def test_a_boolean_column_of_a_frame_stays_as_it_is():
    frame = pa.table({f"w{c}": column for c, column in enumerate(words().T > 0)} | {"x": np.arange(40)})
    table = read_features(frame, "error", Problems())
    assert column_kinds(table).tolist() == ["as-is"] * 60 + ["number"]


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
def test_counts_stay_as_they_came(kind):
    x = np.column_stack([words() * 2.5, np.arange(40.0), np.arange(40) > 4])
    form = fitted(kind(x))
    assert (form.counts == (np.arange(62) < 60)).all()
    assert (form.numbers == (np.arange(62) == 60)).all()
    assert sp.issparse(form.apply(FeatureTable(kind(x)), Problems()).matrix) == (kind is sp.csr_array)
    np.testing.assert_array_equal(treated(form, kind(x))[:, :60], x[:, :60])
    unknown = np.zeros((1, 62))
    unknown[0, :3] = 1, NAN, 3
    np.testing.assert_array_equal(treated(form, kind(unknown))[0, :4], [1, NAN, 3, 0])


def test_numbers_are_standardised_by_their_known_values():
    x = np.array([[1.0, 5e6], [3.0, NAN], [NAN, 9e6]])
    np.testing.assert_allclose(treated(fitted(x), x), [[-1, -1], [1, NAN], [NAN, 1]])
    times = 1.7e9 + np.arange(10.0)[:, None]
    assert np.unique(treated(fitted(times), times)).size == 10, "32 bits are too few before the mean is taken off"


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
def test_a_constant_becomes_zero_for_every_node(kind):
    x = np.column_stack([np.full(7, 0.1), np.zeros(7), np.arange(7.0)])
    form = fitted(kind(x))
    np.testing.assert_array_equal(treated(form, kind(x))[:, :2], 0)
    np.testing.assert_array_equal(treated(form, kind(x + 1))[:, :2], 0)


def test_sparse_columns_are_scaled_and_centred_only_where_they_are_full():
    rng = np.random.default_rng(2)
    rare = rng.standard_normal((50, 200)) * (rng.random((50, 200)) < 0.2)
    x = np.column_stack([rare[:, :100], 2000 + rng.standard_normal(50), rare[:, 100:]])
    matrix = fitted(sp.csr_array(x)).apply(FeatureTable(sp.csr_array(x)), Problems()).matrix
    assert sp.issparse(matrix)
    assert matrix.has_sorted_indices
    dense = matrix.toarray()
    np.testing.assert_array_equal(dense[:, :100] != 0, x[:, :100] != 0)
    np.testing.assert_allclose([dense[:, 100].mean(), dense[:, 100].std()], [0, 1], atol=1e-5)
    np.testing.assert_allclose((dense[:, 5][dense[:, 5] != 0] ** 2).mean(), 1, rtol=1e-5)
    blown = sp.csr_array(x * 1e6)
    np.testing.assert_allclose(treated(fitted(blown), blown), dense, rtol=1e-5)


def test_new_nodes_are_treated_alike_sparse_or_dense():
    x, new = words(), words(5, seed=3) * 1.5
    x = np.column_stack([x, np.arange(40), np.ones(40)])
    new = np.column_stack([new, np.arange(5) - 7, np.ones(5)])
    for form in (fitted(x), fitted(sp.csr_array(x))):
        np.testing.assert_allclose(treated(form, new), treated(form, sp.csr_array(new)), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=["dense", "sparse"])
def test_what_is_far_from_the_fit_is_named(kind):
    problems = Problems()
    form = fitted(np.column_stack([words(), np.arange(40) * 1e-9]))
    new = np.zeros((2, 61))
    new[0, 3], new[1, 60] = -1, 1e100
    form.apply(FeatureTable(kind(new)), problems)
    assert [problem.given for problem in problems.found] == [
        "negative counts in column 3",
        "numbers that are infinite or far from all those of the fit in column 60",
    ]


def test_units_do_not_matter(fitted, graph, quick):
    X = graph.X * [1, 1e6, 1, 1e-6, 1, 1] + [0, 0, 7e4, 0, 0, 0]
    rescaled = quick().fit(X, graph.y, graph.edges, val=graph.val)
    np.testing.assert_allclose(rescaled.predict_proba(), fitted.predict_proba(), atol=1e-3)


def test_new_and_saved_nodes_get_the_form_of_the_fit(graph, quick, tmp_path):
    X = graph.X * 1e5
    classifier = quick(model="mlp").fit(X, graph.y, graph.edges, val=graph.val)
    assert abs(classifier.task_.features).max() < 10
    linked = np.unique(graph.edges)[:1]
    edge = np.array([[150], [149]])
    expected = classifier.predict_proba()[linked]
    np.testing.assert_allclose(classifier.predict_proba(X[linked], edge), expected, atol=1e-6)
    classifier.save(tmp_path / "model")
    np.testing.assert_allclose(load_model(tmp_path / "model").predict_proba(X[linked], edge), expected, atol=1e-6)
    with pytest.raises(InputError, match="far from all those of the fit in column 2"):
        classifier.predict(np.where(np.arange(6) == 2, 1e149, X[linked].astype(float)))


def test_an_inductive_fit_takes_the_form_of_the_nodes_it_sees(graph, quick):
    other = graph.X.copy()
    other[graph.y < 0] *= 100
    forms = [
        quick(inductive=True, epochs=1).fit(X, graph.y, graph.edges, val=graph.val).fitted_.form
        for X in (graph.X, other)
    ]
    np.testing.assert_array_equal(forms[0].mean, forms[1].mean)
    np.testing.assert_array_equal(forms[0].scale, forms[1].scale)


def test_tables_and_labels_that_are_ready_are_taken_as_they_are(graph, quick):
    names = tuple("abcdef")
    table = FeatureTable(graph.X, names, np.array(["as-is"] * 6))
    labels = Labels(np.array([-1, 0, 1]), graph.y)
    classifier = quick(epochs=3).fit(table, labels, graph.edges, val=graph.val)
    np.testing.assert_array_equal(classifier.task_.features, graph.X)
    assert classifier.classes_.tolist() == [-1, 0, 1]
    assert classifier.feature_names_in_.tolist() == list(names)
    assert classifier.evaluate([0, 1], [-1, 1])["nodes"] == 2
    with pytest.raises(InputError, match="149 labels"):
        quick().fit(table, replace(labels, values=graph.y[1:]), graph.edges)
