"""How good an answer is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from g3nn.kernels.backend import fast

_TEMPERATURES = 25
"""From 0.1 to 10, in equal ratios."""


def accuracy(log_prob: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    """(R,): share of `nodes` whose likeliest class is the label. log_prob (R, n, K), labels (n,)."""
    predicted = log_prob.index_select(1, nodes).argmax(2)
    return (predicted == labels[nodes]).to(log_prob.dtype).mean(1)


def cross_entropy(log_prob: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    """(R,): mean of - log p(label) over `nodes`."""
    rows = log_prob.index_select(1, nodes)
    wanted = labels[nodes].view(1, -1, 1).expand(rows.shape[0], -1, 1)
    return -rows.gather(2, wanted).squeeze(2).mean(1)


def loss_and_accuracy(log_prob: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    """(2, R): `cross_entropy` and `accuracy`."""
    kernels: Any = fast(log_prob) if log_prob.is_cuda else None
    if kernels is not None:
        return kernels.validation(log_prob, labels, nodes)
    return torch.stack([cross_entropy(log_prob, labels, nodes), accuracy(log_prob, labels, nodes)])


def calibrated_loss(log_prob: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    """(R,): `cross_entropy` at the best of some temperatures: how good the answers are once they are calibrated."""
    rows = log_prob.index_select(1, nodes).unsqueeze(1)
    steps = torch.linspace(-1.0, 1.0, _TEMPERATURES, device=rows.device, dtype=rows.dtype)
    tempered = (rows / (10.0**steps).view(-1, 1, 1)).log_softmax(3)
    wanted = labels[nodes].view(1, 1, -1, 1).expand(*tempered.shape[:3], 1)
    return -tempered.gather(3, wanted).squeeze(3).mean(2).amax(1)
