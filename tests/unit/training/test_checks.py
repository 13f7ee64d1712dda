from __future__ import annotations

import numpy as np

import g3nn
from g3nn.base.errors import Problems
from g3nn.training.checks import checked_seeds


def seeds_and_problems(trials: object, seed: object) -> tuple[tuple[int, ...], list[str]]:
    problems = Problems()
    seeds = checked_seeds(trials, seed, problems)
    return seeds, [problem.argument for problem in problems.found]


def test_one_seed_for_each_trial():
    assert seeds_and_problems(3, 5) == ((5, 6, 7), [])
    assert seeds_and_problems(3, (5, 5, 2)) == ((5, 5, 2), [])
    assert seeds_and_problems(2, [-1, 2**63 - 1]) == ((-1, 2**63 - 1), [])
    assert seeds_and_problems(2, np.array([4, 3])) == ((4, 3), [])
    assert seeds_and_problems(2, range(8, 10)) == ((8, 9), [])
    assert seeds_and_problems(1, 2**63 - 1) == ((2**63 - 1,), [])


def test_what_is_no_seed():
    for seed in ((1, 2, 3), (), (1, 2.5), (1, True), (1, 2**63), (1, None), 2**63 - 1, "12"):
        assert seeds_and_problems(2, seed) == ((), ["seed"]), seed
    assert seeds_and_problems(0, (1, 2)) == ((), ["trials"])
    assert seeds_and_problems(0, (1, "x")) == ((), ["trials", "seed"])


def test_a_trial_depends_on_its_own_seed_alone(learnable):
    options = {"epochs": 5, "device": "cpu"}
    result = g3nn.fit(learnable, "sbm-gcn", trials=3, seed=[9, 4, 9], **options)
    assert result.seeds == (9, 4, 9)
    assert result.val_loss[0] == result.val_loss[2] != result.val_loss[1]
    alone = g3nn.fit(learnable, "sbm-gcn", seed=4, **options)
    np.testing.assert_allclose(result.val_loss[1], alone.val_loss[0], atol=1e-6)
