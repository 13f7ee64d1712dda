from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from g3nn.data.planetoid import row_normalised
from g3nn.data.tables.columns import feature_kind
from g3nn.data.tables.node_table import NodeTable
from g3nn.data.tables.schema import MOST_CATEGORIES, Category, FeatureSchema, Text
from g3nn.errors import G3NNWarning, InputError


def table(columns: dict[str, Any], text: tuple[str, ...] = ()) -> NodeTable:
    features = pa.table(columns)
    kinds = {name: feature_kind("", features[name], typed=True) for name in features.column_names}
    kinds |= dict.fromkeys(text, "text")
    return NodeTable("n.csv", pa.array(range(features.num_rows)), features, kinds)


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if sp.issparse(matrix) else matrix


ABSTRACTS = ["deep graph models", "graph theory", "deep sea fish", None]


@pytest.fixture
def mixed() -> NodeTable:
    columns = {
        "age": [1.0, 3.0, None, 5.0],
        "city": ["Rome", "Oslo", "Rome", None],
        "active": [True, False, None, True],
        "abstract": ABSTRACTS,
        "size": [10, 10, 20, 20],
    }
    return table(columns, text=("abstract",))


class TestKinds:
    def test_numbers_are_standardised_over_the_known_values(self):
        nodes = table({"age": [1.0, 3.0, None, 5.0], "size": [10, 10, 20, 20]})
        encoded = FeatureSchema.fit(nodes).encode(nodes)
        age = (np.array([1, 3, np.nan, 5]) - 3) / np.std([1, 3, 5])
        np.testing.assert_allclose(encoded, np.stack([age, [-1, -1, 1, 1]], axis=1).astype(np.float32))
        assert encoded.dtype == np.float32

    def test_nan_is_missing_too(self):
        nodes = table({"age": [1.0, 3.0, float("nan")]})
        assert np.isnan(FeatureSchema.fit(nodes).encode(nodes)).ravel().tolist() == [False, False, True]

    def test_booleans(self):
        nodes = table({"active": [True, False, None]})
        np.testing.assert_array_equal(FeatureSchema.fit(nodes).encode(nodes), [[1], [0], [np.nan]])

    def test_categories(self):
        nodes = table({"city": ["Rome", "Oslo", "Rome", "Oslo", "", None]})
        schema = FeatureSchema.fit(nodes)
        assert schema.columns["city"] == Category(("Oslo", "Rome"), other=False)
        np.testing.assert_array_equal(dense(schema.encode(nodes)), [[0, 1], [1, 0], [0, 1], [1, 0], [0, 0], [0, 0]])

    def test_rare_categories_share_a_feature(self):
        nodes = table({"city": ["Rome", "Rome", "Oslo", "Bonn"]})
        schema = FeatureSchema.fit(nodes)
        assert schema.columns["city"] == Category(("Rome",), other=True)
        np.testing.assert_array_equal(dense(schema.encode(nodes, quiet=True)), [[1, 0], [1, 0], [0, 1], [0, 1]])

    def test_only_the_most_frequent_categories_are_kept(self):
        names = [f"c{number}" for number in range(MOST_CATEGORIES + 20)]
        schema = FeatureSchema.fit(table({"city": names * 2 + names[5:25] + names[30:110]}))
        city = schema.columns["city"]
        assert isinstance(city, Category)
        assert (len(city.categories), city.other) == (MOST_CATEGORIES, True)
        assert {"c5", "c24", "c109"} <= set(city.categories)

    @pytest.mark.parametrize("rare", [True, False])
    def test_unseen_categories_are_noted(self, rare):
        schema = FeatureSchema.fit(table({"city": ["Rome", "Rome", "Oslo", "Oslo", *(["Bonn"] if rare else [])]}))
        with pytest.warns(G3NNWarning, match="column 'city': 2 values \\('Nice', 'Pisa'\\)"):
            encoded = schema.encode(table({"city": ["Nice", "Rome", "Pisa"]}))
        expected = [[0, 0, 1], [0, 1, 0], [0, 0, 1]] if rare else [[0, 0], [0, 1], [0, 0]]
        np.testing.assert_array_equal(dense(encoded), expected)

    def test_text(self):
        nodes = table({"abstract": ABSTRACTS}, text=("abstract",))
        schema = FeatureSchema.fit(nodes)
        abstract = schema.columns["abstract"]
        assert isinstance(abstract, Text)
        assert list(abstract.words) == ["deep", "graph"]
        reference = TfidfVectorizer(min_df=2).fit_transform([text or "" for text in ABSTRACTS]).toarray()
        np.testing.assert_allclose(dense(schema.encode(nodes)), reference.astype(np.float32))

    def test_everything_together(self, mixed):
        schema = FeatureSchema.fit(mixed)
        assert list(schema.kinds) == ["age", "city", "active", "abstract", "size"]
        encoded = schema.encode(mixed, quiet=True)
        assert encoded.shape == (4, 7)
        assert sp.issparse(encoded)
        np.testing.assert_array_equal(dense(encoded)[:, 3], [1, 0, np.nan, 1])
        kinds = ["numeric", "categorical", "boolean", "text", "numeric"]
        assert schema.kinds == dict(zip(mixed.kinds, kinds, strict=True))

    def test_dense_where_most_features_are_numbers(self):
        nodes = table({"a": [1, 2], "b": [1, 3], "c": [2, 3], "d": [True, False], "e": ["x", "x"], "f": [3, 4]})
        nodes = NodeTable(
            nodes.name, nodes.ids, nodes.features.drop(["e"]), {k: v for k, v in nodes.kinds.items() if k != "e"}
        )
        assert isinstance(FeatureSchema.fit(nodes).encode(nodes), np.ndarray)


