"""Operations on pairs of nodes: inner products, expectations over the labels of both ends, non-edges by rank."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from g3nn.kernels import reference
from g3nn.kernels.arguments import LogisticPairs
from g3nn.kernels.backend import Saved, differentiable, fast
from g3nn.kernels.pattern import Pattern


def gather(nodes: Tensor, index: Tensor) -> Tensor:
    """(R, P, h): rows of nodes (R, n, h) at an index (P,) that replicas share, or (R, P)."""
    kernels, n = fast(nodes) or reference, nodes.shape[1]

    def backward(index: Tensor, grad: Tensor) -> Saved:
        # Unlike torch's own on a GPU, it adds rows in a fixed order.
        return (kernels.scatter_rows(grad, index, n),)

    return differentiable(lambda nodes: (reference.rows_at(nodes, index), (index,)), backward, nodes)


def pair_dot(left: Tensor, right: Tensor, i: Tensor, j: Tensor, pattern: Pattern | None = None) -> Tensor:
    """(R, P): left_i . right_j for left and right (R, n, h) and pairs i, j of shape (P,) or (R, P).

    Pairs that stay the same can come with their pattern (rows i, columns j, in the same order). Gradients are then sums
    along its rows and columns instead of scattered additions.
    """
    kernels = fast(left) or reference

    def forward(left: Tensor, right: Tensor) -> tuple[Tensor, Saved]:
        return kernels.pair_dot(left, right, i, j), (left, right, i, j)

    def backward(left: Tensor, right: Tensor, i: Tensor, j: Tensor, grad: Tensor) -> Saved:
        if pattern is None:
            return kernels.pair_dot_backward(grad, left, right, i, j)
        return kernels.spmm(pattern, grad, right, None, False), kernels.spmm(pattern, grad, left, None, True)

    return differentiable(forward, backward, left, right)


def pair_sum(left: Tensor, right: Tensor, i: Tensor, j: Tensor, pattern: Pattern | None = None) -> Tensor:
    """(R, P): left_i + right_j for left and right (R, n)."""
    kernels, n = fast(left) or reference, left.shape[1]

    def backward(i: Tensor, j: Tensor, grad: Tensor) -> Saved:
        if pattern is None:
            return tuple(kernels.scatter_rows(grad.unsqueeze(2), index, n).squeeze(2) for index in (i, j))
        ones = grad.new_ones(grad.shape[0], n, 1)
        return tuple(kernels.spmm(pattern, grad, ones, None, side).squeeze(2) for side in (False, True))

    return differentiable(lambda *ends: (kernels.pair_sum(*ends, i, j), (i, j)), backward, left, right)


def expected_logistic(
    left: Tensor,
    right: Tensor,
    base: Tensor,
    table: Tensor,
    present: bool,
    target: Tensor | None = None,
    source: Tensor | None = None,
) -> Tensor:
    """(R, P): sum_kl left_k right_l log sigmoid(+- logit_kl), with + for edges and - for non-edges, where
    logit_kl = base + table_kl + target_l + source_k.

    left, right (R, P, K): beliefs at the two ends; base (R, P); table (R, K, K); target and source (R, P, K) or None.
    """
    kernels, sign = fast(left) or reference, 1.0 if present else -1.0

    # Neither stores the R x P x K x K table: the gradient computes it again.
    def forward(*tensors: Tensor) -> tuple[Tensor, Saved]:
        return kernels.expected_logistic(LogisticPairs._make((*tensors, sign))), tensors

    def backward(*saved: Tensor) -> Saved:
        *tensors, grad = saved
        return kernels.expected_logistic_backward(grad, LogisticPairs._make((*tensors, sign)))

    return differentiable(forward, backward, left, right, base, target, source, table)


def logistic_bound(mean: Tensor, square: Tensor, present: bool) -> Tensor:
    """The lower bound of Jaakkola and Jordan (2000) on E log sigmoid(+- x), with + for edges and - for non-edges, from
    the mean and the mean square of x: log sigmoid(s) + (+- mean - s) / 2 with s^2 = E x^2. It is tight if x is certain.
    """
    # The root has no derivative at zero, though the bound has one; the small addition only lowers the bound.
    size = (square + 1e-12).clamp_min(1e-12).sqrt()
    return logsigmoid(size) + 0.5 * ((mean if present else -mean) - size)


def tag_moments(
    q: Tensor,
    base: Tensor,
    one: Tensor,
    both: Tensor,
    i: Tensor,
    j: Tensor,
    pattern: Pattern | None = None,
    other: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(R, P) each: E x and E x^2 of x = base + sum_t one_t y_it + other_t y_jt + both_t y_it y_jt for independent tags.

    q (R, n, T): the probability of each tag; base (R, 1); one, both and other (R, T), by default other = one. Inner
    products of node vectors are enough, so no array of size pairs x tags is needed.
    """
    other = one if other is None else other
    a, b, c = one.unsqueeze(1), other.unsqueeze(1), both.unsqueeze(1)
    squared, index = q.square(), (i, j, pattern)
    mean = base + tag_mean(q, one, both, *index, other)
    # Var(a u + b v + c u v) for independent u and v with probabilities p and r, ordered by powers of p and r.
    first, second = ((part.square() * (q - squared)).sum(2) for part in (a, b))
    left = torch.cat([c * ((2 * (a + b) + c) * q - 2 * a * squared), -c * (2 * b * q + c * squared)], dim=2)
    variance = pair_sum(first, second, *index) + pair_dot(left, torch.cat([q, squared], dim=2), *index)
    return mean, mean.square() + variance.clamp_min(0.0)


