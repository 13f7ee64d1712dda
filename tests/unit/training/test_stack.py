from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import g3nn
from g3nn import FitResult, ModelSpec, Objective
from g3nn.base.errors import DeviceMemoryError, G3NNWarning, InputError
from g3nn.model.inputs import Inputs
from g3nn.model.posteriors import ModulePosterior
from g3nn.model.replicas import Replicas, Sizes
from g3nn.model.terms import TERM_NAMES
from g3nn.training import plan
from g3nn.training.options import TrainingOptions
from g3nn.training.stack import HISTORY_NAMES, Endings, Stack

VAL_LOSS = HISTORY_NAMES.index("val_loss")


def fit(task: g3nn.NodeTask, model: str | ModelSpec, **options: Any) -> FitResult:
    return g3nn.fit(task, model, device="cpu", **options)


def train_double(
    task: g3nn.NodeTask, name: str, seeds: tuple[int, ...], **options: Any
) -> tuple[Endings, dict[str, torch.Tensor]]:
    """Endings and best parameters of a stack in float64."""
    replicas = Replicas(seeds)
    model = ModelSpec.parse(name).build(Sizes(task.num_features, task.num_classes), replicas, {})
    inputs = Inputs.of(task, dtype=torch.float64)
    stack = Stack(model, Objective.elbo(), inputs, replicas, TrainingOptions(**options))
    while not stack.finished:
        stack.step()
    return stack.end(), stack.model.state_dict()


def assert_same_trial(one: FitResult, t: int, other: FitResult, s: int, *, exactly: bool = False) -> None:
    """Trial t of one result is trial s of another, to 1e-6 or exactly."""
    assert (one.seeds[t], one.status[t]) == (other.seeds[s], other.status[s])
    assert (one.epochs[t], one.best_epoch[t]) == (other.epochs[s], other.best_epoch[s])
    tolerance = {"rtol": 0, "atol": 0} if exactly else {"rtol": 1e-6, "atol": 1e-6}
    length = one.epochs[t]
    np.testing.assert_allclose(one.history[:length, :, t], other.history[:length, :, s], **tolerance)
    for name in ("val_loss", "val_accuracy", "test_accuracy", "probabilities"):
        np.testing.assert_allclose(getattr(one, name)[t], getattr(other, name)[s], err_msg=name, **tolerance)


