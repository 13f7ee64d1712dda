import numba
import numpy as np
import pytest

from g3nn.kernels.prefetch import prefetch


@numba.njit
def first_after_asking(array, index):
    prefetch(array, index)
    return array.flat[0]


@pytest.mark.parametrize(
    ("shape", "index"),
    [((5,), (np.int32(4),)), ((5, 3), (4,)), ((2, 5, 3), (1, np.int32(4))), ((2, 5, 3, 2), (1, np.int64(4), 2))],
)
def test_asks_for_memory_and_changes_nothing(shape, index):
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    before = array.copy()
    assert first_after_asking(array, index) == 0
    np.testing.assert_array_equal(array, before)
    code = first_after_asking.inspect_llvm(first_after_asking.signatures[-1])
    assert "call void @llvm.prefetch" in code
