from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import g3nn
from g3nn.base.errors import InputError, Problems
from g3nn.base.options import known_names
from g3nn.graph.outcomes import OUTCOMES
from g3nn.graph.task import NodeTask
from g3nn.model.generative import BOTH, POSTERIOR, PRIOR, GenerativeModel, ModelOptions, ModelSpec, model_names
from g3nn.model.inputs import Inputs
from g3nn.model.likelihoods import LIKELIHOODS
from g3nn.model.likelihoods.sbm import PlantedPartition
from g3nn.model.posteriors import POSTERIORS
from g3nn.model.posteriors.gcn import GCN
from g3nn.model.posteriors.mlp import MLPPosterior
from g3nn.model.priors.linear import LinearPrior
from g3nn.model.replicas import Replicas, Sizes


class TestParse:
    def test_every_listed_name(self):
        assert [ModelSpec.parse(name).name for name in model_names()] == model_names()

    def test_names_are_all_combinations(self):
        pairs = {
            f"{left}-{right}"
            for left, graph in LIKELIHOODS.items()
            for right, q in POSTERIORS.items()
            if any(issubclass(one, graph.outcomes) and issubclass(one, q.outcomes) for one in OUTCOMES.values())
        }
        assert set(model_names()) == {*POSTERIORS, *pairs}
        assert "near-gmnn" not in pairs

    def test_parts(self):
        assert ModelSpec.parse("sbm-gcn") == ModelSpec("gcn", "sbm", "mlp")
        assert ModelSpec.parse("lsm-label-propagation") == ModelSpec("label-propagation", "lsm", "mlp")
        assert ModelSpec.parse("label-propagation") == ModelSpec("label-propagation", None, "mlp")

    @pytest.mark.parametrize(
        ("given", "near"),
        [("sbm-gcm", "sbm-gcn"), ("smb-gcn", "sbm-gcn"), ("GAT", "gat"), ("sbm_gcn", "sbm-gcn"), ("lsm-", "lsm-mlp")],
    )
    def test_an_unknown_name_gets_the_nearest(self, given, near):
        with pytest.raises(InputError) as caught:
            ModelSpec.parse(given)
        (problem,) = caught.value.problems
        assert (problem.argument, problem.given) == ("model", repr(given))
        assert problem.advice == f"Did you mean {near!r}?"
        assert all(name in problem.allowed for name in [*POSTERIORS, *LIKELIHOODS])

    @pytest.mark.parametrize("given", ["", "-", "gcn-sbm", "sbm-gcn-gcn", "sbm"])
    def test_other_unknown_names(self, given):
        with pytest.raises(InputError, match="model: got"):
            ModelSpec.parse(given)


class TestSpec:
    def test_all_unknown_parts_are_found_at_once(self):
        problems = Problems()
        ModelSpec("gnc", "smb", "mpl").check(problems)
        assert {(problem.argument, problem.advice) for problem in problems.found} == {
            ("posterior", "Did you mean 'gcn'?"),
            ("likelihood", "Did you mean 'sbm'?"),
            ("prior", "Did you mean 'mlp'?"),
        }

    def test_classes_may_take_the_place_of_names(self):
        spec = ModelSpec(GCN, PlantedPartition, LinearPrior)
        problems = Problems()
        spec.check(problems)
        assert problems.found == []
        model = spec.build(Sizes(5, 3), Replicas((0, 1)), {"hidden": 4})
        assert (type(model.posterior), type(model.likelihood), type(model.prior)) == (
            GCN,
            PlantedPartition,
            LinearPrior,
        )
        assert model.posterior.weight1.shape == (2, 5, 4)

    def test_options_are_those_of_the_parts(self):
        assert {"p0", "learn_p", "hidden", "input_dropout"} <= set(
            known_names(ModelSpec.parse("sbm-gcn").option_groups())
        )
        assert "p0" not in known_names(ModelSpec.parse("gcn").option_groups())
        assert ModelSpec(lambda: nn.Linear(1, 1)).option_groups() == []

    def test_a_name_without_likelihood_is_discriminative(self):
        model = ModelSpec.parse("gcn").build(Sizes(5, 3), Replicas((0,)), {})
        assert (model.likelihood, model.prior) == (None, None)

    def test_parts_of_one_model_start_differently(self):
        model = ModelSpec.parse("sbm-mlp").build(Sizes(5, 3), Replicas((0,)), {})
        assert not torch.equal(model.posterior.network.weight1, model.prior.network.weight1)

    def test_the_name_of_a_module(self):
        assert ModelSpec(nn.Linear(2, 3), "sbm").name == "sbm-Linear"
        assert ModelSpec(MLPPosterior).name == "MLPPosterior"


