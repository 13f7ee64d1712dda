from __future__ import annotations

import numpy as np
import pyarrow as pa

from g3nn.graph.tables.cells import NULL_WORDS, date_formats, dates, decimal_of, known, numbers


def test_words_for_nothing():
    cells = pa.array([*NULL_WORDS, " NA ", None, "Nan", "na", "--", "0"])
    assert known(cells).drop_null().to_pylist() == ["Nan", "na", "--", "0"]
    assert known(cells, ("", "0")).null_count == 3


def test_numbers_as_people_write_them():
    with_point = {
        "1.5": 1.5,
        " -.5e3 ": -500,
        "1,234": 1234,
        "1 234 567": 1234567,
        "1'000": 1000,
        "$ 5": 5,
        "-€1,000.50": -1000.5,
        "7 CHF": 7,
        "12.5 %": 0.125,
        "12,34": None,
        "1_0": None,
        "nan": None,
        "5 apples": None,
    }
    assert dict(zip(with_point, numbers(pa.array(list(with_point))).to_pylist(), strict=True)) == with_point
    with_comma = {"1,234": 1.234, "1.234,5": 1234.5, "1\u00a0234,5": 1234.5, "1.5": None, "-3 €": -3, "2,5%": 0.025}
    assert dict(zip(with_comma, numbers(pa.array(list(with_comma)), ",").to_pylist(), strict=True)) == with_comma
    assert numbers(pa.array(["7", "8", None, "7"])).to_pylist() == [7, 8, None, 7]


def test_the_decimal_sign_is_the_one_that_reads_more():
    columns = [["1,5", "2,25"], ["1,234", "2,345"], ["1,234", "2.5"], ["1.234,5", "x"], []]
    assert [decimal_of(pa.array(cells, pa.large_string())) for cells in columns] == [",", ".", ".", ",", "."]


def test_dates_as_people_write_them():
    columns = {
        ("2020-12-31", "2021-01-01"): ["%Y-%m-%d"],
        ("31.12.2020", "01.02.2021"): ["%d.%m.%Y"],
        ("12/31/2020", "01/02/2021"): ["%m/%d/%Y"],
        ("31/12/2020", "01/02/2021"): ["%d/%m/%Y"],
        ("01/02/2021", "03/04/2021"): ["%m/%d/%Y", "%d/%m/%Y"],
        ("02/02/2021", "03/03/2021"): ["%m/%d/%Y"],
        ("2020-12-31T10:00:00.25Z", "2021-01-01T00:00:00+02:00"): ["%Y-%m-%dT%H:%M:%S"],
        ("2020-12-31 10:00", "2021-01-01 10:00"): ["%Y-%m-%d %H:%M"],
        ("3 Mar 2020", "12 Dec 2021"): ["%d %b %Y"],
        ("Mar 3, 2020", "Dec 12, 2021"): ["%b %d, %Y"],
        ("2020-12-31",) * 19 + ("soon",): ["%Y-%m-%d"],
        ("2020-12-31",) * 9 + ("soon",): [],
        ("1-a", "2-b"): [],
        ("Rome", "Oslo"): [],
    }
    assert {cells: date_formats(pa.array(cells, pa.large_string())) for cells in columns} == columns


def test_a_late_row_tells_days_from_months():
    cells = pa.array(["01/02/2021"] * 5000 + ["soon", "31/12/2021"] + ["01/02/2021"] * 5000, pa.large_string())
    assert date_formats(cells) == ["%d/%m/%Y"]
    read = dates(cells, "%d/%m/%Y")
    assert (read.null_count, str(read[5001])) == (1, "2021-12-31 00:00:00")


def test_each_text_is_read_for_itself():
    cells = np.random.default_rng(0).integers(0, 50, 1000).astype(str).tolist()
    assert numbers(pa.array([f"{cell} %" for cell in cells])).to_pylist() == [int(cell) / 100 for cell in cells]
