from __future__ import annotations

import pytest
import torch
from torch import nn

from g3nn.kernels.adam import StackedAdam

LR = (0.1, 0.01, 0.003)
DECAY = (0.0, 0.05, 0.5)
SHAPES = ((4, 3), (2,), ())
STEPS = 50


def starts() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(len(LR), *shape, dtype=torch.float64, generator=generator) for shape in SHAPES]


def loss(parameters: list[torch.Tensor], step: int) -> torch.Tensor:
    """Changes from step to step, and is of a size that differs between the parameters."""
    matrix, vector, scalar = parameters
    return (matrix - step).pow(2).sum() * 0.01 + (vector * step / 7).sin().sum() + (scalar**2).exp() * 3


def run_stacked(replicas: list[int]) -> StackedAdam:
    """STEPS steps of the chosen replicas together."""
    parameters = [nn.Parameter(start[replicas]) for start in starts()]
    lr, decay = (torch.tensor(values, dtype=torch.float64)[replicas] for values in (LR, DECAY))
    adam = StackedAdam(parameters, lr, decay)
    for step in range(STEPS):
        stacked_step(adam, step)
    return adam


def stacked_step(adam: StackedAdam, step: int) -> None:
    adam.zero_grad()
    size = adam.lr.numel()
    sum(loss([parameter[r] for parameter in adam.parameters], step) for r in range(size)).backward()
    adam.step()


@pytest.mark.slow
@pytest.mark.parametrize("replica", range(len(LR)))
def test_each_replica_is_adam_with_its_own_rates(replica):
    alone = [nn.Parameter(start[replica]) for start in starts()]
    optimiser = torch.optim.Adam(alone, lr=LR[replica], weight_decay=DECAY[replica])
    for step in range(STEPS):
        optimiser.zero_grad()
        loss(alone, step).backward()
        optimiser.step()
    stacked = run_stacked([0, 1, 2])
    for parameter, expected in zip(stacked.parameters, alone, strict=True):
        torch.testing.assert_close(parameter[replica], expected, rtol=1e-12, atol=1e-13)


def test_replicas_that_stay_do_not_notice_one_that_leaves():
    parameters = [nn.Parameter(start) for start in starts()]
    adam = StackedAdam(parameters, *(torch.tensor(values, dtype=torch.float64) for values in (LR, DECAY)))
    keep = torch.tensor([0, 2])
    for step in range(STEPS):
        if step == STEPS // 2:
            adam.select(keep, [nn.Parameter(parameter.detach()[keep]) for parameter in adam.parameters])
        stacked_step(adam, step)
    for parameter, expected in zip(adam.parameters, run_stacked([0, 2]).parameters, strict=True):
        assert torch.equal(parameter, expected)


def test_zero_grad_forgets_gradients():
    parameter = nn.Parameter(torch.ones(2, 1))
    adam = StackedAdam([parameter], torch.ones(2), torch.zeros(2))
    parameter.sum().backward()
    adam.zero_grad()
    assert parameter.grad is None


def test_nothing_to_train():
    adam = StackedAdam([], torch.ones(2), torch.zeros(2))
    adam.step()
    assert adam.steps == 1


def test_a_fresh_replica_is_kept_as_it_was_before_the_update(implementation):
    parameter = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    best = torch.zeros(2, 2)
    adam = StackedAdam([parameter], torch.ones(2), torch.zeros(2))
    parameter.grad = torch.ones(2, 2)
    adam.step(torch.tensor([False, True]), [best])
    assert best.tolist() == [[0.0, 0.0], [3.0, 4.0]]
    assert (parameter < torch.tensor([[1.0, 2.0], [3.0, 4.0]])).all()
