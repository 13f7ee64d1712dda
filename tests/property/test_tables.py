"""Random tables: reading and checking either answers or says what is wrong, and never fails in another way."""

from __future__ import annotations

import csv
import io
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from small_tables import read_edges, read_nodes, write

from g3nn.base.errors import DataError, G3NNWarning, InputError
from g3nn.graph.tables.fitted_tables import FittedTables, read_new_nodes
from g3nn.graph.tables.graph import TableGraph, read_tables
from g3nn.graph.tables.remarks import Remarks

SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
NAMES = st.one_of(
    st.sampled_from(["id", "label", "split", "source", "target", "x", "a.b", " id", "", 'w,;\t"q']), TEXTS
)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([0, 1, -1, 10**400, 1e308, -1e308, 5e-324, 2**53 + 1]),
)
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 5),
    NUMBERS,
    TEXTS,
    st.sampled_from(
        ["", "NA", "nan", "inf", "-inf", "007", "1.0", "true", "2020-01-01", "12:30", "a", "b", "train", "val"]
    ),
)
ARROW_COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=6, max_size=6),
    st.lists(st.one_of(st.none(), st.floats()), min_size=6, max_size=6),
    st.lists(st.one_of(st.none(), st.booleans()), min_size=6, max_size=6),
    st.lists(st.one_of(st.none(), TEXTS), min_size=6, max_size=6),
    st.lists(st.sampled_from(["a", "b", None, ""]), min_size=6, max_size=6),
    st.lists(st.integers(0, 3), min_size=6, max_size=6).map(lambda v: pa.array(v, pa.uint64())),
    st.just([None] * 6),
    st.lists(st.dates(), min_size=6, max_size=6),
    st.lists(st.lists(st.integers(0, 3), max_size=2), min_size=6, max_size=6),
    st.lists(st.binary(max_size=3), min_size=6, max_size=6),
    st.lists(st.sampled_from(["a", "b"]), min_size=6, max_size=6).map(lambda v: pa.array(v).dictionary_encode()),
    st.lists(st.integers(0, 9), min_size=6, max_size=6).map(lambda v: pa.array(v).cast(pa.decimal128(25, 3))),
)


@st.composite
def csv_texts(draw: st.DrawFn) -> str:
    """A header, now and then with strange names, and rows that are now and then too short or too long."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5))
    names = draw(st.one_of(st.just(["id", "label", *names]), st.just(names)))
    width = st.sampled_from([len(names)] * 9 + [len(names) + 1, 0])
    rows = draw(st.lists(width.flatmap(lambda n: st.lists(CELLS, min_size=n, max_size=n)), max_size=8))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=draw(st.sampled_from(["\n", "\r\n"])))
    writer.writerow(names)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return out.getvalue()


def answered(call: Any) -> Any:
    """What a call gives, or None if it says what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", G3NNWarning)
        try:
            return call()
        except (InputError, DataError):
            return None


def check_graph(nodes: Path, edges: Path, strict: bool = False, **options: Any) -> TableGraph | None:
    graph = answered(lambda: read_tables(nodes, edges, id="id", label="label", strict=strict, **options))
    if graph is None:
        return None
    n, features = graph.nodes.num_nodes, graph.features
    stored = features.matrix.data if sp.issparse(features.matrix) else features.matrix
    assert features.matrix.shape == (n, len(features.names))
    assert len(features.kinds) == len(features.names)
    assert not np.isinf(stored).any()
    assert graph.edges.size == 0 or (graph.edges.min() >= 0 and graph.edges.max() < n)
    assert [one.column for one in graph.columns] == graph.nodes.content.column_names
    assert not strict or graph.notes == () or options["drop_unknown_edges"]
    tables = FittedTables.of(graph)
    assert FittedTables.from_json(json.loads(json.dumps(tables.to_json()))) == tables
    # A model must be able to answer for the very table that it was fitted on.
    asked = read_new_nodes(tables, nodes, None, Remarks())
    assert asked is not None
    assert asked.numbers.tolist() == list(range(n))
    return graph


@SETTINGS
@given(csv_texts(), csv_texts(), st.booleans(), st.booleans(), st.booleans())
def test_csv(nodes, edges, strict, drop, text):
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("nodes.csv", "edges.csv")]
        for file, content in zip(files, (nodes, edges), strict=True):
            file.write_bytes(content.encode("utf-8"))
        check_graph(*files, strict, text=["x"] if text else [], drop_unknown_edges=drop)
        answered(lambda: read_nodes(files[0], "id", split="label"))
        answered(lambda: read_edges(files[1], weight="x"))


