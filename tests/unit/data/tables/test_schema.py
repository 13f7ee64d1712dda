from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from small_tables import matrix, one_column, said

from g3nn.base.errors import G3NNWarning
from g3nn.graph.features import FeatureTable
from g3nn.graph.tables.cells import NULL_WORDS, plain
from g3nn.graph.tables.encoders import MOST_CATEGORIES, Category, Number, Text
from g3nn.graph.tables.remarks import Remarks
from g3nn.graph.tables.schema import FeatureSchema

NAN = float("nan")


def learned(columns: dict[str, Any], remarks: Remarks | None = None, **chosen: str) -> FeatureSchema:
    """From the columns of a typed table."""
    return FeatureSchema.fit("n", pa.table(columns), True, chosen, NULL_WORDS, remarks or Remarks())


def encoded(columns: dict[str, Any], **chosen: str) -> FeatureTable:
    return learned(columns, **chosen).encode(pa.table(columns))


def later(schema: FeatureSchema, columns: dict[str, Any], remarks: Remarks) -> FeatureTable:
    """Of a table that comes after the fit."""
    schema.check("n", pa.table(columns), remarks)
    return schema.encode(pa.table(columns))


def features(columns: dict[str, Any], **chosen: str) -> Any:
    return matrix(encoded(columns, **chosen))


def told(remarks: Remarks) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        remarks.tell()
    return remarks.notes


class TestNumbers:
    def test_of_a_csv_file(self, tmp_path):
        cases = [
            (["1,5", "2,25", "-3,0"], [1.5, 2.25, -3]),
            (["1,234", "2,500", "7"], [1234, 2500, 7]),
            (["$ 5", "$6.50", "-$1,000"], [5, 6.5, -1000]),
            (["5%", "12.5 %", "100%"], [0.05, 0.125, 1]),
            (["1 234", "12 345 678", "9"], [1234, 12345678, 9]),
        ]
        for cells, expected in cases:
            graph = one_column(tmp_path, [*cells, cells[0]])
            np.testing.assert_allclose(matrix(graph.features)[:, 0], [*expected, expected[0]], rtol=1e-15)
            assert (graph.features.kinds.tolist(), graph.notes) == (["guess"], ())

    def test_a_few_words_among_them_are_missing(self, tmp_path):
        graph = one_column(tmp_path, ["1", "2", "x", "7", "9.5", "y"])
        assert said(graph) == ["column 'x': 2 values that are no number ('x', 'y'); taken as missing"]
        np.testing.assert_array_equal(matrix(graph.features)[:, 0], [1, 2, NAN, 7, 9.5, NAN])

    def test_a_missing_one_is_noted(self, tmp_path):
        graph = one_column(tmp_path, ["1", "", "3", "4"])
        note = "column 'x': missing numbers; filled in from the neighbours, or with the mean"
        assert said(graph) == [note]
        np.testing.assert_array_equal(matrix(graph.features)[:, 0], [1, NAN, 3, 4])
        remarks = Remarks()
        assert learned({"x": [1.0, NAN, 3.0]}, remarks).read[0].missing == 1
        assert told(remarks) == [f"n, {note}"]

    def test_types(self):
        day = datetime.date(2020, 1, 1)
        columns = {
            "small": pa.array([1, 2, 5], pa.uint8()),
            "half": plain(pa.chunked_array([np.array([1, 2, 5], np.float16)]), typed=False),
            "decimal": pa.array([1, 2, 5]).cast(pa.decimal128(25, 2)),
            "truth": [True, None, False],
            "noon": [datetime.time(0, 0, 1), None, datetime.time(0, 1)],
            "wait": pa.array([1, 2, 5], pa.duration("s")),
            "text": ["1", "2", "2"],
            "day": [day, day, day.replace(day=9)],
        }
        schema = learned(columns)
        assert [one.kind for one in schema.read] == [
            *["numeric"] * 3,
            *["boolean", "numeric", "numeric", "categorical", "date"],
        ]
        np.testing.assert_array_equal(features({"truth": columns["truth"]})[:, 0], [1, NAN, 0])
        remarks = Remarks()
        schema.check("n", pa.table(columns), remarks)
        assert remarks.found == []

    def test_infinite_ones_are_refused(self):
        remarks = Remarks()
        schema = learned({"a": [1.0, float("inf")], "b": [1e200, 2.0], "c": [1.0, 2.0]}, remarks)
        schema.check("new", pa.table({"c": [1e300]}), remarks)
        words = ["n, column 'a'", "n, column 'b'", "new, column 'c'"]
        assert [str(one).split(": got infinite or huge numbers")[0] for one in remarks.found] == words


