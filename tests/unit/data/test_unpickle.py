from __future__ import annotations

import itertools
import os
import pickle
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import scipy.sparse as sp
from old_pickles import framed, pickled_array, pickled_csr, shape, text

from g3nn.base.errors import DataError
from g3nn.graph.datasets.unpickle import array, neighbour_lists

NUMBERS = np.array([[1, -2, 3], [250, 5, 6]], dtype="<f4")


def test_array():
    for dtype in ["<f4", "<f8", "<i4", "<i8"]:
        read = array(framed(pickled_array(NUMBERS.astype(dtype))), "here")
        assert read.dtype == np.dtype(dtype)
        assert np.array_equal(read, NUMBERS)


def test_csr_matrix():
    read = array(pickled_csr(), "here")
    assert isinstance(read, sp.csr_array)
    assert read.dtype == np.float32
    assert read.toarray().tolist() == [[0, 2], [1, 0]]


def test_impossible_csr_matrix_is_a_data_error():
    for changes in [
        {"indices": pickled_array(np.array([1, 7], dtype="<i4"))},
        {"indices": pickled_array(np.array([1, -1], dtype="<i4"))},
        {"indptr": pickled_array(np.array([0, 9, 2], dtype="<i4"))},
        {"indptr": pickled_array(np.array([0, 1], dtype="<i4"))},
        {"data": text(b"no array")},
        {"_shape": shape(2)},
    ]:
        with pytest.raises(DataError, match="here: not a pickled array"):
            array(pickled_csr(**changes), "here")


def test_truncated_pickle_is_a_data_error():
    for kept in [0, 1, 30, 100, -1]:
        with pytest.raises(DataError, match="here: not a pickled array"):
            array(framed(pickled_array(NUMBERS))[:kept], "here")


def test_array_of_another_size_than_its_bytes_is_a_data_error():
    with pytest.raises(DataError, match="here: not a pickled array"):
        array(framed(pickled_array(NUMBERS, claimed=shape(2, 4))), "here")


def test_array_of_objects_is_refused():
    with pytest.raises(DataError, match="array of type object"):
        array(framed(pickled_array(NUMBERS, code=b"O8")), "here")


class Call:
    """Pickles as a call of `function`."""

    def __init__(self, function: object, *arguments: str) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[object, ...]:
        return self.call


def test_anything_else_is_refused_and_not_run(tmp_path):
    for payload in [
        Call(os.system, "touch {marker}"),
        Call(eval, "__import__('pathlib').Path('{marker}').touch()"),
        Call(open, "{marker}", "w"),
        Call(getattr, "text", "upper"),
        OrderedDict(a=1),
    ]:
        marker = tmp_path / "ran"
        if isinstance(payload, Call):
            function, arguments = payload.call
            payload = Call(function, *(argument.format(marker=marker) for argument in arguments))
        for read, protocol in itertools.product((array, neighbour_lists), (0, 2, 4)):
            with pytest.raises(DataError, match=r"neither a numpy nor a scipy array|not a pickled"):
                read(pickle.dumps(payload, protocol=protocol), "here")
            assert not marker.exists()


def test_neighbour_lists():
    graph = defaultdict(list, {0: [1, 2], 2: [0]})
    read = neighbour_lists(pickle.dumps(graph, protocol=2), "here")
    assert read == {0: [1, 2], 2: [0]}
    assert type(read) is dict


def test_other_values_than_neighbour_lists_are_refused():
    for value in [[1, 2], {0: 5}, {"a": [1]}, {0: ["x"]}, None]:
        with pytest.raises(DataError, match="here: not a pickled graph"):
            neighbour_lists(pickle.dumps(value, protocol=2), "here")


def test_other_values_than_arrays_are_refused():
    for value in [[1, 2], 3, "text", {0: [1]}]:
        with pytest.raises(DataError, match="here: not a pickled array: it holds a"):
            array(pickle.dumps(value, protocol=2), "here")
