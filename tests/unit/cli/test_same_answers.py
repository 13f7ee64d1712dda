"""The command line and Python read the same files alike, fit the same model, and give the same answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_tables import edge_columns, node_columns, write

from g3nn.estimator import G3NNClassifier, estimator_for, load_model

NAMES = ["prob_art", "prob_law", "prob_tea"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
def test_the_command_line_and_python(run_command, few_epochs, tmp_path):
    columns = node_columns()
    columns["age"][4], columns["city"][9] = None, "n/a"
    columns["since"] = [f"2020-0{1 + row % 9}-17" for row in range(60)]
    write(tmp_path / "nodes.csv", columns)
    write(tmp_path / "edges.csv", {**edge_columns(), "weight": [1 + place % 3 for place in range(71)]})
    files = ("--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv"))
    words = ("--id", "id", "--label", "group", "--model", "sbm-gcn", "--ensemble", "2", "--device", "cpu", "--no-audit")
    assert run_command("fit", *files, *words, "--out", str(tmp_path / "out"), "--json").code == 0
    nodes, edges = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("nodes", "edges"))
    own = G3NNClassifier("sbm-gcn", ensemble=2, device="cpu", random_state=0, epochs=few_epochs)
    own.fit(nodes, y="group", edges=edges, id="id").save(tmp_path / "own")

    told, found = pd.read_parquet(tmp_path / "out" / "predictions.parquet"), own.to_frame()
    assert told.columns.tolist() == found.columns.tolist()
    assert told[["id", "given", "role", "label"]].equals(found[["id", "given", "role", "label"]])
    np.testing.assert_allclose(told[NAMES], found[NAMES], rtol=0, atol=1e-6)

    # New rows with edges, and one of the fit, by each from what the other saved.
    new = {name: [*values[:4], columns[name][7]] for name, values in node_columns(range(60, 70), 0).items()}
    new["since"], new["age"][1] = ["2020-03-01"] * 5, None
    write(tmp_path / "new.csv", new)
    write(tmp_path / "links.csv", {"source": ["p60", "p61"], "target": ["p3", "p60"], "weight": [2, 1]})
    files = ("--nodes", str(tmp_path / "new.csv"), "--edges", str(tmp_path / "links.csv"))
    assert run_command("predict", str(tmp_path / "own"), *files, "--out", str(tmp_path / "new.parquet")).code == 0
    answers = pd.read_parquet(tmp_path / "new.parquet")
    rows, links = pd.read_csv(tmp_path / "new.csv"), pd.read_csv(tmp_path / "links.csv")
    loaded = load_model(tmp_path / "out")
    np.testing.assert_allclose(answers[NAMES], loaded.predict_proba(rows, links), rtol=0, atol=1e-6)
    np.testing.assert_allclose(answers[NAMES].iloc[4], told[NAMES].iloc[7], rtol=0, atol=1e-6)
    # All rows of the fit, in another order.
    backwards = loaded.predict_proba(nodes.iloc[::-1])
    np.testing.assert_allclose(backwards[::-1], told[NAMES], rtol=0, atol=1e-6)


TREES = {"max_leaf_nodes": 15, "l2_regularization": 1.0, "max_features": 0.3, "early_stopping": False}
PRIORS = {
    ("trees", "classes"): HistGradientBoostingClassifier(**TREES),
    ("linear-model", "classes"): make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    ("linear-model", "real"): make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(0, 3, 7))),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::g3nn.base.errors.G3NNWarning")
@pytest.mark.parametrize(("prior", "outcome"), PRIORS)
def test_a_prior_by_name_is_an_estimator_in_python(run_command, few_epochs, tmp_path, prior, outcome):
    label, model = ("group", "sbm-gcn") if outcome == "classes" else ("age", "near-gcn")
    tables = {"nodes": node_columns(), "edges": edge_columns()}
    words = ["--id", "id", "--label", label, "--outcome", outcome, "--model", model, "--prior", prior]
    for name, columns in tables.items():
        words += [f"--{name}", str(write(tmp_path / f"{name}.csv", columns))]
    words += ["--ensemble", "1", "--device", "cpu", "--no-audit", "--out", str(tmp_path / "out"), "--json"]
    assert run_command("fit", *words).code == 0
    nodes, edges = (pd.read_csv(tmp_path / f"{name}.csv") for name in tables)
    how = {"model": model, "prior": PRIORS[prior, outcome], "ensemble": 1, "device": "cpu", "epochs": few_epochs}
    own = estimator_for(outcome, how).fit(nodes, y=label, edges=edges, id="id")
    loaded = load_model(tmp_path / "out")
    assert loaded.prior.name == type(own.prior).__name__
    np.testing.assert_array_equal(loaded.task_.beliefs, own.task_.beliefs)
    np.testing.assert_array_equal(loaded.predict(), own.predict())
