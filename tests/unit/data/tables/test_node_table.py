from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from small_tables import parquet_file, read_nodes, text_file

from g3nn.errors import InputError


def problems_of(path: Path, *words: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_nodes(path, *words, **options)
    return str(caught.value)


class TestIds:
    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            (["7", "0", "-3"], [7, 0, -3]),
            (["007", "12"], ["007", "12"]),
            (["a", "7"], ["a", "7"]),
            (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
            (["-0", "1"], ["-0", "1"]),
            (["0x1F", "1"], ["0x1F", "1"]),
            (["1.0", "2.0"], ["1.0", "2.0"]),
            (["NA", "null"], ["NA", "null"]),
            (["2020-01-01", "2020-01-02"], ["2020-01-01", "2020-01-02"]),
        ],
    )
    def test_a_csv_file_holds_numbers_where_they_give_back_the_text(self, tmp_path, texts, expected):
        rows = "".join(f"{text},{number}\n" for number, text in enumerate(texts))
        assert read_nodes(text_file(tmp_path, "id,x\n" + rows), "id").ids.to_pylist() == expected

    @pytest.mark.parametrize(
        ("ids", "expected"),
        [
            (pa.array(["7", "8"]), ["7", "8"]),
            (pa.array(["7", "8"]).dictionary_encode(), ["7", "8"]),
            (pa.array([7, 8], pa.int8()), [7, 8]),
            (pa.array([7, 2**64 - 1], pa.uint64()), ["7", str(2**64 - 1)]),
            (pa.array([" a", "a"]), [" a", "a"]),
        ],
    )
    def test_a_parquet_file_says_what_its_ids_are(self, tmp_path, ids, expected):
        assert read_nodes(parquet_file(tmp_path, {"id": ids, "x": [1, 2]}), "id").ids.to_pylist() == expected

    @pytest.mark.parametrize("ids", [[1.0, 2.0], [True, False], [datetime.date(2020, 1, 1)] * 2, [[1], [2]]])
    def test_other_types_are_no_ids(self, tmp_path, ids):
        assert "text or whole numbers" in problems_of(parquet_file(tmp_path, {"id": ids, "x": [1, 2]}), "id")

    def test_mixed(self, tmp_path):
        message = problems_of(text_file(tmp_path, "id,x\n1,1\n2,2\n3,3\nx4,4\n"), "id")
        assert "whole numbers and 1 other value ('x4'); expected ids of one type" in message

    def test_double(self, tmp_path):
        rows = "".join(f"{name},{number}\n" for number, name in enumerate("abcdefgabcdefg"))
        message = problems_of(text_file(tmp_path, "id,x\n" + rows), "id")
        assert "7 ids in more than one row ('a', 'b', 'c', 'd', 'e' and 2 more); expected each id once" in message

    @pytest.mark.parametrize("gap", ["", " "])
    def test_missing(self, tmp_path, gap):
        message = problems_of(text_file(tmp_path, f"id,x\na,1\n{gap},2\n"), "id")
        assert "1 missing id (row 2); expected an id in every row" in message
        assert "2 missing ids" in problems_of(parquet_file(tmp_path, {"id": [None, None], "x": [1, 2]}), "id")


class TestSplit:
    def test_split(self, tmp_path):
        rows = ["train", "VAL", "test", "", "validation"]
        text = "id,part,x\n" + "".join(f"{number},{part},{number}\n" for number, part in enumerate(rows))
        nodes = read_nodes(text_file(tmp_path, text), "id", split="part")
        assert nodes.split is not None
        assert nodes.split.tolist() == ["train", "val", "test", "train", "val"]
        assert list(nodes.kinds) == ["x"]
        message = problems_of(text_file(tmp_path, text.replace("train", "trian")), "id", split="part")
        assert "1 other value ('trian'); expected train, val, test, or an empty cell" in message

    @pytest.mark.parametrize(
        ("parts", "options", "is_split"),
        [
            (["train", "", "test"], {}, True),
            (["train", "", "test"], {"ignore": ["split"]}, False),
            (["train", "", "test"], {"categorical": ["split"]}, False),
            (["train", "", "other"], {}, False),
            (["1", "", "2"], {}, False),
            (["", "", ""], {}, False),
        ],
    )
    def test_a_column_that_looks_like_a_split_is_one(self, tmp_path, parts, options, is_split):
        text = "id,split,x\n" + "".join(f"{number},{part},{number}\n" for number, part in enumerate(parts))
        nodes = read_nodes(text_file(tmp_path, text), "id", **options)
        assert (nodes.split is not None, nodes.split_column) == (is_split, "split" if is_split else None)
        assert ("split" in nodes.kinds) == (not is_split and "ignore" not in options)


