from __future__ import annotations

import pytest
import torch

import g3nn
from g3nn.model.inputs import Inputs
from g3nn.model.networks import LabelInput
from g3nn.model.posteriors.grand import Grand, GrandOptions
from g3nn.model.posteriors.lgcn import LabelGCN, LabelGCNOptions
from g3nn.model.replicas import Noise, Replicas, Sizes


@pytest.fixture
def inputs(learnable) -> Inputs:
    return Inputs.of(learnable, dtype=torch.float64)


def posterior(kind: str):
    sizes, replicas = Sizes(8, 3), Replicas((0, 1))
    if kind == "lgcn":
        return LabelGCN(sizes, replicas, LabelGCNOptions(dropout=0.0)).double()
    return Grand(sizes, replicas, GrandOptions(label_inputs=True, dropout=0.0, feature_dropout=0.0)).double()


@pytest.mark.parametrize("kind", ["lgcn", "grand"])
def test_a_node_learns_only_while_its_own_label_is_hidden(inputs, kind):
    model = posterior(kind)
    answer = model.log_prob(inputs, Noise(torch.tensor([0, 1]), 3))
    own = answer.gather(2, inputs.labels.view(1, -1, 1).expand(2, -1, 1)).squeeze(2)
    _, shown = model.labels(inputs, Noise(torch.tensor([0, 1]), 3))
    parameter = model.weight2
    silent = []
    for r, i in ((r, i) for r in range(2) for i in inputs.train.tolist()):
        (slope,) = torch.autograd.grad(own[r, i], parameter, retain_graph=True)
        silent.append(not slope.any())
    if kind == "lgcn":
        expected = [bool(shown[r, i]) for r in range(2) for i in inputs.train.tolist()]
        assert silent == expected
    assert any(silent)
    assert not all(silent)


def test_half_of_the_labels_are_hidden_in_training_and_none_at_evaluation(inputs):
    part = LabelInput(Sizes(8, 3), Replicas((0, 1)), 4, rate=0.5).double()
    whole, shown = part(inputs, None)
    assert shown is None
    assert (whole[:, inputs.train].abs().sum(2) > 0).all()
    assert not whole[:, inputs.unlabelled].any()
    counts = [part(inputs, Noise(torch.tensor([0, 1]), step))[1][:, inputs.train].double().mean() for step in range(50)]
    assert 0.4 < torch.stack(counts).mean() < 0.6


def test_observed_labels_of_others_change_the_answer(inputs, learnable):
    model = posterior("lgcn")
    without = Inputs.of(learnable.with_split(learnable.train[3:], learnable.val, learnable.test), dtype=torch.float64)
    assert not torch.equal(model.log_prob(inputs, None), model.log_prob(without, None))


@pytest.mark.parametrize(("model", "options"), [("sbm-lgcn", {}), ("grand", {"label_inputs": True, "order": 2})])
def test_it_learns(learnable, model, options):
    result = g3nn.fit(learnable, model, epochs=80, **options)
    assert result.test_accuracy[0] > 0.5
