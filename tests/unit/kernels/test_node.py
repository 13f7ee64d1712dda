from __future__ import annotations

import pytest
import torch

from g3nn.kernels import node_terms

R, N, K = 2, 6, 3
LABEL = torch.tensor([2, -1, 0, -1, -1, 1])
SHARES = (0.5, 0.25)


@pytest.fixture
def answers() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(2)
    return tuple(torch.randn(R, N, K, dtype=torch.float64).log_softmax(2).requires_grad_() for _ in range(2))


@pytest.mark.parametrize("of_posterior", [True, False])
def test_sums_and_labels_node_by_node(implementation, answers, of_posterior):
    log_q, log_p = answers
    sums, labels = node_terms(log_q, log_p, LABEL, of_posterior, SHARES)
    for r in range(R):
        expected = torch.zeros(4, dtype=torch.float64)
        for i, y in enumerate(LABEL.tolist()):
            if y >= 0:
                expected[0] -= SHARES[0] * log_q[r, i, y]
                expected[1] -= SHARES[0] * log_p[r, i, y]
                assert labels[r, i].tolist() == [float(k == y) for k in range(K)]
            else:
                q = log_q[r, i].exp()
                expected[2] -= SHARES[1] * (q * log_p[r, i]).sum()
                expected[3] -= SHARES[1] * (q * log_q[r, i]).sum()
                torch.testing.assert_close(labels[r, i], q if of_posterior else log_p[r, i].exp())
        torch.testing.assert_close(sums[r], expected)


@pytest.mark.parametrize("of_posterior", [True, False])
def test_gradient(implementation, answers, of_posterior):
    assert torch.autograd.gradcheck(lambda q, p: node_terms(q, p, LABEL, of_posterior, SHARES), answers)


def test_many_nodes_are_summed_in_chunks():
    log_q = torch.randn(R, 5000, K, dtype=torch.float64).log_softmax(2)
    sums, _ = node_terms(log_q, log_q, torch.full((5000,), -1), True)
    torch.testing.assert_close(sums[:, 3], -(log_q.exp() * log_q).sum((1, 2)))
    assert sums[:, :2].tolist() == [[0.0, 0.0]] * R
