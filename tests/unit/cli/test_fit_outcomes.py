"""`g3nn fit` and `g3nn predict` on labels that are no classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_tables import Columns, edge_columns, node_columns, write

from g3nn.estimator import load_model

pytestmark = pytest.mark.usefixtures("short_audit", "few_epochs")

SHORT = ("--model", "gcn", "--ensemble", "1", "--device", "cpu")


def columns_of(people: range = range(60), labelled: int = 45) -> Columns:
    """With a price, a number of visits and two tags beside the group, which is a feature here."""
    rng = np.random.default_rng(people.start)
    columns = node_columns(people, 100)
    prices = [round(100 + 10 * (i % 3) + float(rng.normal()), 3) for i in people]
    extra: Columns = {
        "price": [price if i < labelled else None for i, price in zip(people, prices, strict=True)],
        "visits": [int(rng.poisson(1 + 3 * (i % 3))) if i < labelled else None for i in people],
        "keen": [int((i + (i % 7 == 0)) % 3 == 0) if i < labelled else None for i in people],
        "rich": [int((i + (i % 5 == 0)) % 3 == 1) if i < labelled else None for i in people],
    }
    return {**columns, **extra}


LABELS = ("price", "visits", "keen", "rich")


@pytest.fixture
def tables() -> dict[str, Columns]:
    return {"nodes": columns_of(), "edges": edge_columns()}


@pytest.fixture
def fit(run_command: Any, tables: dict[str, Columns], tmp_path: Path) -> Any:
    def run(*labels: str, words: tuple[str, ...] = (), form: str = "csv", out: str = "out") -> Any:
        files = {name: write(tmp_path / f"{name}.{form}", columns) for name, columns in tables.items()}
        given = ["--nodes", str(files["nodes"]), "--edges", str(files["edges"]), "--id", "id", "--text", "notes"]
        for label in labels:
            given += ["--label", label]
        for name in set(LABELS) - set(labels):
            given += ["--ignore", name]
        return run_command("fit", *given, "--out", str(tmp_path / out), *SHORT, *words)

    return run


@pytest.mark.slow
def test_a_column_with_fractions_is_real(fit, tmp_path):
    ran = fit("price", words=("--json",), form="parquet")
    told = json.loads(ran.out)
    (note,) = told["notes"]  # Both are drawn alike.
    assert "column 'age': it decides the label, alone it explains 98.8% of the variance" in note
    assert (ran.code, ran.err) == (0, f"note: {note}\n")
    assert (told["outcome"], told["train"] + told["val"]) == ("real", 45)
    table = pq.read_table(tmp_path / "out" / "predictions.parquet")
    assert table.column_names == ["id", "given", "role", "mean", "deviation", "low", "high", "has_edges"]
    np.testing.assert_array_equal(table["given"].to_pylist()[:45], columns_of()["price"][:45])
    assert table["given"].null_count == 15
    model = load_model(tmp_path / "out" / "model")
    np.testing.assert_allclose(table["mean"].to_numpy(), model.predict())
    np.testing.assert_allclose(table["deviation"].to_numpy(), model.predict_std())
    np.testing.assert_allclose([table["low"].to_numpy(), table["high"].to_numpy()], model.predict_interval(0.9))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Interval coverage" in page
    assert '"residuals"' in page


@pytest.mark.slow
def test_few_whole_numbers_are_classes_unless_counts_are_asked_for(fit, tmp_path):
    ran = fit("visits", words=("--outcome", "counts"))
    assert ran.code == 0
    assert "validation share of deviance explained" in ran.out
    table = pq.read_table(tmp_path / "out" / "predictions.parquet")
    assert (table["low"].to_numpy() >= 0).all()
    assert load_model(tmp_path / "out" / "model").outcome == "counts"
    assert json.loads(fit("visits", words=("--dry-run", "--json")).out)["schema"][-3]["kind"] == "label (classes)"


@pytest.mark.slow
def test_many_whole_numbers_with_gaps_are_numbers(fit, tables):
    tables["nodes"]["visits"] = [3 * row for row in range(60)]
    told = json.loads(fit("visits", words=("--json", "--no-audit")).out)
    assert told["outcome"] == "counts"
    assert "--outcome classes takes each as a class of its own." in told["notes"][0]


@pytest.mark.slow
def test_several_columns_are_tags(fit, tmp_path):
    ran = fit("keen", "rich", words=("--json",))
    assert (ran.code, ran.err) == (0, "")
    told = json.loads(ran.out)
    assert (told["outcome"], told["tags"]) == ("tags", ["keen", "rich"])
    table = pq.read_table(tmp_path / "out" / "predictions.parquet")
    assert table.column_names == ["id", "given", "role", "tags", "prob_keen", "prob_rich", "has_edges"]
    nodes = columns_of()
    given = [[tag for tag in ("keen", "rich") if nodes[tag][row]] if row < 45 else None for row in range(60)]
    assert table["given"].to_pylist() == given
    p = np.stack([table["prob_keen"].to_numpy(), table["prob_rich"].to_numpy()], axis=1)
    np.testing.assert_allclose(p, load_model(tmp_path / "out" / "model").predict_proba())
    chosen = [[name for name, likely in zip(("keen", "rich"), row, strict=True) if likely > 0.5] for row in p]
    assert table["tags"].to_pylist() == chosen
    assert "share in training" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_test_labels_judge_and_are_not_learned(fit, tables):
    split = ["train"] * 30 + ["val"] * 8 + ["test"] * 7 + [None] * 15
    tables["nodes"]["split"] = split
    told = json.loads(fit("price", words=("--json",)).out)
    assert (told["train"], told["val"], told["test"]["nodes"]) == (30, 8, 7)
    assert set(told["test"]) == {"rmse", "mae", "r2", "log_prob", "coverage", "nodes"}
    told = json.loads(fit("keen", "rich", words=("--json",), out="tags").out)
    assert set(told["test"]) == {"accuracy", "nll", "brier", "f1_micro", "f1_macro", "nodes"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "columns"),
    [(("price",), ["id", "mean", "deviation", "low", "high", "has_edges"]), (("keen", "rich"), None)],
)
def test_new_nodes_with_and_without_edges(fit, run_command, tmp_path, labels, columns):
    assert fit(*labels, words=("--json",)).code == 0
    new = columns_of(range(60, 70), 0)
    for name in LABELS:
        del new[name]
    nodes = write(tmp_path / "new.csv", new)
    edges = write(tmp_path / "new-edges.csv", {"source": ["p60", "p61"], "target": ["p3", "p4"]})
    words = ("--nodes", str(nodes), "--edges", str(edges), "--out", str(tmp_path / "new.parquet"))
    ran = run_command("predict", str(tmp_path / "out"), *words, "--json")
    assert (ran.code, ran.err) == (0, "note: 8 of 10 new nodes have no edge: only their features predict them\n")
    table = pq.read_table(tmp_path / "new.parquet")
    assert table["id"].to_pylist() == new["id"]
    assert table["has_edges"].to_pylist() == [True, True, *[False] * 8]
    assert table.column_names == (columns or ["id", "tags", "prob_keen", "prob_rich", "has_edges"])


def test_bad_input_ends_with_code_2_and_writes_nothing(fit, tables, tmp_path):
    sound = tables["nodes"]
    for labels, words, change, said in [
        (("price",), ("--outcome", "counts"), {}, "Other numbers need outcome 'real'"),
        (("visits",), ("--outcome", "counts"), {"visits": [-1.0] + [2.0] * 59}, "1 values such as -1;"),
        (("price",), ("--outcome", "real"), {"price": [5.5] * 60}, "There is nothing to learn in a constant"),
        (("price",), ("--outcome", "real"), {"price": ["inf", *map(str, range(59))]}, "values such as 'inf'"),
        (("group",), ("--outcome", "real"), {}, "column 'group': got values such as 'art'"),
        (("keen", "rich"), (), {"rich": [2] * 60}, "One class out of several needs outcome 'classes'"),
        (("keen", "rich"), (), {"rich": [0] * 60}, "Leave out tags that no node has"),
        (("keen", "group"), (), {}, "column 'group': got values such as 'art'"),
        (("keen", "rich"), ("--outcome", "real"), {}, "2 columns for --outcome real"),
        (("price",), ("--outcome", "numbers"), {}, "auto, classes, tags, real or counts"),
        (("price",), ("--model", "sbm-gcn"), {}, "likelihood: got 'sbm' for outcome 'real'"),
    ]:
        tables["nodes"] = {**sound, **change}
        ran = fit(*labels, words=words)
        assert ran.code == 2
        assert said in ran.err
        assert "Traceback" not in ran.err
        assert not (tmp_path / "out").exists()


def test_every_problem_is_in_one_message(fit, tables):
    tables["nodes"]["keen"] = [3] * 60
    tables["nodes"]["rich"] = ["a"] * 60
    tables["edges"]["source"][0] = "nobody"
    ran = fit("keen", "rich", words=("--ensemble", "0"))
    assert ran.code == 2
    assert all(word in ran.err for word in ("'keen'", "'rich'", "ensemble", "ids that no node has"))
