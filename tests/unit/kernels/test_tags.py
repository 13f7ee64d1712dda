"""Moments of log-odds that depend on tags, and the bound made from them, against enumeration in float64."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn.functional import logsigmoid

from g3nn.kernels import log_tag_rate, logistic_bound, tag_mean, tag_moments

R, N, T = 2, 5, 2
LEFT, RIGHT = torch.tensor([0, 3, 1]), torch.tensor([4, 1, 2])


def numbers(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def enumerated(q, base, one, both, other, function) -> torch.Tensor:
    """(R, P): the expectation of a function of the log-odds over the 2^T x 2^T tags of both ends."""
    total = torch.zeros(R, len(LEFT), dtype=torch.float64)
    for tags in itertools.product((0.0, 1.0), repeat=2 * T):
        u, v = torch.tensor(tags, dtype=torch.float64).chunk(2)
        x = base + (one * u + other * v + both * u * v).sum(1, keepdim=True)
        left, right = q[:, LEFT], q[:, RIGHT]
        weight = torch.where(u > 0, left, 1 - left).prod(2) * torch.where(v > 0, right, 1 - right).prod(2)
        total += weight * function(x)
    return total


@pytest.mark.parametrize("directed", [False, True])
def test_moments(directed, implementation):
    q, base = numbers(R, N, T, seed=0).sigmoid(), numbers(R, 1, seed=1)
    one, both = numbers(R, T, seed=2), numbers(R, T, seed=3)
    other = numbers(R, T, seed=4) if directed else None
    found = tag_moments(q, base, one, both, LEFT, RIGHT, other=other)
    how = (q, base, one, both, one if other is None else other)
    for power, moment in enumerate(found, start=1):
        expected = enumerated(*how, lambda x, power=power: x**power)
        torch.testing.assert_close(moment, expected, rtol=0.0, atol=1e-12)


def test_the_mean_and_the_rate(implementation):
    q, one, both, other = numbers(R, N, T, seed=0).sigmoid(), *(numbers(R, T, seed=seed) for seed in (2, 3, 4))
    zero = torch.zeros(R, 1, dtype=torch.float64)
    expected = [enumerated(q, zero, one, both, other, function) for function in (torch.clone, torch.exp)]
    mean = tag_mean(q, one, both, LEFT, RIGHT, None, other)
    log_rate = log_tag_rate(q, one, both, LEFT, RIGHT, other)
    torch.testing.assert_close(mean, expected[0], rtol=0.0, atol=1e-12)
    torch.testing.assert_close(log_rate, expected[1].log(), rtol=0.0, atol=1e-12)


def test_the_rate_of_certain_tags_has_a_gradient_however_small_it_is():
    """1 + expm1(-40) would be zero in single precision, and its logarithm infinite."""
    q = torch.tensor([[[1.0], [0.0]]], requires_grad=True)
    one, both = torch.tensor([[-40.0]], requires_grad=True), torch.zeros(1, 1)
    log_rate = log_tag_rate(q, one, both, torch.tensor([0]), torch.tensor([1]), one)
    log_rate.sum().backward()
    assert log_rate.item() == pytest.approx(-40.0)
    assert one.grad.item() == pytest.approx(1.0)


@pytest.mark.parametrize("present", [True, False])
def test_the_bound_is_below_the_expectation(present):
    q, base = numbers(R, N, T, seed=0).sigmoid(), numbers(R, 1, seed=1)
    one, both = numbers(R, T, seed=2), numbers(R, T, seed=3)
    bound = logistic_bound(*tag_moments(q, base, one, both, LEFT, RIGHT), present)
    sign = 1 if present else -1
    exact = enumerated(q, base, one, both, one, lambda x: logsigmoid(sign * x))
    assert (bound < exact).all()


@pytest.mark.parametrize("present", [True, False])
def test_the_bound_is_tight_where_nothing_is_random(present):
    x = torch.tensor([[-30.0, -1.5, 0.0, 0.3, 25.0]], dtype=torch.float64)
    expected = logsigmoid(x if present else -x)
    torch.testing.assert_close(logistic_bound(x, x.square(), present), expected, rtol=0.0, atol=1e-6)


def test_the_bound_has_a_gradient_where_the_log_odds_are_zero():
    mean, square = (torch.zeros(1, 1, dtype=torch.float64, requires_grad=True) for _ in range(2))
    logistic_bound(mean, square, True).sum().backward()
    assert mean.grad.item() == 0.5
    assert abs(square.grad.item() + 1 / 8) < 1e-6
