"""Training with channels: from `fit` to a result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import g3nn
from g3nn.base.errors import InputError
from g3nn.model.channels.edges import DoubtfulEdges
from g3nn.model.channels.flips import Flips
from g3nn.model.inputs import Inputs
from g3nn.training.plan import Plan


def fit(task: g3nn.NodeTask, model: Any = "sbm-gcn", **options: Any) -> g3nn.FitResult:
    return g3nn.fit(task, model, device="cpu", progress=False, **{"epochs": 6, **options})


def same(one: g3nn.FitResult, other: g3nn.FitResult) -> None:
    """Bit for bit."""
    np.testing.assert_array_equal(one.history, other.history)
    states = one.model.state_dict(), other.model.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert one.hyperparameters == other.hyperparameters


@pytest.mark.parametrize(
    ("channels", "options"),
    [
        ("", {}),
        ("flips", {"wrong": 0}),
        ("edges", {"false": 0.0, "miss": (0.0, 0.0)}),
        ("flips+edges", {"wrong": (0.0, 0.0), "false": 0.0}),
    ],
)
def test_channels_that_lose_nothing_are_the_paper_bit_for_bit(learnable, channels, options):
    same(fit(learnable, channels=channels, trials=2, **options), fit(learnable, trials=2))


def test_numbers_too():
    task = g3nn.synthetic_values(nodes=60, degree=4, features=4, labelled=0.3, val=10, seed=1)
    same(fit(task, "near-gcn", channels="outliers+edges", wrong=0.0, false=0.0), fit(task, "near-gcn"))


def flipped(share: float) -> tuple[g3nn.NodeTask, g3nn.NodeTask]:
    """A task, and the same with a share of wrong labels for training and validation."""
    task = g3nn.synthetic(nodes=300, classes=3, degree=12, features=8, labels_per_class=50, val=60, seed=2)
    rng = np.random.default_rng(0)
    known = np.concatenate([task.train, task.val])
    wrong = rng.choice(known, int(share * len(known)), replace=False)
    labels = task.labels.copy()
    labels[wrong] = (labels[wrong] + rng.integers(1, 3, len(wrong))) % 3
    return task, replace(task, labels=labels)


def test_the_table_tells_wrong_labels_from_right_ones():
    mass = []
    for task in flipped(0.3):
        result = fit(task, channels="flips", wrong=0.15, epochs=60, lr=0.02, keep="last")
        table = result.model.label_channel.table().detach()[0]
        torch.testing.assert_close(table.sum(1), torch.ones(3))
        mass.append(float(1 - table.diagonal().mean()))
    assert mass[0] < 0.08
    assert mass[1] > 1.8 * mass[0]
    assert result.hyperparameters["channels"] == "flips"
    assert result.model_name == "sbm-gcn"


@pytest.mark.parametrize("calibrated", [False, True])
def test_validation_losses_are_those_of_the_labels_that_were_seen(learnable, calibrated):
    result = fit(learnable, "gcn", channels="flips", wrong=0.3, calibrated=calibrated, keep="last")
    table = result.model.label_channel.table().detach()[0].double()
    answer, labels = result.answers[0].double(), torch.from_numpy(learnable.labels[learnable.val])
    steps = torch.linspace(-1, 1, 25).tolist() if calibrated else [0.0]
    rows = [(answer[learnable.val] / 10**step).softmax(1) @ table for step in steps]
    losses = [-float(row[torch.arange(len(labels)), labels].log().mean()) for row in rows]
    assert result.val_loss[0] == pytest.approx(min(losses), rel=1e-5)
    right = result.probabilities[0].argmax(1)[learnable.val] == learnable.labels[learnable.val]
    assert result.val_score[0] == pytest.approx(right.mean())


def test_trials_of_a_stack_do_not_know_each_other(learnable):
    """Also where one of them believes every label and edge."""
    options = {"wrong": (0.0, 0.2), "false": (0.1, 0.0), "strength": (1.0, 30.0)}
    both = fit(learnable, channels="flips+edges", trials=2, **options)
    for trial in range(2):
        own = {name: value[trial] for name, value in options.items()}
        alone = fit(learnable, channels="flips+edges", seed=trial, **own)
        np.testing.assert_allclose(both.history[:, :, trial], alone.history[:, :, 0], rtol=2e-4, atol=1e-5)
    never = both.model.label_channel.table()[0]
    torch.testing.assert_close(never, torch.eye(3))
    assert all(torch.isfinite(tensor).all() for tensor in both.model.state_dict().values())


@pytest.mark.parametrize(("outcome", "model"), [("tags", "tags-gcn"), ("real", "near-gcn"), ("counts", "near-gcn")])
def test_other_outcomes_too(outcome, model):
    task = g3nn.synthetic_values(outcome, nodes=60, columns=2, degree=4, features=4, labelled=0.3, val=10, seed=1)
    channels = "flips+edges" if outcome == "tags" else "outliers+edges"
    both = fit(task, model, channels=channels, trials=2, wrong=(0.0, 0.2), false=(0.1, 0.05), refine=True)
    for trial, (wrong, false) in enumerate([(0.0, 0.1), (0.2, 0.05)]):
        alone = fit(task, model, channels=channels, seed=trial, wrong=wrong, false=false, refine=True)
        np.testing.assert_allclose(both.history[:, :, trial], alone.history[:, :, 0], rtol=1e-3, atol=1e-4)


def test_members_of_an_ensemble_share_the_mean_of_their_channels(learnable):
    result = fit(learnable, channels="flips", ensemble=2, epochs=20)
    inputs = Inputs.of(learnable)
    assert isinstance(result.model.label_channel, Flips)
    mean = result.model.emission(inputs.outcome, 2)
    assert len(mean.table()) == 1
    torch.testing.assert_close(mean.change[0], result.model.label_channel.change.mean(0))
    loss = mean.validation(result.answers, inputs.targets, inputs.val)[0].detach()
    assert result.val_loss[0] == pytest.approx(float(loss), rel=1e-5)


@pytest.mark.parametrize("model", ["sbm-gcn", "gcn"])
def test_batches_train_channels(learnable, model):
    channels = "flips+edges" if "-" in model else "flips"
    result = fit(learnable, model, channels=channels, batch=4, fan_out="0/0", trials=2, epochs=3)
    assert np.isfinite(result.history).all()
    table = result.model.label_channel.table()
    assert not torch.equal(table[0], table[1])
    assert (result.history[-1, result.history_names.index("channels")] > 0).all()


class Certain(DoubtfulEdges):
    """A channel of the caller's own."""

    clear: ClassVar[dict[str, float]] = {"false": 0.1, "miss": 0.0}


