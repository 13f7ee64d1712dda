"""A rare class: how it is measured, thresholds, and sets that hold it as often as the others."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from pages import data_of, own_text
from sklearn.metrics import average_precision_score, precision_score, recall_score, roc_auc_score

from g3nn.base.errors import InputError
from g3nn.estimator import load_model
from g3nn.pages import write_model_report

NODES, RARE = 300, 22


@pytest.fixture(scope="module")
def truth():
    return np.where(np.arange(NODES) % NODES < RARE, "fraud", "fine")


@pytest.fixture(scope="module")
def fraud(truth, quick):
    """A classifier of 300 nodes, of which 22 are of a class. Every other node validates, and some have no label."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(NODES, 4)) + 1.5 * (truth == "fraud")[:, None]
    edges = rng.integers(NODES, size=(2, 500))
    y = truth.astype(object)
    y[NODES - 20 :] = None
    edges = np.unique(np.sort(edges[:, edges[0] != edges[1]], axis=0), axis=1)
    return quick(model="gcn").fit(X, y, edges, val=np.arange(0, NODES - 20, 2))


def test_a_rare_class_is_measured_beside_accuracy(fraud, truth):
    val = fraud.val_nodes_
    found, has = fraud.evaluate(val, truth[val]), truth[val] == "fraud"
    p, given = fraud.predict_proba()[val, 1], fraud.predict()[val] == "fraud"
    row = found["classes"]["fraud"]
    assert found["rare"] == ["fraud"]
    assert row["average_precision"] == pytest.approx(average_precision_score(has, p))
    assert row["auc"] == pytest.approx(roc_auc_score(has, p))
    assert row["recall"] == pytest.approx(recall_score(has, given))
    assert row["precision"] == pytest.approx(precision_score(has, given, zero_division=0))
    assert (row["support"], row["predicted"]) == (RARE / 2, given.sum())
    assert row["coverage"] == pytest.approx(fraud.predict_set(0.1)[val][has, 1].mean())
    assert json.loads(json.dumps(found)) == found
    assert fraud.fitted_.rare_scores == {"fraud": row}


def test_nothing_is_rare_where_classes_are_alike(fitted, graph):
    assert fitted.evaluate(graph.val, graph.truth[graph.val])["rare"] == []
    assert fitted.fitted_.rare_scores == {}


def test_validation_nodes_that_were_trained_on_say_nothing_of_a_rare_class(fraud):
    assert replace(fraud.fitted_, refitted=True).rare_scores == {"fraud": None}


def test_a_threshold_chooses_what_it_says(fraud, truth, tmp_path):
    found = fraud.threshold("fraud", recall=0.8)
    val = fraud.val_nodes_
    chosen, has = fraud.predict_proba()[val, 1] >= found.probability, truth[val] == "fraud"
    assert (found.chosen, found.hits) == (chosen.sum(), (chosen & has).sum())
    assert found.recall == chosen[has].mean() >= 0.8
    assert str(found).startswith(f"fraud from probability {found.probability:.3g} on: recall {found.recall:.2f} (")
    fraud.save(tmp_path / "model")
    assert load_model(tmp_path / "model").threshold("fraud", recall=0.8) == found


@pytest.mark.parametrize(
    ("label", "asked", "said"),
    [
        ("fraud", {}, "recall and precision: got neither; expected one of them"),
        ("fraud", {"recall": 0.5, "precision": 0.5}, "recall and precision: got both"),
        ("fraud", {"recall": 1.0}, "recall: got 1.0; expected a number strictly between 0 and 1"),
        ("frog", {"recall": 0.5}, "label: got 'frog'; expected one of the classes 'fine', 'fraud'"),
        ("fraud", {"recall": 0.99}, "recall: got 0.99, with 11 validation nodes of the class 'fraud'; .* at most 0.91"),
    ],
)
def test_what_is_no_threshold(fraud, label, asked, said):
    with pytest.raises(InputError, match=said):
        fraud.threshold(label, **asked)


def test_without_validation_nodes_there_is_no_threshold(fraud, monkeypatch):
    monkeypatch.setattr(fraud, "fitted_", replace(fraud.fitted_, refitted=True))
    with pytest.raises(InputError, match="validation nodes: got a model that was trained on them"):
        fraud.threshold("fraud", recall=0.5)


def test_the_page_has_a_card_and_thresholds_of_a_rare_class(fraud, tmp_path):
    write_model_report(fraud, tmp_path / "page.html")
    text = own_text(tmp_path / "page.html")
    assert "Validation, rare class fraud" in text
    assert "rough: fewer than 30 nodes of this class" in text
    table = data_of(text)["thresholds"]
    wanted = [row[1] for row in table["rows"]]
    # Of 11 nodes of the class.
    assert [one for one in wanted if one.startswith("recall")] == ["recall 0.5", "recall 0.8", "recall 0.9"]
    found = fraud.threshold("fraud", recall=0.8)
    row = table["rows"][wanted.index("recall 0.8")]
    assert row[2] == f"{found.probability:.3g}"
    assert row[3].startswith(f"{found.recall:.2f} ({found.hits} of 11; 95 % interval ")
    assert row[5] == (fraud.predict_proba()[:, 1] >= found.probability).sum()


def test_sets_by_class(fraud, truth, tmp_path):
    """Those of a class are compared with validation nodes of the class alone."""
    alpha, p, found = 0.2, fraud.predict_proba(), fraud.predict_set(0.2, by_class=True)
    val, linked = fraud.val_nodes_, ~fraud.fitted_.answers.isolated
    for k, name in enumerate(fraud.classes_):
        nodes = val[(truth[val] == name) & linked[val]]
        scores = np.sort(1 - p[nodes, k])
        limit = scores[int(np.ceil((len(nodes) + 1) * (1 - alpha))) - 1]
        likeliest = p.argmax(1) == k
        np.testing.assert_array_equal(found[linked, k], ((1 - p[:, k] <= limit) | likeliest)[linked])
        assert found[nodes, k].mean() >= 1 - alpha
    assert (found != fraud.predict_set(alpha)).any()
    assert fraud.predict_set(0.01, by_class=True)[:, 1].all()
    fraud.save(tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict_set(alpha, by_class=True), found)


def test_a_model_of_an_earlier_version_has_no_sets_by_class(fraud, monkeypatch):
    answerer = fraud.fitted_.answerer
    earlier = {kind: replace(one, scored=None) for kind, one in answerer.calibrations.items()}
    older = replace(fraud.fitted_, answerer=replace(answerer, calibrations=earlier))
    monkeypatch.setattr(fraud, "fitted_", older)
    assert fraud.predict_set(0.2).any()
    with pytest.raises(InputError, match=r"by_class: got a model that was saved without .* Fit again, and save"):
        fraud.predict_set(0.2, by_class=True)
