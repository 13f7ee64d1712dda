from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import g3nn
from g3nn import ModelSpec, Objective
from g3nn.base.errors import InputError, Problem
from g3nn.base.options import known_names
from g3nn.model.priors.linear import LinearPrior
from g3nn.training import TrainingOptions
from g3nn.training.plan import RELEASED_OPTIONS, Plan


def check(
    model: Any = "sbm-gcn",
    objective: Any = "elbo",
    trials: Any = 1,
    seed: Any = 0,
    prior: Any = "mlp",
    device: Any = "cpu",
    **options: Any,
) -> Plan:
    return Plan.check(model, objective, trials, seed, prior, device, options)


def problems_of(**request: Any) -> dict[str, Problem]:
    """The problems found with a request, by argument; each argument is named once."""
    with pytest.raises(InputError) as caught:
        check(**request)
    found = {problem.argument: problem for problem in caught.value.problems}
    assert len(found) == len(caught.value.problems), str(caught.value)
    return found


UNKNOWN = {
    "model": ("sbm-gnc", "sbm-gcn"),
    "objective": ("elbow", "elbo"),
    "prior": ("lineer", "linear"),
    "device": ("cup", "cpu"),
    "hiden": (16, "hidden"),
}
"""What may be misspelt, and the name it is nearest to."""


class TestNames:
    @pytest.mark.parametrize("argument", UNKNOWN)
    def test_an_unknown_name_gets_the_nearest(self, argument):
        given, near = UNKNOWN[argument]
        (problem,) = problems_of(**{argument: given}).values()
        assert (problem.argument, problem.given) == (argument, repr(given))
        assert problem.advice == f"Did you mean {near!r}?"
        assert near in problem.allowed or argument == "model"

    @pytest.mark.parametrize("sound", [None, "model"])
    def test_all_at_once(self, sound):
        wrong = {argument: given for argument, (given, _) in UNKNOWN.items() if argument != sound}
        found = problems_of(**wrong)
        assert set(found) == set(wrong)
        for argument, problem in found.items():
            assert problem.advice == f"Did you mean {UNKNOWN[argument][1]!r}?"

    def test_names_and_values_at_once(self):
        found = problems_of(objective="elbow", trials=0, lr=-1.0, p0=2, epochs=0, hiden=3)
        assert set(found) == {"objective", "trials", "lr", "p0", "epochs", "hiden"}

    def test_unknown_parts_of_a_spec(self):
        assert set(problems_of(model=ModelSpec("gnc", "smb", "mpl"))) == {"posterior", "likelihood", "prior"}

    @pytest.mark.parametrize(("model", "option"), [("gcn", "p0"), ("sbm-mlp", "heads")])
    def test_an_option_of_another_part_is_unknown(self, model, option):
        (problem,) = problems_of(model=model, **{option: 0.5}).values()
        assert problem.argument == option
        assert all(name in problem.allowed for name in ("lr", "eta"))

    @pytest.mark.parametrize(
        ("argument", "given"),
        [
            ("model", nn.Linear(2, 2)),
            ("objective", None),
            ("prior", 3),
            ("device", None),
        ],
    )
    def test_what_is_no_name(self, argument, given):
        assert set(problems_of(**{argument: given})) == {argument}


class TestDevice:
    def test_cuda_where_there_is_none(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        (problem,) = problems_of(device="cuda").values()
        assert problem.argument == "device"
        assert "no CUDA device" in problem.advice

    @pytest.mark.parametrize(("present", "expected"), [(False, "cpu"), (True, "cuda")])
    def test_auto_takes_what_there_is(self, monkeypatch, present, expected):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: present)
        assert check(device="auto").device.type == expected


BAD_VALUES: dict[str, tuple[Any, ...]] = {
    "p0": (0, 1, -0.1, 1.5, math.nan, "high"),
    "p1": (0.0, 1.0, (0.1, 1.0)),
    "eta": (-0.001, -math.inf, math.inf, (1.0, -1.0)),
    "lr": (0, -1, math.nan, None),
    "weight_decay": (-1e-9,),
    "epochs": (0, 2.5, True),
    "patience": (0,),
    "hidden": (0, 16.0, (8, 16)),
    "dropout": (1.0, -0.1),
    "pairs": ("some",),
    "learn_p": (1, "true"),
}


