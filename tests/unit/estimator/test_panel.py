"""Candidates, and how the best of them is chosen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import g3nn
from g3nn.errors import G3NNWarning, InputError, Problems, TrainingError
from g3nn.estimator.panel import STAGES, Candidate, Search, candidates, check_candidates, usable
from g3nn.objective import Objective
from g3nn.outcomes import Classes, Counts, Real, Tags

COMMON = {"hidden": 8, "lr": 0.01, "weight_decay": 5e-4, "epochs": 12, "patience": 12}
SCALES = [Candidate("sbm-gcn", "elbo", {"graph_weight": weight, "eta": 1.0}) for weight in (1.0, 0.5)]
TRIED = [Candidate("mlp", "elbo", {}), SCALES[0], Candidate("gcn", "elbo", {}), SCALES[1]]


def tried_and_problems(model="auto", objective="auto", options=None, common=COMMON, device="cpu", outcome=Classes):
    problems = Problems()
    tried = candidates(model, objective, options or {}, outcome.panel(4, 3.5), problems, outcome)
    check_candidates(tried, common, device, problems, outcome)
    return tried, problems.found


class TestCandidates:
    def test_the_panel_holds_models_for_both_kinds_of_graphs_and_plain_networks(self):
        tried, problems = tried_and_problems()
        names = [one.name for one in tried]
        assert problems == []
        assert sorted(names) == sorted(
            ["mlp", "gcn", "sbm-gcn", "sbm-appnp", "blsm-gcn", "gsbm-mlp", "gsbm-gcn", "blsm-mlp"]
        )
        assert {one.objective for one in tried} == {"elbo", "released"}
        assert {one.options["graph_weight"] for one in tried if one.name == "sbm-appnp"} == {0.25}

    def test_panels_of_other_outcomes_weigh_edges_and_nodes_alike(self):
        close = {"refine": True, "graph_weight": 3.5}
        panels = {kind: tried_and_problems(outcome=kind)[0] for kind in (Real, Counts, Tags)}
        assert [one.name for one in panels[Real]] == ["mlp", "gcn", "near-gcn", "near-appnp"]
        assert [one.name for one in panels[Counts]] == ["mlp", "gcn", "near-gcn"]
        assert [one.options for one in panels[Real]] == [{}, {}, close, close]
        assert [one.name for one in panels[Tags]] == ["mlp", "gcn", "sbm-gcn", "tags-gcn", "tags-gcn"]
        assert panels[Tags][-1].options == close

    def test_a_named_model_is_the_only_one_and_its_objective_the_paper_s(self):
        assert tried_and_problems("blsm-gat")[0] == (Candidate("blsm-gat", "elbo", {}),)
        assert tried_and_problems("gcn", "laplacian")[0] == (Candidate("gcn", "laplacian", {}),)
        objective = Objective(eta=2.0)
        assert tried_and_problems("sbm-gcn", objective)[0][0].objective is objective

    def test_an_objective_narrows_the_panel(self):
        tried, problems = tried_and_problems(objective="released")
        assert problems == []
        assert [(one.name, one.objective) for one in tried] == [
            ("mlp", "released"), ("gcn", "released"), ("sbm-gcn", "released"),
        ]  # fmt: skip
        assert [one.name for one in tried_and_problems(objective="laplacian")[0]] == ["mlp", "gcn"]

    def test_options_go_to_the_models_that_declare_them(self):
        tried, problems = tried_and_problems(options={"p0": 0.7, "prior": "linear"})
        assert problems == []
        assert all((one.options.get("p0") == 0.7) == ("sbm" in one.name) for one in tried)
        assert {one.prior for one in tried} == {"linear"}

    @pytest.mark.parametrize(
        ("arguments", "argument", "advice"),
        [
            ({"options": {"droput": 0.5}}, "droput", "Did you mean 'dropout'?"),
            ({"options": {"p0": 2}}, "p0", ""),
            ({"options": {"prior": "mpl"}}, "prior", "Did you mean 'mlp'?"),
            ({"objective": "elbow"}, "objective", "Did you mean 'elbo'?"),
            ({"objective": Objective()}, "objective", ""),
            ({"model": "smb-gcn"}, "model", "Did you mean 'sbm-gcn'?"),
            ({"model": 3}, "model", ""),
            ({"model": "gcn", "options": {"p0": 0.5}}, "p0", ""),
        ],
    )
    def test_a_problem_is_reported_once(self, arguments, argument, advice):
        (problem,) = [one for one in tried_and_problems(**arguments)[1] if one.argument == argument]
        assert advice in problem.advice

    def test_common_options_are_checked(self):
        _, problems = tried_and_problems(common={**COMMON, "lr": -1, "hidden": 0}, device="tpu")
        assert sorted(problem.argument for problem in problems) == ["device", "hidden", "lr"]

    def test_hidden_means_nothing_to_label_propagation(self):
        assert tried_and_problems("label-propagation")[1] == []
        with pytest.raises(InputError, match="hidden"):
            g3nn.fit(None, "label-propagation", hidden=16)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def search(learnable):
    return Search(learnable.without_test(), COMMON, "cpu", (5, 6, 7, 8))


@pytest.fixture(scope="module")
def outcome_of_search(search):
    return search.run([*TRIED, Candidate("blsm-gcn", "elbo", {})])


class TestSearch:
    def test_every_candidate_is_reported_and_the_chosen_one_has_all_replicas(self, search, outcome_of_search):
        best, result, entries = outcome_of_search
        assert [entry.model for entry in entries] == ["mlp", "sbm-gcn", "gcn", "sbm-gcn", "blsm-gcn"]
        (chosen,) = [entry for entry in entries if entry.chosen]
        assert (chosen.model, chosen.options, chosen.replicas) == (best.name, best.options, 4)
        assert result.seeds == search.seeds
        assert max(entry.replicas for entry in entries if not entry.chosen) <= STAGES[-1].replicas

    def test_the_chosen_one_has_the_lowest_loss_of_those_trained_as_long(self, outcome_of_search):
        entries = outcome_of_search[2]
        chosen = next(entry for entry in entries if entry.chosen)
        assert all(math.isfinite(entry.val_loss) and entry.epochs <= 12 for entry in entries)
        finalists = sorted(entries, key=lambda entry: entry.val_loss)[:2]
        assert chosen in finalists

    def test_replicas_are_those_of_a_stack_of_their_own_wherever_they_were_trained(self, search, outcome_of_search):
        """Replicas of one candidate are trained in several stages."""
        best, result, _ = outcome_of_search
        alone = best.plan(COMMON, search.seeds, "cpu").fit(search.task, False)
        np.testing.assert_allclose(result.answers.numpy(), alone.answers.numpy(), atol=1e-4)
        np.testing.assert_array_equal(result.best_epoch, alone.best_epoch)
        np.testing.assert_allclose(result.history, alone.history, rtol=1e-3, atol=1e-5)
        for name, tensor in alone.model.state_dict().items():
            np.testing.assert_allclose(result.model.state_dict()[name].numpy(), tensor.numpy(), atol=1e-5)

    def test_a_candidate_that_is_far_behind_trains_no_more(self, search):
        """With a tiny step nothing is learned, so other seeds would not help, although it is the second best."""
        slow = Candidate("gcn", "elbo", {"lr": 1e-9})
        _, _, entries = replace(search, common={**COMMON, "lr": 0.1}).run([slow, slow, TRIED[2]])
        assert [(entry.replicas, entry.chosen) for entry in entries] == [(1, False), (1, False), (4, True)]

    def test_one_candidate_trains_once(self, search):
        _, result, (entry,) = search.run(TRIED[2:3])
        assert (entry.model, entry.chosen, entry.replicas) == ("gcn", True, 4)
        assert result.epochs.tolist() == [12] * 4

    @pytest.mark.parametrize("count", [1, 2])
    def test_few_replicas_need_fewer_stages(self, search, count):
        _, result, entries = replace(search, seeds=search.seeds[:count]).run(TRIED)
        assert result.seeds == search.seeds[:count]
        assert [entry.replicas for entry in entries if entry.chosen] == [count]

    def test_an_entry_says_how_good_the_mean_of_the_replicas_is(self, search):
        _, result, (entry,) = search.run([Candidate("gcn", "elbo", {"dropout": 0.5})])
        val, labels = search.task.val, search.task.labels[search.task.val]
        mean = result.probabilities[:, val].mean(0)
        assert entry.val_score == pytest.approx((mean.argmax(1) == labels).mean())
        assert entry.val_loss <= -np.log(mean[np.arange(labels.size), labels]).mean() + 1e-3
        assert (entry.objective, entry.options, entry.epochs) == ("elbo", {"dropout": 0.5}, result.epochs.max())

    def test_what_diverges_is_not_chosen(self, search):
        wild = Candidate("gcn", "elbo", {"lr": 1e30})
        two = replace(search, seeds=search.seeds[:1])
        with pytest.warns(G3NNWarning, match="became NaN"):
            best, _, entries = two.run([wild, TRIED[2]])
        assert best is TRIED[2]
        assert (entries[0].val_loss, entries[0].replicas) == (math.inf, 0)
        with (
            pytest.warns(G3NNWarning, match="became NaN"),
            pytest.raises(TrainingError, match="no model could be trained"),
        ):
            two.run([wild])

    def test_replicas_that_diverged_are_left_out(self, search):
        _, result, _ = search.run(TRIED[2:3])
        assert usable(result) is result
        broken = replace(result, val_loss=np.array([1.0, np.nan, np.inf, 2.0]))
        assert usable(broken).seeds == (5, 8)