class TestColumns:
    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            (pa.array([1, 2], pa.uint8()), "numeric"),
            (pa.array([1, 2], pa.float16()), "numeric"),
            (pa.array([1, 2]).cast(pa.decimal128(25, 2)), "numeric"),
            (pa.array([None, None]), "numeric"),
            (pa.array([True, None]), "boolean"),
            (pa.array(["a", None]), "categorical"),
            (pa.array(["a", "b"]).dictionary_encode(), "categorical"),
        ],
    )
    def test_kinds(self, tmp_path, values, kind):
        assert dict(read_nodes(parquet_file(tmp_path, {"id": [1, 2], "x": values}), "id").kinds) == {"x": kind}

    def test_chosen_kinds(self, tmp_path):
        path = text_file(tmp_path, "id,zip,words,x,z\n1,007,12,1,2\n2,008,13,2,3\n")
        nodes = read_nodes(path, "id", text=["words"], ignore=["z"], categorical=["zip"])
        assert dict(nodes.kinds) == {"zip": "categorical", "words": "text", "x": "numeric"}
        assert nodes.features.to_pydict() == {"zip": ["007", "008"], "words": ["12", "13"], "x": [1, 2]}

    @pytest.mark.parametrize(
        ("values", "advice"),
        [
            ([datetime.date(2020, 1, 1)] * 2, "days since"),
            ([datetime.datetime(2020, 1, 1)] * 2, "days since"),
            ([datetime.timedelta(1)] * 2, "days since"),
            ([[1, 2], [3]], "one column for each number"),
            ([{"a": 1}, {"a": 2}], "one column for each number"),
            ([b"a", b"b"], "one column for each number"),
        ],
    )
    def test_dates_and_nested_columns_are_refused(self, tmp_path, values, advice):
        message = problems_of(parquet_file(tmp_path, {"id": [1, 2], "when": values}), "id")
        assert "column 'when'" in message
        assert "--ignore" in message
        assert advice in message

    def test_dates_in_a_csv_file(self, tmp_path):
        path = text_file(tmp_path, "id,when,x\n1,2020-01-01,1\n2,2020-01-02,2\n")
        assert "column 'when': got values of type date32" in problems_of(path, "id")
        assert list(read_nodes(path, "id", ignore=["when"]).kinds) == ["x"]

    def test_numbers_and_words_in_one_column(self, tmp_path):
        path = text_file(tmp_path, "id,x\n1,1\n2,2\n3,unknown\n")
        message = problems_of(path, "id")
        assert "column 'x': got numbers and 1 other value ('unknown')" in message
        assert "--categorical" in message
        assert dict(read_nodes(path, "id", categorical=["x"]).kinds) == {"x": "categorical"}

    def test_missing_columns_and_double_roles_at_once(self, tmp_path):
        path = text_file(tmp_path, "id,label,age,city,active\na,x,1,Rome,true\nb,y,2.5,Oslo,false\nc,,3,Rome,true\n")
        message = problems_of(path, "Id", "labl", text=["city", "words"], ignore=["agee", "city"], split="active")
        assert "6 problems" in message
        assert "id column: got 'Id'" in message
        assert "Did you mean 'id'?" in message
        assert "Did you mean 'label'?" in message
        assert "Did you mean 'age'?" in message
        assert "text column: got 'words'" in message
        assert "ignored column: got 'city', which is also the text column" in message
        assert "column 'active': got 3 other values ('true', 'false')" in message

    def test_nothing_describes_the_nodes(self, tmp_path):
        assert "no column that describes the nodes" in problems_of(text_file(tmp_path, "id,y\n1,2\n"), "id", "y")
