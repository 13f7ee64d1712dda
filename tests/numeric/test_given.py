"""A prior that came with the task enters the bound by the same formulas as one that is learned."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from number_graph import double_inputs, flags, line, number_model
from small_graph import make_model

from g3nn.graph.task import NodeTask
from g3nn.model.generative import GenerativeModel
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.priors.given import GivenPrior
from g3nn.model.replicas import Noise, Replicas


def both(model: GenerativeModel, task: NodeTask) -> list[torch.Tensor]:
    """(terms,) of the first replica with its own prior, and with what that one says given beforehand."""
    inputs, found = double_inputs(task), []
    with torch.no_grad():
        beliefs = model.prior.log_prob(inputs, None)[0].numpy()
    count = next(model.posterior.parameters()).shape[0]
    given = GivenPrior(model.prior.sizes, Replicas(tuple(range(count)))).double()
    assert not list(given.parameters())
    joint = GenerativeModel(model.posterior, model.likelihood, given)
    for one, its_task in ((model, task), (joint, replace(task, beliefs=beliefs))):
        own, noise = double_inputs(its_task), Noise(torch.arange(count), 0)
        objective = Objective.elbo(reduction="sum", pairs="all")
        terms = objective.terms(one, own, PairSource(own), noise)
        found.append(
            torch.stack([*(getattr(terms, name)[0] for name in ("graph", "cross_entropy", "entropy", "prior"))])
        )
    return found


def test_classes(task):
    learned, given = both(make_model("sbm"), task)
    torch.testing.assert_close(given, learned, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "task"), [("tags", flags(2)), ("near", line("real")), ("near", line("counts"))], ids=str
)
def test_numbers(likelihood, task):
    learned, given = both(number_model(likelihood, task), task)
    torch.testing.assert_close(given, learned, rtol=0, atol=1e-12)