class TestValues:
    def test_outside_the_limits(self):
        for name, value in [(name, value) for name, values in BAD_VALUES.items() for value in values]:
            trials = len(value) if isinstance(value, tuple) else 1
            assert set(problems_of(trials=trials, **{name: value})) == {name}, value

    @pytest.mark.parametrize("value", [[0.1], np.array([0.1, 0.2, 0.3])])
    def test_sequences_of_the_wrong_length(self, value):
        (problem,) = problems_of(trials=2, lr=value).values()
        assert (problem.argument, problem.given) == ("lr", f"{len(value)} values")
        assert "2 trials" in problem.allowed

    @pytest.mark.parametrize("value", [[None, 0.1], [[0.1], [0.2]]])
    def test_sequences_of_something_else(self, value):
        assert set(problems_of(trials=2, lr=value)) == {"lr"}

    @pytest.mark.parametrize("value", [[0.1, 0.2], np.array([0.1, 0.2], np.float32)])
    def test_one_number_for_each_trial(self, value):
        assert check(trials=2, lr=value).training.lr == pytest.approx((0.1, 0.2))

    @pytest.mark.parametrize(
        ("name", "value"),
        [("lr", np.float32(0.5)), ("hidden", np.int64(8))],
    )
    def test_numbers_of_numpy(self, name, value):
        assert check(**{name: value}).hyperparameters("classes")[name] == value

    @pytest.mark.parametrize(("argument", "given"), [("trials", 0), ("trials", True), ("seed", None), ("seed", 2**63)])
    def test_trials_and_seed(self, argument, given):
        assert set(problems_of(**{argument: given})) == {argument}

    def test_hidden_units_of_attention_are_shared_by_its_heads(self, learnable):
        with pytest.raises(InputError, match=r"hidden: got 6; expected a multiple of heads \(4\).*per-head"):
            g3nn.fit(learnable, "gat", hidden=6, heads=4, epochs=1, device="cpu")


class TestPlan:
    def test_seeds_count_on(self):
        assert check(trials=3, seed=7).seeds == (7, 8, 9)

    def test_options_reach_objective_and_training(self):
        plan = check(eta=3.0, lr=0.5, hidden=4)
        assert (plan.objective.eta, plan.training.lr, plan.options["hidden"]) == (3.0, 0.5, 4)

    @pytest.mark.parametrize("name", ["elbo", "released", "laplacian"])
    def test_named_objectives(self, name):
        plan = check(objective=name)
        assert (plan.objective_name, plan.objective) == (name, Objective.named(name))

    def test_an_objective_of_ones_own(self):
        plan = check(objective=Objective.released(eta=2.0), graph_weight=0.5)
        assert plan.objective_name == "custom"
        assert plan.objective == Objective.released(eta=2.0, graph_weight=0.5)

    @pytest.mark.parametrize(
        ("changes", "argument"),
        [({"pairs": "some"}, "pairs"), ({"kl_weight": (1.0, 2.0, 3.0)}, "kl_weight")],
    )
    def test_an_objective_of_ones_own_is_checked_too(self, changes, argument):
        assert set(problems_of(objective=Objective(**changes), trials=2)) == {argument}

    def test_a_spec_keeps_its_own_prior(self):
        spec = ModelSpec("gcn", "sbm", LinearPrior)
        assert check(model=spec).hyperparameters("classes")["prior"] == "LinearPrior"

    def test_released_changes_the_latent_space_model_too(self):
        plan = check("lsm-gcn", "released")
        assert {name: plan.options[name] for name in RELEASED_OPTIONS} == RELEASED_OPTIONS

    def test_released_yields_to_what_is_asked_for(self):
        assert check("lsm-gcn", "released", encoder="linear").options["encoder"] == "linear"

    def test_released_asks_nothing_of_other_parts(self):
        assert check("sbm-gcn", "released").options == {}

    @pytest.mark.parametrize("model", ["lsm-gat", "gcn"])
    def test_hyperparameters_are_all_of_them(self, model):
        plan = check(model, trials=2, eta=(1.0, 2.0), hidden=8)
        values = plan.hyperparameters("classes")
        declared = known_names([*plan.spec.option_groups(), Objective, TrainingOptions])
        assert set(values) == set(declared) | ({"prior"} if plan.spec.likelihood else set())
        assert (values["eta"], values["hidden"], values["patience"]) == ([1.0, 2.0], 8, TrainingOptions().patience)

    def test_every_argument_of_fit_reaches_the_plan(self, learnable):
        options = {"trials": 2, "seed": 5, "prior": "uniform", "device": "cpu", "progress": False, "epochs": 1}
        result = g3nn.fit(learnable, "sbm-mlp", "released", **options)
        assert (result.model_name, result.objective, result.seeds) == ("sbm-mlp", "released", (5, 6))
        assert (result.hyperparameters["prior"], result.hyperparameters["epochs"]) == ("uniform", 1)
        assert (result.dataset, result.setting) == (learnable.name, learnable.setting)

    def test_the_same_plan_gives_the_same_numbers(self, learnable):
        one, other = (check("lsm-gat", trials=2, epochs=5).fit(learnable) for _ in range(2))
        np.testing.assert_array_equal(one.history, other.history)
        np.testing.assert_array_equal(one.probabilities, other.probabilities)


@pytest.mark.parametrize("task", ["cora", None, [[0, 1], [1, 2]]])
def test_a_fit_takes_a_task(task):
    with pytest.raises(g3nn.InputError, match=r"task: got (str|NoneType|list); expected a NodeTask\. g3nn\.load"):
        g3nn.fit(task, "gcn")
