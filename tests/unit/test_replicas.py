from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.stats import kstest

from g3nn.model.generative import GenerativeModel, ModelSpec
from g3nn.model.likelihoods import LIKELIHOODS
from g3nn.model.posteriors import POSTERIORS
from g3nn.model.priors import PRIORS
from g3nn.model.replicas import Noise, Replicas, Sizes, optional_dropout

STANDARD_ERRORS = 5

SPECS = list(
    dict.fromkeys(
        [
            *(ModelSpec(name) for name in POSTERIORS),
            *(ModelSpec("mlp", likelihood=name) for name in LIKELIHOODS),
            *(ModelSpec("mlp", likelihood="sbm", prior=name) for name in PRIORS),
        ]
    )
)
"""Together they contain every registered component."""


def build(spec: ModelSpec, *seeds: int) -> GenerativeModel:
    return spec.build(Sizes(6, 3, nodes=4), Replicas(seeds), {})


def far_from_zero(correlation: float, size: int) -> bool:
    return abs(correlation) * math.sqrt(size) > STANDARD_ERRORS


def correlation(one: torch.Tensor, other: torch.Tensor) -> float:
    return torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1].item()


class TestInitialParameters:
    def test_depend_on_the_own_seed_alone(self):
        for spec in SPECS:
            alone = build(spec, 7).state_dict()
            first, last = build(spec, 7, 1).state_dict(), build(spec, 0, 3, 7).state_dict()
            for name, tensor in alone.items():
                assert torch.equal(first[name][0], tensor[0]), (spec, name)
                assert torch.equal(last[name][2], tensor[0]), (spec, name)

    def test_are_drawn_anew_for_every_seed(self):
        """A tensor is either the same constant for every seed (a bias, p0) or different for any two."""
        for spec in SPECS:
            constant = {name for name, tensor in build(spec, 0).state_dict().items() if _is_fixed(name, tensor)}
            for name, tensor in build(spec, 0, 1, 2, -1).state_dict().items():
                for one, other in itertools.combinations(tensor, 2):
                    assert torch.equal(one, other) == (name in constant), (spec, name)

    def test_of_two_seeds_are_uncorrelated(self):
        for seeds in ((0, 1), (1, 2), (0, -1), (5, 2**32 + 5), (0, 2**31)):
            left, right = Replicas(seeds).glorot("weight", 100, 100)
            assert not far_from_zero(correlation(left, right), left.numel()), seeds

    def test_can_be_drawn_for_any_seed_of_64_bits(self):
        for seed in (-(2**63), -1, 2**31, 2**63 - 1):
            weight = Replicas((seed,)).glorot("weight", 3, 4)
            assert torch.isfinite(weight).all()
            assert weight.unique().numel() == 12, seed

    def test_of_two_scopes_or_names_are_uncorrelated(self):
        replicas = Replicas((3,))
        drawn = [
            replicas.within(scope).glorot(name, 100, 100)
            for scope in ("posterior", "prior", "likelihood")
            for name in ("weight1", "weight2")
        ]
        drawn.append(replicas.within("posterior").within("prior").glorot("weight1", 100, 100))
        for one, other in itertools.combinations(drawn, 2):
            assert not far_from_zero(correlation(one, other), one.numel())

    def test_the_same_scope_and_name_give_the_same_numbers(self):
        one, other = (Replicas((3, 4)).within("prior").glorot("weight", 5, 6) for _ in range(2))
        assert torch.equal(one, other)

    def test_do_not_depend_on_the_global_generator(self):
        torch.manual_seed(0)
        one = Replicas((3,)).glorot("weight", 5, 6)
        torch.manual_seed(1)
        state = torch.get_rng_state()
        assert torch.equal(Replicas((3,)).glorot("weight", 5, 6), one)
        assert torch.equal(torch.get_rng_state(), state)

    @pytest.mark.parametrize("fan", [(100, 100), (300, 20)])
    def test_glorot_is_uniform_with_the_right_spread(self, fan):
        weight = Replicas((0, 1)).glorot("weight", *fan)
        bound = math.sqrt(6 / sum(fan))
        assert weight.shape == (2, *fan)
        assert weight.requires_grad
        assert weight.abs().max() <= bound
        statistic = stats.kstest(weight[0].detach().flatten().numpy(), stats.uniform(-bound, 2 * bound).cdf)
        assert statistic.pvalue > 1e-4

    def test_glorot_of_another_shape(self):
        weight = Replicas((0, 1, 2)).glorot("left", 40, 1, 8, 5)
        assert weight.shape == (3, 8, 5)
        assert weight.abs().max() <= math.sqrt(6 / 41)

    def test_zeros(self):
        zeros = Replicas((0, 1)).zeros(3, 4)
        assert zeros.requires_grad
        assert torch.equal(zeros, torch.zeros(2, 3, 4))


