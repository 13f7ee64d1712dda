from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from g3nn.kernels import Draw, cpu, cpu_kernels, dropout, reference, uniform_bits, uniform_integers

STANDARD_ERRORS = 5
"""How far a statistic may lie from its expectation. All seeds are fixed, so a pass today is a pass tomorrow."""

N = 200_000


def excess(counts: np.ndarray) -> float:
    """How many standard deviations the chi-square statistic of equally likely cells lies above its mean."""
    expected = counts.sum() / counts.size
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = counts.size - 1
    return float((chi_square - freedom) / math.sqrt(2 * freedom))


def joint_counts(one: torch.Tensor, other: torch.Tensor) -> np.ndarray:
    """Counts of the 16 x 16 cells of the four highest bits of two streams of 32 bits."""
    cells = (one >> 28) * 16 + (other >> 28)
    return np.bincount(cells.numpy().ravel(), minlength=256)


class TestBits:
    def test_same_as_the_reference(self):
        seeds = torch.tensor([0, 1, 7, -1, -12345, 2**63 - 1, -(2**63)])
        for counter in (0, 1, 257, 2**40):
            assert torch.equal(uniform_bits(seeds, counter, 3000), reference.uniform_bits(seeds, counter, 3000))

    def test_integers_are_those_of_the_reference_to_the_last_bit(self):
        seeds = torch.tensor([0, 7, -1])
        for counter, high in ((0, 7), (257, 19717**2), (2**40, 2**52 + 1)):
            found = uniform_integers(seeds, counter, high, 3000)
            assert torch.equal(found, reference.uniform_integers(seeds, counter, high, 3000)), high

    def test_same_as_the_reference_far_out(self):
        seeds = torch.tensor([11, -11])
        size = 5_000_000
        bits = uniform_bits(seeds, 3, size)[:, -100_000:]
        assert torch.equal(bits, reference.uniform_bits(seeds, 3, size)[:, -100_000:])

    def test_positions_past_32_bits_have_bits_of_their_own(self):
        key = 0xFEDCBA9876543210
        for position in (0, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 5, 2**40 + 1):
            page, low = divmod(position, 2**32)
            extras = page * 0x85EBCA77, key >> 32, 0
            x = (low * 0x9E3779B1 + key) % 2**32
            rounds = (16, 0x7FEB352D), (15, 0x846CA68B), (16, 0x7FEB352D)
            for (shift, factor), extra in zip(rounds, extras, strict=True):
                x = ((x ^ (x >> shift)) * factor + extra) % 2**32
            assert int(cpu_kernels._bits(np.uint64(key), position)) == x ^ (x >> 16), position

    @pytest.mark.parametrize("start", [2**32 - 1000, 2**32, 5 * 2**32, 2**45 + 3])
    def test_far_positions_are_those_of_the_reference(self, start):
        seeds = torch.tensor([3, -4])
        draw = Draw(seeds, 5, 0.3)
        keep = reference.uniform_bits(seeds, 5, 3000, start) >= draw.threshold
        found = cpu.dropout(torch.ones(1, 3000, dtype=torch.float64), draw, start)
        torch.testing.assert_close(found, keep.double() * draw.scale)

    def test_positions_that_are_2_to_32_apart_are_independent(self):
        seeds = torch.tensor([0, 1, 2])
        for page in (1, 2, 1000):
            counts = joint_counts(uniform_bits(seeds, 1, N), reference.uniform_bits(seeds, 1, N, page * 2**32))
            assert abs(excess(counts)) < STANDARD_ERRORS, page

    def test_every_byte_is_uniform(self):
        bits = uniform_bits(torch.tensor([0, 1, 2]), 1, N)
        for shift in (0, 8, 16, 24):
            counts = np.bincount(((bits >> shift) & 255).numpy().ravel(), minlength=256)
            assert abs(excess(counts)) < STANDARD_ERRORS, shift

    def test_neighbouring_positions_are_independent(self):
        bits = uniform_bits(torch.tensor([0, 1, 2]), 1, N)
        for distance in (1, 2, 16, 64, 1433):
            counts = joint_counts(bits[:, :-distance], bits[:, distance:])
            assert abs(excess(counts)) < STANDARD_ERRORS, distance

    def test_neighbouring_replicas_are_independent(self):
        for seeds in ([0, 1], [1, 2], [5, 7], [0, -1], [0, 2**32], [3, 2**62]):
            bits = uniform_bits(torch.tensor(seeds), 1, N)
            assert abs(excess(joint_counts(bits[0], bits[1]))) < STANDARD_ERRORS, seeds

    def test_neighbouring_draws_are_independent(self):
        """Another stream of the same step, and the streams of the next steps."""
        seeds = torch.tensor([0, 1, 2])
        for distance in (1, 2, 256, 512):
            counts = joint_counts(uniform_bits(seeds, 1, N), uniform_bits(seeds, 1 + distance, N))
            assert abs(excess(counts)) < STANDARD_ERRORS, distance

    def test_no_draw_repeats_another_at_an_offset(self):
        streams = uniform_bits(torch.arange(4), 1, 5000), uniform_bits(torch.arange(4), 2, 5000)
        windows = {tuple(row[start : start + 2].tolist()) for bits in streams for row in bits for start in range(4999)}
        assert len(windows) == 2 * 4 * 4999