class TestStackEqualsSingles:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["sbm-gcn", "lsm-gat", "gcn"])
    def test_in_double_precision(self, learnable, name):
        options = {"epochs": 40, "patience": 4, "lr": 0.05}
        together, state = train_double(learnable, name, (0, 1, 2, 3), **options)
        for t in range(4):
            alone, own = train_double(learnable, name, (t,), **options)
            length = int(alone["epochs"])
            assert together["epochs"][t] == alone["epochs"][0]
            assert together["best_epoch"][t] == alone["best_epoch"][0]
            torch.testing.assert_close(together["val_loss"][t], alone["val_loss"][0], rtol=0, atol=1e-10)
            torch.testing.assert_close(together["val_score"][t], alone["val_score"][0], rtol=0, atol=1e-10)
            torch.testing.assert_close(together["history"][:length, :, t], alone["history"][:, :, 0], rtol=0, atol=1e-6)
            for key, tensor in own.items():
                torch.testing.assert_close(state[key][t], tensor[0], rtol=0, atol=1e-9)

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["sbm-gcn", "blsm-appnp"])
    def test_where_replicas_stop_at_different_epochs(self, learnable, name):
        options = {"epochs": 60, "patience": 3}
        lr = (0.2, 0.1, 0.01, 0.0001)
        together = fit(learnable, name, trials=4, lr=lr, **options)
        assert len(set(together.epochs.tolist())) >= 3
        for t in range(4):
            assert_same_trial(together, t, fit(learnable, name, seed=t, lr=lr[t], **options), 0)

    def test_with_hyper_parameters_of_their_own(self, learnable):
        own = {
            "lr": [0.05, 0.01, 0.02],
            "weight_decay": np.array([0.0, 0.1, 0.001]),
            "eta": (0.0, 10.0, 1.0),
            "p0": (0.9, 0.5, 0.7),
            "p1": (0.1, 0.01, 0.3),
            "graph_weight": (1.0, 0.0, 2.0),
            "kl_weight": (0.5, 1.0, 0.0),
            "entropy_weight": (1.0, -1.0, 0.0),
            "prior_weight": (1.0, 2.0, 0.5),
            "laplacian_weight": (0.5, 1.0, 0.1),
        }
        together = fit(learnable, "sbm-gcn", trials=3, epochs=10, **own)
        for t in range(3):
            alone = fit(learnable, "sbm-gcn", seed=t, epochs=10, **{key: float(value[t]) for key, value in own.items()})
            assert_same_trial(together, t, alone, 0)

    def test_where_only_a_neighbour_asks_for_smoothness(self, learnable):
        together = fit(learnable, "gcn", trials=2, epochs=3, laplacian_weight=(0.0, 1.0))
        assert_same_trial(together, 0, fit(learnable, "gcn", epochs=3, laplacian_weight=0.0), 0)

    @pytest.mark.slow
    @pytest.mark.parametrize("size", [1, 3])
    def test_however_the_trials_are_split(self, learnable, monkeypatch, size):
        options = {"trials": 5, "epochs": 30, "patience": 3, "lr": (0.2, 0.1, 0.05, 0.01, 0.001)}
        whole = fit(learnable, "blsm-gcn", **options)
        monkeypatch.setattr(plan, "_REPLICAS_PER_STACK", {"cpu": size})
        parts = fit(learnable, "blsm-gcn", **options)
        assert parts.history.shape == whole.history.shape
        np.testing.assert_array_equal(np.isnan(parts.history), np.isnan(whole.history))
        for t in range(5):
            assert_same_trial(parts, t, whole, t)
        for name, tensor in whole.model.state_dict().items():
            torch.testing.assert_close(parts.model.state_dict()[name], tensor, rtol=1e-5, atol=1e-6)

    def test_where_a_stack_does_not_fit_in_memory(self, learnable, monkeypatch):
        whole = fit(learnable, "sbm-gcn", trials=3, epochs=3)
        step = Stack.step

        def small_memory(self: Stack) -> None:
            if self.num_live > 1:
                raise torch.cuda.OutOfMemoryError
            step(self)

        monkeypatch.setattr(Stack, "step", small_memory)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        parts = fit(learnable, "sbm-gcn", trials=3, epochs=3)
        for t in range(3):
            assert_same_trial(parts, t, whole, t)

    def test_where_not_even_one_replica_fits(self, learnable, monkeypatch):
        def no_memory(*_: Any) -> Any:
            raise torch.cuda.OutOfMemoryError

        monkeypatch.setattr(Stack, "step", no_memory)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        with pytest.raises(DeviceMemoryError, match="device='cpu'"):
            fit(learnable, "sbm-gcn", trials=3, epochs=3)


@pytest.fixture(scope="module")
def stopped(learnable) -> FitResult:
    return fit(learnable, "sbm-gcn", trials=4, epochs=40, patience=4, lr=(0.3, 0.1, 0.02, 0.001))


class TestEarlyStopping:
    def test_some_stop_and_some_reach_the_limit(self, stopped):
        assert {"stopped", "limit"} <= set(stopped.status)

    def test_best_epoch_is_the_first_with_the_lowest_validation_loss(self, stopped):
        losses = stopped.history[:, VAL_LOSS]
        assert (np.nanargmin(losses, axis=0) + 1).tolist() == stopped.best_epoch.tolist()
        np.testing.assert_array_equal(np.nanmin(losses, axis=0), stopped.val_loss.astype(np.float32))

    def test_a_trial_stops_after_patience_epochs_without_a_lower_loss(self, stopped):
        for status, epochs, best in zip(stopped.status, stopped.epochs, stopped.best_epoch, strict=True):
            waited = epochs - best
            assert waited == 4 if status == "stopped" else (waited < 4 and epochs == 40)

    def test_history_ends_where_a_trial_ends(self, stopped):
        recorded = np.isfinite(stopped.history).all(axis=1)
        for t, epochs in enumerate(stopped.epochs):
            assert recorded[:epochs, t].all()
            assert np.isnan(stopped.history[epochs:, :, t]).all()
        assert stopped.history.shape == (stopped.epochs.max(), len(HISTORY_NAMES), 4)
        assert stopped.history_names == (*TERM_NAMES, "val_loss", "val_accuracy")

    @torch.no_grad()
    def test_the_model_is_the_best_snapshot(self, stopped, learnable):
        inputs = Inputs.of(learnable)
        log_prob = stopped.model.predict_log_prob(inputs)
        val, test = learnable.val, learnable.test
        losses = -log_prob[:, val, learnable.labels[val]].mean(1)
        np.testing.assert_allclose(losses.numpy(), stopped.val_loss, rtol=1e-6)
        right = (log_prob.argmax(2).numpy() == learnable.labels).astype(float)
        np.testing.assert_allclose(right[:, val].mean(1), stopped.val_accuracy, rtol=1e-6)
        np.testing.assert_allclose(right[:, test].mean(1), stopped.test_accuracy, rtol=1e-6)
        np.testing.assert_allclose(log_prob.exp().numpy(), stopped.probabilities, rtol=1e-6)

    def test_the_last_epoch_was_not_the_best_of_all(self, stopped):
        """Else the snapshot test could not tell the two apart."""
        assert (stopped.best_epoch < stopped.epochs).any()

    def test_epochs_is_an_upper_limit(self, learnable):
        result = fit(learnable, "sbm-gcn", epochs=3, patience=200)
        assert (result.epochs.tolist(), result.status) == ([3], ("limit",))

    def test_a_model_without_parameters_needs_one_epoch(self, learnable):
        result = fit(learnable, "label-propagation", trials=2)
        assert result.epochs.tolist() == [1, 1]
        assert result.best_epoch.tolist() == [1, 1]
        np.testing.assert_array_equal(result.probabilities[0], result.probabilities[1])


