"""What must not matter: the numbering of nodes and of classes. And the gradient is the gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_graph import CLASS_LIKELIHOODS, make_model

from g3nn.graph.task import NodeTask
from g3nn.model.inputs import Inputs
from g3nn.model.objective import Objective
from g3nn.model.pairs import PairSource
from g3nn.model.replicas import Noise, Replicas
from g3nn.model.terms import TERM_NAMES

EXACT = {
    "elbo": Objective.elbo(reduction="sum", pairs="all", laplacian_weight=1.0),
    "released": Objective.released(reduction="sum", pairs="all", laplacian_weight=1.0),
}


def terms_of(objective: Objective, model, task: NodeTask) -> dict[str, torch.Tensor]:
    inputs = Inputs.of(task, dtype=torch.float64)
    terms = objective.terms(model, inputs, PairSource(inputs), Noise(torch.tensor([5, 6]), 0))
    return {name: getattr(terms, name) for name in TERM_NAMES}


LOSSES = [*((name, "elbo") for name in CLASS_LIKELIHOODS), *((name, "released") for name in ("lsm", "sbm", "gsbm"))]
"""Soft labels in the log-odds: two likelihoods have a form of their own, the others share one."""


@pytest.mark.parametrize(("name", "preset"), LOSSES)
def test_relabelling_nodes_changes_nothing(name, preset, task):
    order = np.array([4, 2, 5, 0, 3, 1])
    place = np.argsort(order)
    moved = NodeTask.build(
        task.features[order],
        place[task.edges],
        task.labels[order],
        place[task.train],
        place[task.val],
        place[task.test],
    )
    model = make_model(name)
    torch.testing.assert_close(terms_of(EXACT[preset], model, task), terms_of(EXACT[preset], model, moved))


@pytest.mark.parametrize("name", CLASS_LIKELIHOODS)
def test_permuting_classes_permutes_the_answer(name, task):
    """Renaming class k to r[k] in the labels and in the class dimension of every parameter leaves each term alone."""
    rename = np.array([2, 0, 1])
    renamed = NodeTask.build(task.features, task.edges, rename[task.labels], task.train, task.val, task.test)
    model, twin = make_model(name), make_model(name)
    back = torch.from_numpy(np.argsort(rename))
    with torch.no_grad():
        for part in (
            twin.posterior.weight2,
            twin.posterior.bias2,
            twin.prior.network.weight2,
            twin.prior.network.bias2,
        ):
            part[:] = part[..., back].clone()
        _rename_likelihood(twin.likelihood, name, back)
    torch.testing.assert_close(terms_of(EXACT["elbo"], model, task), terms_of(EXACT["elbo"], twin, renamed))
    answers = [m.predict_log_prob(Inputs.of(t, dtype=torch.float64)) for m, t in ((model, task), (twin, renamed))]
    torch.testing.assert_close(answers[0][..., back], answers[1])


def _rename_likelihood(likelihood: torch.nn.Module, name: str, back: torch.Tensor) -> None:
    if name == "lsm":
        likelihood.w_y[:] = likelihood.w_y[:, back].clone()
    elif name == "gsbm":
        likelihood.odds[:] = likelihood.odds[:, back][:, :, back].clone()
    elif name == "blsm":
        u = likelihood.options.latent
        order = torch.cat([torch.arange(u), u + back])
        likelihood.M[:] = likelihood.M[:, order][:, :, order].clone()
    elif name == "dlsm":
        likelihood.V[:] = likelihood.V[:, :, back].clone()
    elif name in ("dcsbm", "mix", "nlsm"):
        likelihood.B[:] = likelihood.B[:, back][:, :, back].clone()
    else:
        assert name == "sbm", f"say how the classes of {name} are renamed"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "preset"), LOSSES)
def test_gradcheck_of_the_whole_loss(name, preset, inputs, source):
    objective = Objective.named(preset, laplacian_weight=0.5)
    total = _Total(make_model(name), objective)
    names = [key for key, parameter in total.named_parameters() if parameter.requires_grad]

    def loss(*values: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(total, dict(zip(names, values, strict=True)), (inputs, source))

    values = tuple(total.get_parameter(key).detach().clone().requires_grad_() for key in names)
    assert torch.autograd.gradcheck(loss, values)


class _Total(torch.nn.Module):
    def __init__(self, model: torch.nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective
        self.weights = objective.weights(Replicas((0, 1)))

    def forward(self, inputs: Inputs, source: PairSource) -> torch.Tensor:
        terms = self.objective.terms(self.model, inputs, source, Noise(torch.tensor([5, 6]), 3))
        return self.weights.total(terms)