@SETTINGS
@given(
    st.dictionaries(NAMES, ARROW_COLUMNS, min_size=1, max_size=5),
    st.sampled_from([[1, 2, 3, 4, 5, 6], ["a", "b", "c", "d", "e", "f"], [1, 1, 2, 3, 4, 5], [None] * 6]),
    st.sampled_from([["a", "a", "b", "b", None, None], [0, 0, 1, 1, -1, None], [True, False] * 3, [0.5] * 6]),
    st.lists(st.sampled_from([1, 2, 9]), min_size=6, max_size=6),
    st.booleans(),
    st.booleans(),
)
def test_parquet(columns, ids, labels, ends, drop, text):
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("nodes.parquet", "edges.parquet")]
        pq.write_table(pa.table({**columns, "id": ids, "label": labels}), files[0])
        pq.write_table(pa.table({"source": ends, "target": ends[::-1], "w": [1.0, 0.0, 2.0] * 2}), files[1])
        chosen = (next(iter(columns)),) if text else ()
        check_graph(*files, text=chosen, drop_unknown_edges=drop)


GOOD_COLUMNS = st.sampled_from(
    [
        [1, 2, 3, 4, 5, 6, 7, 8],
        [0.5, None, -1e100, float("nan"), 1e-300, 2.0, 3.0, 4.0],
        [True, False, None, True, True, True, False, False],
        ["a", "b", "a", "b", None, "", "ü", "x"],
        ["to be", "or not", "to be", None, "not, that", 'is "the', "question\n", ""],
        [2**62, 1, 2, 3, 4, 5, 6, 7],
    ]
)
GOOD_IDS = st.sampled_from(
    [list(range(8)), [f"n{number}" for number in range(8)], [f"{number:03}" for number in range(8)], list("äöü,;\"' ")]
)
GOOD_LABELS = st.sampled_from([list("aabbcc") + [None] * 2, [0, 1] * 3 + [-1, None], [True, False] * 3 + [None] * 2])


@pytest.mark.slow
@SETTINGS
@given(
    st.dictionaries(TEXTS.map(lambda text: f"x{text}".strip()), GOOD_COLUMNS, min_size=1, max_size=4),
    GOOD_IDS,
    GOOD_LABELS,
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=10),
    st.sampled_from(["n.csv", "n.parquet"]),
    st.booleans(),
)
def test_mostly_good_tables(columns, ids, labels, pairs, name, flawed):
    """Without a flaw two things can be wrong, both in a CSV file: a blank is no id, and text has no byte 0."""
    with tempfile.TemporaryDirectory() as folder:
        nodes, edges = Path(folder) / name, Path(folder) / f"edges{Path(name).suffix}"
        write(nodes, {"id": ids, **columns, "label": labels})
        ends = {"source": [ids[i] for i, _ in pairs], "target": [ids[j] for _, j in pairs]}
        write(
            edges,
            {**ends, "target": [*ends["target"][:-1], "?" if isinstance(ids[0], str) else 99]} if flawed else ends,
        )
        text = [key for key, values in columns.items() if "to be" in values]
        graph = check_graph(nodes, edges, text=text)
        event(f"{'flawed' if flawed else 'good'}: {'a graph' if graph else 'an error'}")
        written = nodes.read_bytes() + edges.read_bytes()
        refused = name == "n.csv" and (" " in ids or b"\0" in written)
        assert (graph is None) == (flawed or refused)
        if graph is not None:
            found = {frozenset((ids[i], ids[j])) for i, j in graph.edges.T}
            given = zip(ends["source"], ends["target"], strict=True)
            assert found == {frozenset((i, j)) for i, j in given if i != j}


@SETTINGS
@given(
    st.binary(max_size=200),
    st.sampled_from(["n.csv", "n.tsv", "n.csv.gz", "n.parquet", "n"]),
    st.sampled_from([b"", b"PAR1", b"\x1f\x8b", b"id,label\n"]),
)
def test_any_bytes(content, name, start):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(start + content)
        nodes = answered(lambda: read_nodes(file, "id", "label"))
        assert nodes is None or nodes.num_nodes > 0
        edges = answered(lambda: read_edges(file))
        assert edges is None or len(edges.source) == len(edges.target)


WHOLE = pa.table({"id": list(range(50)), "x": [number / 7 for number in range(50)], "c": ["a", "b"] * 25})


@SETTINGS
@given(st.integers(0, 2000), st.integers(0, 2000), st.binary(min_size=1, max_size=4))
def test_a_damaged_parquet_file(cut, place, change):
    out = io.BytesIO()
    pq.write_table(WHOLE, out)
    content = bytearray(out.getvalue())
    content[place : place + len(change)] = change
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "n.parquet"
        file.write_bytes(bytes(content[: len(content) - (cut if cut < len(content) else 0)]))
        graph = answered(lambda: read_tables(file, id="id"))
        assert graph is None or graph.nodes.num_nodes > 0
