"""Training on all labels for a given number of epochs, with nothing held back to stop by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from g3nn.errors import TrainingError
from g3nn.inputs import Inputs
from g3nn.model import GenerativeModel
from g3nn.outcomes import outcome_of
from g3nn.replicas import Replicas, Sizes
from g3nn.task import NodeTask
from g3nn.training import Stack
from g3nn.training.memory import replicas_that_fit
from g3nn.training.plan import Plan

_BEYOND = 1000
"""The stack's own limits lie this far behind the last epoch, where they are never met."""


def train_on_all(task: NodeTask, plan: Plan, epochs: int) -> GenerativeModel:
    """Replicas with the seeds of the plan, trained on the training and validation nodes alike."""
    everything = replace(task, train=np.union1d(task.train, task.val))
    inputs = Inputs.of(everything, plan.device, outcome=outcome_of(everything, plan.options))

    def stack(seeds: tuple[int, ...]) -> Stack:
        limits = replace(plan.training, epochs=epochs + _BEYOND, patience=epochs + _BEYOND)
        replicas = Replicas(seeds)
        model = plan.spec.build(Sizes.of(everything, plan.options), replicas, plan.options)
        return Stack(model, plan.objective, inputs, replicas, limits)

    first = stack(plan.seeds[:1])
    if not any(parameter.requires_grad for parameter in first.model.parameters()):
        return stack(plan.seeds).model.cpu()
    size = replicas_that_fit(first.advance, plan.device)
    states = []
    for start in range(0, len(plan.seeds), size):
        part = stack(plan.seeds[start : start + size])
        while part.epoch < epochs and not part.finished:
            part.step()
        states.append({name: tensor.clone() for name, tensor in part.model.state_dict().items()})
    joined = {name: torch.cat([state[name] for state in states]) for name in states[0]}
    if next(iter(joined.values())).shape[0] == 0:
        raise TrainingError("every replica diverged when trained on all labels. A lower lr usually helps")
    part.model.restore(joined)
    return part.model.cpu()
