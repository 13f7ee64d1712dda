"""Pickles as Python 2 wrote those of Planetoid, put together by hand."""

from __future__ import annotations

import struct

import numpy as np


def text(value: bytes) -> bytes:
    """As Python 2 pickled its byte strings."""
    return b"T" + struct.pack("<i", len(value)) + value


def shape(*sizes: int) -> bytes:
    return b"(" + b"".join(b"J" + struct.pack("<i", size) for size in sizes) + b"t"


def pickled_array(values: np.ndarray, code: bytes = b"", claimed: bytes = b"") -> bytes:
    """What Python 2 and the numpy of 2016 wrote, without the frame around it."""
    made = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + shape(0) + text(b"b") + b"\x87R"
    dtype = b"cnumpy\ndtype\n" + text(code or values.dtype.str[1:].encode()) + b"K\x00K\x01\x87R"
    dtype += b"(K\x03" + text(b"<") + b"NNN" + b"J\xff\xff\xff\xff" * 2 + b"K\x00tb"
    return made + b"(K\x01" + (claimed or shape(*values.shape)) + dtype + b"\x89" + text(values.tobytes()) + b"tb"


def pickled_csr(**changes: bytes) -> bytes:
    """[[0, 2], [1, 0]] as Python 2 and the scipy of 2016 wrote it, with parts of its state changed."""
    state = {
        "_shape": shape(2, 2),
        "data": pickled_array(np.array([2, 1], dtype="<f4")),
        "indices": pickled_array(np.array([1, 0], dtype="<i4")),
        "indptr": pickled_array(np.array([0, 1, 2], dtype="<i4")),
    } | changes
    items = b"".join(text(key.encode()) + value for key, value in state.items())
    return framed(b"cscipy.sparse.csr\ncsr_matrix\n)\x81}(" + items + b"ub")


def framed(content: bytes) -> bytes:
    return b"\x80\x02" + content + b"."
