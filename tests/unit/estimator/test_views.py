"""Views of features: each against its formula, and what may not change what they show."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm, rankdata
from sklearn.feature_extraction.text import TfidfTransformer

from g3nn.base.errors import Problems
from g3nn.estimator.saving import _packed, _unpacked
from g3nn.graph.features import FeatureTable
from g3nn.graph.transforms import TRANSFORMS, FeatureTransform, Form, transforms_of

N, WORDS = 80, 60
COUNTS = np.arange(WORDS + 2) < WORDS
NUMBERS = np.arange(WORDS + 2) == WORDS
KINDS = pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=["dense", "sparse"])


@pytest.fixture
def x():
    """Word counts, nine of ten zero and none in row 3; then a number with a heavy tail and a flag."""
    rng = np.random.default_rng(0)
    words = rng.integers(1, 9, (N, WORDS)) * (rng.random((N, WORDS)) < 0.1)
    words[3] = 0
    tail = rng.standard_t(1, N)
    tail[5] = 400
    return np.column_stack([words, (tail - tail.mean()) / tail.std() * 3, np.arange(N) % 2]).astype(np.float32)


def plain(matrix):
    assert matrix.dtype == np.float32
    return matrix.toarray() if sp.issparse(matrix) else matrix


def seen(name, x, kind=np.array, rows=slice(None)):
    matrix = FeatureTransform.fit(name, kind(x), COUNTS, NUMBERS).apply(kind(x[rows]))
    assert sp.issparse(matrix) == (kind is sp.csr_array)
    return plain(matrix)


def names(x, counts=COUNTS, numbers=NUMBERS):
    return [view.name for view in transforms_of(x, counts, numbers)]


@KINDS
def test_each_view_is_its_formula(kind, x):
    words = x[:, :WORDS].astype(np.float64)
    present, deviation = words != 0, words.std(axis=0)
    size = np.sqrt(np.maximum(present.sum(axis=1, keepdims=True), 1))
    expected = {
        "given": words,
        "present": present,
        "length": 4 * present / size,
        "tfidf": 4 * TfidfTransformer().fit_transform(present.astype(float)).toarray(),
        "columns": words / deviation,
        "ranks": 4 * present / size,
    }
    assert expected.keys() == set(TRANSFORMS)
    for name, block in expected.items():
        view = seen(name, x, kind)
        np.testing.assert_allclose(view[:, :WORDS], block, rtol=1e-6, err_msg=name)
        np.testing.assert_array_equal(view[3, :WORDS], 0)
        np.testing.assert_array_equal(view[:, WORDS + 1], x[:, WORDS + 1])
        if name != "ranks":
            np.testing.assert_array_equal(view[:, WORDS], x[:, WORDS])


@KINDS
@pytest.mark.parametrize("name", TRANSFORMS)
def test_new_rows_look_like_fitted_ones(kind, name, x):
    np.testing.assert_array_equal(seen(name, x, kind, rows=[7]), seen(name, x, kind)[[7]])


def test_ranks_are_normal_scores_within_the_fitted_range(x):
    scores = norm.ppf((rankdata(x[:, WORDS]) - 0.5) / N)
    np.testing.assert_allclose(seen("ranks", x)[:, WORDS], scores, rtol=1e-5)
    sparse = seen("ranks", x, sp.csr_array)[:, WORDS]
    np.testing.assert_allclose(sparse - sparse[0], scores - scores[0], atol=1e-5)
    new = np.zeros((2, WORDS + 2))
    new[:, WORDS] = -1e9, 1e9
    beyond = FeatureTransform.fit("ranks", x, COUNTS, NUMBERS).apply(new)[:, WORDS]
    np.testing.assert_allclose(beyond, [scores.min(), scores.max()], rtol=1e-6)


def test_ranks_of_many_and_of_tied_values():
    rng, all_numbers = np.random.default_rng(1), np.ones(2, dtype=bool)
    x = np.column_stack([rng.standard_normal(5000) ** 3, rng.integers(0, 3, 5000)])
    view = FeatureTransform.fit("ranks", x, ~all_numbers, all_numbers)
    many, few = np.diff(view.starts)
    assert 500 < many <= 1000
    assert few == 3
    scores = norm.ppf((rankdata(x, axis=0) - 0.5) / 5000)
    np.testing.assert_allclose(view.apply(x), scores, atol=0.01)
    rare = sp.csr_array(x * [0, 1])
    ranked = FeatureTransform.fit("ranks", rare, ~all_numbers, all_numbers).apply(rare)
    np.testing.assert_array_equal(ranked.toarray() != 0, rare.toarray() != 0)
    np.testing.assert_allclose(ranked.toarray()[:, 1], scores[:, 1] - scores[:, 1].min(), rtol=1e-6)


@KINDS
def test_scaling_rows_or_columns_does_not_change_length_and_tfidf(kind, x):
    words = x[:, :WORDS]
    sums = np.maximum(words.sum(axis=1, keepdims=True), 1)
    ways = [words, words / sums, words / words.std(axis=0), words / np.maximum(words.max(axis=0), 1)]
    for name in ("length", "tfidf"):
        shown = []
        for way in ways:
            table = FeatureTable(kind(way))
            form = Form.fit(table)
            base = form.apply(table, Problems()).matrix
            shown.append(plain(FeatureTransform.fit(name, base, form.counts).apply(base)))
        for other in shown[1:]:
            np.testing.assert_array_equal(other, shown[0])


@KINDS
def test_indicators_in_scaled_rows_are_divided_by_the_deviations_of_indicators(kind, x):
    flags = (x[:, :WORDS] != 0).astype(np.float32)
    counts, numbers = np.ones(WORDS, dtype=bool), np.zeros(WORDS, dtype=bool)
    scaled = flags / np.maximum(flags.sum(axis=1, keepdims=True), 1)
    found = {view.name: plain(view.apply(kind(scaled))) for view in transforms_of(kind(scaled), counts, numbers)}
    assert "columns" not in found
    np.testing.assert_allclose(found["present columns"], flags / flags.std(axis=0), rtol=1e-5)
    assert "present columns" not in names(kind(scaled * np.arange(1, WORDS + 1)), counts, numbers)


@KINDS
def test_only_views_that_differ_are_tried(kind, x):
    assert names(kind(x)) == ["length", "given", "tfidf", "columns", "present", "ranks"]
    flat = x.copy()
    flat[:, WORDS] = np.clip(flat[:, WORDS], -10, 10)
    assert names(kind(flat)) == ["length", "given", "tfidf", "columns", "present"]
    assert names(kind((flat != 0).astype(np.float32))) == ["length", "given", "tfidf", "columns"]
    assert names(kind(flat), counts=~np.ones_like(COUNTS)) == ["given"]
    assert names(kind(x), counts=~np.ones_like(COUNTS)) == ["given", "ranks"]
    one_hot = np.eye(WORDS + 2, dtype=np.float32)[np.arange(N) % (WORDS + 2)]
    assert names(kind(4 * one_hot), np.ones_like(COUNTS), ~np.ones_like(COUNTS)) == [
        "length",
        "present columns",
        "present",
    ]


@KINDS
@pytest.mark.parametrize("value", [0.0, 0.1, 3.0])
def test_features_that_never_differ_are_looked_at_once(kind, value):
    x = np.full((N, WORDS + 2), value, dtype=np.float32)
    (view,) = transforms_of(kind(x), COUNTS, NUMBERS)
    assert view.name == "given"
    np.testing.assert_array_equal(plain(view.apply(kind(x))), x)
    np.testing.assert_array_equal(seen("columns", x, kind)[:, :WORDS], 0)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_saved_view_shows_the_same(name, x):
    arrays = {}
    view = FeatureTransform.fit(name, x, COUNTS, NUMBERS)
    loaded = _unpacked(_packed(view, "view", arrays), arrays)
    np.testing.assert_array_equal(loaded.apply(x), view.apply(x))