class TestDivergence:
    @pytest.fixture
    def result(self, learnable) -> FitResult:
        with pytest.warns(G3NNWarning, match=r"1 of 3 trials became NaN or infinite \(seeds \[1\]\)") as caught:
            result = fit(learnable, "sbm-gcn", lr=(0.05, 1e20, 0.02), trials=3, epochs=15, patience=5)
        assert len(caught) == 1
        return result

    def test_is_reported(self, result):
        assert result.status[1] == "diverged"
        assert result.epochs[1] <= 2
        assert "diverged" not in (result.status[0], result.status[2])

    def test_the_others_do_not_notice(self, result, learnable):
        healthy = fit(learnable, "sbm-gcn", lr=(0.05, 0.03, 0.02), trials=3, epochs=15, patience=5)
        for t in (0, 2):
            assert_same_trial(result, t, healthy, t, exactly=True)

    def test_without_a_finite_epoch_there_are_no_numbers(self, result):
        assert result.best_epoch[1] == 0
        for scores in (result.test_accuracy, result.val_accuracy, result.val_loss):
            assert np.isnan(scores[1])
            assert np.isfinite(scores[[0, 2]]).all()

    def test_numbers_of_the_epochs_before_are_kept(self, learnable, monkeypatch):
        """The loss breaks in the fourth epoch; what the third gave is the answer."""
        terms = Objective.terms
        calls = []

        def breaking(self: Objective, *arguments: Any) -> Any:
            calls.append(1)
            found = terms(self, *arguments)
            if len(calls) == 4:
                found.supervised.data[0] = torch.nan
            return found

        undisturbed = fit(learnable, "gcn", epochs=3)
        monkeypatch.setattr(Objective, "terms", breaking)
        with pytest.warns(G3NNWarning, match="1 of 1 trials"):
            result = fit(learnable, "gcn", epochs=10)
        assert (result.status, result.epochs.tolist()) == (("diverged",), [4])
        np.testing.assert_array_equal(result.val_loss, undisturbed.val_loss)
        np.testing.assert_array_equal(result.probabilities, undisturbed.probabilities)

    def test_the_warning_points_at_the_caller(self, learnable):
        with pytest.warns(G3NNWarning) as caught:
            g3nn.fit(learnable, "gcn", epochs=3, lr=1e20, device="cpu")
        assert caught[0].filename == __file__


class TestWithoutEdges:
    def fit(self, task: g3nn.NodeTask, model: str, **options: Any) -> FitResult:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = g3nn.fit(task, model, trials=2, epochs=3, device="cpu", **options)
        assert [(warning.category, warning.filename) for warning in caught] == [(G3NNWarning, __file__)]
        assert "no edges" in str(caught[0].message)
        return result

    @pytest.mark.parametrize(
        ("model", "objective"), [("sbm-gcn", "elbo"), ("lsm-gat", "released"), ("gsbm-label-propagation", "elbo")]
    )
    @torch.no_grad()
    def test_the_answer_is_the_prior(self, edgeless, model, objective):
        result = self.fit(edgeless, model, objective=objective)
        prior = result.model.prior.log_prob(Inputs.of(edgeless), None).exp()
        np.testing.assert_allclose(result.probabilities, prior.numpy(), rtol=1e-6)
        assert np.isfinite(result.history).all()
        assert (result.history[:, TERM_NAMES.index("graph")] == 0).all()

    def test_a_discriminative_model_still_works(self, edgeless):
        assert np.isfinite(self.fit(edgeless, "gcn").val_loss).all()


