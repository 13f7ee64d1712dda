from __future__ import annotations

import pytest
import torch

from g3nn.kernels import cpu, expected_logistic, reference
from g3nn.kernels.arguments import LogisticPairs

R, P, K = 2, 5, 3


def beliefs() -> torch.Tensor:
    return torch.randn(R, P, K, dtype=torch.float64).softmax(2).requires_grad_()


@pytest.fixture(params=[False, True], ids=["table", "ends"])
def arguments(request) -> tuple[torch.Tensor, ...]:
    """left, right, base, table and, for some, target and source."""
    torch.manual_seed(3)
    shapes = [(R, P), (R, K, K), *([(R, P, K), (R, P, K)] if request.param else [])]
    others = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    return beliefs(), beliefs(), *others


def call(present: bool, left, right, base, table, target=None, source=None) -> torch.Tensor:
    return expected_logistic(left, right, base, table, present, target, source)


PRESENT = pytest.mark.parametrize("present", [True, False])


@PRESENT
def test_equals_the_sum_over_both_labels(implementation, arguments, present):
    left, right, base, table, *ends = arguments
    found = call(present, *arguments)
    for r in range(R):
        for p in range(P):
            total = 0.0
            for k in range(K):
                for c in range(K):
                    logit = base[r, p] + table[r, k, c] + (ends[0][r, p, c] + ends[1][r, p, k] if ends else 0.0)
                    chance = torch.sigmoid(logit if present else -logit)
                    total += left[r, p, k] * right[r, p, c] * torch.log(chance)
            torch.testing.assert_close(found[r, p], total)


@pytest.mark.slow
def test_gradient(implementation, arguments):
    for present in (True, False):
        assert torch.autograd.gradcheck(lambda *given, present=present: call(present, *given), arguments)


def test_extreme_log_odds_stay_finite(implementation):
    left = right = torch.full((1, 2, 2), 0.5, dtype=torch.float64)
    base = torch.tensor([[800.0, -800.0]], dtype=torch.float64, requires_grad=True)
    out = expected_logistic(left, right, base, torch.zeros(1, 2, 2, dtype=torch.float64), True)
    torch.testing.assert_close(out.detach(), torch.tensor([[0.0, -800.0]], dtype=torch.float64))
    (slope,) = torch.autograd.grad(out.sum(), base)
    torch.testing.assert_close(slope, torch.tensor([[0.0, 1.0]], dtype=torch.float64))


@PRESENT
def test_small_and_large_log_odds_in_single_precision(implementation, arguments, present):
    """Some of these are beyond what exponentials in single precision can hold."""
    for scale in (1.0, 10.0, 25.0, 100.0):
        left, right, *others = (tensor.detach() for tensor in arguments)
        assert_single_equals_double(present, [left, right, *(scale * tensor for tensor in others)])


def assert_single_equals_double(present: bool, given: list[torch.Tensor]) -> None:
    exact, single = ([tensor.to(kind).requires_grad_() for tensor in given] for kind in (torch.float64, torch.float32))
    logits = exact[2][:, :, None, None] + exact[3].unsqueeze(1)
    if len(exact) > 4:
        logits = logits + exact[4].unsqueeze(2) + exact[5].unsqueeze(3)
    scores = torch.nn.functional.logsigmoid(logits if present else -logits)
    expected = torch.einsum("rpk,rpkl,rpl->rp", exact[0], scores, exact[1])
    found = call(present, *single)
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-5)
    slopes = [torch.autograd.grad(out.sum(), by) for out, by in ((expected, exact), (found, single))]
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(other, one.float(), rtol=1e-4, atol=1e-4)


def pairs_of(count: int, classes: int, ends: bool) -> LogisticPairs:
    torch.manual_seed(4)
    left, right = (torch.randn(R, count, classes).softmax(2) for _ in range(2))
    target, source = (torch.randn(R, count, classes) if ends else None for _ in range(2))
    return LogisticPairs(left, right, torch.randn(R, count), target, source, torch.randn(R, classes, classes), -1.0)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("count", [0, 1, 12, 13])
def test_parts_of_the_pairs_give_what_all_give(count, ends):
    pairs, grad = pairs_of(count, 9, ends), torch.randn(R, count)
    parts = list(pairs.parts(4))
    assert len(parts) == max(1, -(-count // 4))
    found = torch.cat([reference.expected_logistic(part) for _, part in parts], dim=1)
    torch.testing.assert_close(found, cpu.expected_logistic(pairs), rtol=1e-4, atol=1e-5)
    slopes = [reference.expected_logistic_backward(grad[:, here], part) for here, part in parts]
    *expected, table = cpu.expected_logistic_backward(grad, pairs)
    torch.testing.assert_close(sum(slope[-1] for slope in slopes), table, rtol=1e-4, atol=1e-5)
    for place, one in enumerate(expected):
        if one is None:
            assert all(slope[place] is None for slope in slopes)
        else:
            together = torch.cat([slope[place] for slope in slopes], dim=1)
            torch.testing.assert_close(together, one, rtol=1e-4, atol=1e-5)
