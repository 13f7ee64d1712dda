"""What happens past 2^31 and 2^32, without anything that large."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from g3nn.kernels import Draw, FreePairs, Pattern, attend, cpu, dropped_linear, nodes, pair_dot, reference, spmm
from g3nn.kernels import pattern as patterns


@pytest.fixture
def matrix() -> sp.csr_array:
    mask = np.random.default_rng(0).random((30, 30)) < 0.2
    return sp.csr_array((mask | np.eye(30, dtype=bool)).astype(float))


@pytest.fixture
def narrow(matrix) -> Pattern:
    found = Pattern.from_scipy(matrix)
    assert [part.dtype for part in (found.col, found.row, found.t_col, found.perm)] == [torch.int32] * 4
    return found


@pytest.fixture
def wide(monkeypatch, matrix, narrow) -> Pattern:
    """A pattern with numbers of 64 bits, as if 32 did not suffice."""
    monkeypatch.setattr(patterns, "_INT32", 10)
    found = Pattern.from_scipy(matrix)
    numbers = (found.col, found.row, found.t_col, found.perm)
    assert [part.dtype for part in numbers] == [torch.int64] * 4
    return found


def test_the_type_of_numbers_is_the_smallest_that_holds_them():
    assert patterns.index_type(2**31 - 1) == torch.int32
    assert patterns.index_type(2**31) == torch.int64


@pytest.mark.slow
@pytest.mark.parametrize("draw", [None, Draw(torch.tensor([1, 2]), 3, 0.4)], ids=["whole", "dropped"])
def test_products_and_attention_with_numbers_of_64_bits(implementation, wide, narrow, draw):
    x = torch.randn(2, 30, 4, dtype=torch.float64)
    heads, scores = x.view(2, 30, 2, 2), torch.randn(2, 2, 30, 2, dtype=torch.float64)
    values = torch.randn(1, narrow.nnz, dtype=torch.float64)
    found = []
    for pattern in (wide, narrow):
        one, two = x.clone().requires_grad_(), heads.clone().requires_grad_()
        out = spmm(pattern, values, one, draw), attend(pattern, two, *scores, draw=draw)
        sum(part.square().sum() for part in out).backward()
        found.append((*out, one.grad, two.grad))
    for first, second in zip(*found, strict=True):
        assert torch.equal(first, second)


@pytest.mark.slow
def test_pairs_with_numbers_of_64_bits(implementation, wide, narrow):
    left, right = torch.randn(2, 2, 30, 4, dtype=torch.float64)
    for pattern in (wide, narrow):
        expected = (left[:, pattern.row.long()] * right[:, pattern.col.long()]).sum(2)
        torch.testing.assert_close(pair_dot(left, right, pattern.row, pattern.col, pattern), expected)
    rank = torch.arange(len(FreePairs(narrow)))
    for one, two in zip(FreePairs(wide).pairs(rank), FreePairs(narrow).pairs(rank), strict=True):
        assert (one.dtype, two.dtype) == (torch.int64, torch.int32)
        assert torch.equal(one, two)


def test_ranks_of_free_pairs_beyond_32_bits():
    """Of 3 million nodes with self-pairs alone taken, the last pairs."""
    n = 3_000_000
    free = FreePairs(Pattern.from_rows(torch.arange(n + 1), torch.arange(n), n, symmetric=True))
    assert len(free) == n * (n - 1)
    rank = torch.tensor([0, n - 2, n - 1, 5 * 10**12, n * (n - 1) - 1])
    i, j = free.pairs(rank)
    row, column = rank // (n - 1), rank % (n - 1)
    assert torch.equal(i.long(), row)
    assert torch.equal(j.long(), column + (column >= row))


@pytest.mark.parametrize("block", [1, 40, 10**9])
def test_features_may_be_dropped_in_blocks(implementation, monkeypatch, block):
    monkeypatch.setattr(nodes, "_BLOCK", {"cpu": block})
    draw = Draw(torch.tensor([1, 2]), 3, 0.4)
    x, weight = torch.randn(17, 5, dtype=torch.float64), torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    keep = reference.keep_mask(draw.seeds, draw.counter, 17 * 5, draw.threshold).view(2, 17, 5) * draw.scale
    expected = torch.bmm(x * keep, weight)
    found = dropped_linear(x, weight, draw)
    torch.testing.assert_close(found, expected)
    slope = torch.randn_like(expected)
    (one,), (two,) = (torch.autograd.grad(out, weight, slope) for out in (found, expected))
    torch.testing.assert_close(one, two)


def test_dropout_crosses_from_one_page_of_bits_to_the_next():
    """2^32 is in the middle of what a thread handles at once."""
    draw, start = Draw(torch.tensor([1, 2]), 3, 0.4), 2**32 - 777
    keep = reference.uniform_bits(draw.seeds, draw.counter, 9000, start) >= draw.threshold
    found = cpu.dropout(torch.ones(2, 9000, dtype=torch.float64), draw, start)
    torch.testing.assert_close(found, keep.double() * draw.scale)