class Convolutions(nn.Module):
    """A user's own PyG module, with dropout of its own."""

    def __init__(self, layer: str = "GCNConv", classes: int = 3) -> None:
        from torch_geometric import nn as layers

        super().__init__()
        self.first, self.second = getattr(layers, layer)(8, 6), getattr(layers, layer)(6, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        hidden = nn.functional.dropout(self.first(x, edge_index).relu(), 0.5, self.training)
        return self.second(hidden, edge_index)


class Bare(nn.Module):
    """Cannot be initialised anew."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 3))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


class TestOwnModule:
    def test_is_a_posterior(self, learnable):
        result = fit(learnable, ModelSpec(lambda: Convolutions(), "sbm"), trials=3, epochs=4)
        np.testing.assert_allclose(result.probabilities.sum(2), 1, rtol=1e-5)
        assert np.isfinite(result.history).all()
        assert len(set(result.val_loss.tolist())) == 3

    def test_an_instance_starts_anew_for_every_seed(self, learnable):
        module = Convolutions()
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        one = fit(learnable, ModelSpec(module), trials=2, epochs=2)
        other = fit(learnable, ModelSpec(Convolutions), trials=2, epochs=2)
        np.testing.assert_array_equal(one.history, other.history)
        for name, tensor in module.state_dict().items():
            assert torch.equal(tensor, before[name])

    @pytest.mark.parametrize("instance", [False, True])
    def test_initial_parameters_depend_on_the_own_seed_alone(self, instance):
        source = Convolutions() if instance else Convolutions
        alone, together = (ModulePosterior(Sizes(8, 3), Replicas(seeds), source) for seeds in ((7,), (2, 7, 3)))
        for own, all_three in zip(alone.stacked, together.stacked, strict=True):
            assert torch.equal(all_three[1], own[0])
            assert (own == 0).all() or not torch.equal(all_three[0], all_three[1])

    def test_attention_learns_too(self, learnable):
        result = fit(learnable, ModelSpec(lambda: Convolutions("GATConv")), trials=2, epochs=40, lr=0.05)
        assert result.val_loss.max() < result.history[0, VAL_LOSS].min()

    @torch.no_grad()
    def test_answers_as_the_module_itself_does(self, learnable):
        result = fit(learnable, ModelSpec(Convolutions), trials=2, epochs=3)
        posterior, data = result.model.posterior, learnable.to_pyg()
        for t in range(2):
            module = Convolutions().eval()
            own = {name: tensor[t] for name, tensor in zip(posterior.names, posterior.stacked, strict=True)}
            module.load_state_dict(own)
            answer = module(data.x, data.edge_index).softmax(1)
            np.testing.assert_allclose(result.probabilities[t], answer.numpy(), rtol=1e-5, atol=1e-6)

    def test_leaves_the_global_generator_alone(self, learnable):
        torch.manual_seed(5)
        state = torch.get_rng_state()
        one = fit(learnable, ModelSpec(Convolutions), epochs=2)
        assert torch.equal(torch.get_rng_state(), state)
        torch.manual_seed(6)
        np.testing.assert_array_equal(fit(learnable, ModelSpec(Convolutions), epochs=2).history, one.history)

    def test_that_cannot_start_anew_is_refused(self, learnable):
        with pytest.raises(InputError, match=r"posterior: got Bare.*reset_parameters"):
            fit(learnable, ModelSpec(Bare()), epochs=2)

    def test_that_cannot_start_anew_may_come_as_a_function(self, learnable):
        assert np.isfinite(fit(learnable, ModelSpec(Bare), epochs=2).val_loss).all()

    def test_of_the_wrong_shape_is_refused(self, learnable):
        with pytest.raises(InputError, match=r"posterior: .*shape \(60, 4\); expected shape \(60, 3\)"):
            fit(learnable, ModelSpec(lambda: Convolutions(classes=4), "sbm"), epochs=2)