def _is_fixed(name: str, tensor: torch.Tensor) -> bool:
    """Biases start at zero, block models from p0 and p1, distances in the unit of the labels, weights of latent
    directions from a constant; a replica count holds nothing."""
    names = ("odds", "B", "b", "one", "both", "spread", "w")
    return bool((tensor == 0).all()) or name in {f"likelihood.{own}" for own in names}


@pytest.mark.parametrize(("given", "expected"), [(0.5, [0.5, 0.5]), ((0.1, 0.2), [0.1, 0.2]), ([1, 2], [1.0, 2.0])])
def test_scalar_for_each_replica(given, expected):
    values = Replicas((0, 1)).scalar(given)
    assert values.dtype == torch.get_default_dtype()
    torch.testing.assert_close(values, torch.tensor(expected))


class TestNoise:
    seeds = torch.tensor([0, 1, -5])

    def test_is_reproducible_from_seeds_and_step(self):
        x = torch.ones(3, 50)
        one, other = (Noise(self.seeds, 4) for _ in range(2))
        for _ in range(3):
            assert torch.equal(one.dropout(x, 0.5), other.dropout(x, 0.5))
            assert torch.equal(one.integers(1000, 20), other.integers(1000, 20))

    def test_every_draw_and_every_step_is_new(self):
        draws = [Noise(self.seeds, step) for step in range(3)]
        found = [noise.integers(2**40, 20) for noise in draws for _ in range(4)]
        for one, other in itertools.combinations(found, 2):
            assert not torch.equal(one, other)
            assert len(set(one.flatten().tolist()) & set(other.flatten().tolist())) == 0

    def test_a_replica_does_not_notice_the_others(self):
        together = Noise(self.seeds, 2)
        alone = Noise(self.seeds[1:2], 2)
        for _ in range(2):
            assert torch.equal(together.integers(10**6, 30)[1], alone.integers(10**6, 30)[0])
        assert torch.equal(together.dropout(torch.ones(3, 40), 0.3)[1], alone.dropout(torch.ones(1, 40), 0.3)[0])

    def test_integers_lie_in_range(self):
        for high in (1, 2, 7, 1000, 2**33, 2**52):
            drawn = Noise(self.seeds, 0).integers(high, 5000)
            assert drawn.dtype == torch.int64
            assert drawn.shape == (3, 5000)
            assert drawn.min() >= 0
            assert drawn.max() < high

    def test_integers_are_uniform(self):
        for high in (2, 7, 100, 2**33):
            drawn = Noise(self.seeds, 0).integers(high, 100_000)
            bins = high if high <= 100 else 64
            for replica in drawn:
                counts = torch.bincount(replica * bins // high, minlength=bins)
                assert stats.chisquare(counts.numpy()).pvalue > 1e-4, high

    def test_low_bits_of_large_integers_are_uniform(self):
        drawn = Noise(self.seeds, 0).integers(2**45, 100_000) % 64
        assert stats.chisquare(torch.bincount(drawn.flatten(), minlength=64).numpy()).pvalue > 1e-4

    def test_normal_numbers_have_the_right_distribution(self):
        like = torch.zeros(2, 100, 500, dtype=torch.float64)
        draws = Noise(torch.tensor([3, 4]), 0).normal(like)
        assert draws.shape == like.shape
        for sample in draws.flatten(1).numpy():
            assert kstest(sample, "norm").pvalue > 1e-3
        assert abs(np.corrcoef(draws.flatten(1))[0, 1]) < 4 / 50_000**0.5

    def test_normal_numbers_of_a_replica_are_its_own(self):
        together, alone = (Noise(torch.tensor(seeds), 5).normal(torch.zeros(len(seeds), 7)) for seeds in ([3, 4], [4]))
        assert torch.equal(together[1], alone[0])

    def test_no_two_draws_are_alike_however_many_a_step_takes(self):
        first, second = (Noise(self.seeds, step) for step in (0, 1))
        counters = [noise.draw(0.5).counter for noise in (first, second) for _ in range(700)]
        assert len(set(counters)) == len(counters)

    def test_draws_of_a_step_that_stays_on_the_device_are_the_same(self):
        on_host, on_device = Noise(self.seeds, 7), Noise(self.seeds, torch.tensor(7))
        for _ in range(700):
            assert on_host.draw(0.5).counter == int(on_device.draw(0.5).counter)

    def test_no_dropout_costs_no_draw(self):
        noise, x = Noise(self.seeds, 0), torch.ones(3, 4)
        assert noise.dropout(x, 0.0) is x
        assert noise.draw(0.5).counter == Noise(self.seeds, 0).draw(0.5).counter

    def test_optional_dropout(self):
        x = torch.ones(3, 100)
        assert optional_dropout(None, x, 0.5) is x
        assert (optional_dropout(Noise(self.seeds, 0), x, 0.5) == 0).any()
