"""The plain torch forms against formulas written out again here, and whole trainings without numba."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import g3nn
from g3nn.kernels import Draw, Pattern, backend, reference
from g3nn.kernels.arguments import Attention

WORD = (1 << 64) - 1
HALF = (1 << 32) - 1
GOLDEN = 0x9E3779B97F4A7C15
SEEDS = (0, 1, -1, 12345, -(2**63), 2**63 - 1)
COUNTERS = (0, 1, 255, 2**40 + 3)


def hashed(seed: int, counter: int, position: int) -> int:
    """The documented hash in Python's integers, which never overflow."""
    z = (seed * GOLDEN + counter) & WORD
    for _ in range(2):
        z = (z + GOLDEN) & WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        z ^= z >> 31
    x = (position * 0x9E3779B1 + z) & HALF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & HALF
    x = ((x ^ (x >> 15)) * 0x846CA68B) & HALF
    x = (x + (z >> 32)) & HALF
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & HALF
    return x ^ (x >> 16)


@pytest.mark.parametrize("counter", COUNTERS)
def test_bits_are_the_documented_hash(counter):
    positions = [*range(50), 70_000, 99_999]
    bits = reference.uniform_bits(torch.tensor(SEEDS), counter, 100_000)[:, positions]
    assert bits.tolist() == [[hashed(seed, counter, position) for position in positions] for seed in SEEDS]


def test_a_counter_on_the_device_gives_the_same_bits():
    seeds = torch.tensor(SEEDS)
    assert torch.equal(reference.uniform_bits(seeds, torch.tensor(7), 20), reference.uniform_bits(seeds, 7, 20))


def test_keep_mask_compares_with_the_threshold():
    seeds = torch.tensor([3, 4])
    bits = reference.uniform_bits(seeds, 1, 200)
    threshold = int(bits.median())
    keep = reference.keep_mask(seeds, 1, 200, threshold)
    assert torch.equal(keep, bits >= threshold)
    assert keep[bits == threshold].all()


@pytest.mark.parametrize("shared", [True, False])
def test_product_is_the_dense_product(shared):
    torch.manual_seed(0)
    R, n, m, h = 3, 5, 4, 2
    mask = torch.rand(n, m) < 0.5
    pattern = Pattern.from_scipy(sp.csr_array(mask.numpy()))
    values = torch.randn(1 if shared else R, pattern.nnz, dtype=torch.float64)
    matrix = torch.zeros(R, n, m, dtype=torch.float64)
    matrix[:, *mask.nonzero(as_tuple=True)] = values
    for transpose, expected in ((False, matrix), (True, matrix.mT)):
        dense = torch.randn(R, n if transpose else m, h, dtype=torch.float64)
        found = reference.spmm(pattern, values, dense, None, transpose)
        torch.testing.assert_close(found, expected @ dense, rtol=0, atol=1e-14)


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_attention_is_the_dense_softmax(dropped, weighted):
    torch.manual_seed(0)
    R, n, H, F, slope = 2, 6, 3, 4, 0.2
    draw = Draw(torch.tensor([3, 4]), 1, 0.5) if dropped else None
    mask = (torch.rand(n, n) < 0.4) | torch.eye(n, dtype=torch.bool)
    row, col = mask.nonzero(as_tuple=True)
    x = torch.randn(R, n, H, F, dtype=torch.float64)
    left, right = torch.randn(2, R, n, H, dtype=torch.float64)
    scores = left.transpose(1, 2).unsqueeze(3) + right.transpose(1, 2).unsqueeze(2)
    scores = torch.where(scores > 0, scores, slope * scores).masked_fill(~mask, -torch.inf)
    sizes = torch.rand(n, n, dtype=torch.float64) if weighted else torch.ones(n, n, dtype=torch.float64)
    weights = sizes * scores.exp()
    weights = weights / weights.sum(3, keepdim=True)
    if draw is not None:
        keep = reference.keep_mask(draw.seeds, draw.counter, H * row.numel(), draw.threshold).view(R, H, -1)
        wide = torch.zeros(R, H, n, n, dtype=torch.float64)
        wide[:, :, row, col] = keep.double()
        weights = weights * wide * 2.0
    expected = torch.einsum("rhij,rjhf->rihf", weights, x)
    log_weight = sizes[row, col].log() if weighted else None
    pattern = Pattern.from_scipy(sp.csr_array(mask.numpy()))
    out = reference.attend(x, left, right, Attention(pattern, slope, draw, log_weight))[0]
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-14)


def test_the_fallback_is_found_where_numba_is_missing(monkeypatch):
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(backend.importlib, "import_module", missing)
    assert backend._installed.__wrapped__("cpu") is None


@pytest.mark.parametrize("model", ["sbm-gcn", "lsm-gat", "blsm-appnp", "gsbm-mlp"])
def test_training_without_numba_gives_the_same_losses(model, learnable, monkeypatch):
    plan = {"trials": 2, "epochs": 4, "device": "cpu"}
    fast = g3nn.fit(learnable, model, **plan)
    monkeypatch.setattr(backend, "_installed", lambda device: None)
    plain = g3nn.fit(learnable, model, **plan)
    # Both work in float32: 1e-5 is some eighty units in the last place, after four updates.
    np.testing.assert_allclose(plain.history, fast.history, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(plain.probabilities, fast.probabilities, rtol=1e-5, atol=1e-6)
