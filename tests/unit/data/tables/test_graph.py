from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from g3nn.data.tables.graph import join
from g3nn.data.tables.reading import EdgeTable
from g3nn.errors import G3NNWarning, InputError


def edge_table(source: list[Any], target: list[Any], typed: bool = False) -> EdgeTable:
    return EdgeTable("e.csv", pa.array(source), pa.array(target), ("source", "target"), typed)


class TestJoin:
    @pytest.mark.parametrize("ids", [["a", "b", "c"], [5, 0, 3]])
    def test_positions(self, ids):
        edges = edge_table([ids[2], ids[0]], [ids[1], ids[0]])
        pairs = join(edges, pa.array(ids), typed=True)
        assert pairs.tolist() == [[2, 0], [1, 0]]
        assert pairs.dtype == np.int64

    @pytest.mark.parametrize(("ids", "ends", "typed"), [(["7", "a"], [7, 7], True), ([7, 8], ["7", "7"], False)])
    def test_numbers_of_a_csv_file_match_the_same_text(self, ids, ends, typed):
        assert join(edge_table(ends, ends), pa.array(ids), typed=typed).tolist() == [[0, 0], [0, 0]]

    def test_types_that_two_files_state_must_agree(self):
        with pytest.raises(
            InputError, match=r"columns 'source', 'target': got ids that are text; expected whole numbers, as"
        ):
            join(edge_table(["7"], ["8"], typed=True), pa.array([7, 8]), typed=True)

    def test_unknown_ids(self):
        edges = edge_table(["a", *"tuvwxyz"], ["a", *"bbbbbbb"])
        with pytest.raises(InputError) as caught:
            join(edges, pa.array(["a", "b"]), typed=False)
        assert "7 of 8 edges with ids that no node has: 't', 'u', 'v', 'w', 'x' and 2 more" in str(caught.value)
        assert "--drop-unknown-edges" in str(caught.value)

    def test_unknown_ids_are_dropped_when_asked(self):
        edges = edge_table(["a", "x", "b"], ["b", "a", "y"])
        with pytest.warns(G3NNWarning, match="left out 2 of 3 edges"):
            pairs = join(edges, pa.array(["a", "b"]), typed=False, drop_unknown=True)
        assert pairs.tolist() == [[0], [1]]

    def test_all_edges_are_never_dropped(self):
        with pytest.raises(InputError, match="Both tables must use the same ids"):
            join(edge_table(["x"], ["y"]), pa.array(["a"]), typed=False, drop_unknown=True)

    def test_many(self):
        rng = np.random.default_rng(0)
        ids = rng.permutation(1000)
        pairs = rng.integers(0, 1000, (2, 5000))
        edges = edge_table(ids[pairs[0]].tolist(), ids[pairs[1]].tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(join(edges, pa.array(ids), typed=False), pairs)
