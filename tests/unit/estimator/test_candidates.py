from __future__ import annotations

import pytest

import g3nn
from g3nn.errors import InputError, Problems
from g3nn.estimator.candidates import Candidate, candidates, check_candidates, panel
from g3nn.objective import Objective

COMMON = {"hidden": 16, "lr": 0.01, "weight_decay": 5e-4, "epochs": 10, "patience": 5}


def found(model="auto", objective="auto", options=None):
    problems = Problems()
    tried = candidates(model, objective, options or {}, 4, problems)
    check_candidates(tried, COMMON, "cpu", problems)
    return tried, [str(problem) for problem in problems.found]


def test_the_panel_holds_both_kinds_of_graphs_and_the_plain_networks():
    tried, problems = found()
    names = [one.name for one in tried]
    assert problems == []
    assert {"mlp", "gcn", "sbm-gcn", "sbm-appnp", "blsm-gcn", "gsbm-mlp", "gsbm-gcn", "blsm-mlp"} == set(names)
    assert tried == panel(4)
    assert len(set(names)) == len(names)
    assert {one.objective for one in tried} == {"elbo", "released"}
    assert {one.options["graph_weight"] for one in tried if one.name == "sbm-appnp"} == {0.25}


def test_a_named_model_is_the_only_one_and_its_objective_the_paper_s():
    assert found("blsm-gat")[0] == (Candidate("blsm-gat", "elbo", {}),)
    assert found("gcn", "laplacian")[0] == (Candidate("gcn", "laplacian", {}),)
    objective = Objective(eta=2.0)
    assert found("sbm-gcn", objective)[0][0].objective is objective


def test_an_objective_narrows_the_panel():
    tried, problems = found(objective="released")
    assert problems == []
    assert [one.name for one in tried] == ["mlp", "gcn", "sbm-gcn"]
    assert {one.objective for one in tried} == {"released"}
    assert [one.name for one in found(objective="laplacian")[0]] == ["mlp", "gcn"]


def test_options_go_to_the_models_that_know_them():
    tried, problems = found(options={"p0": 0.7, "prior": "linear"})
    assert problems == []
    assert all((one.options.get("p0") == 0.7) == ("sbm" in one.name) for one in tried)
    assert {one.prior for one in tried} == {"linear"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"options": {"droput": 0.5}}, "Did you mean 'dropout'?"),
        ({"options": {"p0": 2}}, "p0: got 2"),
        ({"options": {"prior": "mpl"}}, "Did you mean 'mlp'?"),
        ({"objective": "elbow"}, "Did you mean 'elbo'?"),
        ({"objective": Objective()}, "objective: got Objective"),
        ({"model": "smb-gcn"}, "Did you mean 'sbm-gcn'?"),
        ({"model": 3}, "model: got 3"),
        ({"model": "gcn", "options": {"p0": 0.5}}, "p0: got 0.5"),
    ],
)
def test_a_problem_is_said_once(arguments, said):
    problems = found(**arguments)[1]
    assert len(problems) == len(set(problems))
    assert sum(said in problem for problem in problems) == 1


def test_common_options_are_checked():
    problems = Problems()
    check_candidates(panel(3), {**COMMON, "lr": -1, "hidden": 0}, "tpu", problems)
    assert sorted(problem.argument for problem in problems.found) == ["device", "hidden", "lr"]


def test_hidden_means_nothing_to_label_propagation():
    assert found("label-propagation")[1] == []
    with pytest.raises(InputError, match="hidden"):
        g3nn.fit(None, "label-propagation", hidden=16)  # type: ignore[arg-type]


def test_panels_of_other_outcomes_weigh_edges_and_nodes_alike():
    close = {"refine": True, "graph_weight": 3.5}
    assert [one.name for one in panel(1, "real", 3.5)] == ["mlp", "gcn", "near-gcn", "near-appnp"]
    assert [one.name for one in panel(1, "counts", 3.5)] == ["mlp", "gcn", "near-gcn"]
    assert [one.options for one in panel(1, "real", 3.5)] == [{}, {}, close, close]
    assert [one.name for one in panel(4, "tags", 3.5)] == ["mlp", "gcn", "sbm-gcn", "tags-gcn", "tags-gcn"]
    assert panel(4, "tags", 3.5)[-1].options == close
    for outcome in ("real", "counts", "tags"):
        problems = Problems()
        check_candidates(panel(2, outcome, 3.5), COMMON, "cpu", problems, outcome)
        assert problems.found == []
