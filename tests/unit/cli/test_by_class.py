"""Weights of classes, and the recall or precision that is wanted of them, on the command line."""

from __future__ import annotations

import json

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from small_tables import edge_columns, node_columns, write

from g3nn.base.errors import Problems
from g3nn.cli.by_class import by_class, numbers
from g3nn.estimator import load_model
from g3nn.graph.outcomes import Classes, Real

SHORT = ("--model", "gcn", "--ensemble", "1", "--device", "cpu", "--no-audit", "--label-noise", "no")


@pytest.fixture
def fit(run_command, tmp_path):
    """`g3nn fit` on the sixty people, of whom few are in the group tea."""
    columns = node_columns(labelled=60)
    columns["group"] = [group if group != "tea" or i % 12 == 2 else None for i, group in enumerate(columns["group"])]
    files = [str(write(tmp_path / "nodes.csv", columns)), str(write(tmp_path / "edges.csv", edge_columns()))]

    def run(*words):
        given = ("--nodes", files[0], "--edges", files[1], "--id", "id", "--label", "group", "--text", "notes")
        return run_command("fit", *given, "--out", str(tmp_path / "out"), *SHORT, *words)

    return run


@pytest.mark.parametrize(
    ("argument", "text", "found"),
    [
        ("class_weight", None, None),
        ("class_weight", "balanced", "balanced"),
        ("class_weight", "a=2,b c=0.5", {"a": 2.0, "b c": 0.5}),
        ("recall", "x=y=0.9", {"x=y": 0.9}),
    ],
)
def test_what_is_given(argument, text, found):
    problems = Problems()
    assert numbers(argument, text, problems) == found
    assert problems.found == []


@pytest.mark.parametrize(
    ("argument", "text", "said"),
    [
        ("class_weight", "heavy", "'heavy'; expected balanced or CLASS=NUMBER"),
        ("class_weight", "a=2,b", "'a=2,b'; expected"),
        ("recall", "balanced", "'balanced'; expected CLASS=NUMBER"),
        ("precision", "a=90", "90.0; expected a number strictly between 0 and 1"),
    ],
)
def test_what_cannot_be_read(argument, text, said):
    problems = Problems()
    numbers(argument, text, problems)
    assert f"{argument}: got {said}" in str(problems.found[0])


def test_classes_are_found_by_their_names():
    problems, given = Problems(), {"class_weight": {"1": 3.0}, "recall": None, "precision": {"2": 0.5}}
    assert by_class(given, Classes, [1, 2], problems) == {
        "class_weight": {1: 3.0},
        "recall": None,
        "precision": {2: 0.5},
    }
    assert problems.found == []
    by_class({"recall": {"3": 0.5}, "precision": None}, Classes, [1, 2], problems)
    by_class({"class_weight": "balanced"}, Real, ["y"], problems)
    assert [str(one) for one in problems.found] == [
        "recall: got '3'; expected 1 or 2",
        "class_weight: got labels that are numbers; expected one class for each node. Leave it out.",
    ]


def test_problems_are_said_at_once_and_before_anything_is_trained(fit):
    ran = fit("--class-weight", "heavy", "--recall", "tea=2")
    assert (ran.code, ran.out) == (2, "")
    assert "--class-weight: got 'heavy'; expected balanced or" in ran.err
    assert "--recall: got 2.0; expected a number strictly between 0 and 1" in ran.err
    assert (
        "--class-weight: got 'tee'; expected art, law or tea. Did you mean 'tea'?" in fit("--class-weight", "tee=2").err
    )
    assert "--class-weight: got {'tea': -1.0}; expected weights above 0" in fit("--class-weight", "tea=-1").err


def test_a_rare_class_in_the_summary_and_its_threshold_in_the_predictions(fit, tmp_path):
    ran = fit("--class-weight", "tea=5", "--recall", "tea=0.5", "--precision", "art=0.99")
    assert ran.code == 0
    assert "rare class tea on validation:\n  recall, the share of its nodes that is found: " in ran.out
    assert "rough: fewer than 30 nodes of this class" in ran.out
    assert "tea from probability" in ran.out
    assert "note: --precision: got 0.99, with" in ran.err
    model = load_model(tmp_path / "out")
    assert model.class_weight == {"tea": 5.0}
    found = model.threshold("tea", recall=0.5)
    table = pq.read_table(tmp_path / "out" / "predictions.parquet")
    assert table.column_names[-1] == "tea_at_recall_0.5"
    p = table["prob_tea"].to_numpy()
    assert table["tea_at_recall_0.5"].to_pylist() == (p >= found.probability).tolist()


def test_figures_of_a_rare_class_for_machines(fit):
    told = json.loads(fit("--json", "--recall", "tea=0.5").out)
    assert list(told["rare"]) == ["tea"]
    assert told["thresholds"][0]["recall"] >= 0.5


def test_new_answers_have_the_columns_of_the_fit(fit, run_command, tmp_path):
    assert fit("--recall", "tea=0.5").code == 0
    words = ("--nodes", str(tmp_path / "nodes.csv"), "--out", str(tmp_path / "new.csv"), "--precision", "art=0.99")
    ran = run_command("predict", str(tmp_path / "out"), *words, "--recall", "tea=0.5", "--json")
    (found,) = json.loads(ran.out)["thresholds"]
    assert (ran.code, found["label"], found["asked"]) == (0, "tea", "recall")
    assert "note: --precision: got 0.99, with" in ran.err
    before, now = pq.read_table(tmp_path / "out" / "predictions.parquet"), pa_csv.read_csv(tmp_path / "new.csv")
    assert now.column_names[-1] == "tea_at_recall_0.5"
    assert now["tea_at_recall_0.5"].to_pylist() == before["tea_at_recall_0.5"].to_pylist()
    assert "tea from probability" in run_command("predict", str(tmp_path / "out"), *words, "--recall", "tea=0.5").out
    ran = run_command("predict", str(tmp_path / "out"), *words, "--recall", "tee=2")
    assert ran.code == 2
    assert "--recall: got 'tee'; expected art, law or tea. Did you mean 'tea'?" in ran.err
    assert "--recall: got 2.0; expected a number strictly between 0 and 1" in ran.err