def words(rows: int = 40, columns: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((rows, columns)) < 0.1).astype(np.uint8) * rng.integers(1, 4, (rows, columns)).astype(np.uint8)


def word_table(counts: np.ndarray, **others: Any) -> NodeTable:
    return table({**others, **{f"w{column}": counts[:, column] for column in range(counts.shape[1])}})


class TestCounts:
    def test_are_divided_by_the_sum_of_their_row(self):
        counts = words()
        counts[3] = 0
        nodes = word_table(counts)
        encoded = FeatureSchema.fit(nodes).encode(nodes)
        assert sp.issparse(encoded)
        np.testing.assert_array_equal(dense(encoded), dense(row_normalised(sp.csr_array(counts.astype(np.float32)))))
        assert dense(encoded)[3].sum() == 0

    def test_other_numbers_are_standardised_and_come_after(self):
        counts = words()
        age = np.arange(40.0)
        nodes = word_table(counts, age=age)
        schema = FeatureSchema.fit(nodes)
        encoded = dense(schema.encode(nodes))
        assert list(schema.columns) == ["age"]
        np.testing.assert_allclose(encoded[:, -1], (age - age.mean()) / age.std(), rtol=1e-6)
        np.testing.assert_allclose(encoded[:, :-1].sum(1), counts.sum(1) > 0, rtol=1e-6)

    @pytest.mark.parametrize("change", ["negative", "few", "full"])
    def test_other_tables_are_standardised(self, change):
        counts = words(columns=49 if change == "few" else 60).astype(np.float64)
        if change == "negative":
            counts = -counts
        if change == "full":
            counts = np.where(np.random.default_rng(1).random(counts.shape) < 0.3, 0, counts + 1)
        counts[0, :], counts[1, :] = 0, 2 if change != "negative" else -2
        encoded = FeatureSchema.fit(word_table(counts)).encode(word_table(counts))
        np.testing.assert_allclose(encoded.mean(0), 0, atol=1e-6)
        np.testing.assert_allclose(encoded.std(0), 1, rtol=1e-5)

    def test_a_word_that_nobody_uses_is_no_problem(self):
        counts = words()
        counts[:, 7] = 0
        assert "w7" in FeatureSchema.fit(word_table(counts)).counts

    def test_a_missing_count_stays_missing(self):
        schema = FeatureSchema.fit(word_table(words()))
        new = np.zeros((2, 60))
        new[0, 5], new[0, 6], new[0, 7], new[1, 6] = 1, 3, np.nan, 2
        encoded = dense(schema.encode(word_table(new)))
        np.testing.assert_array_equal(encoded[0, 5:8], np.array([0.25, 0.75, np.nan], dtype=np.float32))
        assert encoded[1, 6] == 1
        assert np.isnan(encoded).sum() == 1

    def test_negative_counts_are_refused(self):
        schema = FeatureSchema.fit(word_table(words()))
        with pytest.raises(InputError, match="column 'w2': got negative or infinite counts"):
            schema.encode(word_table(np.where(np.arange(60) == 2, -1, words().astype(np.int64))))