class TestDraw:
    @pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.95])
    def test_threshold_and_scale(self, rate):
        draw = Draw(torch.tensor([0]), 1, rate)
        assert draw.threshold == pytest.approx(rate * 2**32, abs=1)
        assert draw.scale * (1 - rate) == pytest.approx(1)

    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
    def test_share_of_kept_positions(self, rate):
        out = dropout(torch.ones(3, N, dtype=torch.float64), Draw(torch.tensor([0, 1, 2]), 9, rate))
        error = math.sqrt(rate * (1 - rate) / N)
        for replica in out:
            assert abs((replica > 0).double().mean().item() - (1 - rate)) < STANDARD_ERRORS * error

    @pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
    def test_masks_of_neighbours_are_uncorrelated(self, rate):
        masks = [
            (dropout(torch.ones(2, N, dtype=torch.float64), Draw(torch.tensor([4, 5]), counter, rate)) > 0).double()
            for counter in (1, 2, 257)
        ]
        streams = [mask[replica] for mask in masks for replica in range(2)]
        streams.append(torch.cat([streams[0][1:], streams[0][:1]]))
        for one, other in itertools.combinations(streams, 2):
            correlation = torch.corrcoef(torch.stack([one, other]))[0, 1].item()
            assert abs(correlation) < STANDARD_ERRORS / math.sqrt(N)


class TestDropout:
    draw = Draw(torch.tensor([3, -4]), 6, 0.4)

    def test_kept_values_are_scaled_and_the_others_zero(self, implementation):
        x = torch.randn(2, 7, 5, dtype=torch.float64)
        keep = reference.keep_mask(*self.draw[:2], 35, self.draw.threshold).view(2, 7, 5)
        torch.testing.assert_close(dropout(x, self.draw), torch.where(keep, x / 0.6, 0.0), rtol=1e-15, atol=0)

    def test_chunks_leave_no_gap(self):
        for size in (1, 4095, 4096, 4097, 10_000):
            out = dropout(torch.ones(2, size, dtype=torch.float64), self.draw)
            assert torch.equal(out > 0, reference.keep_mask(*self.draw[:2], size, self.draw.threshold)), size

    def test_the_mask_of_a_replica_does_not_depend_on_its_company(self):
        x = torch.ones(1, 500, dtype=torch.float64)
        alone = dropout(x, Draw(torch.tensor([5]), 2, 0.5))
        together = dropout(x.expand(3, -1), Draw(torch.tensor([9, 5, 1]), 2, 0.5))
        assert torch.equal(together[1], alone[0])

    def test_strided_input(self):
        x = torch.randn(2, 5, 7, dtype=torch.float64)
        assert torch.equal(dropout(x.transpose(1, 2), self.draw), dropout(x.transpose(1, 2).contiguous(), self.draw))

    def test_gradient(self, implementation):
        x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: dropout(x, self.draw), x)
