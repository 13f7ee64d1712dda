from __future__ import annotations

import itertools

import pytest
import scipy.sparse as sp
import torch

from g3nn.kernels import FreePairs, Pattern


def free_pairs(arcs: torch.Tensor, n: int) -> FreePairs:
    """All pairs but arcs (2, A) and self-pairs."""
    taken = torch.eye(n, dtype=torch.bool)
    taken[arcs[0], arcs[1]] = True
    return FreePairs(Pattern.from_scipy(sp.csr_array(taken.numpy())))


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_every_free_pair_in_order(implementation, density):
    n = 17
    taken = torch.rand(n, n, generator=torch.Generator().manual_seed(0)) < density
    # A few full rows: the search for the row must step over them.
    taken[3:7] = True
    arcs = (taken & ~torch.eye(n, dtype=torch.bool)).nonzero().T
    expected = [(i, j) for i, j in itertools.product(range(n), repeat=2) if i != j and not taken[i, j]]
    free = free_pairs(arcs, n)
    assert len(free) == len(expected)
    i, j = free.pairs(torch.arange(len(free)))
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected


def test_which_pairs_are_free():
    free = free_pairs(torch.tensor([[0, 2], [1, 0]]), 4)
    i, j = torch.tensor([[0, 1, 2, 3]]), torch.tensor([[1, 0, 2, 0]])
    assert free.contains(i, j).tolist() == [[False, True, False, True]]
    every = torch.cartesian_prod(torch.arange(4), torch.arange(4)).T
    assert int(free.contains(*every).sum()) == len(free)


def test_any_shape_of_ranks(implementation):
    free = free_pairs(torch.tensor([[0, 2], [1, 0]]), 4)
    rank = torch.randint(len(free), (3, 50), generator=torch.Generator().manual_seed(0))
    i, j = free.pairs(rank)
    assert i.shape == j.shape == rank.shape
    assert torch.equal(torch.stack(free.pairs(rank[1])), torch.stack([i[1], j[1]]))