class TestDates:
    def test_become_four_numbers(self, tmp_path):
        cases = [
            ["2020-01-31", "2020-02-29", "2019-12-01"],
            ["31.01.2020", "29.02.2020", "01.12.2019"],
            ["01/31/2020", "02/29/2020", "12/01/2019"],
            ["2020-01-31 00:00:00.5", "2020-02-29 00:00:00", "2019-12-01 00:00:00"],
            ["2020-01-31T00:00Z", "2020-02-29T00:00Z", "2019-12-01T00:00Z"],
        ]
        for cells in cases:
            graph = one_column(tmp_path, [*cells, ""])
            assert graph.features.names == ("x: year", "x: month", "x: weekday", "x: age in days")
            assert graph.features.kinds.tolist() == ["number"] * 4
            expected = [[2020, 1, 4, 29], [2020, 2, 5, 0], [2019, 12, 6, 90], [NAN] * 4]
            np.testing.assert_allclose(matrix(graph.features), expected, atol=1e-12)
            assert said(graph) == ["column 'x': missing numbers; filled in from the neighbours, or with the mean"]

    def test_that_can_be_read_in_two_ways_are_noted(self, tmp_path):
        graph = one_column(tmp_path, ["01/02/2020", "03/04/2020"] * 2)
        assert said(graph) == ["column 'x': dates that can be read as %m/%d/%Y and as %d/%m/%Y; read as %m/%d/%Y"]
        assert matrix(graph.features)[:2, 1].tolist() == [1, 3]

    @pytest.mark.parametrize("kind", [pa.date32(), pa.date64(), pa.timestamp("ms"), pa.timestamp("ns", "UTC")])
    def test_of_typed_tables_match_later_text(self, kind):
        days = pa.array([datetime.datetime(2020, 1, 31), datetime.datetime(2020, 2, 29)], pa.timestamp("ms")).cast(kind)
        schema, remarks = learned({"x": days}), Remarks()
        new = later(schema, {"x": ["28.02.2020"] * 20 + ["soon"]}, remarks)
        np.testing.assert_array_equal(matrix(new)[[0, 20]], [[2020, 2, 4, 1], [NAN] * 4])
        assert remarks.notes == ["n, column 'x': 1 value that is no date ('soon'); taken as missing"]
        back = learned({"x": ["30.01.2020", "29.02.2020"]}).encode(pa.table({"x": days}))
        assert matrix(back)[:, 3].tolist() == [29, 0]
        # None of them has a format: an empty one is read by nothing, and not as the first of January either.
        unread = later(schema, {"x": ["soon", "later", "\n"]}, remarks)
        assert np.isnan(matrix(unread)).all()


class TestCategories:
    def test_are_0_or_1(self):
        made = encoded({"city": ["Rome", "Oslo", "Rome", "Oslo", "", "NA", None]})
        assert (made.names, made.kinds.tolist()) == (("city = Oslo", "city = Rome"), ["as-is"] * 2)
        assert matrix(made).tolist() == [[0, 1], [1, 0], [0, 1], [1, 0], [0, 0], [0, 0], [0, 0]]

    def test_rare_ones_share_a_feature(self):
        columns = {"city": ["Rome", "Rome", "Oslo", "Bonn"]}
        assert learned(columns).columns["city"] == Category(("Rome",), other=True)
        assert features(columns).tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]

    def test_only_the_most_frequent_ones_are_kept(self):
        names = [f"c{number}" for number in range(MOST_CATEGORIES + 20)]
        city = learned({"city": names * 2 + names[5:25] + names[30:110]}).columns["city"]
        assert isinstance(city, Category)
        assert (len(city.categories), city.other) == (MOST_CATEGORIES, True)
        assert {"c5", "c24", "c109"} <= set(city.categories)

    def test_numbers_may_be_categories(self):
        assert learned({"zip": [7, 7, 8]}, zip="categorical").columns["zip"] == Category(("7",), other=True)

    @pytest.mark.parametrize("rare", [True, False])
    def test_unseen_ones(self, rare):
        schema = learned({"city": ["Rome", "Rome", "Oslo", "Oslo", *(["Bonn"] if rare else [])]})
        remarks = Remarks()
        new = later(schema, {"city": ["Nice", "Rome", "Pisa"]}, remarks)
        assert matrix(new).tolist() == ([[0, 0, 1], [0, 1, 0], [0, 0, 1]] if rare else [[0, 0], [0, 1], [0, 0]])
        note = "n, column 'city': 2 values that the fit has not seen ('Nice', 'Pisa'); taken as unknown"
        assert remarks.notes == ([] if rare else [note])


SENTENCES = ["deep models of large graphs", "the theory of large graphs", "deep sea fish at night", None]


