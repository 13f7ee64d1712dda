"""The estimator from data to answers, on graphs large enough for its promises to be seen."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import g3nn
from g3nn.estimator import G3NNClassifier, load_model
from g3nn.graph.task import NodeTask

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*new nodes have no edge"),
    pytest.mark.usefixtures("labels_judged_quickly", "edges_judged_quickly"),
]

CPU = {"effort": "quick", "device": "cpu", "ensemble": 2, "epochs": 60, "patience": 60, "lr": 0.03}

PROGRAM = """
import sys, numpy, torch
from g3nn.estimator import load_model
torch.set_num_threads(1)
model = load_model(sys.argv[1])
numpy.save(sys.argv[2], model.predict_proba(numpy.load(sys.argv[3]), [[400], [1]]))
"""


def known(task: NodeTask) -> np.ndarray:
    y = np.full(task.num_nodes, -1)
    for part in (task.train, task.val):
        y[part] = task.labels[part]
    return y


@pytest.fixture(scope="module")
def homophilous() -> NodeTask:
    recipe = {"classes": 3, "degree": 5, "homophily": 0.85, "features": 8, "signal": 1.5}
    return g3nn.synthetic(nodes=400, labels_per_class=10, val=120, seed=4, **recipe)


@pytest.fixture(scope="module")
def fitted(homophilous: NodeTask) -> G3NNClassifier:
    """The whole panel."""
    task = homophilous
    return G3NNClassifier(**CPU).fit(task.features, known(task), task.edges, val=task.val)


@pytest.mark.slow
def test_a_panel_chooses_a_model_that_uses_the_edges(fitted, homophilous):
    task = homophilous
    labels = task.labels[task.test]
    mlp = G3NNClassifier("mlp", **CPU).fit(task.features, known(task), task.edges, val=task.val)
    found, features_alone = (one.evaluate(task.test, labels) for one in (fitted, mlp))
    assert "sbm-appnp" in fitted.model_
    assert found["accuracy"] > features_alone["accuracy"] + 0.05
    assert found["ece"] < 0.08


@pytest.mark.slow
def test_the_panel_is_reported(fitted):
    assert sum(entry.weight for entry in fitted.panel_) == pytest.approx(1)
    assert {"hops", "linkx", "sbm-appnp", "grand"} <= {entry.model for entry in fitted.panel_}
    losses = sorted(entry.val_loss for entry in fitted.panel_)
    heaviest = max(fitted.panel_, key=lambda entry: entry.weight)
    assert heaviest.chosen
    assert heaviest.val_loss <= losses[len(losses) // 2]
    assert fitted.fitted_.val_loss <= losses[0] + 0.01


@pytest.mark.parametrize("alpha", [0.1, 0.3])
def test_sets_cover_as_promised(fitted, homophilous, alpha):
    task = homophilous
    sets = fitted.predict_set(alpha)[task.test]
    coverage = sets[np.arange(task.test.size), task.labels[task.test]].mean()
    # 250 test nodes and 120 scores: three standard errors of both together are about 0.1 at 0.1, 0.15 at 0.3.
    assert coverage > 1 - alpha - (0.1 if alpha == 0.1 else 0.15)


def test_nodes_without_edges_are_answered_too(fitted, homophilous):
    task = homophilous
    alone = fitted.predict(task.features[task.test])
    assert (alone == task.labels[task.test]).mean() > 0.5
    assert fitted.predict_entropy(task.features[task.test]).mean() > fitted.predict_entropy()[task.test].mean()


@pytest.mark.slow
def test_heterophily_does_no_harm():
    """Edges join different classes: the choice must be as good as the better of features alone and a GCN."""
    recipe = {"classes": 3, "degree": 6, "homophily": 0.05, "features": 8, "signal": 1.5}
    task = g3nn.synthetic(nodes=400, labels_per_class=15, val=120, seed=5, **recipe)
    accuracy = {}
    for model in ("auto", "mlp", "gcn"):
        classifier = G3NNClassifier(model, **CPU).fit(task.features, known(task), task.edges, val=task.val)
        accuracy[model] = classifier.evaluate(task.test, task.labels[task.test])["accuracy"]
    # Two choices that differ by a standard error of 235 nodes are alike.
    assert accuracy["auto"] > max(accuracy["mlp"], accuracy["gcn"]) - 0.03


@pytest.mark.slow
def test_a_pyg_graph_and_a_saved_model_in_another_process(homophilous, tmp_path):
    task = homophilous
    data = task.to_pyg()
    classifier = G3NNClassifier("sbm-gcn", **CPU).fit(data)
    assert (classifier.task_.labels[task.test] == -1).all()
    same = G3NNClassifier("sbm-gcn", **CPU).fit(task.features, known(task), task.edges, val=task.val)
    np.testing.assert_allclose(classifier.predict_proba(), same.predict_proba(), atol=1e-5)
    classifier.save(tmp_path / "model")
    np.save(tmp_path / "new.npy", task.features[:9])
    places = [tmp_path / name for name in ("model", "answers.npy", "new.npy")]
    subprocess.run([sys.executable, "-c", PROGRAM, *places], check=True)
    new = classifier.predict_proba(task.features[:9], [[400], [1]])
    np.testing.assert_array_equal(np.load(tmp_path / "answers.npy"), new)
    first, second = (one.fitted_.answerer.networks[0] for one in (load_model(tmp_path / "model"), classifier))
    assert torch.equal(*(one.model.state_dict()["posterior.weight1"] for one in (first, second)))


@pytest.mark.slow
def test_missing_features_cost_little(homophilous):
    task = homophilous
    X = task.features.copy()
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.3] = np.nan
    X[rng.random(len(X)) < 0.05] = np.nan
    found = {}
    for name, features, missing in (("whole", task.features, "error"), ("holes", X, "impute")):
        classifier = G3NNClassifier("sbm-gcn", missing=missing, **CPU)
        classifier.fit(features, known(task), task.edges, val=task.val)
        found[name] = classifier.evaluate(task.test, task.labels[task.test])["accuracy"]
    assert found["holes"] > found["whole"] - 0.1
