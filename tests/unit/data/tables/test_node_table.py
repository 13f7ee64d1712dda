from __future__ import annotations

import pyarrow as pa
import pytest
from small_tables import parquet_file, read_nodes, text_file

from g3nn.base.errors import InputError


def test_ids(tmp_path):
    assert read_nodes(text_file(tmp_path, "id,x\nNA,1\n?,2\n"), "id").ids.to_pylist() == ["NA", "?"]
    assert read_nodes(text_file(tmp_path, "id,x\n14.0,1\n15,2\n"), "id").ids.to_pylist() == [14, 15]
    assert read_nodes(pa.table({"id": [14.0, 15.0]}), "id").ids.to_pylist() == [14, 15]
    assert read_nodes(text_file(tmp_path, "id,x\nu,1\nv,2\n"), None).ids.to_pylist() == [0, 1]


def test_double_ids(tmp_path):
    rows = "".join(f"{name},{number}\n" for number, name in enumerate("abcdefgabcdefg"))
    with pytest.raises(InputError) as caught:
        read_nodes(text_file(tmp_path, "id,x\n" + rows), "id")
    words = "7 ids in more than one row ('a', 'b', 'c', 'd', 'e' and 2 more); expected each id once"
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "options", "is_split"),
    [
        (["train", "", "test"], {}, True),
        (["train", "", "test"], {"ignore": ["split"]}, False),
        (["train", "", "test"], {"categorical": ["split"]}, False),
        (["train", "", "other"], {}, False),
        (["", "", ""], {}, False),
    ],
)
def test_a_column_that_looks_like_a_split_is_one(tmp_path, parts, options, is_split):
    text = "id,split,x\n" + "".join(f"{number},{part},{number}\n" for number, part in enumerate(parts))
    nodes = read_nodes(text_file(tmp_path, text), "id", **options)
    assert (nodes.split is not None, nodes.columns.split) == (is_split, "split" if is_split else None)
    assert ("split" in nodes.features.column_names) == (not is_split and "ignore" not in options)


def test_chosen_columns_stay_text(tmp_path):
    path = text_file(tmp_path, "id,zip,words,x,z\n1,007,12,1,2\n2,008,13,2,3\n")
    nodes = read_nodes(path, "id", text=("words",), ignore=("z",), categorical=("zip",))
    assert nodes.features.to_pydict() == {"zip": ["007", "008"], "words": ["12", "13"], "x": [1, 2]}
    assert nodes.columns.chosen == {"zip": "categorical", "words": "text"}
    assert nodes.content.column_names == ["id", "zip", "words", "x", "z"]


def test_blanks_around_features_mean_nothing(tmp_path):
    path = parquet_file(tmp_path, {"id": [" a", "a"], "city": ["Rome ", "Rome"]})
    nodes = read_nodes(path, "id")
    assert (nodes.ids.to_pylist(), nodes.features["city"].to_pylist()) == ([" a", "a"], ["Rome", "Rome"])


def test_missing_columns_and_double_roles_at_once(tmp_path):
    path = text_file(tmp_path, "id,label,age,city,active\na,x,1,Rome,true\nb,y,2.5,Oslo,false\nc,,3,Rome,true\n")
    with pytest.raises(InputError) as caught:
        read_nodes(path, "Id", "labl", text=["city", "words"], ignore=["city"], split="active")
    assert [str(problem).removeprefix(f"{path}, ").split("; ")[0] for problem in caught.value.problems] == [
        "id column: got no 'Id' among 'id', 'label', 'age', 'city', 'active'",
        "label column: got no 'labl' among 'id', 'label', 'age', 'city', 'active'",
        "text column: got no 'words' among 'id', 'label', 'age', 'city', 'active'",
        "ignored column: got 'city', which is also the text column",
        "column 'active': got 3 other values ('true', 'false')",
    ]
    assert "Did you mean 'label'?" in str(caught.value)