def tag_mean(
    q: Tensor, one: Tensor, both: Tensor, i: Tensor, j: Tensor, pattern: Pattern | None, other: Tensor
) -> Tensor:
    """(R, P): E x of x = sum_t one_t y_it + other_t y_jt + both_t y_it y_jt, by inner products of node vectors."""
    source, target = ((part.unsqueeze(1) * q).sum(2) for part in (one, other))
    return pair_sum(source, target, i, j, pattern) + pair_dot(both.unsqueeze(1) * q, q, i, j, pattern)


def log_tag_rate(q: Tensor, one: Tensor, both: Tensor, i: Tensor, j: Tensor, other: Tensor) -> Tensor:
    """(R, P): log E exp(x) of the same x, exact: tags are independent, so it is a sum over tags.

    For each tag it averages over the four settings of the two ends, a sum of positive numbers without cancellation.
    Needs arrays of size pairs x tags.
    """
    left, right = gather(q, i), gather(q, j)
    neither, first = (1 - left) * (1 - right), left * (1 - right)
    second, together = (1 - left) * right, left * right
    a, b, c = (part.exp().unsqueeze(1) for part in (one, other, one + other + both))
    return (neither + a * first + b * second + c * together).log().sum(2)


class FreePairs:
    """All ordered pairs (i, j) of n nodes that have no entry in a pattern (n, n), in the order of i n + j.

    i n - rowptr[i] free pairs come before row i, so one search finds the row of a rank. In a row with the taken columns
    c_0 < c_1 < ... there are c_t - t free ones before c_t, so the free column of rank u in the row is u + t, where t
    counts the taken columns with c_t - t <= u: another search. The result is the same on every device.
    """

    def __init__(self, taken: Pattern) -> None:
        self.n = taken.shape[0]
        self._taken = taken

    def __len__(self) -> int:
        return self.n * self.n - self._taken.nnz

    def pairs(self, rank: Tensor) -> tuple[Tensor, Tensor]:
        """i and j of the free pairs with these ranks, in the same shape and the type of the columns."""
        kernels = fast(rank)
        if kernels is not None:
            return kernels.unrank_free(rank, self._taken, self._longest)
        rowptr, col = self._taken.rowptr, self._taken.col
        rows = torch.arange(self.n + 1, device=rank.device) * self.n - rowptr
        i = torch.searchsorted(rows, rank, right=True) - 1
        rest, start = rank - rows[i], rowptr[i]
        t = self._count(i, lambda k: col[k] - (k - start) <= rest)
        return i.to(col.dtype), (rest + t).to(col.dtype)

    def contains(self, i: Tensor, j: Tensor) -> Tensor:
        """Whether these pairs are free, in the shape of i and j."""
        col = self._taken.col
        place = self._taken.rowptr[i] + self._count(i, lambda k: col[k] < j)
        return (place == self._taken.rowptr[i + 1]) | (col[place.clamp_max(self._taken.nnz - 1)] != j)

    def _count(self, row: Tensor, first: Callable[[Tensor], Tensor]) -> Tensor:
        """The number of entries at the start of each row for which `first` is true; it is false for all after them."""
        start, low, high = self._taken.rowptr[row], self._taken.rowptr[row], self._taken.rowptr[row + 1]
        last = max(self._taken.nnz - 1, 0)
        for _ in range(self._longest.bit_length()):
            middle = (low + high) // 2
            ahead = (low < high) & first(middle.clamp_max(last))
            low, high = torch.where(ahead, middle + 1, low), torch.where(ahead, high, middle)
        return low - start

    @cached_property
    def _longest(self) -> int:
        """The most entries of a row."""
        return int(self._taken.rowptr.diff().max())
