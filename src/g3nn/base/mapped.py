"""Features in a file, of which only the rows that are needed are read: a graph may be larger than the memory."""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from g3nn.base.errors import G3NNError, Problems, any_of

SUFFIXES = (".npy", ".safetensors", ".parquet")
_BLOCK_BYTES = 1 << 26
"""Bytes that are read at a time."""
_LONGEST_HEADER = 1 << 27
_TYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64}


def map_features(path: Path, problems: Problems) -> np.memmap | None:
    """The matrix (n, d) in a file: an array of numpy, the only tensor of a safetensors file, or the columns of a
    Parquet file, which are first copied row by row into a temporary file. None where a problem was recorded."""
    readers = {".npy": _of_numpy, ".safetensors": _of_safetensors, ".parquet": _of_parquet}
    if path.suffix not in readers:
        problems.add("features", repr(str(path)), f"a file that ends in {any_of(SUFFIXES)}")
        return None
    try:
        return readers[path.suffix](path)
    except (OSError, ValueError, EOFError) as error:
        problems.add("features", f"{str(path)!r}: {error}", "a file with one matrix of numbers that is complete")
        return None


def _of_numpy(path: Path) -> np.memmap:
    found = np.load(path, mmap_mode="c", allow_pickle=False)
    if not isinstance(found, np.memmap):
        raise ValueError("it holds no array")
    return found


def _of_safetensors(path: Path) -> np.memmap:
    """The header says where the numbers are; they are mapped in place."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _LONGEST_HEADER:
            raise ValueError("its header is too long")
        header = file.read(length)
    try:
        (entry,) = (entry for name, entry in json.loads(header).items() if name != "__metadata__")
        kind, (n, d), (begin, end) = np.dtype(_TYPES[entry["dtype"]]), entry["shape"], entry["data_offsets"]
        if end - begin != kind.itemsize * n * d or begin < 0:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("its header does not describe one matrix of 16, 32 or 64 bit numbers") from None
    return np.memmap(path, kind, "c", 8 + length + begin, (n, d))


def _of_parquet(path: Path) -> np.memmap:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        shape = (file.metadata.num_rows, file.metadata.num_columns)
        with tempfile.NamedTemporaryFile(prefix="g3nn-", suffix=".f32") as copy:
            for batch in file.iter_batches(max(1, _BLOCK_BYTES // (4 * max(shape[1], 1)))):
                columns = [column.to_numpy(zero_copy_only=False).astype(np.float32) for column in batch.columns]
                copy.write(np.stack(columns, axis=1).tobytes())
            copy.flush()
            # Once closed, the file has no name any more; it is deleted when it is no longer mapped.
            return np.memmap(copy.name, np.float32, "c", 0, shape)
    except (pa.ArrowException, TypeError) as error:
        raise ValueError(str(error)) from None


def blocks(matrix: np.memmap) -> Iterator[tuple[slice, np.ndarray]]:
    """The rows, some at a time, each with its place. What was read does not stay in memory."""
    size = max(1, _BLOCK_BYTES // max(matrix.itemsize * matrix.shape[1], 1))
    for start in range(0, len(matrix), size):
        rows = slice(start, min(start + size, len(matrix)))
        yield rows, np.array(matrix[rows])
        forget(matrix)


def forget(matrix: np.ndarray) -> None:
    """Tell the system that what was read of a file need not stay in memory."""
    found: mmap.mmap | None = getattr(matrix, "_mmap", None)
    if found is not None and hasattr(found, "madvise"):
        found.madvise(mmap.MADV_DONTNEED)


class Unchanged:
    """Notices that a file is no longer what it was, before its rows are read: parts of it would be of two files."""

    def __init__(self, matrix: np.memmap) -> None:
        self._path = None if matrix.filename is None else Path(matrix.filename)
        self._was = self._now()

    def _now(self) -> tuple[int, int] | None:
        if self._path is None or not self._path.exists():
            return None
        found = os.stat(self._path)
        return found.st_size, found.st_mtime_ns

    def check(self) -> None:
        if self._was is not None and self._now() != self._was:
            raise G3NNError(
                f"features: {str(self._path)!r} has changed since training began; leave it alone and begin anew"
            )