class TestModel:
    seeds = (3, 4, 5)

    @pytest.fixture
    def model(self) -> GenerativeModel:
        return ModelSpec.parse("blsm-gcn").build(Sizes(8, 3), Replicas(self.seeds), {})

    def test_the_answer_is_the_posterior(self, model, learnable):
        inputs = Inputs.of(learnable)
        assert torch.equal(model.predict_log_prob(inputs), model.posterior.log_prob(inputs, None))

    def test_without_edges_the_answer_is_the_prior(self, model, edgeless):
        inputs = Inputs.of(edgeless)
        assert torch.equal(model.predict_log_prob(inputs), model.prior.log_prob(inputs, None))
        assert not torch.equal(model.predict_log_prob(inputs), model.posterior.log_prob(inputs, None))

    def test_without_edges_a_discriminative_model_answers_itself(self, edgeless):
        model = ModelSpec.parse("gcn").build(Sizes(8, 3), Replicas((0,)), {})
        inputs = Inputs.of(edgeless)
        assert torch.equal(model.predict_log_prob(inputs), model.posterior.log_prob(inputs, None))

    def test_select_keeps_the_replicas_asked_for(self, model):
        model.select(torch.tensor([2, 0]))
        expected = ModelSpec.parse("blsm-gcn").build(Sizes(8, 3), Replicas((5, 3)), {}).state_dict()
        for name, tensor in model.state_dict().items():
            assert torch.equal(tensor, expected[name]), name

    def test_select_keeps_what_is_trained_and_what_is_fixed(self):
        model = ModelSpec.parse("sbm-gcn").build(Sizes(8, 3), Replicas(self.seeds), {})
        before = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
        model.select(torch.tensor([1]))
        assert {name: parameter.requires_grad for name, parameter in model.named_parameters()} == before
        assert set(before.values()) == {True, False}

    def test_select_of_none_leaves_an_empty_stack(self, model, learnable):
        model.select(torch.tensor([], dtype=torch.int64))
        assert all(tensor.shape[0] == 0 for tensor in model.state_dict().values())

    def test_restore_takes_over_another_number_of_replicas(self, model, learnable):
        inputs = Inputs.of(learnable)
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        answer = model.predict_log_prob(inputs)
        model.select(torch.tensor([1]))
        model.restore(state)
        assert torch.equal(model.predict_log_prob(inputs), answer)


class TestColdStart:
    """Who answers for nodes without edges on a graph that has some."""

    cold = np.array([20, 41])

    @pytest.fixture
    def parted(self, learnable):
        return learnable.without_edges_of(self.cold)

    def model(self, who: str, task: NodeTask) -> GenerativeModel:
        name = "sbm-gcn" if task.outcome == "classes" else "near-gcn"
        return ModelSpec.parse(name).build(Sizes.of(task, {}), Replicas((3, 4, 5)), {"isolated_answer": who})

    @pytest.mark.parametrize("who", [POSTERIOR, PRIOR, BOTH])
    def test_linked_nodes_are_the_posterior_s_and_the_others_are_his_who_was_asked(self, parted, who):
        model, inputs = self.model(who, parted), Inputs.of(parted)
        q, p = (part.log_prob(inputs, None) for part in (model.posterior, model.prior))
        expected = {POSTERIOR: q.exp(), PRIOR: p.exp(), BOTH: (q.exp() + p.exp()) / 2}[who]
        answer = model.predict_log_prob(inputs)
        linked = np.setdiff1d(np.unique(parted.edges), self.cold)
        assert torch.equal(answer[:, linked], q[:, linked])
        torch.testing.assert_close(answer[:, self.cold].exp(), expected[:, self.cold])
        assert not torch.allclose(p[:, self.cold], q[:, self.cold])

    @pytest.mark.parametrize("outcome", ["real", "counts"])
    def test_numbers_are_answered_by_the_mixture_of_both(self, outcome):
        rng = np.random.default_rng(2)
        values = {"real": rng.normal(size=(30, 1)), "counts": rng.poisson(3, size=(30, 1))}[outcome]
        edges = np.stack([np.arange(24), np.arange(1, 25)])
        parts = np.arange(10), np.arange(10, 20), np.arange(20, 30)
        task = NodeTask.build(rng.normal(size=(30, 4)), edges, values, *parts, outcome=outcome)
        model, inputs = self.model(BOTH, task), Inputs.of(task)
        q, p = (part.log_prob(inputs, None) for part in (model.posterior, model.prior))
        answer = model.predict_log_prob(inputs)
        for r in range(3):
            mixed = inputs.outcome.mixture(torch.stack([q[r], p[r]]))[0]
            torch.testing.assert_close(answer[r, 25:], mixed[25:])
        assert not torch.allclose(answer[:, 25:], q[:, 25:])

    def test_a_graph_without_lone_nodes_is_the_posterior_s(self, make_task):
        ring = np.stack([np.arange(14), (np.arange(14) + 1) % 14])
        task = make_task().with_edges(np.sort(ring, axis=0))
        model, inputs = self.model(BOTH, task), Inputs.of(task)
        assert torch.equal(model.predict_log_prob(inputs), model.posterior.log_prob(inputs, None))

    def test_training_stops_by_the_loss_of_those_who_answer(self, learnable):
        """Validation nodes are answered without their edges, so by both."""
        quick = {"trials": 2, "device": "cpu", "progress": False, "epochs": 20, "validation": "isolated"}
        found = g3nn.fit(learnable, "sbm-gcn", isolated_answer="both", **quick)
        inputs = Inputs.of(learnable)
        with torch.no_grad():
            answer = found.model.predict_log_prob(inputs.without_edges_of(learnable.val))
        loss = -answer[:, learnable.val, learnable.labels[learnable.val]].mean(1)
        np.testing.assert_allclose(found.val_loss, loss.numpy(), rtol=1e-5)
        assert found.hyperparameters["isolated_answer"] == "both"
        alone = g3nn.fit(learnable, "sbm-gcn", **quick)
        assert not np.allclose(alone.val_loss, found.val_loss)

    def test_only_a_model_with_a_prior_has_the_choice(self, learnable):
        assert ModelOptions in ModelSpec.parse("sbm-gcn").option_groups()
        with pytest.raises(InputError, match="isolated_answer"):
            g3nn.fit(learnable, "gcn", isolated_answer="both", device="cpu")

    def test_another_word_is_refused(self, learnable):
        with pytest.raises(InputError, match="posterior, prior or both"):
            g3nn.fit(learnable, "sbm-gcn", isolated_answer="nobody", device="cpu")