@pytest.mark.parametrize("chosen", [{}, {"x": "text"}])
def test_sentences_become_weighted_words(chosen):
    remarks = Remarks()
    schema = learned({"x": SENTENCES, "other": [1, 2, 3, 5]}, remarks, **chosen)
    how = schema.columns["x"]
    assert isinstance(how, Text)
    assert list(how.words) == ["deep", "graphs", "large", "of"]
    reference = TfidfVectorizer(min_df=2).fit_transform([text or "" for text in SENTENCES]).toarray()
    np.testing.assert_allclose(features({"x": SENTENCES}, **chosen), reference)
    note = "n, column 'x': sentences; their words become features. ignore=[...] leaves them out."
    assert told(remarks) == ([] if chosen else [note])


def test_columns_that_say_nothing_are_left_out():
    columns = {
        "same": [1, 1, 1, 1],
        "same too": ["a", "a", "a", "a"],
        "nothing": pa.nulls(4),
        "nothing here": ["", "NA", None, "?"],
        "no number": [NAN] * 4,
        "name": ["a", "b", "c", "d"],
        "words": ["a", "b c", "dog", "cat"],
        "Unnamed: 0": [0, 1, 2, 3],
        "number": [1, 2, 3, 4],
        "code": [1, 3, 4, 5],
    }
    remarks = Remarks(strict=True)
    schema = learned(columns, remarks, words="text")
    remarks.tell()
    assert [str(problem).split("; ")[0] for problem in remarks.found] == [
        "n, columns 'same', 'same too': got the same value in every row",
        "n, columns 'nothing', 'nothing here', 'no number': got no value at all",
        "n, column 'name': got almost as many values as rows",
        "n, column 'words': got no word that repeats",
        "n, columns 'Unnamed: 0', 'number': got the numbers of the rows",
    ]
    assert (list(schema.columns), schema.left_out) == (["code"], set(columns) - {"code"})


@pytest.mark.parametrize(
    "values",
    [
        [[1, 2], [3]],
        [{"a": 1}, {"a": 2}],
        [b"a", b"b"],
        pa.array([b"a", None], pa.binary_view()),
        pa.array([b"a", b"b"], pa.binary(1)),
        pa.array([(1, 2, 3), (1, 2, 4)], pa.month_day_nano_interval()),
    ],
)
def test_columns_that_are_no_values_are_refused(values):
    remarks = Remarks()
    assert learned({"x": values}, remarks).columns == {}
    assert "one column for each number in it" in str(remarks.found[0])


MIXED = {
    "age": [1.5, None, 3.0],
    "city": ["Rome", "Rome", "Oslo"],
    "day": ["2020-01-01", "2020-01-02", "2020-01-05"],
    "vip": [True, False, None],
    "same": [1, 1, 1],
}


class TestNewTables:
    def test_the_order_of_columns_does_not_matter(self):
        schema, table = learned(MIXED), pa.table(MIXED)
        one, other = (schema.encode(t) for t in (table, table.select(list(MIXED)[::-1])))
        np.testing.assert_array_equal(matrix(one), matrix(other))
        assert one.names[:3] == ("age", "city = Rome", "city = other")
        assert one.kinds.tolist() == ["guess", *["as-is"] * 2, *["number"] * 4, "as-is"]

    def test_differing_columns_are_all_named(self):
        remarks, words = Remarks(), ["u", "v"]
        table = pa.table({"age": words, "city": words, "vip": words, "new": [1, 2], "newer": [1, 2], "same": words})
        learned(MIXED).check("n", table, remarks)
        assert [str(problem).split("; expected")[0] for problem in remarks.found] == [
            "n: got no column 'day'",
            "n, column 'age': got 'u', 'v', which are no numbers",
            "n, column 'vip': got 'u', 'v', which are no numbers",
        ]
        notes = told(remarks)
        assert "n, columns 'new', 'newer': columns that the model was not fitted with; left out" in notes
        assert not any("same" in one for one in notes)

    def test_an_empty_column_is_of_any_kind(self):
        remarks = Remarks()
        new = later(learned(MIXED), dict.fromkeys(MIXED, pa.nulls(2)), remarks)
        assert not remarks.found
        np.testing.assert_array_equal(np.isnan(matrix(new)[0]), [True, False, False, *[True] * 5])


def test_the_matrix_is_sparse_where_most_is_zero():
    columns = {"a": [1.0, 2.0, 3.0], "b": [True, False, True]}
    assert isinstance(encoded(columns).matrix, np.ndarray)
    codes = {f"c{k}": [int(row == k % 4) for row in range(4)] for k in range(8)}
    assert sp.issparse(encoded(codes).matrix)
    assert learned(codes).columns["c0"] == Number()
    assert learned({}).encode(pa.table({"x": [1, 2]})).matrix.shape == (2, 0)
