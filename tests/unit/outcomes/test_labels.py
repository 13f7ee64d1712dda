"""Labels before anything is known about what they mean."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from g3nn.graph.outcomes import Labels, has_label, is_known, unlabelled, without_labels_of
from g3nn.graph.outcomes.labels import flat_values, is_missing, quoted, table_values

CODES = np.array([0, -1, 2])
NUMBERS = np.array([[1.0, np.nan], [np.nan, np.nan], [-1.0, 3.0]])


def test_known_entries_and_labelled_nodes():
    assert is_known(CODES).tolist() == [True, False, True]
    assert is_known(NUMBERS).tolist() == [[True, False], [False, False], [True, True]]
    assert has_label(CODES).tolist() == has_label(NUMBERS).tolist() == [True, False, True]
    assert Labels(np.array(["a", "b"]), NUMBERS, False).labelled.tolist() == [0, 2]


@pytest.mark.parametrize("values", [CODES, NUMBERS], ids=["classes", "numbers"])
def test_labels_can_be_hidden_and_moved_into_a_larger_graph(values):
    assert not is_known(unlabelled(values.shape, values.dtype)).any()
    hidden = without_labels_of(values, np.array([2]))
    assert has_label(hidden).tolist() == [True, False, False]
    assert has_label(values)[2], "the original stays"
    assert has_label(without_labels_of(values, np.array([True, False, False]))).tolist() == [False, False, True]
    larger = Labels(np.arange(3), values).within(np.array([4, 0, 1]), 6)
    assert larger.values.dtype == values.dtype
    np.testing.assert_array_equal(larger.values[[4, 0, 1]], values)
    assert larger.labelled.tolist() == [1, 4]


def test_which_labels_have_columns():
    tables = (np.eye(2), [[1, 0], [0, 1]], sp.eye_array(2), pa.table({"a": [1, 0], "b": [0, 1]}), torch.eye(2))
    for table in tables:
        values, names = table_values(table)
        np.testing.assert_array_equal(values.astype(float), np.eye(2))
        assert names == (("a", "b") if isinstance(table, pa.Table) else None)
    flat = (np.ones(3), ["a", "b"], [["a"], ["b", "c"]], [1, 0], torch.ones(2), [], np.ones((2, 2, 2)))
    assert all(table_values(y) is None for y in flat)


def test_series_tensors_and_lists_become_one_array():
    for y in ([1, None, 3], pa.chunked_array([[1, None], [3]])):
        assert flat_values(y).tolist() == [1, None, 3]
    assert flat_values(torch.tensor([1, 2])).tolist() == [1, 2]
    assert flat_values([(1, 2), (3,)]).shape == (2,)


def test_missing_values():
    class NAType:
        """What pandas calls its missing value."""

    assert all(map(is_missing, (None, float("nan"), np.float32("nan"), NAType())))
    assert not any(map(is_missing, (0, "", "nan", False, -1)))


def test_many_names_are_cut_short():
    assert quoted(["a"]) == "'a'"
    assert quoted(list(range(7))) == "0, 1, 2, 3, 4 and 2 more"