def test_channels_in_every_form(learnable):
    named = fit(learnable, channels="edges", false=0.2)
    same(fit(learnable, channels=("edges",), false=0.2), named)
    same(fit(learnable, g3nn.ModelSpec("gcn", "sbm", channels=("edges",)), false=0.2), named)
    own = fit(learnable, channels=Certain, false=0.2)
    np.testing.assert_array_equal(own.history, named.history)
    assert own.hyperparameters["channels"] == "Certain"
    assert fit(learnable, channels=Certain, epochs=1).model.edge_channel is None
    assert fit(learnable, g3nn.ModelSpec("gcn", "sbm", channels=("edges",)), channels="").model.edge_channel is None


WRONG: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "a misspelt name": ({"channels": "flops+edges"}, {"channels": "Did you mean 'flips'?"}),
    "another type": ({"channels": 5}, {"channels": "flips, outliers or edges"}),
    "an empty name": ({"channels": "flips+"}, {"channels": "got ''"}),
    "two of a kind": ({"channels": "flips+outliers"}, {"channels": "one channel of labels"}),
    "no likelihood": ({"channels": "edges", "model": "gcn"}, {"channels": "a model with a likelihood"}),
    "all at once": ({"channels": "flops", "model": "sbm-gnc", "lr": -1}, {"channels": "", "model": "", "lr": ""}),
    "options of no channel": ({"wrong": 0.1}, {"wrong": "one of the options"}),
    "out of limits": ({"channels": "flips", "wrong": 1.0}, {"wrong": "between 0 and 0.99"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case):
    given, expected = WRONG[case]
    options = {name: value for name, value in given.items() if name not in ("channels", "model")}
    with pytest.raises(InputError) as caught:
        Plan.check(given.get("model", "sbm-gcn"), "elbo", 1, 0, "mlp", "cpu", options, channels=given.get("channels"))
    said = {problem.argument: str(problem) for problem in caught.value.problems}
    assert said.keys() == expected.keys()
    assert all(text in said[name] for name, text in expected.items())


def test_what_does_not_fit_the_task_or_the_objective_is_said(learnable):
    with pytest.raises(InputError, match="'outliers' for outcome 'classes'; expected flips or edges"):
        fit(learnable, channels="outliers")
    with pytest.raises(InputError, match="has no model of wrong edges"):
        fit(learnable, channels="edges", objective="released")
    assert np.isfinite(fit(learnable, channels="flips", objective="released").history).all()
