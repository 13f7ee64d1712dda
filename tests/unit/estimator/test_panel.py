"""Candidates of a panel."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import g3nn
from g3nn.base.errors import InputError, Problems
from g3nn.estimator import panel
from g3nn.estimator.panel import (
    Candidate,
    Trial,
    candidates,
    check_candidates,
    judges,
    networks_alone,
    panel_of,
    simple_candidates,
    worth_doubting,
)
from g3nn.graph.outcomes import Classes, Counts, Real, Tags
from g3nn.model.objective import Objective

COMMON = {"hidden": 8, "lr": 0.01, "weight_decay": 5e-4, "epochs": 12, "patience": 12}


def tried_and_problems(model="auto", objective="auto", options=None, common=COMMON, device="cpu", outcome=Classes):
    problems = Problems()
    tried = candidates(
        model, objective, options or {}, [Candidate(*one) for one in panel_of(outcome, 4, 3.5)], problems, outcome
    )
    check_candidates(tried, common, device, problems, outcome)
    return tried, problems.found


class TestCandidates:
    def test_the_panel_holds_models_for_both_kinds_of_graphs_and_plain_networks(self):
        tried, problems = tried_and_problems()
        names = [one.name for one in tried]
        assert problems == []
        assert {"mlp", "gcn", "gat", "sage", "appnp", "gcnii", "grand", "hops", "linkx"} < set(names)
        assert {"sbm-appnp", "dcsbm-grand", "blsm-mlp", "gsbm-mlp"} < set(names)
        assert {one.objective for one in tried} == {"elbo", "released"}
        assert {one.options["graph_weight"] for one in tried if one.name == "sbm-appnp"} == {0.25}

    def test_panels_of_other_outcomes_weigh_edges_and_nodes_alike(self):
        close = {"refine": True, "graph_weight": 3.5}
        panels = {kind: tried_and_problems(outcome=kind)[0] for kind in (Real, Counts, Tags)}
        plain = ["hops", "sage", "linkx", "appnp", "gat"]
        assert [one.name for one in panels[Real]] == ["mlp", "gcn", "near-gcn", "near-appnp", *plain]
        assert [one.name for one in panels[Counts]] == ["mlp", "gcn", "near-gcn", *plain]
        assert [one.options for one in panels[Real]][:4] == [{}, {}, close, close]
        assert [one.name for one in panels[Tags]] == ["mlp", "gcn", "sbm-gcn", "tags-gcn", "tags-gcn", *plain]
        assert panels[Tags][4].options == close

    def test_a_named_model_is_the_only_one_and_its_objective_the_paper_s(self):
        assert tried_and_problems("blsm-gat")[0] == (Candidate("blsm-gat", "elbo", {}),)
        assert tried_and_problems("gcn", "laplacian")[0] == (Candidate("gcn", "laplacian", {}),)
        objective = Objective(eta=2.0)
        assert tried_and_problems("sbm-gcn", objective)[0][0].objective is objective

    def test_an_objective_narrows_the_panel(self):
        tried, problems = tried_and_problems(objective="released")
        assert problems == []
        assert {one.objective for one in tried} == {"released"}
        assert {one.name for one in tried if "-" in one.name} == {"sbm-gcn"}
        assert not any("-" in one.name for one in tried_and_problems(objective="laplacian")[0])

    def test_in_the_place_of_joint_models_their_networks_can_stand(self, learnable, monkeypatch):
        tried, problems = tried_and_problems(objective="none")
        assert (problems, tried) == ([], tried_and_problems()[0])
        alone = networks_alone(tried, Classes)
        check_candidates(alone, COMMON, "cpu", problems := Problems(), Classes)
        assert problems.found == []
        assert {one.name for one in alone} == {one.name.rpartition("-")[2] for one in tried}
        assert len({one.key for one in alone}) == len(alone) < len(tried)
        assert [one for one in tried if "-" not in one.name and one in alone]
        # What only a likelihood or a prior has is gone, what a network has is kept.
        near = [one for one in tried if one.name == "dcsbm-grand" and one.options["order"] == 2]
        (network,) = [one for one in alone if one.name == "grand" and one.options["order"] == 2]
        gone = near[0].options.keys() - network.options.keys()
        assert gone == {"entropy_weight", "warm_up"}
        assert network.options.items() < near[0].options.items()
        assert networks_alone(alone, Classes) == alone
        monkeypatch.setattr(panel, "_JUDGES", ("sbm-appnp", "hops"))
        named = [[plan.spec.name for plan in judges(learnable, False, 0, "cpu", joint)] for joint in (True, False)]
        assert named == [["sbm-appnp", "hops"], ["hops"]]

    def test_a_model_that_is_named_needs_an_objective(self):
        (problem,) = tried_and_problems("sbm-gcn", "none")[1]
        assert (problem.argument, "released" in problem.allowed) == ("objective", True)

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
        _, problems = tried_and_problems("gcn", common={**COMMON, "lr": -1, "hidden": 0}, device="tpu")
        assert sorted(problem.argument for problem in problems) == ["device", "hidden", "lr"]

    def test_hidden_means_nothing_to_label_propagation(self):
        assert tried_and_problems("label-propagation")[1] == []
        with pytest.raises(InputError, match="hidden"):
            g3nn.fit(g3nn.synthetic(nodes=400), "label-propagation", hidden=16)


class TestOthers:
    def test_variants_change_what_a_model_knows_and_nothing_else(self):
        wide = Candidate("gcn", "elbo", {"hidden": 64}, view="length").variants()
        assert [one.options for one in wide] == [
            {"hidden": 64, "dropout": 0.2, "weight_decay": 5e-5},
            {"hidden": 256, "dropout": 0.7},
        ]
        assert {one.view for one in wide} == {"length"}
        assert Candidate("label-propagation", "elbo", {}).variants() == []

    def test_a_likelihood_and_several_passes_have_their_price(self):
        def price(model, **options):
            return Candidate(model, "elbo", options).price

        assert price("gcn") < price("sbm-gcn") < price("blsm-gcn")
        assert price("grand") < price("grand", samples=2) < price("grand", samples=2, travelling="features")

    def test_who_doubts_edges_must_be_better_than_who_believes_them(self):
        believes, other = Candidate("gcn", "elbo", {}), Candidate("gat", "elbo", {}, trust=0.5)
        losses = [
            (believes, 0.7),
            (replace(believes, trust=0.8), 0.6),
            (replace(believes, trust=0.5), 0.8),
            (other, 2.0),
        ]
        trials = [Trial(one, loss=loss) for one, loss in losses]
        assert worth_doubting(trials) == [trials[0], trials[1], trials[3]], "no gat believes all edges"

    def test_features_travel_only_where_that_takes_little_time(self, learnable, monkeypatch):
        sends = Candidate("grand", "elbo", {"travelling": "features"})
        assert sends.suits(learnable)
        monkeypatch.setattr(panel, "_MOST_TRAVELLING", 2 * learnable.num_edges * learnable.num_features - 1)
        assert not sends.suits(learnable)
        assert Candidate("grand", "elbo", {}).suits(learnable)

    def test_what_anyone_would_try_is_tried_trees_last_and_where_there_are_labels_enough(self):
        linear = ["base-rate", "linear", "linear-neighbours", "label-propagation"]
        assert [one.name for one in simple_candidates(Classes, 40, 3, 8, linked=True)] == linear
        named = [one.name for one in simple_candidates(Classes, 500, 3, 8, linked=True)]
        assert named == [*linear, "trees", "trees-neighbours"]
        assert [one.name for one in simple_candidates(Classes, 100, 19, 8, linked=True)] == linear
        assert [one.name for one in simple_candidates(Real, 500, 1, 8, linked=False)] == [
            "base-rate",
            "linear",
            "trees",
        ]
        wide = simple_candidates(Real, 40, 1, 500, linked=False)
        assert [dict(one.options) for one in wide] == [{}, {"penalty": 1.0}, {"penalty": 50.0}]
        assert all(one.simple for one in wide)

    def test_an_estimator_that_was_asked_for_goes_by_its_class_in_a_pipeline_too(self):
        for prior in (LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())):
            names = [one.name for one in simple_candidates(Classes, 50, 3, 8, linked=True, prior=prior)]
            assert names == ["LogisticRegression", "LogisticRegression-neighbours", "base-rate", "label-propagation"]
