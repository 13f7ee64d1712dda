from __future__ import annotations

import warnings

import pytest

from g3nn.base.errors import DataError, G3NNWarning, InputError, Problem
from g3nn.graph.tables.remarks import Oddity, Remarks

ODD = Oddity("no value", "values", "left out", "Fill it.")


def test_columns_with_the_same_oddity_share_a_note():
    remarks = Remarks()
    for name in ("a", "b"):
        remarks.column("n.csv", name, ODD)
    remarks.column("n.csv", "c", ODD._replace(done="kept", advice=""))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        remarks.tell()
    notes = ["n.csv, columns 'a', 'b': no value; left out. Fill it.", "n.csv, column 'c': no value; kept"]
    assert remarks.notes == notes
    assert [(str(one.message), one.category) for one in caught] == [(note, G3NNWarning) for note in notes]
    assert remarks.found == []


def test_a_strict_caller_gets_problems_instead_but_for_what_was_asked_for():
    remarks = Remarks(strict=True)
    remarks.note("n.csv", *ODD)
    remarks.column("n.csv", "a", ODD)
    remarks.notes.append("edges were dropped")
    with pytest.warns(G3NNWarning, match="^edges were dropped$"):
        remarks.tell()
    expected = [Problem(place, "no value", "values", "Fill it.") for place in ("n.csv", "n.csv, column 'a'")]
    assert remarks.found == expected


def test_what_is_wrong_with_a_table_and_with_its_content_is_collected():
    remarks = Remarks()
    with remarks.of_table("nodes"):
        raise DataError("n.csv: is empty.")
    with remarks.of_table("edges"):
        raise InputError([Problem("e.csv", "one column", "two")])
    assert [str(problem) for problem in remarks.found] == [
        "nodes: got n.csv: is empty; expected a table: CSV, Parquet, Excel, JSON or a data frame",
        "e.csv: got one column; expected two",
    ]
