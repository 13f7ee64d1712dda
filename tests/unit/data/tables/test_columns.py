from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from g3nn.base.errors import InputError
from g3nn.graph.tables.cells import identifiers, plain, split_parts
from g3nn.graph.tables.remarks import listed


def ids(values: Any, typed: bool) -> list[Any]:
    return identifiers("n, column 'id'", pa.chunked_array([pa.array(values)]), typed).to_pylist()


def test_ids_of_a_csv_file_are_numbers_where_they_give_back_the_text():
    columns = {
        ("7", "0", "-3"): [7, 0, -3],
        ("14.0", "15.", "16"): [14, 15, 16],
        ("007", "12"): ["007", "12"],
        ("a", " 7"): ["a", "7"],
        ("9" * 20, "1"): ["9" * 20, "1"],
        ("-0", "1"): ["-0", "1"],
        ("1.5", "2.5"): ["1.5", "2.5"],
        ("NA", "null"): ["NA", "null"],
        ("2020-01-01", "2020-01-02"): ["2020-01-01", "2020-01-02"],
    }
    assert {texts: ids(texts, typed=False) for texts in columns} == columns


def test_other_tables_say_what_their_ids_are():
    assert ids(["7", " a"], typed=True) == ["7", " a"]
    assert ids(pa.array(["7", "8"]).dictionary_encode(), typed=True) == ["7", "8"]
    assert ids(pa.array([7, 8], pa.int8()), typed=True) == [7, 8]
    assert ids(pa.array([7, 2**64 - 1], pa.uint64()), typed=True) == ["7", str(2**64 - 1)]
    assert ids([14.0, 15.0], typed=True) == [14, 15]
    assert ids(np.array([14, 15], dtype=np.float16), typed=True) == [14, 15]


def test_what_is_no_id():
    cases = [
        (["a", "", "b"], False, "column 'id': got 1 missing id (row 2); expected an id in every row"),
        ([None, None], True, "2 missing ids (row 1, 2)"),
        ([14.0, None], True, "1 missing id (row 2)"),
        ([1.5, 2.0], True, "values of type double; expected text or whole numbers"),
        ([1e300, 2e300, 1.0], True, "2 numbers that may be rounded (1e+300, 2e+300); expected exact ids"),
        ([True, False], True, "values of type bool"),
        ([datetime.date(2020, 1, 1)], True, "values of type date32"),
        ([[1], [2]], True, "values of type list"),
        (["1", "2", "3", "x4"], False, "whole numbers and 1 other value ('x4'); expected ids of one type"),
    ]
    for values, typed, words in cases:
        with pytest.raises(InputError) as caught:
            ids(values, typed)
        assert words in str(caught.value)


def test_parts_of_a_split():
    parts = split_parts("n", pa.chunked_array([["train", "VAL", "test", "", None, " validation"]]))
    assert parts.tolist() == ["train", "val", "test", "train", "train", "val"]
    with pytest.raises(InputError, match=r"1 other value \('trian'\); expected train, val, test, or an empty cell"):
        split_parts("n", pa.chunked_array([["trian", "test"]]))
    with pytest.raises(InputError, match="values of type int64; expected train, val, test"):
        split_parts("n", pa.chunked_array([[0, 1]]))


def test_long_values_are_shortened_in_messages():
    assert listed(["a" * 20_000, 7, "b", "c", "d", "e"]) == f"'{'a' * 60}...', 7, 'b', 'c', 'd' and 1 more"


def test_columns_of_other_types_become_plain():
    pandas = pytest.importorskip("pandas")
    periods = pa.table(pandas.DataFrame({"x": pandas.period_range("1970-02", periods=2, freq="M")}))["x"]
    assert plain(periods, typed=True).to_pylist() == [1, 2]
    assert plain(pa.chunked_array([pa.array([" a", "b"]).dictionary_encode()]), typed=False).to_pylist() == ["a", "b"]
