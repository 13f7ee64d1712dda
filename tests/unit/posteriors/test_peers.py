"""Networks that are here to be compared with."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import g3nn
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors.correct_smooth import CorrectAndSmooth, CorrectAndSmoothOptions
from g3nn.model.posteriors.gmnn import GMNN, GMNNOptions
from g3nn.model.replicas import Noise, Replicas, Sizes

SEEDS = torch.tensor([0, 1])


def test_the_two_networks_of_gmnn_teach_each_other_with_the_other_held_fixed(learnable):
    inputs = Inputs.of(learnable, dtype=torch.float64)
    model = GMNN(Sizes(8, 3), Replicas((0, 1)), GMNNOptions(head_start=5)).double()

    def touched(step: int) -> set[str]:
        model.zero_grad()
        noise = Noise(SEEDS, step)
        model.own_loss(model.log_prob(inputs, noise), inputs, noise).sum().backward()
        grads = {name: parameter.grad for name, parameter in model.named_parameters()}
        return {name for name, grad in grads.items() if grad is not None and grad.any()}

    of_labels = {name for name, _ in model.named_parameters() if name.startswith("label_")}
    assert touched(4) == of_labels, "at first only the network on labels learns"
    assert touched(5) == {name for name, _ in model.named_parameters()}


def test_correct_and_smooth_is_that_of_pyg_for_each_replica(learnable):
    from torch_geometric.nn.models import CorrectAndSmooth as Original

    inputs = Inputs.of(learnable, dtype=torch.float64)
    options = CorrectAndSmoothOptions(steps=5, correcting=0.7, smoothing=0.6)
    model = CorrectAndSmooth(Sizes(8, 3), Replicas((0, 1)), options).double()
    original = Original(5, 0.7, 5, 0.6)
    with torch.no_grad():
        soft = model.network(inputs, None).softmax(2)
        for r in range(2):
            labels = inputs.labels[inputs.train]
            mended = original.correct(soft[r], labels, inputs.train, inputs.arcs)
            mended = original.smooth(mended, labels, inputs.train, inputs.arcs).clamp_min(1e-6)
            expected = mended / mended.sum(1, keepdim=True)
            torch.testing.assert_close(model.log_prob(inputs, None)[r].exp(), expected)


def test_mending_helps_where_edges_join_equals(learnable):
    plain, mended = (
        g3nn.fit(learnable, name, trials=3, epochs=60, progress=False).test_accuracy.mean()
        for name in ("mlp", "correct-smooth")
    )
    assert mended > plain
    assert np.isfinite(mended)


@pytest.mark.parametrize("model", ["label-propagation", "correct-smooth"])
def test_propagation_does_not_wait_for_pyg(learnable, monkeypatch, model):
    """Every search tries label propagation, and PyG takes seconds to import."""
    for name in {"torch_geometric", *(name for name in sys.modules if name.startswith("torch_geometric."))}:
        monkeypatch.setitem(sys.modules, name, None)
    assert g3nn.fit(learnable, model, epochs=1, progress=False).trials == 1