class TestUselessColumns:
    def test_all_at_once(self):
        columns = {
            "same": [1, 1, 1, 1],
            "same too": ["a", "a", "a", "a"],
            "nothing": [None] * 4,
            "nothing here": ["", "", None, None],
            "no words": ["", None, None, ""],
            "endless": [1.0, float("inf"), 2.0, 3.0],
            "huge": [1e200, 1.0, 2.0, 3.0],
            "gaps": [1, None, 2, 3],
            "name": ["a", "b", "c", "d"],
            "words": ["a", "b c", "dog", "cat"],
        }
        with pytest.raises(InputError) as caught:
            FeatureSchema.fit(table(columns, text=("no words", "words")), missing="error")
        assert [str(problem).split("; ")[0] for problem in caught.value.problems] == [
            "n.csv, columns 'same', 'same too': got the same value in every row",
            "n.csv, columns 'nothing', 'nothing here', 'no words': got no value at all",
            "n.csv, columns 'endless', 'huge': got infinite or huge numbers",
            "n.csv, column 'gaps': got missing values",
            "n.csv, column 'name': got almost as many values as rows",
            "n.csv, column 'words': got no word that repeats",
        ]
        assert "fit with --missing impute" in str(caught.value)
        assert "--text" in str(caught.value)
        assert "--ignore" in str(caught.value)

    def test_missing_numbers_may_be_left_to_the_classifier(self):
        FeatureSchema.fit(table({"gaps": [1, None, 2], "on": [True, None, False]}), missing="impute")
        with pytest.raises(InputError, match="columns 'gaps', 'on': got missing values"):
            FeatureSchema.fit(table({"gaps": [1, None, 2], "on": [True, None, False]}), missing="error")

    def test_missing_categories_and_texts_are_no_error(self):
        nodes = table({"city": ["a", "a", None], "words": ["to be", "to go", None]}, text=("words",))
        assert FeatureSchema.fit(nodes, missing="error").encode(nodes, missing="error").shape == (3, 2)


class TestNewTables:
    def test_differing_columns_are_all_named(self, mixed):
        schema = FeatureSchema.fit(mixed)
        columns = {"age": ["x", "y"], "abstract": ["a", "b"], "size": [True, False], "city": ["a", "b"], "new": [1, 2]}
        with pytest.raises(InputError) as caught:
            schema.encode(table(columns, text=("abstract",)))
        assert [str(problem).split(";")[0] for problem in caught.value.problems] == [
            "n.csv: got no column 'active'",
            "n.csv: got new columns 'new'",
            "n.csv: got columns of another kind: 'age' (categorical instead of numeric), "
            "'size' (boolean instead of numeric)",
        ]

    def test_the_order_of_columns_does_not_matter(self, mixed):
        schema = FeatureSchema.fit(mixed)
        names = mixed.features.column_names[::-1]
        turned = NodeTable("n", mixed.ids, mixed.features.select(names), {name: mixed.kinds[name] for name in names})
        np.testing.assert_array_equal(dense(schema.encode(turned, quiet=True)), dense(schema.encode(mixed, quiet=True)))

    def test_an_empty_column_is_of_any_kind(self, mixed):
        encoded = dense(FeatureSchema.fit(mixed).encode(table(dict.fromkeys(mixed.kinds, pa.nulls(2)))))
        np.testing.assert_array_equal(np.isnan(encoded[0]), [True, False, False, True, False, False, True])

    def test_missing_values_may_be_an_error(self, mixed):
        schema = FeatureSchema.fit(mixed)
        with pytest.raises(InputError, match="columns 'age', 'active': got missing values"):
            schema.encode(mixed, missing="error", quiet=True)

    @pytest.mark.parametrize("value", [float("inf"), 1e300])
    def test_numbers_that_do_not_fit(self, value):
        schema = FeatureSchema.fit(table({"a": [1.0, 2.0]}))
        with pytest.raises(InputError, match="column 'a': got numbers that are infinite or far from all those"):
            schema.encode(table({"a": [1.0, value]}))
