from __future__ import annotations

import os
import pickle
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import scipy.sparse as sp

from g3nn.data.unpickle import array, neighbour_lists
from g3nn.errors import DataError

# Protocol 2 pickles name classes by module; these renames turn what this numpy and scipy write into what theirs wrote.
OLD_NAMES = ((b"numpy._core.multiarray", b"numpy.core.multiarray"), (b"scipy.sparse._csr", b"scipy.sparse.csr"))


def old_pickle(value: object) -> bytes:
    content = pickle.dumps(value, protocol=2, fix_imports=True)
    for new, old in OLD_NAMES:
        content = content.replace(new, old)
    return content


# What Python 2 wrote for numpy.array([1., 2.], dtype='<f4'): its bytes are a latin1 string.
PYTHON_2_ARRAY = (
    b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    b"\x89U\x08\x00\x00\x80?\x00\x00\x00@tb."
)


def test_python_2_array():
    read = array(PYTHON_2_ARRAY, "here")
    assert read.dtype == np.float32
    assert read.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("cut", [1, 30, 100, len(PYTHON_2_ARRAY) - 1])
def test_truncated_pickle_is_a_data_error(cut):
    with pytest.raises(DataError, match="here: not a pickled array"):
        array(PYTHON_2_ARRAY[:cut], "here")


def test_array_of_another_shape_than_its_bytes_is_a_data_error():
    with pytest.raises(DataError, match="here"):
        array(PYTHON_2_ARRAY.replace(b"(K\x01K\x02\x85", b"(K\x01K\x03\x85"), "here")


def test_array_of_objects_is_refused():
    with pytest.raises(DataError, match="array of type object"):
        array(PYTHON_2_ARRAY.replace(b"U\x02f4", b"U\x02O8").replace(b"U\x01<", b"U\x01|"), "here")


def csr_with(**changes: object) -> bytes:
    """A pickled CSR matrix whose state is as scipy's was then, with some of it changed."""
    matrix = sp.csr_matrix(np.array([[0, 2.0], [1, 0]], dtype=np.float32))
    state = {"_shape": (2, 2), "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr} | changes

    class Stated:
        def __reduce__(self) -> tuple[object, ...]:
            return sp.csr_matrix, (), state

    return old_pickle(Stated())


def test_csr_matrix():
    # `fix_imports` and protocol 2 write array bytes as a call to _codecs.encode, which Python 2 never did.
    with pytest.raises(DataError, match=r"_codecs\.encode"):
        array(csr_with(), "here")


class Call:
    """Pickles as a call of `function`."""

    def __init__(self, function: object, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[object, ...]:
        return self.call


@pytest.mark.parametrize("read", [array, neighbour_lists])
@pytest.mark.parametrize(
    "payload",
    [
        Call(os.system, "touch {marker}"),
        Call(eval, "__import__('pathlib').Path('{marker}').touch()"),
        Call(open, "{marker}", "w"),
        Call(getattr, np, "load"),
        OrderedDict(a=1),
    ],
    ids=["system", "eval", "open", "getattr", "OrderedDict"],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_anything_else_is_refused_and_not_run(tmp_path, read, payload, protocol):
    marker = tmp_path / "ran"
    if isinstance(payload, Call):
        function, arguments = payload.call
        payload = Call(function, *(str(a).format(marker=marker) if isinstance(a, str) else a for a in arguments))
    with pytest.raises(DataError, match="neither a numpy nor a scipy array|not a pickled"):
        read(pickle.dumps(payload, protocol=protocol), "here")
    assert not marker.exists()


def test_neighbour_lists():
    graph = defaultdict(list, {0: [1, 2], 2: [0]})
    read = neighbour_lists(pickle.dumps(graph, protocol=2), "here")
    assert read == {0: [1, 2], 2: [0]}
    assert type(read) is dict


@pytest.mark.parametrize("value", [[1, 2], {0: 5}, {"a": [1]}, {0: ["x"]}, None])
def test_other_values_than_neighbour_lists_are_refused(value):
    with pytest.raises(DataError, match="here: not a pickled graph"):
        neighbour_lists(pickle.dumps(value, protocol=2), "here")


@pytest.mark.parametrize("value", [[1, 2], 3, "text", {0: [1]}])
def test_other_values_than_arrays_are_refused(value):
    with pytest.raises(DataError, match="here: not a pickled array: it holds a"):
        array(pickle.dumps(value, protocol=2), "here")
