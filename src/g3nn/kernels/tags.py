"""Expectations of functions of the tags of both ends of a pair."""

from __future__ import annotations

import torch
from torch import Tensor

from g3nn.kernels.pair import gather, pair_dot, pair_sum
from g3nn.kernels.pattern import Pattern


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
    a, b, c = one.unsqueeze(1), (one if other is None else other).unsqueeze(1), both.unsqueeze(1)
    squared = q.square()
    index = (i, j, pattern)
    mean = base + tag_mean(q, one, both, *index, other=one if other is None else other)
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
